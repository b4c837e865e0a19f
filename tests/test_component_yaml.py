"""The Kubeflow step: kfp loads and compiles component.yaml, and what it compiles to runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import compiler, components, dsl

from recordgen.conversion import make_options
from recordgen.dataset import read_dataset
from recordgen.options import ConvertOptions
from recordgen.version import __version__
from tests.conftest import encoded, noise, run_python

MakeImages = Callable[[int], list[Path]]
MakeCsv = Callable[..., str]

ROOT = Path(__file__).parents[1]
COMPONENT = ROOT / "component.yaml"

# A value of every option that the step takes, none of them the default.
OTHER_VALUES: dict[str, Any] = {
    "seed": 7,
    "split_fractions": "60,20,20",
    "split_by": "content",
    "missing_split": "drop",
    "labels": "text",
    "shard_by": "label",
    "shard_mb": 0.5,
    "compression": "gzip",
    "check": "header",
    "max_image_mb": 2.5,
    "max_reject_fraction": 0.25,
    "allow_scheme": "https,ftp",
    "allow_root": "/,gs://bucket/images",
}


@pytest.fixture(scope="module")
def step() -> Any:
    return components.load_component_from_file(str(COMPONENT))


def compiled(step: Any, folder: Path, **values: Any) -> dict[str, Any]:
    """Return the specification of a pipeline that is this step alone."""

    @dsl.pipeline(name="records")
    def pipeline():  # not "-> None": kfp would take the postponed annotation for an output
        step(**values)

    path = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    specification: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return specification


def command_line(specification: dict[str, Any], output: Path) -> list[str]:
    """Return what a backend starts in the container: command and args, placeholders resolved."""
    [definition] = specification["components"].values()
    [executor] = specification["deploymentSpec"]["executors"].values()
    [task] = specification["root"]["dag"]["tasks"].values()
    values = {
        name: parameter["defaultValue"]
        for name, parameter in definition["inputDefinitions"]["parameters"].items()
        if "defaultValue" in parameter
    }
    for name, given in task["inputs"]["parameters"].items():
        values[name] = given["runtimeValue"]["constant"]

    def resolve(text: str) -> str:
        text = text.replace("{{$.outputs.artifacts['dataset'].path}}", str(output))
        return re.sub(
            r"\{\{\$\.inputs\.parameters\['(\w+)'\]\}\}", lambda m: as_text(values[m[1]]), text
        )

    container = executor["container"]
    return [resolve(text) for text in container["command"] + container["args"]]


def as_text(value: str | float) -> str:
    """Write numbers as backends do: the specification's JSON holds doubles, 7 comes as 7.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run it with the `recordgen` of this environment: that need not be on PATH."""
    assert command[0] == "recordgen"
    script = Path(sys.executable).with_name("recordgen")
    program = [str(script)] if script.exists() else ["-m", "recordgen.cli"]
    return run_python(*program, *command[1:])


def test_defaults_are_those_of_convert(step: Any) -> None:
    """An input named like an option has its default; nothing else is taken but the source."""
    options = {field.name for field in fields(ConvertOptions)}
    defaults = {name: given.default for name, given in step.component_spec.inputs.items()}
    assert defaults.pop("source") is None
    assert set(defaults) == set(OTHER_VALUES) <= options
    assert make_options(defaults) == ConvertOptions()


def test_every_input_and_output_is_described(step: Any) -> None:
    """Types are KFP's, and the pipeline's page has a sentence for each input."""
    written = yaml.safe_load(COMPONENT.read_text(encoding="utf-8"))
    assert all(item["description"] for item in written["inputs"] + written["outputs"])
    types = {name: given.type for name, given in step.component_spec.inputs.items()}
    assert types.pop("seed") == "Integer"
    numbers = {"shard_mb", "max_image_mb", "max_reject_fraction"}
    assert types == {name: "Float" if name in numbers else "String" for name in types}
    [(name, output)] = step.component_spec.outputs.items()
    assert (name, output.type) == ("dataset", "system.Dataset@0.0.1")


def test_runs_and_every_input_arrives(
    step: Any, make_images: MakeImages, make_csv: MakeCsv, tmp_path: Path
) -> None:
    """dataset.json records the inputs, also where an earlier try of the same task got to."""
    source = make_csv(f"TRAIN,{path},a" for path in make_images(3))
    output = tmp_path / "out/dataset"
    for given in ({}, OTHER_VALUES):
        done = run(command_line(compiled(step, tmp_path, source=source, **given), output))
        assert done.returncode == 0, done.stderr
        dataset = read_dataset(str(output))
        assert (dataset.examples, dataset.options) == (3, make_options(given).recorded())
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert (lines[0]["event"], lines[-1]["event"]) == ("started", "finished")


def test_bad_data_fails_the_step(step: Any, make_csv: MakeCsv, tmp_path: Path) -> None:
    """Too many rejects: exit code 1, the reason ends the log, no dataset.json for the next step."""
    (tmp_path / "good.jpg").write_bytes(encoded(noise(), "JPEG"))
    (tmp_path / "cut.jpg").write_bytes(encoded(noise(), "JPEG")[:-40])
    source = make_csv(["TRAIN,good.jpg,a", "TRAIN,cut.jpg,a"])
    done = run(command_line(compiled(step, tmp_path, source=source), tmp_path / "dataset"))
    assert done.returncode == 1
    *_, last = map(json.loads, done.stderr.splitlines())
    assert (last["event"], last["error"]) == ("failed", "TooManyRejectsError")
    assert last["message"].startswith("1 of 2 rows were rejected, more than the allowed 1.00%")
    assert "traceback" not in last
    assert not (tmp_path / "dataset/dataset.json").exists()


def test_image_is_of_this_version() -> None:
    """The step's placeholder image and the Dockerfile's label name the version of the package."""
    written = yaml.safe_load(COMPONENT.read_text(encoding="utf-8"))
    assert written["implementation"]["container"]["image"] == f"recordgen:{__version__}"
    assert f"ARG VERSION={__version__}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
