"""Run steps of Kubeflow as a backend does, by their own specification."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from google.protobuf import json_format

from recordgen.kubeflow.execution import StepInput
from tests.conftest import run_python

#: A value other than the default for every option of a conversion.
OTHER_VALUES: dict[str, Any] = {
    "task": "declared",
    "format": "csv",
    "encoding": "cp1252",
    "layout": "{split}/{label}/{name}.jpg",
    "image_root": "photos/",
    "columns": "split=split,target:number=price,weight=weight",
    "schema": '{"split": "split", "photo": "image", "breed": "label"}',
    "seed": 7,
    "split": "60,20,20,names=no",
    "eval_from": "train:10",
    "group_by": "price",
    "duplicates": "drop",
    "stratify": "label",
    "missing_split": "drop",
    "labels": "text",
    "label_separator": "|",
    "vocabulary": "labels.txt",
    "shard_by": "label",
    "shard_mb": 0.5,
    "compression": "gzip",
    "check": "header",
    "image_size": "8x8",
    "resize": "fit",
    "encode": "mixed:jpeg:80",
    "bad_boxes": "drop",
    "box_orientation": "upright",
    "limit": "mb=2.5,pixels=1000000,seconds=60,memory=500",
    "max_reject_fraction": 0.25,
    "lint": ["error", "DARK", "-LEAK", "DARK=20", "TINY=9"],
    "fail_on": ["CONFLICT"],
    "allow": ["https", "ftp", "/", "gs://bucket/images"],
    "threads": 3,
}


@dataclass(frozen=True)
class StepCall:
    """A finished step.

    Attributes:
        done: its process.
        output_file: its output for the backend.
        uris: uris of its output artifacts, by name.
    """

    done: subprocess.CompletedProcess[str]
    output_file: Path
    uris: Mapping[str, str]

    @property
    def parameters(self) -> dict[str, Any]:
        return self._output()["parameterValues"]

    def metadata(self, name: str) -> dict[str, Any]:
        [artifact] = self._output()["artifacts"][name]["artifacts"]
        assert (artifact["name"], artifact["uri"]) == (f"resource-of-{name}", self.uris[name])
        return artifact["metadata"]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its log, in which every line must be JSON, for collectors."""
        return [json.loads(line) for line in self.done.stderr.splitlines()]

    def _output(self) -> dict[str, Any]:
        return json.loads(self.output_file.read_text(encoding="utf-8"))


def content(path: Path) -> Any:
    """Return the first document of a YAML file."""
    # libyaml's parser is ten times as fast as PyYAML's own.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return next(yaml.load_all(path.read_text(encoding="utf-8"), Loader=loader))


def specification(component: Any) -> dict[str, Any]:
    """Return the compiled specification of a component."""
    return json_format.MessageToDict(component.pipeline_spec)


def command_of(component: Any) -> list[str]:
    """Return the container's command, which ends with the placeholder of the executor input."""
    [executor] = specification(component)["deploymentSpec"]["executors"].values()
    container = executor["container"]
    return [*container["command"], *container["args"]]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def artifact(name: str, given: str | tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return an input artifact of a uri, or of a uri and the metadata of its producer."""
    uri, metadata = (given, {}) if isinstance(given, str) else given
    return {"name": f"resource-of-{name}", "uri": uri, "metadata": metadata}


def executor_input(
    component: Any, root: str, folder: Path, inputs: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return KFP's ExecutorInput of a task.

    Args:
        component: the component, loaded by kfp.
        root: folder or URL of the task's output artifacts.
        folder: the folder for all other outputs.
        inputs: input artifacts, see :func:`artifact`; a list for an input of several.
        values: parameters; others have their defaults. Numbers are doubles, as in protobuf's JSON.
    """
    [definition] = specification(component)["components"].values()
    taken, made = definition.get("inputDefinitions", {}), definition["outputDefinitions"]
    parameters = {
        name: item["defaultValue"]
        for name, item in taken.get("parameters", {}).items()
        if "defaultValue" in item
    }
    given = {name: float(value) if type(value) is int else value for name, value in values.items()}
    assert set(given) <= set(taken.get("parameters", {}))
    artifacts = taken.get("artifacts", {})
    needed = {name for name, item in artifacts.items() if not item.get("isOptional")}
    assert needed <= set(inputs) <= set(artifacts)
    read = {
        name: {"artifacts": [artifact(name, given) for given in as_list(value)]}
        for name, value in inputs.items()
    }
    results = {
        name: {"outputFile": str(folder / "parameters" / name)}
        for name in made.get("parameters", {})
    }
    written = {
        name: {"artifacts": [{**artifact(name, f"{root}/{name}"), "type": item["artifactType"]}]}
        for name, item in made.get("artifacts", {}).items()
    }
    file = str(folder / "outputs/executor_output.json")
    return {
        "inputs": {"parameterValues": {**parameters, **given}, "artifacts": read},
        "outputs": {"parameters": results, "artifacts": written, "outputFile": file},
    }


def step_input(
    component: Any, folder: Path, inputs: Mapping[str, Any] | None = None, **values: Any
) -> StepInput:
    """Return a step's decoded input; its artifacts go to ``folder``."""
    found = executor_input(component, str(folder), folder, inputs or {}, values)
    return StepInput.parse(json.dumps(found))


def call(
    component: Any,
    folder: Path,
    *,
    root: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    run: Callable[..., subprocess.CompletedProcess[str]] = run_python,
    **values: Any,
) -> StepCall:
    """Run a step's own command in this environment; its artifacts go to ``root``, or ``folder``."""
    invocation = executor_input(component, root or str(folder), folder, inputs or {}, values)
    python, *command, placeholder = command_of(component)
    assert (python, placeholder) == ("python", "{{$}}")
    done = run(*command, json.dumps(invocation))
    outputs = invocation["outputs"]
    uris = {name: item["artifacts"][0]["uri"] for name, item in outputs["artifacts"].items()}
    return StepCall(done, Path(outputs["outputFile"]), uris)
