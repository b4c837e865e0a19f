"""What is known of objects besides label and box: from documents to records and back."""

import json

import numpy as np
import pytest
from pycocotools import mask as coco_masks

import recordgen
from recordgen import cli
from recordgen.exports.inspection import inspect
from recordgen.subjects.details import Details, Mask, Polygons
from recordgen.subjects.masks import box_of, pixels_of, runs_in, runs_of, text_of
from recordgen.subjects.objects import details_in, features_of
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks.object_detection.annotation import Box, Boxes, ImageSize, without_size
from recordgen.tasks.object_detection.stored_boxes import measured
from tests.formats.boxes import examples_of
from tests.formats.conftest import make_pictures  # noqa: F401
from tests.formats.test_coco import box, coco, image

CATEGORIES = [
    {"id": 1, "name": "cat"},
    {"id": 2, "name": "person", "keypoints": ["nose", "left_eye", "right_eye"], "skeleton": []},
]
SIZE = (40, 20)

POLYGON = [4.0, 5.0, 12.0, 5.0, 8.0, 15.0]
BLOCK = np.zeros((20, 40), np.uint8)
BLOCK[2:12, 3:33] = 1
RLE = coco_masks.encode(np.asfortranarray(BLOCK))
RUNS = {"size": [20, 40], "counts": RLE["counts"].decode()}


ANNOTATIONS = [
    box(0, 1, 4, 5, 8, 10, segmentation=[POLYGON], area=40.0, iscrowd=0),
    box(0, 1, 3, 2, 30, 10, segmentation=RUNS, area=300, iscrowd=1),
    box(0, 2, 10, 5, 20, 10, keypoints=[12, 6, 2, 0, 0, 0, 20, 10, 1], num_keypoints=2),
    box(1, 1, 0, 0, 10, 10, area=100.0, iscrowd=0),
]


@pytest.fixture
def document(tmp_path, make_pictures):  # noqa: F811
    """A COCO document: an image with everything, one with a plain box, and one without objects."""
    make_pictures("train/0.png", "train/1.png", "train/2.png", size=SIZE)
    path = tmp_path / "in/instances_train.json"
    images = (image(at, f"train/{at}.png") for at in range(3))
    path.write_text(coco(*images, boxes=ANNOTATIONS, categories=CATEGORIES))
    return tmp_path / "in"


def test_records_have_what_is_known(document, tmp_path):
    """Features are there if one box of the image has them, with a value for each box."""
    result = recordgen.convert(str(document), tmp_path / "out")
    found = {uri: values for uri, (_, values) in examples_of(tmp_path / "out").items()}
    mine = {name.removeprefix("image/object/"): v for name, v in found["train/0.png"].items()}
    assert mine["class/text"] == [b"cat", b"cat", b"person"]
    assert mine["is_crowd"] == [1, 0, 0]
    assert mine["area"] == [300, 40, 200]  # the third is the area of its box
    assert mine["keypoint/num"] == [0, 0, 2]
    assert mine["keypoint/visibility"] == [0] * 6 + [2, 0, 1]
    assert mine["keypoint/x"][6:] == pytest.approx([0.3, 0, 0.5])
    assert mine["polygon/count"] == [0, 1, 0]
    assert mine["polygon/points"] == [3]
    assert mine["polygon/x"] == pytest.approx([0.1, 0.3, 0.2])
    assert mine["polygon/y"] == pytest.approx([0.25, 0.25, 0.75])
    assert mine["mask/count"][1:] == [0, 0]
    np.testing.assert_array_equal(pixels_of(mine["mask/runs"], 20, 40), BLOCK)
    for other in ("train/1.png", "train/2.png"):
        assert not recordgen.features.OBJECTS.keys() & found[other].keys()
    dataset = result.dataset
    assert set(dataset.objects) == {f"image/object/{name}" for name in mine} & set(
        recordgen.features.OBJECTS
    )
    assert dataset.keypoints == {
        "names": ["nose", "left_eye", "right_eye"],
        "flip_idx": [0, 2, 1],
    }


def test_the_digest_covers_them_and_examples_leave_shapes_out(document, tmp_path):
    """`check` computes each record's digest again; examples.parquet has no polygon."""
    recordgen.convert(str(document), tmp_path / "out")
    assert cli.main(["check", str(tmp_path / "out")]) == 0
    import pyarrow.parquet as pq

    rows = pq.read_table(tmp_path / "out/examples.parquet").to_pylist()
    [text] = [row["annotation"] for row in rows if row["uri"] == "train/0.png"]
    details = json.loads(text)["details"]
    assert [set(each) for each in details] == [
        *({"area", "digest", "flags"}, {"area", "digest"}, {"area", "keypoints"}),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_run_lengths_are_those_of_pycocotools(seed):
    """Text, pixels and the box around them."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 40), rng.integers(1, 60)
    pixels = (rng.random(shape) < rng.random()).astype(np.uint8)
    expected = coco_masks.encode(np.asfortranarray(pixels))
    text = text_of(runs_in(pixels))
    assert text == expected["counts"].decode()
    np.testing.assert_array_equal(pixels_of(runs_of(text), *pixels.shape), pixels)
    left, top, width, height = coco_masks.toBbox(expected).tolist()
    if pixels.any():
        assert box_of(runs_in(pixels), len(pixels)) == (left, top, left + width, top + height)


# the last one is a number of more letters than any run has: its time would be their square
@pytest.mark.parametrize("text", ["", "zz\x7f", "aaaa`", "O", f"9{'P' * 20}0"])
def test_damaged_run_lengths_are_errors(text):
    """Text that is cut off, has other letters or does not fill the mask is refused."""
    with pytest.raises(ValueError, match=r"runs|pixels"):
        pixels_of(runs_of(text), 3, 3)


TRIANGLE = (0.5, 0.25, 0.75, 0.25, 0.5, 1.0)


def test_details_come_back_from_features():
    """Each combination of what is known survives; the size of the image is cut from the text."""
    details = [
        Details(frozenset({"is_crowd", "group_of"}), 12.5, Polygons.of([TRIANGLE, TRIANGLE])),
        Details(area=3.0, mask=Mask(text_of([3, 2, 4]), 3, 3)),
        Details(area=1.0, keypoints=(0.5, 0.25, 2.0, 0.0, 0.0, 0.0)),
    ]
    values = {"image/height": [3], "image/width": [3], **features_of(details)}
    assert details_in(values, 3) == details
    boxes = Boxes.of({Box('],"size":[', 0, 0, 1, 1 / at): details[-at] for at in (1, 2, 3)})
    for each in (boxes, boxes._replace(details=())):
        assert without_size(each._replace(size=ImageSize(3, 3)).to_json()) == each.to_json()


def test_the_report_draws_polygons_and_keypoints(document, tmp_path):
    """As SVG paths over the thumbnail; inspect as coloured pixels."""
    recordgen.convert(str(document), tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    assert "M0.1 0.25L0.3 0.25L0.2 0.75z" in page
    assert "M0.285 0.3h0.03M0.3 0.285v0.03" in page  # the nose
    assert len(inspect(str(tmp_path / "out"), to=str(tmp_path / "pictures"))) == 3


BAD = [
    {"image/object/is_crowd": [1, 1]},
    {"image/object/area": [1.0, 2.0, 3.0]},
    {"image/object/keypoint/x": [0.5], "image/object/keypoint/y": []},
    {"image/object/polygon/count": [1], "image/object/polygon/points": [3]},
    {"image/object/mask/count": [2, 2]},
]


@pytest.mark.parametrize("values", BAD)
def test_other_writers_lists_of_a_wrong_length_are_errors(values):
    """No value is taken for that of another box."""
    if "image/object/polygon/count" in values:
        values = {**values, "image/object/polygon/x": [0.1, 0.2], "image/object/polygon/y": [0.5]}
    with pytest.raises(ValueError, match=r"box|keypoints|shorter|longer"):
        details_in(values, 1)


def test_other_writers_keypoints_may_lack_a_visibility():
    """Then they are visible."""
    values = {"image/object/keypoint/x": [0.5], "image/object/keypoint/y": [0.25]}
    assert details_in(values, 1) == [Details(keypoints=(0.5, 0.25, 2.0))]


def test_pictures_are_measured_together_as_alone():
    """Corners are those that records have."""
    sides, random = np.array([700, 9, 700, 9]), np.random.default_rng(0)
    places = [random.random((count, 4)).round(random.integers(1, 12)) for count in range(40)]
    pictures = [
        Picture(1, "a.jpg", size=(700, 9), objects=[Marked("x", tuple(it)) for it in each * sides])
        for each in places
    ]
    found = measured(pictures)
    assert found == [measured([picture])[0] for picture in pictures]
    stored = [[Box("x", *it).stored[1:] for it in each * sides / sides] for each in places]
    assert [[*map(tuple, corners)] for _, corners, _ in found] == stored
