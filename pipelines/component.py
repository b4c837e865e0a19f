"""``python -m pipelines.component``: compile every step to a file that kfp can load by itself.

steps/convert.yaml           component.yaml as KFP's intermediate representation: consoles show the
                             descriptions of its inputs
steps/convert_artifact.yaml  its ``source`` is a Dataset artifact, from an importer or another step
steps/check.yaml, …          the further steps: statistics, train, evaluate, push
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from kfp import compiler

from pipelines.kubeflow_steps import COMPONENT_FILE, STEPS, load_step
from pipelines.terminal import run_main

FOLDER = COMPONENT_FILE.parent / "steps"


def compile_steps(folder: str, image: str | None = None) -> None:
    """Write all steps to ``folder``, each as STEP.yaml."""
    os.makedirs(folder, exist_ok=True)
    for name in STEPS:
        compiler.Compiler().compile(load_step(name, image), os.path.join(folder, f"{name}.yaml"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.component",
        description=f"Compile the steps {', '.join(STEPS)} to files that kfp can load.",
    )
    parser.add_argument("--folder", default=str(FOLDER), help="where to write them")
    parser.add_argument("--image", help="the image's name in your registry; default: the file's")
    args = parser.parse_args(argv)
    return run_main(lambda: compile_steps(args.folder, args.image))


if __name__ == "__main__":
    sys.exit(main())
