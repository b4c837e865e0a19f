"""The steps after the conversion: statistics, training, evaluation, push; paths of artifacts."""

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import recordgen
from pipelines.component import load_step
from pipelines.samples.digits import write_digits
from recordgen.core.dataset.joining import join_datasets
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.kubeflow import convert, execution, models
from recordgen.options import without_unset
from recordgen.training import TrainingConfig
from recordgen.training.config import TRAINING_OPTIONS
from recordgen.training.measures import ManyLabelsAccumulator, OneLabelAccumulator
from tests.preloaded import WITH_TENSORFLOW
from tests.steps import call, step_input

IMAGE = "recordgen:test"

STEP_SETTINGS = {*TRAINING_OPTIONS, "model_name"}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A dataset of 300 digits."""
    folder = tmp_path_factory.mktemp("digits")
    recordgen.convert(write_digits(str(folder / "data"), 300), str(folder / "dataset"))
    return str(folder / "dataset")


@pytest.fixture(scope="module")
def trained(digits, tmp_path_factory):
    """A model that knows most digits."""
    step, folder = load_step("train", IMAGE), tmp_path_factory.mktemp("train")
    given = {"inputs": {"dataset": digits}, "run": WITH_TENSORFLOW.run}
    return call(step, folder, **given, image_size=[16, 16], epochs=12, learning_rate=3e-3)


# --- places -----------------------------------------------------------------------------------


# an artifact's uri; its path in the launcher's folder; the default path of convert
URIS = [
    ("gs://b/a", "/gcs/b/a", "gs://b/a"),
    ("minio://b/a", "/minio/b/a", "/minio/b/a"),
    ("s3://b/a", "/s3/b/a", "/s3/b/a"),
    ("/tmp/b/a", "/tmp/b/a", "/tmp/b/a"),
    ("https://b/a", "https://b/a", "https://b/a"),
]


@pytest.mark.parametrize(("uri", "path", "auto"), URIS)
def test_gs_is_used_directly_and_other_schemes_through_a_folder(uri, path, auto):
    """``auto`` decides by the scheme; the others always do the same."""
    artifact = execution.Artifact("", uri)
    assert execution.launcher_path(uri) == execution.place_of(artifact, "path") == path
    assert execution.place_of(artifact, "auto") == auto
    assert execution.place_of(artifact, "uri") == uri


def test_what_is_read_is_where_it_is(tmp_path):
    """An artifact without a copy is read at its uri."""
    (tmp_path / "there").mkdir()
    for uri in (f"{tmp_path}/there", "gs://bucket/not/copied"):
        assert execution.read_place(execution.Artifact("", uri)) == uri
    assert execution.write_place(execution.Artifact("", f"{tmp_path}/a/b/c")) == f"{tmp_path}/a/b/c"
    assert (tmp_path / "a/b").is_dir()


# --- execution --------------------------------------------------------------------------------


def test_inputs_keep_their_types():
    """Whole doubles become ints, also in lists; an empty artifact is not given."""
    values = {"a": 7.0, "b": 0.5, "c": [1.0, {"x": 2.0}], "d": None, "e": True}
    given = {"artifacts": [{"name": "1", "uri": "u", "metadata": {"m": 1}}]}
    inputs = {"parameterValues": values, "artifacts": {"f": given, "g": {}}}
    step = execution.StepInput.parse(json.dumps({"inputs": inputs, "outputs": {"outputFile": "o"}}))
    assert step.parameters == {"a": 7, "b": 0.5, "c": [1, {"x": 2}], "e": True}
    assert isinstance(step.parameters["a"], int)
    assert step.artifacts == {"f": (execution.Artifact("1", "u", {"m": 1}),)}
    assert (step.path("f"), step.paths("g", "f", "h")) == ("u", ["u"])
    assert (step.outputs, step.output_file) == ({}, "o")


def test_only_what_is_asked_for_is_handed_back(tmp_path):
    """Components of older versions get no unknown outputs."""
    file = tmp_path / "a/executor_output.json"
    known = {"o": execution.Artifact("1", "u")}
    step = execution.StepInput({}, {}, known, frozenset({"a"}), str(file))
    execution.StepOutput({"a": 1, "b": 2}, {"o": {"n": 3}, "p": {}}).write(step)
    artifacts = {"o": {"artifacts": [{"name": "1", "uri": "u", "metadata": {"n": 3}}]}}
    assert json.loads(file.read_text()) == {"parameterValues": {"a": 1}, "artifacts": artifacts}


# --- steps ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_train_saves_a_model(trained, digits):
    """The model's metadata have settings and digests, without null."""
    assert trained.done.returncode == 0, trained.done.stderr
    assert Path(trained.uris["model"], "saved_model.pb").exists()
    assert list(Path(trained.uris["logs"]).rglob("events.out.tfevents*"))
    metadata = trained.metadata("model")
    assert (metadata["image_size"], metadata["epochs"]) == ([16, 16], 12)
    assert metadata["dataset_digest"] == recordgen.read_dataset(digits).digest
    assert metadata["labels_digest"] == recordgen.read_dataset(digits).labels_digest
    assert None not in metadata.values()
    assert sum("epoch" in line["message"] for line in trained.lines) == 12


@pytest.mark.slow
def test_evaluate_counts_right_answers(trained, digits, tmp_path):
    """The score is that of the confusion matrix, whose rows are the labels of the split."""
    component = load_step("evaluate", IMAGE)
    inputs = {"dataset": digits, "model": trained.uris["model"]}
    alone = {"serving_dir": f"{tmp_path}/nothing", "min_change": 0.5}  # there is no baseline
    output = models.evaluate(step_input(component, tmp_path, inputs, **alone))
    eval_split = recordgen.read_dataset(digits).splits["eval"]
    assert output.parameters["examples"] == eval_split.examples
    assert 0.8 <= output.parameters["score"] <= 1
    metrics = dict(output.metadata["metrics"])
    assert {"score": metrics.pop("accuracy"), **metrics} == output.parameters
    assert output.parameters["blessed"] is True
    matrix = output.metadata["confusion"]["confusionMatrix"]
    names = [item["displayName"] for item in matrix["annotationSpecs"]]
    counts = np.array([item["row"] for item in matrix["rows"]])
    assert dict(zip(names, counts.sum(axis=1).tolist(), strict=True)) == dict(eval_split.labels)
    assert output.parameters["score"] == pytest.approx(counts.trace() / counts.sum())


@pytest.mark.slow
def test_evaluate_blesses_a_model_no_worse_than_the_one_that_serves(trained, digits, tmp_path):
    """Score, change and baseline decide; an interrupted push does not count."""
    component, model = load_step("evaluate", IMAGE), trained.uris["model"]
    serving = tmp_path / "serving"
    (serving / "1").mkdir(parents=True)
    shutil.copytree(model, serving / "2")
    (serving / "30").mkdir()  # an interrupted push

    def evaluated(**values):
        inputs = {"dataset": digits, "model": model, **values.pop("inputs", {})}
        output = models.evaluate(step_input(component, tmp_path, inputs, **values))
        return output.parameters["blessed"], output.metadata["metrics"]

    assert evaluated(min_score=1.01)[0] is False
    better, metrics = evaluated(serving_dir=str(serving), min_change=0.001)
    assert (better, metrics["change"], metrics["baseline"]) == (False, 0, metrics["accuracy"])
    given, metrics = evaluated(inputs={"baseline": model})
    assert (given, metrics["change"], metrics["blessed"]) == (True, 0, 1)


@pytest.mark.slow
def test_train_joins_datasets_and_begins_with_an_earlier_model(trained, digits, tmp_path, caplog):
    """Datasets are read as one; settings that were found replace others."""
    source = write_digits(str(tmp_path / "data"), 100)
    recordgen.convert(source, str(tmp_path / "more"), vocabulary=digits, seed=1)
    inputs = {"dataset": str(tmp_path / "more"), "earlier_datasets": [digits]}
    inputs["base_model"] = trained.uris["model"]
    settings = {"image_size": [16, 16], "epochs": 9, "hyperparameters": {"epochs": 1}}
    component = load_step("train", IMAGE)
    with caplog.at_level("INFO", "recordgen"):
        output = models.train(step_input(component, tmp_path / "task", inputs, **settings))
    metadata = output.metadata["model"]
    paths = (inputs["dataset"], digits)
    both = join_datasets([(path, recordgen.read_dataset(path)) for path in paths])
    assert (metadata["dataset_digest"], metadata["epochs"]) == (both.digest, 1)
    assert trained.uris["model"] in caplog.text


def test_equal_labels_give_no_score_and_no_nan():
    """Where a score is not determined, metadata have none."""
    tally = ManyLabelsAccumulator(1)
    tally.add(np.ones((3, 1), np.float32), np.full((3, 1), 0.5, np.float32))
    found = models.Evaluation.of(tally, ["a"])
    assert np.isnan(found.score)
    assert (found.by_label, found.examples) == ({}, 3)
    assert found.loss == pytest.approx(np.log(2))


def test_numbers_of_labels_are_bounded():
    """Above a hundred labels, there is neither a score of each nor a matrix."""
    truth = np.eye(101, dtype=np.float32)
    many, few = ManyLabelsAccumulator(101), ManyLabelsAccumulator(100)
    many.add(truth, truth)
    few.add(truth[:, :100], truth[:, :100])
    found = models.Evaluation.of(many, [str(n) for n in range(101)])
    assert (found.score, found.by_label) == (1, {})
    assert len(models.Evaluation.of(few, [str(n) for n in range(100)]).by_label) == 100
    alone = OneLabelAccumulator(101)
    alone.add(np.arange(101), truth)
    assert models.Evaluation.of(alone, [str(n) for n in range(101)]).confusion == {}


@pytest.mark.slow
def test_evaluate_needs_labels(trained, digits, tmp_path):
    """A split that does not exist is named."""
    inputs = {"dataset": digits, "model": trained.uris["model"]}
    with pytest.raises(DataError, match=r"split.*'dev'"):
        models.evaluate(step_input(load_step("evaluate", IMAGE), tmp_path, inputs, split="dev"))


def test_push_refuses_a_missing_folder_and_a_broken_model(tmp_path):
    """Each error names what is missing."""
    component, model = load_step("push", IMAGE), {"model": str(tmp_path)}
    with pytest.raises(UsageError, match="serving_dir"):
        models.push(step_input(component, tmp_path, model, serving_dir=""))
    with pytest.raises(SourceError, match="saved_model"):
        models.push(step_input(component, tmp_path, model, serving_dir=f"{tmp_path}/serving"))


def test_push_needs_a_blessing(tmp_path):
    """A model that the evaluation does not bless is not copied; others are, as a version."""
    (tmp_path / "saved_model.pb").write_bytes(b"")
    component, serving = load_step("push", IMAGE), tmp_path / "serving"

    def pushed(metadata):
        inputs = {"model": str(tmp_path), "evaluation": (str(tmp_path), metadata)}
        step = step_input(component, tmp_path, inputs, serving_dir=str(serving))
        return models.push(step).parameters["pushed_to"]

    assert pushed({"blessed": 0}) == ""
    assert not serving.exists()
    with pytest.raises(UsageError, match="evaluat"):
        pushed({"accuracy": 1})
    version = Path(pushed({"blessed": 1}))
    assert (version.parent, version.name.isdecimal()) == (serving, True)
    assert (version / "saved_model.pb").exists()


def test_train_refuses_a_wrong_setting_and_a_missing_dataset(digits, tmp_path):
    """Each error names what is wrong."""
    component = load_step("train", IMAGE)
    with pytest.raises(UsageError, match="epochs"):
        models.train(step_input(component, tmp_path, {"dataset": digits}, epochs=-1))
    with pytest.raises(SourceError, match=r"dataset\.json"):
        models.train(step_input(component, tmp_path, {"dataset": str(tmp_path / "data")}))


def test_train_defaults_are_those_of_training():
    """Unset inputs of the step are the defaults of the settings."""
    inputs = load_step("train", IMAGE).component_spec.inputs
    defaults = {name: item.default for name, item in inputs.items() if name in STEP_SETTINGS}
    defaults["model"] = defaults.pop("model_name")
    assert set(defaults) == set(TRAINING_OPTIONS)
    given = without_unset(defaults, TRAINING_OPTIONS)
    assert TrainingConfig.from_custom_config(given) == TrainingConfig()


@pytest.fixture(scope="module")
def described(digits, tmp_path_factory):
    """The step ``statistics`` without a curated schema."""
    pytest.importorskip("tensorflow_data_validation")
    step, folder = load_step("statistics", IMAGE), tmp_path_factory.mktemp("described")
    return call(step, folder, inputs={"dataset": digits}, run=WITH_TENSORFLOW.run)


@pytest.mark.slow
def test_statistics_describe_each_split(digits, described):
    """Statistics and schema have labels, and no bytes of images."""
    import tensorflow_data_validation as tfdv

    assert described.done.returncode == 0, described.done.stderr
    assert described.parameters == {"anomaly_count": 0}
    for name, split in recordgen.read_dataset(digits).splits.items():
        path = Path(described.uris["statistics"], f"Split-{name}", "FeatureStats.pb")
        [found] = tfdv.load_stats_binary(str(path)).datasets
        assert found.num_examples == split.examples
        names = {item.path.step[0] for item in found.features}
        assert "image/class/label" in names
        assert "image/encoded" not in names
    schema = tfdv.load_schema_text(f"{described.uris['schema']}/schema.pbtxt")
    assert {feature.name for feature in schema.feature} == names
    assert Path(described.uris["anomalies"], "anomalies.txt").read_text() == ""


@pytest.mark.slow
def test_a_curated_schema_is_kept_and_decides(digits, described, tmp_path):
    """Every split is compared with it, and anomalies may fail the step."""
    import tensorflow_data_validation as tfdv

    schema = tfdv.load_schema_text(f"{described.uris['schema']}/schema.pbtxt")
    schema.feature.remove(tfdv.get_feature(schema, "image/class/label"))
    (tmp_path / "curated").mkdir()
    tfdv.write_schema_text(schema, str(tmp_path / "curated/schema.pbtxt"))
    component = load_step("statistics", IMAGE)
    inputs = {"dataset": digits, "curated_schema": str(tmp_path / "curated")}
    step = step_input(component, tmp_path, inputs, fail_on_anomalies=True)
    splits = list(recordgen.read_dataset(digits).splits)  # also train
    with pytest.raises(DataError, match=f"{len(splits)} violations"):
        models.statistics(step)
    assert tfdv.load_schema_text(str(tmp_path / "schema/schema.pbtxt")) == schema
    lines = (tmp_path / "anomalies/anomalies.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == splits
    inputs["curated_schema"] = f"{digits}/dataset.json"
    with pytest.raises(SourceError, match=r"dataset\.json"):
        models.statistics(step_input(component, tmp_path, inputs))


def test_statistics_without_tfx(digits, tmp_path):
    """The error is one of usage."""
    if find_spec("tensorflow_data_validation"):
        pytest.skip("TensorFlow Data Validation is installed")
    with pytest.raises(UsageError):
        models.statistics(step_input(load_step("statistics", IMAGE), tmp_path, {"dataset": digits}))


def test_labels_in_metadata_are_bounded(digits):
    """Metadata stores limit the size of an artifact."""
    many = replace(recordgen.read_dataset(digits), labels=tuple(map(str, range(5000))))
    found = convert.description_of(many)
    assert (found["label_count"], len(found["labels"])) == (5000, 1000)
