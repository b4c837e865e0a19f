"""``python -m pipelines.component``: compile component.yaml to KFP's intermediate representation.

component.ir.yaml           the same step; consoles show the descriptions of its inputs
component.artifact.ir.yaml  its ``source`` is a Dataset artifact, from an importer or another step
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler, components

from pipelines.terminal import run_main

COMPONENT_FILE = Path(__file__).parents[1] / "component.yaml"
STEP_FILE = "component.ir.yaml"
ARTIFACT_STEP_FILE = "component.artifact.ir.yaml"

_ARTIFACT_SOURCE = {
    "name": "source",
    "type": "Dataset",
    "description": "AutoML import file, or a folder of them, as an artifact.",
}


def load_step(image: str | None = None) -> Any:
    """Return the step of component.yaml as kfp's component; ``image`` replaces the file's."""
    return to_component(_specification(), image)


def load_step_from_artifact(image: str | None = None) -> Any:
    """Return the step with a Dataset artifact as ``source``.

    It is a component of its own because kfp's local runs have no optional input artifacts.
    """
    specification = _specification()
    inputs = specification["inputs"]
    specification["inputs"] = [
        _ARTIFACT_SOURCE if item["name"] == _ARTIFACT_SOURCE["name"] else item for item in inputs
    ]
    return to_component(specification, image)


def compile_steps(folder: str, image: str | None = None) -> None:
    """Write both compiled steps to ``folder``."""
    os.makedirs(folder, exist_ok=True)
    for step, name in (
        (load_step(image), STEP_FILE),
        (load_step_from_artifact(image), ARTIFACT_STEP_FILE),
    ):
        compiler.Compiler().compile(step, os.path.join(folder, name))


def _specification() -> dict[str, Any]:
    specification: dict[str, Any] = yaml.safe_load(COMPONENT_FILE.read_text(encoding="utf-8"))
    return specification


def to_component(specification: dict[str, Any], image: str | None = None) -> Any:
    """Return kfp's component for a specification like component.yaml's."""
    if image is not None:
        specification["implementation"]["container"]["image"] = image
    text = yaml.safe_dump(specification, allow_unicode=True)
    component = components.load_component_from_text(text)
    # kfp drops the descriptions of such a file.
    for kind in ("inputs", "outputs"):
        for item in specification[kind]:
            found = getattr(component.component_spec, kind)[item["name"]]
            found.description = item["description"]
    return component


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.component",
        description=f"Compile component.yaml to {STEP_FILE} and {ARTIFACT_STEP_FILE}.",
    )
    parser.add_argument("--folder", default=str(COMPONENT_FILE.parent), help="where to write them")
    parser.add_argument("--image", help="the image's name in your registry; default: the file's")
    args = parser.parse_args(argv)
    return run_main(lambda: compile_steps(args.folder, args.image))


if __name__ == "__main__":
    sys.exit(main())
