"""One contract for all tasks: the results of ``load`` for the sample of each task."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, load, read_dataset
from recordgen.tasks import TASKS
from tests.exports.conftest import sample as sample  # a fixture

# Tasks whose images have several sizes, unless they are read with one.
SIZED = ("image_classification", "image_multi_label", "object_detection", "declared")


@pytest.mark.parametrize("task", TASKS)
def test_load_gives_every_task_finite_batches_class_names_and_splits(task, sample):
    """The example of each task loads as documented."""
    converted = read_dataset(sample(task))
    found = load(sample(task), batch_size=4, **({"image_size": 8} if task in SIZED else {}))
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
def test_records_without_a_dataset_json_are_read_with_task(task, tmp_path, sample, monkeypatch):
    """Shards alone give the batches of their output if task and names of classes are given."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = sample(task)
    how = {"image_size": 8} if task in (*SIZED, "image_segmentation") else {}
    shards = shutil.copytree(out / "Split-train", tmp_path / "shards")
    if task.endswith("_multi_label"):  # nothing else numbers classes
        how = {**how, "vocabulary": read_dataset(out).labels}
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
