"""``python -m pipelines.demo``: a small sample through the whole pipeline, in a few minutes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from pipelines.config import PipelineConfig, local_config
from pipelines.samples import sample_of
from pipelines.terminal import run_main
from recordgen.console.quiet import quiet_libraries
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS, ImageClassification

_DEFAULT = ImageClassification.name


def demo_config(
    task: str, workdir: str, *, images: int | None = None, epochs: int | None = None
) -> PipelineConfig:
    """Write the demo's data, and return the config of its pipeline."""
    sample = sample_of(task)
    training = sample.training if epochs is None else replace(sample.training, epochs=epochs)
    return local_config(
        sample.write(os.path.join(workdir, "data"), images),
        workdir,
        name=sample.name,
        options=ConvertOptions(task=task, **sample.options),
        training=training,
        min_score=sample.min_score,
    )


def run_demo(
    task: str, workdir: str, *, images: int | None = None, epochs: int | None = None
) -> None:
    """Run the demo of a task, and print its results. Raises: RecordgenError."""
    from pipelines.lineage import lineage_lines, pushed_model
    from pipelines.local import print_report, run_pipeline
    from pipelines.metadata import Metadata

    since = time.monotonic()
    workdir = os.path.abspath(workdir)
    print(f"writing {sample_of(task).data} …", flush=True)
    store = run_pipeline(demo_config(task, workdir, images=images, epochs=epochs))
    if print_report(store, workdir):
        metadata = Metadata(store)
        print("\nlineage")
        for line in lineage_lines(metadata, pushed_model(metadata)):
            print(f"  {line}")
    print(
        f"\ndone in {time.monotonic() - since:.0f} s; again: python -m pipelines.lineage "
        f"--workdir {os.path.relpath(workdir)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.demo",
        description="Convert, check, train, evaluate and push a small sample of a task.",
    )
    add = parser.add_argument
    add("--task", choices=TASKS, default=_DEFAULT, help="default %(default)s")
    add("--workdir", help="folder for everything; default .demo, or .demo/TASK for other tasks")
    add("--images", type=int, metavar="N", help="only the first N; default: all, 900 or more")
    add("--epochs", type=int, metavar="N", help="passes over the training split; default 5 to 30")
    args = parser.parse_args(argv)
    if args.images is not None and args.images < 100:
        parser.error(f"--images must be at least 100 (got {args.images})")
    quiet_libraries()
    default = ".demo" if args.task == _DEFAULT else os.path.join(".demo", args.task)
    workdir = args.workdir or default
    return run_main(lambda: run_demo(args.task, workdir, images=args.images, epochs=args.epochs))


if __name__ == "__main__":
    sys.exit(main())
