"""``python -m recordgen.kubeflow STEP --executor-input JSON``: run one step of a pipeline.

Logs are one JSON object per line on stderr, for the log collectors of clusters. Exit codes are the
same as of the ``recordgen`` command.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from recordgen.console import logs
from recordgen.console.quiet import quiet_libraries
from recordgen.console.stopping import exit_code_of, exit_now
from recordgen.console.supervising import supervised
from recordgen.kubeflow.execution import StepInput
from recordgen.registry import imported

#: Steps by name, in the order of a pipeline: a module of this package and its function
#: ``(step: StepInput) -> StepOutput``.
STEPS = {
    "fingerprint": "convert:fingerprint",
    "convert": "convert:run",
    "check": "convert:check",
    "statistics": "models:statistics",
    "train": "models:train",
    "evaluate": "models:evaluate",
    "push": "models:push",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a step and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m recordgen.kubeflow",
        description="Run one step of a pipeline in the container, for component.yaml.",
    )
    add = parser.add_argument
    add("step", choices=STEPS)
    add("--executor-input", required=True, metavar="JSON", help="the backend's value of {{$}}")
    text = "defaults of the compiled step's inputs"
    add("--defaults", default="{}", metavar="JSON", help=text)
    args = parser.parse_args(argv)
    _set_up_logs()
    quiet_libraries()

    def run() -> None:
        step = StepInput.parse(args.executor_input, args.defaults)
        imported(f"recordgen.kubeflow.{STEPS[args.step]}")(step).write(step)

    return exit_code_of(run)


def _set_up_logs() -> str:
    logs.set_up("json", level=logging.ERROR)
    return ""


if __name__ == "__main__":
    supervised(lambda: exit_now(main()), _set_up_logs)
