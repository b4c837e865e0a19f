# ruff: noqa: E501 - tables with a case on each line
"""What each format says of objects besides label and box."""

import json

import pytest

from recordgen.errors import SourceError
from recordgen.subjects.details import Details, Polygons
from tests.formats import test_label_studio as label_studio
from tests.formats import test_via as via
from tests.formats.test_traps import cvat

# Of an image of 40 by 20: in pixels, and as shares.
PIXELS = [(4, 5), (12, 5), (8, 15)]
SHARES = (0.1, 0.25, 0.3, 0.25, 0.2, 0.75)
POLYGON = Details(polygons=Polygons.of([SHARES]))


def yolo(lines, **config):
    names = {"names": ["cat"], "train": "images", **config}
    return {"data.yaml": json.dumps(names), "labels/a.txt": lines}


def voc(flags):
    box = "<bndbox><xmin>4</xmin><ymin>5</ymin><xmax>12</xmax><ymax>15</ymax></bndbox>"
    return {
        "images/a.xml": f"<annotation><filename>a.png</filename><object><name>cat</name>{flags}"
        f"{box}</object></annotation>"
    }


def cvat_of(shape):
    return {"annotations.xml": cvat(shape, name="a.png")}


LABELME = {"imagePath": "a.png", "shapes": [{"label": "cat", "points": PIXELS}]}
PERCENT = [[x / 0.4, y / 0.2] for x, y in PIXELS]
STUDIO = label_studio.task([label_studio.region("polygonlabels", points=PERCENT)])
X, Y = zip(*PIXELS, strict=True)
OUTLINE = {"name": "polygon", "all_points_x": X, "all_points_y": Y}
POINTS = " ".join(map(str, SHARES))
CVAT = "points='4,5;12,5;8,15'"
KEYPOINTS = "0 0.2 0.5 0.2 0.5 0.1 0.25 2 0 0 0"

POINT = Details(keypoints=(0.1, 0.25, 2.0, 0.0, 0.0, 0.0))
HALF = Details(polygons=Polygons.of([(0.5, 0.0, 0.75, 0.0, 1.0, 0.5, 0.5, 0.5)]))

# the documents beside images/a.png, what is known of its object, the keypoints of the dataset
FORMATS = {
    "yolo polygon": (yolo(f"0 {POINTS}"), POLYGON, {}),
    "yolo keypoints": (yolo(KEYPOINTS, kpt_shape=[2, 3], flip_idx=[1, 0]), POINT, {"names": ["0", "1"], "flip_idx": [1, 0]}),
    "yolo keypoints without visibility": (yolo("0 0.2 0.5 0.2 0.5 0.1 0.25 0 0", kpt_shape=[2, 2], kpt_names={"0": ["eye", "ear"]}), POINT, {"names": ["eye", "ear"], "flip_idx": [0, 1]}),
    "voc": (voc("<difficult>1</difficult><truncated>0</truncated><occluded>1</occluded>"), Details(frozenset({"difficult", "occluded"})), {}),
    "voc in words": (voc("<difficult>Unspecified</difficult><truncated>true</truncated><occluded>False</occluded>"), Details(frozenset({"truncated"})), {}),
    "voc without flags": (voc("<difficult></difficult>"), Details(), {}),
    "cvat": (cvat_of("<box label='cat' occluded='1' xtl='4' ytl='5' xbr='12' ybr='15'/>"), Details(frozenset({"occluded"})), {}),
    "cvat polygon": (cvat_of(f"<polygon label='cat' occluded='0' {CVAT}/>"), POLYGON, {}),
    "labelme": ({"images/a.json": json.dumps(LABELME)}, POLYGON, {}),
    "label studio": ({"tasks.json": json.dumps([STUDIO])}, POLYGON, {}),
    "via": ({"via.json": via.as_export([via.image("a.png", via.region(OUTLINE))])}, POLYGON, {}),
    "polygon over the edge": (yolo("0 0.5 -0.5 1 0.5 0.5 0.5"), HALF, {}),
}  # fmt: skip


@pytest.mark.parametrize(("files", "expected", "keypoints"), FORMATS.values(), ids=FORMATS)
def test_what_is_known_of_the_object(files, expected, keypoints, outcome):
    """Flags, keypoints and polygons of an object are kept."""
    found = outcome(files, "images/a.png")
    [details] = found.details["images/a.png"] or [Details()]
    assert details.flags == expected.flags
    assert details.keypoints == pytest.approx(expected.keypoints)
    assert [sorted(each) for each in details.polygons] == [
        pytest.approx(sorted(each)) for each in expected.polygons
    ]
    assert found.keypoints == keypoints


@pytest.mark.parametrize(
    "config", [{"flip_idx": [0, 0]}, {"flip_idx": "x"}, {"kpt_shape": [2, 4]}, {"kpt_shape": 2}]
)
def test_keypoints_that_cannot_be(config, outcome):
    """A wrong entry about keypoints is named."""
    with pytest.raises(SourceError, match=next(iter(config))):
        outcome(yolo(KEYPOINTS, **{"kpt_shape": [2, 3], **config}), "images/a.png")
