from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recordgen.errors import UsageError
from recordgen.reading.options import ReadOptions, RecordOptions, decode_options


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # a wrong value, what is said
        (dict(batchsize=3), "unknown option 'batchsize'; did you mean 'batch_size'?"),
        (dict(xyz=3), "unknown option 'xyz'; known: batch_size, "),
        (dict(batch_size=0), r"batch_size must be at least 1 \(got 0\)"),
        (dict(batch_size=2.0), r"batch_size must be a whole number \(got 2.0\)"),
        (dict(batch_size=True), r"batch_size must be a whole number \(got True\)"),
        (dict(shuffle_buffer=-1), r"shuffle_buffer must be at least 0 \(got -1\)"),
        (dict(shuffle_buffer="all"), r"shuffle_buffer must be a whole number \(got 'all'\)"),
        (dict(epochs=0), r"epochs must be at least 1 \(got 0\)"),
        (dict(threads=0), r"threads must be at least 1 \(got 0\)"),
        (dict(cycle_length=0), r"cycle_length must be at least 1 \(got 0\)"),
        (dict(num_parallel_calls=-2), r"num_parallel_calls must be at least 1 \(got -2\)"),
        (dict(prefetch="2"), r"prefetch must be a whole number \(got '2'\)"),
        (dict(seed=1.5), r"seed must be a whole number or None \(got 1.5\)"),
        (dict(deterministic="no"), r"deterministic must be True, False or None \(got 'no'\)"),
        (dict(drop_remainder="no"), r"drop_remainder must be True or False \(got 'no'\)"),
        (dict(autotune=1), r"autotune must be True or False \(got 1\)"),
        (dict(cache=True), r"cache must be 'memory', the path of a file, or None \(got True\)"),
        (dict(cache=""), r"cache must be 'memory', the path of a file, or None \(got ''\)"),
        (dict(shard=(1, 1)), r"shard must be \(index, count\) with 0 ≤ index < count"),
        (dict(shard="ab"), r"shard must be \(index, count\) .* \(got 'ab'\)"),
        (dict(predicate=3), r"predicate must be a function \(got 3\)"),
        (dict(map_example="f"), r"map_example must be a function \(got 'f'\)"),
        (dict(map_batch=()), r"map_batch must be a function \(got \(\)\)"),
        (dict(image_size=224), r"image_size must be height and width, .* \(got 224\)"),
        (dict(image_size=(4, 0)), r"image_size must be .*, each at least 1 \(got \(4, 0\)\)"),
        (dict(image_size=(4, 4, 3)), "image_size must be height and width"),
        (dict(image_size="44"), "image_size must be height and width"),
        (dict(dtype="float16"), r"dtype must be one of float32, uint8 \(got 'float16'\)"),
        (dict(resize="crop"), "resize must be one of stretch, fit, center_crop, random_crop"),
        (dict(decoder="quick"), r"decoder must be one of fast, exact \(got 'quick'\)"),
        (
            dict(label_mode="onehot"),
            "label_mode must be one of auto, index, one_hot, multi_hot, none",
        ),
        (dict(task="detection"), "task must be one of auto, image_classification, image_multi_lab"),
        (dict(box_format="xyxy_rel"), "box_format must be one of rel_xyxy, rel_yxyx, rel_xywh"),
        (dict(boxes="dense"), r"boxes must be one of padded, ragged \(got 'dense'\)"),
        (dict(max_boxes=0), r"max_boxes must be at least 1 \(got 0\)"),
        (dict(min_visible=1.5), r"min_visible must be from 0 to 1 \(got 1.5\)"),
        (dict(on_error="ignore"), r"on_error must be one of fail, skip \(got 'ignore'\)"),
        (dict(on_error=3), "on_error must be one of fail, skip"),
        (dict(augment=True), r"augment must be an Augmentation\(…\) or None \(got True\)"),
        (dict(augment={"flip": True}), "augment must be an Augmentation"),
        (dict(labels="cat"), r"labels must be several names, .* write \['cat'\]"),
        (dict(labels=[]), "labels must name at least one class; None reads all of them"),
        (dict(labels=[1]), r"labels must be a list of names, each a text \(got \[1\]\)"),
        (dict(labels=3), "labels must be a list of names"),
        (dict(vocabulary="abc"), "vocabulary must be several names"),
        (dict(vocabulary=[]), r"vocabulary must name classes, each once \(got \[\]\)"),
        (dict(vocabulary=["a", "a"]), r"vocabulary must name classes, each once"),
        (dict(extras="image/source_id"), r"extras must be several .* \['image/source_id'\]"),
        (dict(extras=None), "extras must be a list of names"),
        (dict(weights="even"), r"weights must be one of balanced \(got 'even'\)"),
        (dict(weights=[1, 2]), r"weights must be 'balanced' or a dict by class \(got \[1, 2\]\)"),
        (dict(weights={"a": -1}), r"finite and at least 0 \(got -1 for 'a'\)"),
        (dict(weights={"a": float("inf")}), r"finite and at least 0 \(got inf for 'a'\)"),
        (dict(weights={"a": "1"}), r"finite and at least 0 \(got '1' for 'a'\)"),
        (dict(label_mode="none", weights={"a": 1}), "weights need labels"),
    ],
    ids=str,
)
def test_wrong_values(values, message):
    """What is wrong is said at the door: the option, what it must be, and what was given."""
    with pytest.raises(UsageError, match=message):
        decode_options(ReadOptions, values)


@pytest.mark.parametrize(
    "values",
    [
        dict(batch_size=np.int64(4), seed=np.int32(1)),
        dict(image_size=[4, 6]),
        dict(cache=Path("a")),
        dict(labels={"a"}, vocabulary=("a", "b"), extras=["x"], weights={"a": np.float32(1)}),
        dict(on_error=print),
    ],
    ids=str,
)
def test_values_of_other_types(values):
    """NumPy's numbers, lists for tuples, paths for texts: what means the same is taken."""
    decode_options(ReadOptions, values)


def test_records_have_no_images():
    """What is about images is unknown where records of any kind are read."""
    with pytest.raises(UsageError, match="unknown option 'image_size'"):
        decode_options(RecordOptions, dict(image_size=(4, 4)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # what is asked for, whether elements come in a fixed order
        ({}, False),
        (dict(shuffle_buffer=0), True),
        (dict(seed=0), True),
        (dict(seed=0, deterministic=False), False),
        (dict(deterministic=True), True),
    ],
)
def test_is_ordered(values, expected):
    """Order is kept where somebody can tell, or where it is asked for."""
    assert RecordOptions(**values).is_ordered is expected
