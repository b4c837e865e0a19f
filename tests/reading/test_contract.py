"""One contract for all tasks: the results of ``load`` for the sample of each task."""

import pytest
import tensorflow as tf

from recordgen import convert, load
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
def test_load_gives_every_task_finite_batches_class_names_and_splits(task, tmp_path):
    options, how = OPTIONS.get(task, ({}, {}))
    out = tmp_path / "out"
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
