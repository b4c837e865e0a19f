"""The steps' files as kfp loads them, and the steps convert and check as a backend runs them."""

import json
import re
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from kfp import components

from pipelines import component
from pipelines.component import STEPS, load_step
from recordgen.conversion.api import make_options
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import DataError, LintError, SourceError, UsageError
from recordgen.kubeflow.__main__ import main as run_step
from recordgen.kubeflow.convert import check, run, to_options
from recordgen.options import OPTIONS, ConvertOptions, without_unset
from recordgen.version import __version__
from tests import steps
from tests.conftest import encoded, noise
from tests.preloaded import WITH_BEAM

ROOT = Path(__file__).parents[2]
COMPONENT = ROOT / "component.yaml"

# Inputs of the step that are not options of the conversion.
STEP_INPUTS = {"source": None, "beam_args": [], "transfer": "auto", "previous": None}
STEP_INPUTS |= {"dataset_version": ""}

NUMBERS = """rows examples train_examples eval_examples test_examples rejects lint_errors
    lint_warnings label_count"""
OUTPUT_PARAMETERS = {**dict.fromkeys(NUMBERS.split(), "NUMBER_INTEGER"), "digest": "STRING"}


@pytest.fixture(scope="module")
def step():
    return components.load_component_from_file(str(COMPONENT))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The compiled file of each step by name, with the name of an image."""
    folder = tmp_path_factory.mktemp("steps")
    assert component.main(["--folder", str(folder), "--image", "registry/recordgen:7"]) == 0
    return {path.stem: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def artifact_step(files):
    return components.load_component_from_file(str(files["convert_artifact"]))


@pytest.fixture
def rows(make_images):
    """Lines of an import file of ten images: eight for train, one each for eval and test."""
    names = ["TRAIN"] * 8 + ["VALIDATION", "TEST"]
    rows = zip(names, make_images(10), strict=True)
    return [f"{name},{path},{path.stem[-1]}" for name, path in rows]


# --- as kfp reads it --------------------------------------------------------------------------


def test_defaults_are_those_of_convert(step):
    """component.yaml has each option with its default."""
    defaults = {name: given.default for name, given in step.component_spec.inputs.items()}
    for name, default in STEP_INPUTS.items():
        assert defaults.pop(name) == default
    assert set(defaults) == set(steps.OTHER_VALUES) == set(OPTIONS)
    assert make_options(without_unset(defaults, OPTIONS)) == ConvertOptions()


def test_every_input_and_output_is_typed_and_described(step):
    """Types are those of the options and of the counts."""
    written = yaml.safe_load(COMPONENT.read_text(encoding="utf-8"))
    assert all(item["description"] for item in written["inputs"] + written["outputs"])
    assert set(written["metadata"]["annotations"]) == {"author", "source"}
    kinds = {bool: "Boolean", int: "Integer", float: "Float", str: "String", list: "List"}
    values = {**steps.OTHER_VALUES, **STEP_INPUTS, "source": ""}
    types = {name: given.type for name, given in step.component_spec.inputs.items()}
    del values["previous"]
    assert types.pop("previous").startswith("system.Dataset")
    assert types == {name: kinds[type(value)] for name, value in values.items()}
    [definition] = steps.specification(step)["components"].values()
    outputs = definition["outputDefinitions"]
    found = {name: item["parameterType"] for name, item in outputs["parameters"].items()}
    assert found == OUTPUT_PARAMETERS
    artifacts = outputs["artifacts"].items()
    assert {name: item["artifactType"]["schemaTitle"] for name, item in artifacts} == {
        "dataset": "system.Dataset",
        "metrics": "system.Metrics",
        "report": "system.HTML",
    }


@pytest.mark.parametrize("name", STEPS)
def test_compiled_files_describe_every_input_and_name_the_image(name, files):
    """Steps, inputs and outputs have descriptions, some of which kfp drops when it reads a file."""
    loaded = components.load_component_from_file(str(files[name]))
    assert loaded.description == STEPS[name]["description"]
    compiled = steps.content(files[name])
    for definition in (compiled["root"], *compiled["components"].values()):
        for side in ("inputDefinitions", "outputDefinitions"):
            for items in definition.get(side, {}).values():
                assert all(item["description"] for item in items.values())
    [executor] = compiled["deploymentSpec"]["executors"].values()
    command = STEPS[name]["implementation"]["container"]["command"][-1]
    assert executor["container"]["command"] == ["python", "-m", "recordgen.kubeflow", command]
    assert executor["container"]["image"] == "registry/recordgen:7"


@pytest.mark.parametrize("name", STEPS)
def test_an_input_that_went_is_ignored_at_its_default(name, files, tmp_path, caplog):
    """A pipeline passes a value for every input that there was when it was compiled."""
    if name == "statistics" and find_spec("tensorflow_data_validation") is None:
        pytest.skip("TFDV is not installed on this leg")
    compiled = components.load_component_from_file(str(files[name]))
    [definition] = steps.specification(compiled)["components"].values()
    needed = {
        kind: [name for name, item in items.items() if not {"isOptional", "defaultValue"} & {*item}]
        for kind, items in definition["inputDefinitions"].items()
    }
    artifacts, values = (
        dict.fromkeys(needed.get(kind, ()), f"{tmp_path}/nowhere")
        for kind in ("artifacts", "parameters")
    )
    invocation = steps.executor_input(compiled, str(tmp_path), tmp_path, artifacts, values)
    passed = invocation["inputs"]["parameterValues"]
    _, _, _, *words, defaults, flag, _ = steps.command_of(compiled)
    assert {**json.loads(defaults), **values} == passed
    defaults = json.dumps({**json.loads(defaults), "went": [5]})
    for value, code in (([5.0], 1), ([6.0], 2)):
        passed["went"] = value
        assert run_step([*words, defaults, flag, json.dumps(invocation)]) == code
        assert ("went is no input" in caplog.text) == (code == 2)


def test_image_is_of_this_version():
    """The named image has the version of the package."""
    written = yaml.safe_load(COMPONENT.read_text(encoding="utf-8"))
    assert written["implementation"]["container"]["image"] == f"recordgen:{__version__}"


# --- as a backend runs it ---------------------------------------------------------------------

converted = partial(steps.call, run=WITH_BEAM.run)


@pytest.mark.parametrize("name", steps.OTHER_VALUES)
def test_every_input_arrives(name, step, tmp_path):
    """The conversion gets each option as the call gave it, and the defaults of the others."""
    also = {"image_size": "8x8"} if name == "resize" else {}  # which acts on a size alone
    given = {name: steps.OTHER_VALUES[name], **also}
    parameters = steps.step_input(step, tmp_path, source="a.csv", **given).parameters
    options = to_options({key: value for key, value in parameters.items() if key in OPTIONS})
    assert options == replace(make_options(given), confined=True)


def test_counts_are_parameters_and_artifacts_have_metadata(step, rows, make_csv, tmp_path):
    """Counts, metadata and report agree with the dataset, of which its version is no part."""
    source = make_csv([*rows, "TRAIN,nowhere.jpg,0"])
    done = steps.call(step, tmp_path, source=source, max_reject_fraction=0.5, dataset_version="v7")
    assert (done.lines[0]["event"], done.lines[-1]["event"]) == ("started", "finished")
    dataset = read_dataset(done.uris["dataset"])
    warnings = sum(dataset.lint.values())
    assert warnings
    counts = (11, 10, 8, 1, 1, 1, 0, warnings, 10)
    counted = dict(zip(NUMBERS.split(), counts, strict=True))
    assert done.parameters == {**counted, "digest": dataset.digest}
    about = ("digest", "bytes", "labels_digest", "task", "seed", "recordgen_version")
    assert done.metadata("dataset") == {
        **{name: getattr(dataset, name) for name in about},
        **{name: counted[name] for name in ("rows", "examples", "rejects", "label_count")},
        "splits": {"train": 8, "eval": 1, "test": 1},
        "labels": list(dataset.labels),
    }
    assert (dataset.task, dataset.recordgen_version) == ("image_classification", __version__)
    metrics = done.metadata("metrics")
    assert all(isinstance(value, int | float) for value in metrics.values())
    assert (metrics["examples"], metrics["reject_fraction"]) == (10, 0.090909)
    page = Path(done.uris["report"]).read_text(encoding="utf-8")
    assert page.startswith("<!")
    assert page == Path(done.uris["dataset"], "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["labels.csv", ""], ids=["file", "folder"])
def test_an_artifact_is_read_as_a_file_or_folder(artifact_step, rows, make_csv, tmp_path, name):
    """An artifact is an import file, or a folder that holds one."""
    make_csv(rows)
    done = converted(artifact_step, tmp_path / "task", inputs={"source": f"{tmp_path}/{name}"})
    assert done.done.returncode == 0, done.done.stderr
    assert done.parameters["examples"] == 10


def test_other_artifacts_are_refused(artifact_step, tmp_path):
    """An artifact without an import file is an error."""
    given = steps.step_input(artifact_step, tmp_path, {"source": f"{tmp_path}/nothing"})
    with pytest.raises(SourceError):
        run(given)


def test_bad_data_fails_the_step(step, make_csv, tmp_path):
    """The log ends with the reason, and nothing looks finished."""
    (tmp_path / "good.jpg").write_bytes(encoded(noise(), "JPEG"))
    (tmp_path / "cut.jpg").write_bytes(encoded(noise(), "JPEG")[:-40])
    source = make_csv(["TRAIN,good.jpg,a", "TRAIN,cut.jpg,a"])
    done = converted(step, tmp_path / "task", source=source)
    assert done.done.returncode == 1
    last = done.lines[-1]
    assert (last["event"], last["error"]) == ("failed", "TooManyRejectsError")
    reason, row = last["message"].splitlines()
    assert reason.startswith("rejected 1 of 2 rows, more than the allowed 1.00%")
    assert row.strip().startswith(f"{source}:2: ")
    assert "traceback" not in last
    assert not Path(done.uris["dataset"], "dataset.json").exists()
    assert not done.output_file.exists()


# inputs; the error
WRONG_INPUTS = [
    ({"seed": 1.5}, "seed must be a whole number of 64 bits (got 1.5)"),
    ({"check": "all"}, "check must be one of decode, header, none (got 'all')"),
    ({"transfer": "fuse"}, "transfer must be one of auto, uri, path (got 'fuse')"),
    ({"allow": [""]}, "allow must not be empty if it is given (got [''])"),
    ({"beam_args": ["--runner=x"]}, "Beam does not accept --runner=x"),
]


@pytest.mark.parametrize(("given", "message"), WRONG_INPUTS)
def test_a_wrong_input_is_named(step, rows, make_csv, tmp_path, given, message):
    """The error names the input and its value."""
    found = steps.step_input(step, tmp_path, source=make_csv(rows), **given)
    with pytest.raises(UsageError, match=re.escape(message)):
        run(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [("{{$}}", "JSONDecodeError"), ("[]", "AttributeError"), ("{}", "KeyError('outputs')")],
)
def test_a_step_started_by_hand_explains_its_input(text, found):
    """A value that is no ExecutorInput is quoted in the error."""
    done = WITH_BEAM.run("-m", "recordgen.kubeflow", "convert", "--executor-input", text)
    assert done.returncode == 2
    message = json.loads(done.stderr)["message"]
    assert message.startswith("--executor-input must be KFP's ExecutorInput as JSON")
    assert found in message


def test_labels_keep_the_numbers_of_an_earlier_dataset(step, rows, make_csv, tmp_path):
    """``previous`` numbers the labels, and excludes ``vocabulary``."""
    named = [f"{row.rsplit(',', 1)[0]},cat{int(row[-1]) // 2}" for row in rows]
    first = converted(step, tmp_path / "a", source=make_csv(named)).uris["dataset"]
    source = make_csv([row.replace("cat3", "ape") for row in named])
    second = converted(step, tmp_path / "b", source=source, inputs={"previous": first})
    assert second.done.returncode == 0, second.done.stderr
    assert read_dataset(second.uris["dataset"]).labels == (*read_dataset(first).labels, "ape")
    given = steps.step_input(step, tmp_path, {"previous": first}, source=source, vocabulary=first)
    with pytest.raises(UsageError, match="vocabulary"):
        run(given)


# --- check ------------------------------------------------------------------------------------


def test_check_reports_what_it_finds(rows, make_csv, tmp_path):
    """Findings and rejects are written, and no dataset."""
    source = make_csv([*rows, "TRAIN,nowhere.jpg,0"])
    values = {"source": source, "max_reject_fraction": 0.5}
    output = check(steps.step_input(load_step("check"), tmp_path / "task", **values))
    assert (output.parameters["rows"], output.parameters["examples"]) == (11, 10)
    assert (output.parameters["rejects"], output.parameters["lint_errors"]) == (1, 0)
    assert output.metadata["metrics"]["reject_fraction"] == 0.090909
    lines = (tmp_path / "task/findings/lint.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == output.parameters["lint_warnings"]
    [reject] = (tmp_path / "task/findings/rejects.jsonl").read_text("utf-8").splitlines()
    assert json.loads(reject)["line"] == 11
    assert not list(tmp_path.rglob("dataset.json"))


def test_check_fails_where_a_conversion_would(rows, make_csv, tmp_path):
    """So does a finding that ``fail_on`` names."""
    source = make_csv([*rows, "TRAIN,nowhere.jpg,0"])
    with pytest.raises(DataError, match="11"):
        check(steps.step_input(load_step("check"), tmp_path / "task", source=source))
    values = {"source": make_csv(rows), "fail_on": ["FEW_EXAMPLES"]}
    with pytest.raises(LintError, match=r"fail_on.*FEW_EXAMPLES"):
        check(steps.step_input(load_step("check"), tmp_path / "task", **values))
