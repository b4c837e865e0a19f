"""Boxes, polygons, masks and keypoints follow the pixels of pictures in which they are drawn."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw
from pycocotools import mask as coco_masks

import recordgen
from recordgen import input_fn, train_dataset
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.masks import pixels_of, runs_of
from recordgen.subjects.objects import details_in
from recordgen.tasks import ObjectDetection
from recordgen.tasks.object_detection.annotation import Boxes
from tests.conftest import encoded, exif_of, stored_examples
from tests.formats.sources import write_files
from tests.formats.test_coco import box, coco, image

SIZE = (240, 180)
# A shape that no turn or mirror leaves as it is; it reaches into each corner of a central crop.
SHAPE = [(24, 16), (200, 40), (220, 160), (140, 164), (128, 80), (60, 140)]
POINTS = [(24, 16), (200, 40), (120, 60), (60, 140)]

WAYS = {
    "as it is": {},
    "stretch": {"image_size": "100x80"},
    "fit": {"image_size": "128x128", "resize": "fit"},
    "center_crop": {"image_size": "96x128", "resize": "center_crop"},
    "max": {"image_size": "120max"},
}


def drawn():
    """Return the shape as white pixels, at eight times the size and averaged."""
    large = Image.new("L", (SIZE[0] * 8, SIZE[1] * 8))
    ImageDraw.Draw(large).polygon([(8 * x, 8 * y) for x, y in SHAPE], fill=255)
    return large.resize(SIZE, Image.Resampling.BOX)


def write(folder, orientation):
    """Write the picture, with a note to turn it, and its COCO document."""
    picture = drawn().convert("RGB")
    settings = {"quality": 100, "subsampling": 0, "exif": exif_of(orientation)}
    write_files(folder, {"a.jpg": encoded(picture, "JPEG", **settings)})
    polygon = [value for point in SHAPE for value in point]
    runs = coco_masks.frPyObjects([polygon], SIZE[1], SIZE[0])[0]
    keypoints = [value for point in POINTS for value in (*point, 2)]
    photo = image(1, "a.jpg", width=SIZE[0], height=SIZE[1])
    crowd = {"segmentation": {**runs, "counts": runs["counts"].decode()}, "iscrowd": 1}
    boxes = [
        box(1, 2, 0, 0, *SIZE, area=1000, segmentation=[polygon], keypoints=keypoints),
        box(1, 2, 24, 16, 196, 148, area=1000, **crowd),
    ]
    categories = [{"id": 2, "name": "cat", "keypoints": list("abcd")}]
    document = coco(photo, boxes=boxes, categories=categories)
    (folder / "instances_train.json").write_text(document)
    return folder


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


def rendered(polygons, height, width):
    flat = [
        [value * (width, height)[at % 2] for at, value in enumerate(points)] for points in polygons
    ]
    runs = coco_masks.merge(coco_masks.frPyObjects(flat, height, width))
    return coco_masks.decode(runs) > 0


# orientation, way
TURNS = [
    *((orientation, "center_crop") for orientation in range(1, 9)),
    *((orientation, way) for orientation in (1, 6) for way in WAYS if way != "center_crop"),
]


@pytest.mark.parametrize(("orientation", "way"), TURNS)
def test_shapes_lie_where_the_stored_pixels_are(orientation, way, tmp_path):
    """Turned, then stretched, padded or cropped: 96 % of shape and pixels are the same.

    So is the box around them.
    """
    options = WAYS[way]
    source = write(tmp_path / "in", orientation)
    recordgen.convert(str(source), tmp_path / "out", lint="-ALL", **options)
    [(_, example)] = stored_examples(tmp_path / "out")
    image = Image.open(io.BytesIO(example["image/encoded"][0])).convert("L")
    assert image.getexif().get(0x0112, 1) == 1
    truth = np.array(image) > 127
    height, width = truth.shape
    outline, crowd = sorted(details_in(example, 2), key=lambda each: each.mask is not None)
    assert overlap(rendered(outline.polygons, height, width), truth) > 0.96
    assert (crowd.mask.height, crowd.mask.width) == truth.shape
    assert overlap(pixels_of(runs_of(crowd.mask.counts), height, width) > 0, truth) > 0.96
    rows, columns = np.nonzero(truth)
    edges = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    seen = np.divide(edges, (width, height) * 2)
    boxes = Boxes.from_json(ObjectDetection().from_features(example)).boxes
    assert any(box[1:] == pytest.approx(seen, abs=0.03) for box in boxes)
    # Each corner of the shape that is inside is a keypoint on the edge of the pixels.
    points = np.reshape(outline.keypoints, (-1, KEYPOINT))
    for x, y, shown in points:
        if shown:
            column, row = int(x * width), int(y * height)
            near = truth[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3]
            assert near.any()
    assert points[2, 2] == 2  # in the middle
    if options.get("resize") != "center_crop":
        assert points[:, 2].tolist() == [2, 2, 2, 2]


# orientation, options, the area that is left of 1000 pixels
AREAS = [
    (6, {}, 1000),
    (6, {"image_size": "120max"}, 250),
    (6, {"image_size": "120x180"}, 500),
    # Of the box over the whole picture a third is seen in the middle.
    (1, {"image_size": "80x180", "resize": "center_crop"}, 1000 / 3),
]


@pytest.mark.parametrize(("orientation", "options", "area"), AREAS)
def test_areas_are_those_of_the_stored_pixels(orientation, options, area, tmp_path):
    """They shrink with the image, and with the part of their box that is seen."""
    source = write(tmp_path / "in", orientation)
    recordgen.convert(str(source), tmp_path / "out", lint="-ALL", **options)
    [(_, example)] = stored_examples(tmp_path / "out")
    assert min(example["image/object/area"]) == pytest.approx(area, rel=0.01)


READ = {
    "stretch": {"image_size": (90, 100)},
    "fit": {"image_size": (128, 128), "resize": "fit"},
    "center_crop": {"image_size": (128, 96), "resize": "center_crop"},
    "random_crop": {"image_size": (100, 100), "resize": "random_crop", "seed": 3},
    "mirrored": {"image_size": (90, 120), "augment": {"flip": True}, "seed": 3},
    "zoomed": {"image_size": (90, 120), "augment": {"crop": 0.5, "flip": True}, "seed": 4},
    "ragged": {"image_size": (90, 120), "padding": "ragged"},
    "cached": {"image_size": (90, 120), "cache": "memory", "augment": {"flip": True}, "seed": 5},
}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """A dataset with a picture that is turned on its way."""
    folder = tmp_path_factory.mktemp("moves")
    recordgen.convert(str(write(folder / "in", 6)), folder / "out", lint="-ALL")
    return str(folder / "out")


@pytest.mark.parametrize("options", READ.values(), ids=READ)
def test_masks_of_batches_are_where_the_pixels_are(options, output):
    """Of polygons and of runs, after every resize and change of training images."""
    boxes = {"fields": ["masks", "is_crowd", "keypoints"], "min_visible": 0}
    if "augment" in options or "cache" in options:
        options = {"epochs": 4, **options}
        data = train_dataset(output, batch_size=1, boxes=boxes, **options)
    else:
        data = input_fn(output, batch_size=1, split="train", boxes=boxes, **options)
    seen = 0
    for images, found in data:
        truth = images[0].numpy().mean(axis=2) > 0.5
        masks = found["masks"][0].numpy()
        assert (masks.dtype, masks.shape[1:]) == (np.uint8, truth.shape)
        for mask in masks[: int(found["count"][0])]:
            seen += 1
            assert overlap(mask > 0, truth) > 0.95 or not truth.any()
    assert seen >= 2
