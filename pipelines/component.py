"""``python -m pipelines.component``: compile every step to a file that kfp can load by itself.

The files are written to ``steps/``, or to another folder:

steps/convert.yaml           component.yaml as KFP's intermediate representation: consoles show the
                             descriptions of its inputs
steps/convert_artifact.yaml  its ``source`` is a Dataset artifact, from an importer or another step
steps/check.yaml, …          the further steps of pipelines/steps.yaml

All steps share one image and start ``python -m recordgen.kubeflow STEP`` with KFP's own description
of the call: nothing is installed when a step starts, and the image needs no kfp.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler, components

from pipelines.terminal import run_main
from recordgen import storage
from recordgen.options import Option
from recordgen.training.config import TRAINING_OPTIONS

COMPONENT_FILE = Path(__file__).parents[1] / "component.yaml"

#: The names of types in KFP.
TYPES = {str: "String", int: "Integer", float: "Float", bool: "Boolean", list: "List"}

# Inputs of the conversion alone.
_OF_CONVERT = ("transfer", "dataset_version", "previous")


def _setting(option: Option) -> dict[str, str]:
    """Return the input for a setting of a training; KFP has no None and no tuples."""
    unset_value: Any = [] if len(option.metavar.split()) > 1 else option.kind()
    default = unset_value if option.default is None else option.default
    unset = f"; {default or 'empty'}: {option.unset}" if option.unset else ""
    return {
        "name": "model_name" if option.name == "model" else option.name,  # an output is named model
        "type": TYPES[type(default)],
        "description": f"{option.plain_help}{unset.replace('`', '')}",
        "default": default if isinstance(default, str) else json.dumps(default),
    }


def _steps() -> Mapping[str, dict[str, Any]]:
    """Return every step in KFP's component format, in the order of a pipeline."""
    convert = yaml.safe_load(COMPONENT_FILE.read_text(encoding="utf-8"))
    steps = yaml.safe_load(Path(__file__).with_name("steps.yaml").read_text(encoding="utf-8"))
    read = [each for each in convert["inputs"] if each["name"] not in _OF_CONVERT]
    steps["check"]["inputs"] = read
    steps["fingerprint"]["inputs"] = [each for each in read if each["name"] != "beam_args"]
    steps["check"]["outputs"] += [each for each in convert["outputs"] if each["type"] == "Integer"]
    steps["train"]["inputs"] += map(_setting, TRAINING_OPTIONS.values())
    container = convert["implementation"]["container"]
    for name, step in {"convert": convert, **steps}.items():
        # The step knows its own defaults, whatever the version of the image.
        defaults = {
            each["name"]: each["default"]
            if each["type"] == "String"
            else json.loads(each["default"])
            for each in step["inputs"]
            if "default" in each
        }
        args = ["--defaults", json.dumps(defaults), *container["args"]]
        own = {**container, "command": [*container["command"][:-1], name], "args": args}
        step.update(name=name, implementation={"container": own})
    # A separate step, because kfp's local runs have no optional input artifacts.
    text = "AutoML import file, or a folder of them, as an artifact."
    source = {"name": "source", "type": "Dataset", "description": text}
    of_artifact = {**convert, "inputs": [source, *convert["inputs"][1:]]}
    return {"convert": convert, "convert_artifact": of_artifact, **steps}


#: Every step by name, in KFP's component format, in the order of a pipeline.
STEPS = _steps()


def load_step(name: str, image: str | None = None) -> Any:
    """Return one of :data:`STEPS` as kfp's component; ``image`` overrides component.yaml's."""
    step = STEPS[name]
    container = {**step["implementation"]["container"]}
    if image:
        container["image"] = image
    own = {**step, "implementation": {"container": container}}
    component = components.load_component_from_text(yaml.safe_dump(own, allow_unicode=True))
    # kfp drops the descriptions when it loads this format, which has no lists of artifacts.
    component.component_spec.description = step["description"]
    for side in ("inputs", "outputs"):
        for value in step[side]:
            found = getattr(component.component_spec, side)[value["name"]]
            found.description = value["description"]
            found.is_artifact_list = "list" in value.get("annotations", ())
    return component


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
    add = parser.add_argument
    add("--folder", type=storage.normal, default="steps", help="default %(default)s")
    add("--image", help="the image's name in your registry; default: the file's")
    args = parser.parse_args(argv)
    return run_main(lambda: compile_steps(args.folder, args.image))


if __name__ == "__main__":
    sys.exit(main())
