"""Flags, areas and keypoints of boxes in batches."""

import pickle

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen import eval_dataset, train_dataset
from recordgen.errors import UsageError
from recordgen.reading.detection import for_each_box
from tests.conftest import convert_lines
from tests.formats.conftest import make_pictures  # noqa: F401
from tests.tasks.test_objects import document  # noqa: F401

ALL_FIELDS = ["masks", "area", "is_crowd", "keypoints", "occluded"]


@pytest.fixture
def output(document, tmp_path):  # noqa: F811
    recordgen.convert(str(document), tmp_path / "out", lint="-ALL")
    return str(tmp_path / "out")


def read(output, fields, **options):
    """Return by class and left edge what one batch holds of each box, and the batch."""
    options = {"image_size": (20, 40), "split": "train", **options}
    boxes = {"format": "xyxy", "fields": fields}
    [(_, batch)] = eval_dataset(output, boxes=boxes, **options)
    return batch


def by_box(batch, name):
    """Return a field of each box by its image's number of boxes, its class and its left edge."""
    found = {}
    for at, count in enumerate(batch["count"].numpy()):
        for box in range(count):
            left = round(float(batch["boxes"][at, box, 0]))
            key = int(count), int(batch["labels"][at, box]), left
            found[key] = batch[name][at, box].numpy()
    return found


def test_boxes_around_crowds_are_only_read_with_their_flag(output):
    """Without it nobody could tell them from others."""
    assert sorted(read(output, ())["count"].numpy()) == [0, 1, 2]
    batch = read(output, ["is_crowd", "difficult"])
    assert sorted(batch["count"].numpy()) == [0, 1, 3]
    assert by_box(batch, "is_crowd") == {(3, 0, 3): 1, (3, 0, 4): 0, (3, 1, 10): 0, (1, 0, 0): 0}
    assert set(by_box(batch, "difficult").values()) == {0}
    assert batch["is_crowd"].numpy().min() == -1  # padding


def test_areas_are_those_of_the_boxes_unless_known(output):
    """A stored area wins over width times height."""
    found = by_box(read(output, ["area", "is_crowd"]), "area")
    expected = {(3, 0, 3): 300, (3, 0, 4): 40, (3, 1, 10): 200, (1, 0, 0): 100}
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("padding", ["auto", 2, "ragged"])
def test_keypoints_move_with_the_image(padding, output):
    """In pixels of the returned image, here twice the stored one's."""
    batch = read(output, ["keypoints"], image_size=(40, 80), padding=padding)
    found = by_box(batch, "keypoints")
    assert found[2, 1, 20].tolist() == [[24, 12, 2], [0, 0, 0], [40, 20, 1]]
    assert not found[2, 0, 8].any()
    assert batch["keypoints"].shape[-2:] == (3, 3)


def test_cut_off_keypoints_are_not_labelled(output):
    """A central crop of 20 pixels begins at the tenth."""
    batch = read(output, ["keypoints"], image_size=(20, 20), resize="center_crop")
    [found] = [each for (_, label, _), each in by_box(batch, "keypoints").items() if label == 1]
    assert found == pytest.approx(np.array([[2, 6, 2], [0, 0, 0], [10, 10, 1]]))
    batch = read(output, ["keypoints"], image_size=(20, 14), resize="center_crop")
    [found] = [each for (_, label, _), each in by_box(batch, "keypoints").items() if label == 1]
    assert found == pytest.approx(np.array([[0, 0, 0], [0, 0, 0], [7, 10, 1]]))


def test_mirrored_keypoints_swap_left_and_right(output):
    """Among several epochs, images are mirrored and not; the right eye becomes the left one."""
    boxes = {"format": "xyxy", "fields": ["keypoints"]}
    options = {"image_size": (20, 40), "split": "train", "batch_size": 3, "epochs": 12, "seed": 1}
    data = train_dataset(output, boxes=boxes, augment={"flip": True}, **options)
    points = {
        tuple(map(tuple, keypoints[labels == 1][0].tolist()))
        for _, batch in data.as_numpy_iterator()
        for keypoints, labels in zip(batch["keypoints"], batch["labels"], strict=True)
        if (labels == 1).any()
    }
    assert points == {((12, 6, 2), (0, 0, 0), (20, 10, 1)), ((28, 6, 2), (20, 10, 1), (0, 0, 0))}


def test_keypoints_that_no_record_has_are_an_error(output, tmp_path):
    """A field that is misspelt or missing is named."""
    lines = ["TRAIN,in/train/0.png,cat,.1,.1,,,.5,.5,,"]
    with pytest.raises(UsageError, match="keypoints"):
        read(convert_lines(tmp_path, lines, "again", lint="-ALL"), ["keypoints"])
    with pytest.raises(UsageError, match="fields"):
        read(output, ["keypoint"])


@pytest.mark.parametrize("count", [0, 2])
def test_records_without_a_feature_have_zeros(count):
    """Lists are matched to boxes by record; a list of another length is an error."""
    each = max(1, count)
    boxes = tf.ragged.constant([[7, 8], [], [9], [5, 6]], tf.int64)
    lists = [list(range(1, 1 + 2 * each)), [], [], list(range(5, 5 + 2 * each))]
    found = for_each_box(tf.ragged.constant(lists, tf.int64), boxes, count)
    expected = [np.reshape(lists[0] + [0] * each + lists[3], (5, *((each,) if count else ())))]
    np.testing.assert_array_equal(found.values, expected[0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        for_each_box(tf.ragged.constant([[1] * (2 * each + 1), [], [], []], tf.int64), boxes, count)


# resize, fields
READ_FIELDS = [
    *((resize, ALL_FIELDS) for resize in ("stretch", "fit", "center_crop")),
    *(("stretch", []), ("fit", ["is_crowd"]), ("center_crop", ["masks"])),
]


@pytest.mark.parametrize(("resize", "fields"), READ_FIELDS)
def test_a_source_gives_the_same(fields, resize, output):
    """Without TensorFlow: the same keys, boxes and fields as `load`, padded likewise."""
    size = (30, 32)
    options = {"image_size": size, "resize": resize, "split": "train"}
    [(_, expected)] = eval_dataset(output, boxes={"fields": fields}, **options)
    pairs = recordgen.source(output, "train").images(size, resize=resize, fields=fields)
    _, found = pickle.loads(pickle.dumps(pairs)).batch(range(3))
    assert list(found) == list(expected) == ["boxes", "labels", *fields, "count"]
    for name, values in found.items():
        assert values.dtype == expected[name].dtype.as_numpy_dtype
        np.testing.assert_allclose(values, expected[name], atol=1e-5, err_msg=name)
