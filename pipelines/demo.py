"""``python -m pipelines.demo``: scanned digits through the whole pipeline, in a few minutes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from pipelines.config import PipelineConfig, local_config, metadata_path
from pipelines.terminal import run_main
from recordgen.quiet import quiet_libraries
from recordgen.training import TrainingConfig

# Digits of 8 by 8 pixels, enlarged so that the small CNN has something to halve.
TRAINING = TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3)
MIN_ACCURACY = 0.95


def demo_config(workdir: str, *, images: int | None = None) -> PipelineConfig:
    """Write the demo's data if it is not there, and return its pipeline's config."""
    from pipelines.digits import write_digits

    data = write_digits(os.path.join(workdir, "data"), images)
    return local_config(data, workdir, name="digits", training=TRAINING, min_accuracy=MIN_ACCURACY)


def run_demo(workdir: str, *, images: int | None = None) -> None:
    """Run the demo and print what came out of it.

    Raises:
        RecordgenError: something is at fault.
    """
    from pipelines.lineage import lineage_lines, pushed_model
    from pipelines.local import print_report, run_pipeline
    from pipelines.metadata import Metadata

    since = time.monotonic()
    workdir = os.path.abspath(workdir)
    print("writing scanned digits …", flush=True)
    report = run_pipeline(demo_config(workdir, images=images))
    print_report(report, workdir)
    if report.blessed:
        metadata = Metadata(metadata_path(workdir))
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
        description="Convert, check, train, evaluate and push scikit-learn's scanned digits.",
    )
    parser.add_argument("--workdir", default=".demo", help="folder for everything; default .demo")
    parser.add_argument("--images", type=int, metavar="N", help="only the first N of 1,797")
    args = parser.parse_args(argv)
    if args.images is not None and args.images < 100:
        parser.error(f"--images must be at least 100 (got {args.images})")
    quiet_libraries()
    return run_main(lambda: run_demo(args.workdir, images=args.images))


if __name__ == "__main__":
    sys.exit(main())
