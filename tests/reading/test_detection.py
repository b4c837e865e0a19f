"""The boxes of a detection dataset in batches, with their images."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, load, steps_per_epoch
from recordgen import read as read_examples
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.reading import Tuning, named_errors
from tests.reading.conftest import example, write_records
from tests.reading.scenes import Scene, shown, write_scenes

SIZE = (40, 60)
KINDS = ("PNG", "JPEG")

# Image sizes: the target's, smaller, odd, and sizes at which JPEGs are decoded at 1/2, 1/4 and 1/8.
SIZES = [(40, 60), (31, 47), (90, 61), (97, 131), (101, 301), (323, 243), (170, 260), (403, 621)]


@pytest.fixture(scope="module")
def scenes():
    return [
        Scene.drawn(number, SIZES[number % len(SIZES)], KINDS[number // len(SIZES) % 2])
        for number in range(16)
    ]


@pytest.fixture(scope="module")
def mixed(scenes, tmp_path_factory):
    """Scenes of many sizes and two formats."""
    return write_scenes(tmp_path_factory.mktemp("mixed"), scenes)


@pytest.fixture(scope="module")
def unchecked(scenes, tmp_path_factory):
    """The same scenes, converted without decoding them."""
    root = tmp_path_factory.mktemp("unchecked")
    return write_scenes(root, scenes, options={"check": "header"})


def misses(dataset):
    """Return the distances in pixels between edges of boxes and of their colours (float [n])."""
    found = []
    for images, boxes in dataset:
        for image, corners, labels, count in zip(
            images.numpy(),
            *(boxes[key].numpy() for key in ("boxes", "labels", "count")),
            strict=True,
        ):
            by_colour = dict(zip(labels[:count], corners[:count], strict=True))
            for channel in range(3):
                place, box = shown(image, channel), by_colour.get(channel)
                if place is not None and box is not None:
                    found.extend(np.abs(np.array(place) - box))
                elif place is not None:
                    found.append(np.inf)
                elif box is not None:
                    # A narrower box may not give any pixel half of its colour.
                    found.append(min(box[2] - box[0], box[3] - box[1]))
    return np.array(found)


def check(dataset):
    found = misses(dataset)
    assert len(found) > 40
    assert found.max() <= 1.1
    # Counting whole pixels loses half a pixel at most, a quarter in the mean.
    assert found.mean() < 0.35


BOXES = {"format": "xyxy", "min_visible": 0}
OPTIONS = dict(batch_size=8, image_size=SIZE, split="train", boxes=BOXES)


# the dataset, options
PLACES = [
    *(("mixed", {"resize": resize}) for resize in ("stretch", "fit", "center_crop", "random_crop")),
    ("mixed", {"resize": "random_crop", "tuning": Tuning(decoder="exact")}),
    ("mixed", {"resize": "center_crop", "cache": "memory", "augment": {"flip": True, "crop": 0.5}}),
    # boxes move by the sizes that the images have
    ("unchecked", {"resize": "fit"}),
    ("unchecked", {"resize": "random_crop"}),
    ("mixed", {"resize": "stretch", "augment": {"crop": 0.5}}),
    ("mixed", {"resize": "random_crop", "augment": {"flip": True, "crop": 0.5}}),
]


@pytest.mark.parametrize(("name", "options"), PLACES, ids=str)
def test_boxes_lie_where_the_colours_are(name, options, request):
    """Boxes lie where their colours are, however images are resized, kept and changed."""
    check(eval_dataset(request.getfixturevalue(name), seed=3, **options, **OPTIONS))


@pytest.mark.parametrize(
    ("resize", "size"), [("stretch", (40, 60)), ("fit", (83, 125)), ("center_crop", (96, 144))]
)
def test_statistics_of_the_images_do_not_move_boxes(tmp_path, resize, size):
    """The faster ways for images of one size leave boxes where they are."""
    scenes = [Scene.drawn(number, size, "JPEG") for number in range(16)]
    root = write_scenes(tmp_path, scenes, knows_images=True)
    check(eval_dataset(root, resize=resize, **OPTIONS))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Scenes 0 to 11 with number % 4 rectangles, in the size of reading and in two shards."""
    scenes = [Scene.drawn(n, SIZE, colours=range(n % 4)) for n in range(12)]
    return write_scenes(tmp_path_factory.mktemp("plain"), scenes, shards=2, knows_images=True)


READ = dict(batch_size=4, image_size=SIZE, split="train")
IDS = dict(**READ, columns=["image/source_id"])


def read(dataset):
    """Return {number: {class: box}} of all examples."""
    found = {}
    for _, boxes, extras in dataset:
        for n, name in enumerate(extras["image/source_id"].numpy()):
            count = int(boxes["count"][n])
            corners, labels = boxes["boxes"][n].numpy(), boxes["labels"][n].numpy()
            found[int(name.split()[1])] = dict(
                zip(labels[:count].tolist(), corners[:count].round(4).tolist(), strict=True)
            )
    return found


def expected(numbers=range(12), classes=range(3)):
    """Return what :func:`read` returns for the plain scenes."""
    height, width = SIZE
    found = {}
    for n in numbers:
        rectangles = Scene.drawn(n, SIZE, colours=range(n % 4)).rectangles
        found[n] = {
            channel: [
                round(float(np.float32(value)), 4)
                for value in (left / width, top / height, right / width, bottom / height)
            ]
            for channel, (top, left, bottom, right) in rectangles.items()
            if channel in classes
        }
    return found


def same(found, wanted):
    """Compare two results of :func:`read`, up to rounding."""
    assert {n: sorted(boxes) for n, boxes in found.items()} == {
        n: sorted(boxes) for n, boxes in wanted.items()
    }
    for n, boxes in wanted.items():
        for channel, box in boxes.items():
            np.testing.assert_allclose(found[n][channel], box, atol=2e-4)


def test_boxes_are_padded_to_the_largest_number_in_a_batch(plain):
    """Boxes are padded with -1 to the largest number in a batch."""
    dataset = eval_dataset(plain, **IDS)
    assert dataset.element_spec[1] == {
        "boxes": tf.TensorSpec((None, None, 4), tf.float32),
        "labels": tf.TensorSpec((None, None), tf.int64),
        "count": tf.TensorSpec((None,), tf.int64),
    }
    same(read(dataset), expected())
    for _, boxes, _ in dataset:
        most = int(tf.reduce_max(boxes["count"]))
        assert boxes["boxes"].shape == (4, most, 4)
        assert boxes["labels"].shape == (4, most)
        is_box = tf.sequence_mask(boxes["count"], most)
        assert (boxes["labels"][~is_box] == -1).numpy().all()
        assert (boxes["boxes"][~is_box] == -1).numpy().all()
        assert (boxes["labels"][is_box] >= 0).numpy().all()


def test_a_batch_without_objects_has_room_for_one_box(tmp_path):
    """A batch without objects has one box of padding, or ragged rows without any."""
    root = write_scenes(tmp_path, [Scene(n, SIZE, {}) for n in range(4)])
    [(images, boxes)] = eval_dataset(root, **READ)
    assert images.shape == (4, *SIZE, 3)
    assert boxes["boxes"].numpy().tolist() == [[[-1] * 4]] * 4
    assert boxes["labels"].numpy().tolist() == [[-1]] * 4
    assert boxes["count"].numpy().tolist() == [0] * 4
    [(_, boxes)] = eval_dataset(root, padding="ragged", **READ)
    assert boxes["boxes"].shape == (4, None, 4)
    assert boxes["labels"].to_list() == [[]] * 4


def test_ragged_boxes_have_no_padding(plain):
    """Ragged boxes are those of the records."""
    dataset = eval_dataset(plain, padding="ragged", **IDS)
    spec = dataset.element_spec[1]
    assert spec["boxes"] == tf.RaggedTensorSpec((None, None, 4), tf.float32, 1)
    assert spec["labels"] == tf.RaggedTensorSpec((None, None), tf.int64, 1)
    same(read(dataset), expected())


def test_the_largest_boxes_are_kept_in_their_order(plain):
    """A number as padding keeps the largest boxes, in the order of the record."""
    dataset = eval_dataset(plain, padding=2, tuning=Tuning(drop_remainder=True), **IDS)
    assert dataset.element_spec[1]["boxes"] == tf.TensorSpec((4, 2, 4), tf.float32)
    assert dataset.element_spec[1]["labels"] == tf.TensorSpec((4, 2), tf.int64)
    assert dataset.element_spec[1]["count"] == tf.TensorSpec((4,), tf.int64)
    wanted = {}
    for n, found in expected().items():
        areas = {it: (right - left) * (low - top) for it, (left, top, right, low) in found.items()}
        by_size = sorted(found, key=areas.get, reverse=True)
        wanted[n] = {channel: found[channel] for channel in sorted(by_size[:2])}
    found = read(dataset)
    same(found, wanted)
    assert all(list(boxes) == sorted(boxes) for boxes in found.values())
    padded = eval_dataset(plain, padding=7, **READ)
    assert {boxes["labels"].shape[1] for _, boxes in padded} == {7}


def test_a_cut_box_is_clipped_or_dropped(tmp_path):
    """A cut box is clipped, or dropped below min_visible."""
    # The middle square of a wide image shows half of the red box and a fifth of the green box.
    size = (20, 60)
    rectangles = {0: (5, 15, 15, 25), 1: (5, 36, 15, 86 - 40), 2: (0, 0, 20, 10)}
    root = write_scenes(tmp_path, [Scene(0, size, {**rectangles, 1: (5, 38, 15, 48)})])
    options = dict(image_size=(20, 20), resize="center_crop", split="train", batch_size=1)

    def labels(least):
        [(_, boxes)] = eval_dataset(root, boxes={"format": "xyxy", "min_visible": least}, **options)
        found = (boxes[key][0].numpy().tolist() for key in ("labels", "boxes"))
        return dict(zip(*found, strict=True))

    red, green = [0, 5, 5, 15], [18, 5, 20, 15]
    assert labels(0.2) == {0: pytest.approx(red), 1: pytest.approx(green)}
    assert labels(0.21) == {0: pytest.approx(red)}
    assert labels(0.51) == {-1: [-1] * 4}


# options, the classes that are read, their numbers
REQUESTED = [
    (dict(only=["green", "blue"]), [1, 2], [1, 2], True),
    (dict(vocabulary=["blue", "green", "red"]), [0, 1, 2], [2, 1, 0], True),
    (dict(vocabulary=["blue", "green", "red"]), [0, 1, 2], [2, 1, 0], False),
    (dict(vocabulary=["x", "blue"], only=["blue"]), [2], [1], False),
]


@pytest.mark.parametrize(("options", "classes", "numbers", "is_ours"), REQUESTED, ids=str)
def test_only_boxes_of_the_requested_classes_are_read(
    plain, options, classes, numbers, is_ours, tmp_path
):
    """only and vocabulary choose and number classes of boxes; images stay."""
    source = plain
    if not is_ours:
        source = f"{shutil.copytree(plain, tmp_path / 'x')}/Split-train/*"
        os.remove(tmp_path / "x" / "dataset.json")
    found = read(eval_dataset(source, task="object_detection", **options, **IDS))
    new = dict(zip(classes, numbers, strict=True))
    wanted = {}
    for n, boxes in expected(classes=classes).items():
        wanted[n] = {new[channel]: box for channel, box in boxes.items()}
    same(found, wanted)


def test_a_predicate_sees_all_boxes_of_a_record(plain):
    """A predicate gets the lists of all boxes of a record."""

    def has_two(record):
        return tf.size(record["image/object/class/label"]) == 2

    same(read(eval_dataset(plain, only=has_two, **IDS)), expected([2, 6, 10]))


def test_load_returns_a_split_without_boxes_and_steps_count_every_image(plain):
    """Images without boxes count, in load and in steps."""
    assert steps_per_epoch(plain, 5) == 3
    assert steps_per_epoch(plain, 5, only=["blue"]) == 3
    assert steps_per_epoch(plain, 5, shard=(1, 2)) == 2
    data = load(plain, batch_size=4, image_size=SIZE)
    assert sum(len(images) for images, _ in data["train"]) == 12


def test_load_takes_splits_without_objects(tmp_path):
    """A split without objects is loaded."""
    scenes = [Scene(n, SIZE, {}) for n in range(3)]
    root = write_scenes(tmp_path, scenes, counts={}, split="test")
    assert [len(images) for images, _ in load(root, batch_size=4)["test"]] == [3]


def test_read_returns_features_of_boxes_as_lists(plain):
    """read gives the stored lists of boxes."""
    [batch] = read_examples(plain, batch_size=12)
    lengths = batch["image/object/class/label"].row_lengths().numpy()
    assert sorted(lengths) == sorted(n % 4 for n in range(12))


def as_others(folder, examples):
    """Write examples as other programs do: without a dataset.json."""
    return write_records(folder / "a.rec", map(example, examples))


def scene_features(count=8):
    return [Scene.drawn(n, SIZE, colours=range(n % 4)).features for n in range(count)]


@pytest.fixture(scope="module")
def reread(tmp_path_factory):
    """Return a function that writes examples into the file of a dataset, and reads it."""
    folder = tmp_path_factory.mktemp("others")
    dataset = eval_dataset(as_others(folder, scene_features(4)), task="object_detection", **READ)

    def read_again(examples):
        as_others(folder, examples)
        with named_errors(dataset):
            return list(dataset)

    return read_again


# changes to a record of another tool, message
INVALID_BOXES = [
    ({"image/object/bbox/xmax": [40.0, 20.0]}, "from 0 to 1"),
    ({"image/object/bbox/xmax": [float("nan"), 0.5]}, "from 0 to 1"),
    ({"image/object/bbox/xmax": [0.5]}, "for each box"),
    ({"image/object/class/label": [1, 2, 0]}, "for each box"),
]


@pytest.mark.parametrize(("change", "message"), INVALID_BOXES, ids=str)
def test_invalid_boxes_are_an_error_while_reading(reread, change, message):
    """A box without its coordinates or class, or in pixels, is an error."""
    examples = scene_features(4)
    examples[2].update(change)
    with pytest.raises(RecordError, match=f": record 2.*{message}"):
        reread(examples)


# a missing feature, options, message
MISSING_FEATURES = [
    ("bbox/ymax", {}, "'image/object/bbox/ymax'"),
    ("class/label", {}, r"'image/object/class/label'.*vocabulary"),
    ("class/text", dict(only=["red"]), "'image/object/class/text'"),
]


@pytest.mark.parametrize(("missing", "options", "message"), MISSING_FEATURES)
def test_a_missing_feature_is_an_error_before_reading(tmp_path, missing, options, message):
    """A missing feature is an error before anything is read."""
    examples = scene_features()[1:]
    for item in examples:
        item.pop(f"image/object/{missing}", None)
    source = as_others(tmp_path, examples)
    with pytest.raises(DataError, match=message):
        eval_dataset(source, task="object_detection", **options, **READ)


def test_foreign_boxes_without_labels_name_the_option_that_reads_them(tmp_path):
    """The error about missing labels names the option that reads the boxes."""
    source = as_others(tmp_path, scene_features()[1:])
    with pytest.raises(DataError, match=r"'image/class/label'.*task"):
        eval_dataset(source, **READ)


# options, message
WRONG_OPTIONS = [
    (dict(label_mode="int"), "label_mode"),
    (dict(label_mode=None), "label_mode"),
    (dict(weights="balanced"), "weights"),
    (dict(task="image_classification"), r"dataset\.json.*'object_detection'"),
    (dict(only=["rde"]), r"only.*'rde'"),
    (dict(columns=["image/object/class/text"]), r"image/object/class/text.*recordgen\.read"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS, ids=str)
def test_options_that_do_not_apply_to_boxes_are_refused(plain, options, message):
    """Options of labels of whole images are errors."""
    with pytest.raises(UsageError, match=message):
        eval_dataset(plain, **READ, **options)
