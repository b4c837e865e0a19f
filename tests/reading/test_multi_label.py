"""Examples with any number of labels."""

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, load, steps_per_epoch
from recordgen.core.dataset.counts import ImageStats
from tests.reading.conftest import case_name, ids
from tests.reading.scenes import COLOURS, Scene, write_split

# By example; the last has none.
LABELS = [[0], [0, 1], [1, 2], [0, 1, 2], [2], []]
HOT = [[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]]
READ = dict(batch_size=2, image_size=(4, 6), split="train")
IDS = dict(**READ, columns=["image/source_id"])


def examples():
    found = []
    for number, labels in enumerate(LABELS):
        features = Scene(number, (4, 6), {}).features
        texts = [COLOURS[label].encode() for label in labels]
        more = {"image/class/label": labels, "image/class/text": texts} if labels else {}
        found.append({**features, **more})
    return found


@pytest.fixture
def output(tmp_path):
    # As the conversion writes them: without statistics, the graph takes long to build.
    images = ImageStats({"png": 6}, (4, 4), (6, 6))
    counts = dict(counts=dict.fromkeys(COLOURS, 3), unlabelled=1, images=images)
    return write_split(tmp_path, examples(), task="image_multi_label", **counts)


def hot(dataset):
    return np.concatenate([batch[1].numpy() for batch in dataset]).tolist()


def numbers(dataset):
    return [int(name.split()[1]) for name in ids(dataset)]


def test_all_labels_of_a_dataset_with_several_are_read(output):
    """Labels are 0 and 1 for each class, for the examples with a label."""
    dataset = eval_dataset(output, **IDS)
    assert hot(dataset) == HOT
    assert numbers(dataset) == [0, 1, 2, 3, 4]
    assert dataset.cardinality() == 3
    assert sorted(hot(load(output, batch_size=6, image_size=(4, 6))["train"])) == sorted(HOT)


# options, the examples that are read
REQUESTED = [
    ({}, [0, 1, 2, 3, 4]),
    (dict(label_mode=None), [0, 1, 2, 3, 4, 5]),
    (dict(only=["blue"]), [2, 3, 4]),
    (dict(only=["red", "green"]), [0, 1, 2, 3]),
    (dict(only=["red", "green"], label_mode=None), [0, 1, 2, 3]),
    (dict(only=lambda record: tf.size(record["image/class/label"]) == 2), [1, 2]),
    (dict(only=lambda record: tf.size(record["image/class/text"]) == 0, label_mode=None), [5]),
]


@pytest.mark.parametrize(("options", "expected"), REQUESTED, ids=case_name)
def test_an_example_with_several_requested_labels_is_counted_once(
    output, counts_cache, options, expected
):
    """Examples and steps count once, whichever classes are read."""
    dataset = eval_dataset(output, **options, **IDS)
    if options.get("label_mode", "auto") is None:
        found = [name for _, extras in dataset for name in extras["image/source_id"].numpy()]
        assert [int(name.split()[1]) for name in found] == expected
    else:
        assert numbers(dataset) == expected
    assert steps_per_epoch(output, 1, **options) == len(expected)


@pytest.mark.parametrize("label_mode", [None, "auto"])
def test_lists_as_extras_are_ragged(output, label_mode):
    """Lists of labels as further features are ragged."""
    names = ["image/class/text", "image/class/label"]
    dataset = eval_dataset(output, columns=names, label_mode=label_mode, **READ)
    texts, labels = (
        [row for *_, extras in dataset for row in extras[name].to_list()] for name in names
    )
    expected = LABELS if label_mode is None else LABELS[:5]
    assert labels == expected
    assert texts == [[COLOURS[label].encode() for label in row] for row in expected]
