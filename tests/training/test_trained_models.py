"""The model of each task: it learns, and its answers, its truth and its score agree."""

import re
import shutil
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from pipelines.samples import sample_of
from recordgen import convert, features
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import DataError
from recordgen.tasks import TASKS
from recordgen.tasks.texts.tags import tag_names
from recordgen.training import TrainingConfig
from tests import trainer
from tests.conftest import convert_lines, write_noise
from tests.cpp_loader import CppModel
from tests.training.sources import COLOURS, write_boxed, write_coloured, write_masked

pytestmark = pytest.mark.slow


class Case(NamedTuple):
    """A task with its data.

    Attributes:
        write: writes the data to a folder; returns the path to import.
        settings: of a training until the score of split eval is ``least``.
        renamed: a text of the import files and its replacement, which renames a label.
        options: of the conversion; ``vocabulary`` is a file beside the import file.
    """

    write: Callable[[Path], str]
    settings: Mapping[str, Any]
    least: float
    renamed: tuple[str, str] = ("", "")
    options: Mapping[str, Any] = {}


def sample(task, count):
    """Return what writes the sample of a task."""
    return lambda folder: sample_of(task).write(str(folder), count)


def fast(epochs, side=0, **settings):
    size = {"image_size": [side, side]} if side else {}
    return {"batch_size": 16, "learning_rate": 0.01, "epochs": epochs, **size, **settings}


CASES = {
    "image_multi_label": Case(
        partial(write_coloured, count=200), fast(10, 8), 0.8, ("red", "amber")
    ),
    "object_detection": Case(
        partial(write_boxed, count=150), {"epochs": 6, "batch_size": 8}, 0.9, ("red", "amber")
    ),
    "image_segmentation": Case(
        partial(write_masked, count=60),
        {"epochs": 6, "batch_size": 8, "image_size": [32, 32]},
        0.85,
        ("red", "amber"),
        {"vocabulary": "names.txt"},
    ),
    "text_multi_label": Case(sample("text_multi_label", 300), fast(8), 0.8, (",price", ",cost")),
    "text_sentiment": Case(sample("text_sentiment", 300), fast(8), 0.6),
    "text_entities": Case(
        sample("text_entities", 200),
        fast(4, learning_rate=5e-3),
        0.75,
        ('"person"', '"a person"'),
    ),
    # Without times, all segments of a video would be the same: 1/3.
    "video_classification": Case(
        sample("video_classification", 150), fast(8, 24, learning_rate=5e-3), 0.8
    ),
}


class Trained(NamedTuple):
    """A trained model: folders of the import file, the dataset and the model, and the log."""

    task: str
    source: Path
    output: str
    model: str
    log: str

    @property
    def case(self):
        return CASES[self.task]

    def answers(self):
        """Return the model, and the records, scores and truth of split eval."""
        served, records = CppModel(self.model), trainer.records_of(self.output)
        scores = served.run("evaluate", examples=records)["scores"]
        return served, records, scores, served.run("truth", examples=records)


def converted(source, output, task):
    options = dict(CASES[task].options)
    if "vocabulary" in options:
        options["vocabulary"] = str(Path(source).with_name(options["vocabulary"]))
    convert(str(source), str(output), task=task, **options)
    return str(output)


@pytest.fixture(scope="module")
def trained_of(tmp_path_factory):
    """Return a function that trains the model of a task once."""

    @cache
    def train(task):
        root = tmp_path_factory.mktemp(task)
        source = CASES[task].write(root)
        output = converted(source, root / "out", task)
        model, log = trainer.train_and_listen(output, root, **CASES[task].settings)
        return Trained(task, Path(source), output, model, log)

    return train


@pytest.fixture(params=CASES)
def trained(request, trained_of):
    """The trained model of each task."""
    return trained_of(request.param)


def test_a_model_learns_and_its_score_is_that_of_its_own_answers(trained):
    """The loss falls, and ``evaluate`` counts the answers and the truth of the signatures."""
    losses = [float(loss) for loss in re.findall(r"(?<!val_)loss ([\d.]+)", trained.log)]
    assert len(losses) == trained.case.settings["epochs"]
    assert losses[-1] < 0.75 * losses[0]
    dataset = read_dataset(trained.output)
    found = trainer.evaluated(trained.model, trained.output)
    assert found.score >= trained.case.least
    assert found.unknown == {}
    _, _, scores, truth = trained.answers()
    counts = TASKS[trained.task].declared("measure").of_scores(scores[0])
    counts.add_answers(scores, truth)
    assert (found.measure, found.examples) == (counts.measure, counts.examples)
    assert (found.score, found.loss) == pytest.approx((counts.score(), counts.loss()), abs=1e-5)
    by_name = {f"{found.measure}/{dataset.labels[n]}": s for n, s in counts.by_label().items()}
    assert found.by_label == pytest.approx(by_name)
    if logged := re.findall(rf"val_{found.measure} ([\d.]+)", trained.log):
        assert found.score == pytest.approx(float(logged[-1]), abs=0.01)


@pytest.mark.parametrize("task", [task for task in CASES if task != "object_detection"])
def test_truth_is_what_training_reads(task, trained_of):
    """The labels of ``truth`` are those of the trainer's data; unlabelled examples weigh 0."""
    trained = trained_of(task)
    _, _, _, truth = trained.answers()
    dataset = read_dataset(trained.output)
    config = TrainingConfig.from_custom_config(trained.case.settings)
    found = TASKS[task].declared("trainer")(trained.output, "train", dataset, config)
    batches = [labels.numpy() for _, labels in found.eval_data(trained.output, "eval")]
    if task == "text_entities":  # a batch is as long as its longest text
        width = truth["label"].shape[1]
        padded = partial(tf.keras.utils.pad_sequences, maxlen=width, value=-1, padding="post")
        batches = list(map(padded, batches))
    is_labelled = truth["weight"] > 0
    np.testing.assert_array_equal(truth["label"][is_labelled], np.concatenate(batches))
    if TASKS[task].labelling not in ("parts", "own parts"):
        assert (~is_labelled).sum() == dataset.splits["eval"].unlabelled


RENAMED = [task for task, case in CASES.items() if case.renamed[0]]


@pytest.mark.parametrize("task", RENAMED)
def test_labels_are_compared_by_name(task, trained_of, tmp_path):
    """A renamed label, which also changes the numbers of others, is unknown; others keep scores."""
    trained, (old, new) = trained_of(task), CASES[task].renamed
    known = trainer.evaluated(trained.model, trained.output)
    folder = tmp_path / "renamed"
    made = shutil.ignore_patterns("out", "model", "logs")
    shutil.copytree(trained.source.parent, folder, ignore=made)
    for name in (trained.source.name, *trained.case.options.values()):
        (folder / name).write_text((folder / name).read_text().replace(old, new))
    output = converted(folder / trained.source.name, tmp_path / "out", task)
    found = trainer.evaluated(trained.model, output)
    [label] = set(read_dataset(output).labels) - set(read_dataset(trained.output).labels)
    [(unknown, count)] = found.unknown.items()
    assert (unknown, count > 0) == (label, True)
    gone = f"{found.measure}/{old.strip(',' + chr(34))}"
    assert gone in known.by_label
    expected = {name: score for name, score in known.by_label.items() if name != gone}
    assert found.by_label == pytest.approx(expected)
    assert found.score < known.score


@pytest.mark.parametrize(
    ("task", "row"),
    [("object_detection", "VALIDATION,0.png,,,,,,,,,"), ("image_segmentation", "VALIDATION,0.png")],
)
def test_examples_without_labels_have_no_score(task, row, trained_of, tmp_path):
    """``evaluate`` refuses a split whose only image has no label."""
    trained = trained_of(task)
    write_noise(tmp_path, "0", 8, 8)
    output = str(convert_lines(tmp_path, [row], task=task))
    with pytest.raises(DataError, match=r"split.*'eval'"):
        trainer.evaluated(trained.model, output)


REQUESTS = {
    "image": {"image_bytes": features.IMAGE_ENCODED},
    "text": {"text": features.TEXT},
    "entities": {"text": features.TEXT},
    "video": {
        "video_bytes": features.VIDEO_URI,
        "start": features.VIDEO_SEGMENT_START,
        "end": features.VIDEO_SEGMENT_END,
    },
}


def test_a_request_gets_the_answer_of_its_record(trained):
    """Requests take files and texts as clients have them; answers are best first."""
    served, records, scores, _ = trained.answers()
    dataset = read_dataset(trained.output)
    request = {}
    for name, feature in REQUESTS[TASKS[trained.task].kind].items():
        kind = tf.string if name not in ("start", "end") else tf.float32
        spec = {feature: tf.io.FixedLenFeature((), kind)}
        request[name] = tf.io.parse_example(records, spec)[feature].numpy()
    if "video_bytes" in request:
        videos = request["video_bytes"]
        request["video_bytes"] = [Path(dataset.folder, v.decode()).read_bytes() for v in videos]
    answer = served.run("serving_default", **request)
    assert not any(answer.get("error", []))
    assert {len(values) for each in served.empty().values() for values in each.values()} == {0}
    if "masks" in answer:
        np.testing.assert_array_equal(answer["masks"], scores)
    elif "boxes" in answer:
        found = scores[:, : answer["boxes"].shape[1]]
        there = found[..., 5] > 0
        np.testing.assert_allclose(answer["boxes"][there], found[there][:, :4], atol=1e-5)
        names = np.array([name.encode() for name in COLOURS])
        labels = names[found[there][:, 4].astype(int)]
        np.testing.assert_array_equal(answer["labels"][there], labels)
    elif "tags" in answer:
        names = np.array([tag.encode() for tag in tag_names(dataset.labels)])
        is_token = answer["tokens"] != b""
        np.testing.assert_array_equal(answer["tags"][is_token], names[scores.argmax(-1)][is_token])
        alone = served.run("evaluate", examples=records[:1])["scores"]  # in a shorter batch
        np.testing.assert_allclose(scores[:1, : alone.shape[1]], alone, atol=1e-5)
    else:
        assert (np.diff(answer["scores"], axis=1) <= 0).all()
        for labels, best, row in zip(answer["labels"], answer["scores"], scores, strict=True):
            by_label = [row[dataset.labels.index(label.decode())] for label in labels]
            np.testing.assert_allclose(by_label, best, atol=1e-5)


@pytest.mark.parametrize("task", ["text_multi_label", "text_sentiment", "text_entities"])
def test_any_text_is_a_request(task, trained_of):
    """Empty and long texts, unknown words and bytes that are no UTF-8 have finite scores."""
    texts = ["", "!!!", "x " * 5000, b"caf\xe9 \xff\0"]
    answer = CppModel(trained_of(task).model).run("serving_default", text=texts)
    assert len(answer["scores"]) == 4
    assert np.isfinite(answer["scores"]).all()


def test_scores_of_boxes_are_best_first_with_padding(trained_of):
    """Boxes lie in their image; there are fewer cells than 100."""
    _, _, found, _ = trained_of("object_detection").answers()
    assert found.shape == (30, 8 * 8, 6)
    are_boxes = found[..., 5] > 0
    assert (found[~are_boxes] == -1).all()
    assert (np.diff(np.maximum(found[..., 5], 0), axis=1) <= 0).all()
    boxes = found[are_boxes]
    assert ((boxes[:, :4] >= 0) & (boxes[:, :4] <= 1)).all()
    assert (boxes[:, :2] <= boxes[:, 2:4]).all()
    assert set(boxes[:, 4]) <= {0, 1, 2}


def test_scores_of_several_labels_are_independent(trained_of):
    """They are probabilities of each label, which add up to more than 1 if there are several."""
    _, _, scores, truth = trained_of("image_multi_label").answers()
    assert ((scores >= 0) & (scores <= 1)).all()
    all_three = scores[truth["label"].sum(axis=1) == 3]
    assert len(all_three) == 5
    assert (all_three.sum(axis=1) > 1.5).all()  # softmax would give 1
