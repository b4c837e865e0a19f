"""The whole pipeline, run as commands, as users do."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from pipelines.metadata import Metadata, metadata_path
from pipelines.samples import sample_of
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records import RECORDS
from recordgen.exports.lineage import find_lineage, lineage_lines
from recordgen.kubeflow.models import evaluation_of
from tests.bulk_inferrer import bulk_scores
from tests.conftest import without_early_lines
from tests.cpp_loader import CppModel
from tests.pipelines.conftest import STEPS

pytestmark = pytest.mark.slow

# task: number of examples of the demo here; training, eval and test examples, and labels; name of
# the score; the least score of a whole training, which is pushed; None: one epoch on little data,
# because tests/training trains the model of the task until it has learnt. The other tasks have the
# same models as these; test_compile.py checks the measure of each task.
DEMOS = {
    "image_classification": (400, "train 320, eval 40, test 40), 10", "accuracy", 0.95),
    "text_entities": (300, "train 240, eval 30, test 30), 3", "f1", 0.9),
    "video_classification": (300, "train 210, eval 60, test 30), 4", "accuracy", 0.75),
    "image_multi_label": (100, "train 80, eval 10, test 10), 10", "auc", None),
    "object_detection": (100, "train 80, eval 10, test 10), 10", "map", None),
    "image_segmentation": (100, "train 80, eval 10, test 10), 3", "mean_iou", None),
    "declared": (100, "train 80, eval 10, test 10), 2", "score", None),
}


# BulkInferrer is tested with a model of each kind of score: of a class, boxes, pixels and words.
_FIRST, *_OTHERS = DEMOS
TASKS = [_FIRST, *(pytest.param(task, marks=pytest.mark.once) for task in _OTHERS)]
_SCORES = ("object_detection", "image_segmentation", "text_entities")
SCORED = [_FIRST, *(pytest.param(task, marks=pytest.mark.once) for task in _SCORES)]


@pytest.fixture(scope="module")
def demo_of(command, fast_command, tmp_path_factory):
    """Return a function that runs a task's demo once, and returns its folder and its output."""

    @cache
    def run(task):
        workdir = tmp_path_factory.mktemp(task)
        given = ("--workdir", workdir, "--images", DEMOS[task][0])
        shorter = () if DEMOS[task][-1] else ("--epochs", 1)
        if task == "image_classification":
            return workdir, command("demo", *given)
        return workdir, fast_command("demo", "--task", task, *given, *shorter)

    return run


@pytest.fixture
def demo(demo_of):
    """The demo of images of one label."""
    return demo_of("image_classification")


def trained(workdir):
    """Return the folder of the model that a demo trained, whether pushed or not."""
    [model] = Metadata(metadata_path(str(workdir))).artifacts("Model")
    return f"{model.uri}/Format-Serving"


@pytest.mark.parametrize("task", TASKS)
def test_the_demo_of_each_task_runs_every_step_to_its_score(task, demo_of):
    """The printed score is that of the model on ``eval``, and decides about the push."""
    workdir, done = demo_of(task)
    examples, splits, measure, least = DEMOS[task]
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_early_lines(done.stderr) == ""
    for step in STEPS:
        assert re.search(rf"\[\d/7\] {step}: \d+\.\d s", done.stdout), step
    assert f"{examples} ({splits} labels\n" in done.stdout
    [found] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    dataset = read_dataset(found.uri)
    assert (dataset.task, dataset.examples) == (task, examples)
    score = float(re.search(rf"\n{measure} +(\d\.\d+) on eval\n", done.stdout)[1])
    evaluation = evaluation_of(trained(workdir), found.uri, dataset, "eval")
    assert score == pytest.approx(evaluation.score, abs=1e-4)
    assert score >= (least or 0)
    blessed = score >= sample_of(task).min_score
    assert blessed or least is None
    assert re.search(r"\nblessed +(yes|no)\n", done.stdout)[1] == ("yes" if blessed else "no")
    assert (workdir / "serving").exists() == blessed


def in_order(record):
    """Return an example with its features sorted by name, because TFX serialises it again."""
    return tf.train.Example.FromString(record).SerializeToString(deterministic=True)


@pytest.mark.parametrize("task", SCORED)
def test_bulk_inferrer_scores_each_record_once(task, demo_of, tmp_path):
    """BulkInferrer gives each record of ``eval`` the model's own scores."""
    workdir, _ = demo_of(task)
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    model, output = trained(workdir), examples.uri
    (tmp_path / "bulk").mkdir()
    found = bulk_scores(model, output, "eval", tmp_path / "bulk")
    shards = read_dataset(output).splits["eval"].shards
    records = [r for shard in shards for r in RECORDS.read(f"{output}/{shard.file}")]
    assert sorted(in_order(record) for record, _ in found) == sorted(map(in_order, records))
    scores = CppModel(model).run("evaluate", examples=[record for record, _ in found])["scores"]
    for (_, alone), expected in zip(found, scores, strict=True):
        # The scores of texts are padded to the longest text of a batch.
        count = min(len(alone), len(expected))
        np.testing.assert_allclose(alone[:count], expected[:count], atol=1e-4)


def test_lineage_leads_back_to_the_import_file(demo):
    """From the pushed model in the printed folder, lineage reaches the dataset and its source."""
    workdir, done = demo
    pushed = Path(re.search(r"pushed to +(\S+)", done.stdout)[1])
    assert (pushed / "saved_model.pb").exists()
    assert pushed.is_relative_to(workdir)
    found = find_lineage(pushed)
    [examples] = Metadata(metadata_path(str(workdir))).artifacts("Examples")
    assert (found.dataset.uri, found.state) == (examples.uri, "same")
    lines = list(lineage_lines(found))
    assert lines[-1].strip() == f"{workdir}/data/digits.csv"
    assert "\n".join(f"  {line}" for line in lines) in done.stdout


def test_the_model_artifact_says_what_it_learned_from(demo):
    """Its custom properties are the digest, the scores of the last epoch, and the settings."""
    workdir, done = demo
    store = Metadata(metadata_path(str(workdir)))
    [model], [examples] = store.artifacts("Model"), store.artifacts("Examples")
    assert model.properties["dataset_digest"] == examples.properties["dataset_digest"]
    last = re.findall(r"val_loss (\S+)\n", done.stdout)[-1]
    assert model.properties["eval_loss"] == pytest.approx(float(last), abs=1e-4)
    assert model.properties["image_size"] == "[16, 16]"
    lineage = find_lineage(workdir / "serving").model
    accuracy = pytest.approx(model.properties["eval_accuracy"], abs=1e-5)
    assert lineage.facts["eval_accuracy"] == accuracy


@pytest.mark.once
def test_a_second_run_comes_from_the_cache(demo, fast_command):
    """Nothing is written or trained again, and the report is the same."""
    workdir, first = demo
    images = {p: p.stat().st_mtime_ns for p in (workdir / "data").rglob("*")}
    again = fast_command("demo", "--workdir", workdir, "--images", 400)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count(": from cache") == len(STEPS)
    assert {p: p.stat().st_mtime_ns for p in (workdir / "data").rglob("*")} == images

    def report(text):
        return re.search(r"\nexamples .*?\n\n", text, re.DOTALL)[0]

    assert report(again.stdout) == report(first.stdout)


@pytest.mark.once
def test_bad_data_is_one_line(tmp_path, fast_command):
    """The line names file, row and reason."""
    (tmp_path / "a.csv").write_text("TRAIN,nowhere.png,a\n")
    done = fast_command("local", "--data", tmp_path, "--workdir", tmp_path / "work")
    assert done.returncode == 1
    assert done.stderr.startswith("error: rejected 1 of 1 row")
    assert f"{tmp_path}/a.csv:1: missing_file: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.once
def test_a_wrong_task_is_named_before_training(demo_of, tmp_path, fast_command):
    """The error has the option with the task of the data."""
    workdir, _ = demo_of("image_multi_label")
    given = ("--data", workdir / "data/digits.csv", "--task", "image_classification")
    done = fast_command("local", *given, "--workdir", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "--task image_multi_label" in done.stderr
