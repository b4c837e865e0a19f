"""``python -m pipelines.demo``: a small sample through the whole pipeline, in a few minutes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from pipelines.local import print_report, read_report, run_pipeline
from pipelines.samples import sample_of
from pipelines.settings import Settings, local_input
from pipelines.terminal import run_main
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.exports.lineage import find_lineage, lineage_lines
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS, ImageClassification

_DEFAULT = ImageClassification.name


def demo_settings(task: str, workdir: str, images: int | None, epochs: int | None) -> Settings:
    """Write the demo's data, and return the settings of its pipeline. Raises: RecordgenError."""
    sample = sample_of(task)
    training = sample.training if epochs is None else replace(sample.training, epochs=epochs)
    input_base, pattern = local_input(sample.write(os.path.join(workdir, "data"), images), "")
    return Settings(
        input_base=input_base,
        pattern=pattern,
        name=sample.name,
        options=ConvertOptions(task=task, **sample.options),
        training=training,
        min_score=sample.min_score,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.demo",
        description="Convert, check, train, evaluate and push a small sample of a task.",
    )
    add = parser.add_argument
    add("--task", choices=TASKS, default=_DEFAULT, help="default %(default)s")
    add("--workdir", type=storage.normal, help="default .demo, or .demo/TASK for other tasks")
    add("--images", type=int, metavar="N", help="only the first N; default: all, 900 or more")
    add("--epochs", type=int, metavar="N", help="passes over the training split; default 5 to 30")
    args = parser.parse_args(argv)
    if args.images is not None and args.images < 100:
        parser.error(f"--images must be at least 100 (got {args.images})")
    workdir = args.workdir or os.path.join(".demo", "" if args.task == _DEFAULT else args.task)

    def run() -> None:
        since = time.monotonic()
        print(f"writing {sample_of(args.task).data} …", flush=True)
        run_pipeline(demo_settings(args.task, workdir, args.images, args.epochs), workdir)
        report = read_report(workdir)
        print_report(report, workdir)
        if report.pushed_to is not None:
            print("\nlineage")
            for line in lineage_lines(find_lineage(report.pushed_to)):
                print(f"  {line}")
            print(f"\nagain: recordgen export lineage {os.path.relpath(report.pushed_to)}")
        print(f"\ndone in {time.monotonic() - since:.0f} s")

    quiet_libraries()
    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
