"""``python -m pipelines.samples TASK FOLDER``: write the sample of a task."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipelines.samples import sample_of
from pipelines.terminal import run_main
from recordgen.registry import OWN


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.samples",
        description="Write the data of a task's demo; print the path to import.",
    )
    parser.add_argument("task", choices=OWN, metavar="TASK", help="one of %(choices)s")
    parser.add_argument("folder", metavar="FOLDER", help="created if it does not exist")
    parser.add_argument("--examples", type=int, metavar="N", help="only the first N; default: all")
    args = parser.parse_args(argv)
    return run_main(lambda: print(sample_of(args.task).write(args.folder, args.examples)))


if __name__ == "__main__":
    sys.exit(main())
