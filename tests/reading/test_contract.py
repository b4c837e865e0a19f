"""One contract for all tasks: the results of ``load`` for the sample of each task."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from recordgen import convert, eval_dataset, load
from recordgen.tasks import TASKS
from tests.golden import ROOT, SAMPLES

METERS = {"split": "split", "day": "image", "night": "image", "note": "text", "verdict": "label"}

# task: options of converting its sample, and of load; tasks that need none are not listed
OPTIONS = {
    "image_classification": ({}, {"image_size": 8}),
    "image_multi_label": ({}, {"image_size": 8}),
    "object_detection": ({}, {"image_size": 8}),
    "tabular": ({"columns": "target=cultivar"}, {}),
    "declared": ({"schema": {**METERS, "usual": "int"}}, {"image_size": 8}),
}
FILES = {**SAMPLES, "declared": "declared/meters.csv"}


@pytest.mark.parametrize("task", TASKS)
def test_load_gives_every_task_finite_batches_class_names_and_splits(task, out):
    """The example of each task loads as documented."""
    options, how = OPTIONS.get(task, ({}, {}))
    converted = convert(ROOT / "examples" / FILES[task], out, **options).dataset
    found = load(out, batch_size=4, **how)
    assert converted.task == task
    assert found.class_names == list(converted.labels)
    assert list(found) == list(converted.splits)
    for word in ("validation", "val"):
        assert (word in found) == (found.get(word) is not None) == ("eval" in converted.splits)
    for name, data in found.items():
        assert data.class_names == found.class_names
        inputs, targets = data.element_spec
        for spec in tf.nest.flatten((inputs, targets)):
            assert spec.shape.rank >= 1, (name, spec)
        batches = sum(1 for _ in data)
        assert batches == data.cardinality() == -(-converted.splits[name].examples // 4)


@pytest.mark.parametrize("task", sorted({*TASKS} - {"declared", "tabular"}))
def test_records_without_a_dataset_json_are_read_with_task(task, tmp_path, out, monkeypatch):
    """Shards alone give the batches of their output if task and names of classes are given."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options, how = OPTIONS.get(task, ({}, {}))
    how = {"image_size": 8} if task == "image_segmentation" else how
    names = convert(ROOT / "examples" / FILES[task], out, **options).dataset.labels
    shards = shutil.copytree(out / "Split-train", tmp_path / "shards")
    if task.endswith("_multi_label"):  # nothing else numbers classes
        how = {**how, "vocabulary": names}
    found, expected = (
        [tf.nest.map_structure(lambda part: part.numpy(), batch) for batch in data]
        for data in (
            eval_dataset(f"{shards}/*", task=task, batch_size=4, **how),
            eval_dataset(out, split="train", batch_size=4, **how),
        )
    )
    if task == "video_classification":  # addresses are relative to the folder of dataset.json
        found, expected = ([labels for _, labels in data] for data in (found, expected))
    assert len(found) == len(expected)
    tf.nest.map_structure(np.testing.assert_array_equal, found, expected)
