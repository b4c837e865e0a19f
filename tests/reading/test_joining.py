"""Several datasets that are read as one: every label has one number."""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert, eval_dataset, read, steps_per_epoch, train_dataset
from recordgen.access.shards import find_shards
from recordgen.errors import DataError, RecordError
from recordgen.tasks.texts.tags import tag_names
from tests.conftest import convert_lines

#: The labels of each dataset; ``two`` extends the vocabulary of ``one``, ``alone`` has its own.
SPANS = {"one": ("bee", "cat"), "two": ("cat", "ape"), "alone": ("ape", "dog")}
SPLITS = {"TRAIN": 3, "VALIDATION": 1}
TASKS = ("text_classification", "text_entities", "object_detection", "video_classification")


def import_file(folder, span, task):
    """Write the import file of a span: each example, when read, begins with its label."""
    lines = []
    for split, count in SPLITS.items():
        for label in SPANS[span]:
            for number in range(count):
                name = f"{label}-{span}{split}{number}.gif"
                if task == "text_classification":
                    lines.append(f"{split},{label} {name},{label}")
                elif task == "text_entities":
                    place = {"startOffset": 0, "endOffset": len(label), "displayName": label}
                    row = {"textContent": f"{label} {name}", "textSegmentAnnotations": [place]}
                    use = {"aiplatform.googleapis.com/ml_use": split.lower()}
                    lines.append(json.dumps({**row, "dataItemResourceLabels": use}))
                else:
                    frames = [Image.new("L", (4, 4), gray) for gray in (0, 200)]
                    frames[0].save(folder / name, save_all=True, append_images=frames[1:])
                    end = ",0,0,,,1,1,," if task == "object_detection" else ",0,1"
                    lines.append(f"{split},{name},{label}{end}")
    path = folder / f"{span}.{'jsonl' if task == 'text_entities' else 'csv'}"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return the datasets of a task, by span."""

    @cache
    def converted(task):
        folder = tmp_path_factory.mktemp(task)
        made = {span: str(folder / span) for span in SPANS}
        for span, out in made.items():
            more = {"vocabulary": made["one"]} if span == "two" else {}
            convert(import_file(folder, span, task), out, task=task, lint="-ALL", **more)
        return made

    return converted


def labels_read(data, task):
    """Yield the beginning of each example and the name of its label."""
    names = tag_names(data.class_names) if task == "text_entities" else data.class_names
    for inputs, target, *extras in data:
        if task == "text_classification":
            begins = inputs
        elif task == "text_entities":
            begins, target = inputs["tokens"][:, 0], target[:, 0]
        elif task == "object_detection":
            begins, target = extras[0]["image/source_id"], target["labels"][:, 0]
        else:
            begins = tf.strings.regex_replace(inputs["uri"], ".*/", "")
        for text, number in zip(begins.numpy(), target.numpy(), strict=True):
            yield text.decode().replace("-", " ").split()[0], names[number].removeprefix("B-")


# task, spans, names
JOINED = [
    *((task, ("two", "one"), ["bee", "cat", "ape"]) for task in TASKS),
    *((task, ("alone", "one", "two"), ["bee", "cat", "ape", "dog"]) for task in TASKS),
    (TASKS[0], ("one", "two"), ["bee", "cat", "ape"]),
    (TASKS[0], ("two", "alone"), ["bee", "cat", "ape", "dog"]),
]


@pytest.mark.parametrize(("task", "spans", "names"), JOINED, ids=str)
def test_joined_examples_have_the_number_of_their_labels_name(outputs, task, spans, names):
    """In several datasets as one, each number is that of the name of its label."""
    found = outputs(task)
    more = {}
    if task == "object_detection":
        more = {"columns": ["image/source_id"], "image_size": 4}
    # Patterns as in TFX's Trainer, then folders.
    patterns = [f"{found[span]}/Split-train/*" for span in spans]
    data = train_dataset(patterns, batch_size=4, **more)
    assert data.class_names == names
    pairs = Counter(labels_read(data, task))
    expected = Counter(label for span in spans for label in SPANS[span])
    assert pairs == {(label, label): SPLITS["TRAIN"] * n for label, n in expected.items()}
    data = eval_dataset([found[span] for span in spans], batch_size=4, **more)
    assert Counter(labels_read(data, task)) == {(n, n): count for n, count in expected.items()}
    examples = 6 * len(spans)
    assert steps_per_epoch(patterns, 4, **more) == -(-examples // 4)
    assert find_shards(patterns, "train").renumbered == ("alone" in spans)


def test_read_refuses_datasets_that_number_labels_differently(outputs):
    """read gives stored numbers, so it refuses datasets that number labels differently."""
    found = outputs("text_classification")
    stable = list(read([found["one"], found["two"]]))
    numbers = {(e["class/text"].numpy(), int(e["class/label"])) for e in stable}
    assert numbers == {(b"bee", 0), (b"cat", 1), (b"ape", 2)}
    mixed = [found["one"], found["alone"]]
    with pytest.raises(DataError):
        read(mixed)
    spec = {"text": tf.io.FixedLenFeature((), tf.string)}
    assert len(list(read(mixed, feature_spec=spec))) == 12


def test_different_tasks_and_partly_numbered_splits_are_refused(outputs):
    """Datasets of two tasks, parts of splits, and cut files are errors."""
    texts, boxes = outputs("text_classification"), outputs("object_detection")
    with pytest.raises(DataError):
        train_dataset([texts["one"], boxes["one"]])
    parts = [f"{texts['one']}/Split-*/*", f"{texts['alone']}/Split-train/*"]
    with pytest.raises(DataError):
        train_dataset(parts)
    shard = next(Path(texts["two"]).glob("Split-train/*"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    with pytest.raises(RecordError):
        train_dataset([texts["one"], texts["two"]])
    shard.write_bytes(whole)


def test_targets_of_tables_are_numbered_together(tmp_path):
    """The targets of several tables have common numbers; other columns are an error."""
    for name, header, labels in (
        ("one", "age,kind", "xy"),
        ("two", "age,kind", ["y", "z", ""]),
        ("other", "size,kind", "xy"),
    ):
        rows = [header, *(f"{number},{label}" for number in range(3) for label in labels)]
        options = {"task": "tabular", "columns": "target=kind", "split": "100"}
        convert_lines(tmp_path, rows, name, lint="-ALL", **options)
    data = train_dataset([str(tmp_path / "one"), str(tmp_path / "two")], batch_size=12)
    assert data.class_names == ["x", "y", "z"]
    [(_, targets)] = data
    assert Counter(targets.numpy().tolist()) == {0: 3, 1: 6, 2: 3}
    with pytest.raises(DataError):
        train_dataset([str(tmp_path / "one"), str(tmp_path / "other")])
