"""CVAT, LabelMe and Create ML: the same boxes in three documents, and objects without a box."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import recordgen
from recordgen.errors import SourceError
from tests.formats.boxes import boxes_of

pytestmark = pytest.mark.once

Write = Callable[[Path], None]


def cvat(root, *, shapes=""):
    """Write CVAT's XML of two images."""
    labels = "<labels><label><name>dog</name></label><label><name>cat</name></label></labels>"
    (root / "annotations.xml").write_text(
        f"<?xml version='1.0'?><annotations><version>1.1</version>"
        f"<meta><task>{labels}</task></meta>"
        f"<image id='0' name='a.png' subset='Train' width='40' height='20'>"
        f"<box label='cat' xtl='4' ytl='5' xbr='8' ybr='10'/>"
        f"<polygon label='dog' points='4,5;8,5;6,10'/></image>"
        f"<image id='1' name='sub/b.png' subset='default' width='40' height='20'>{shapes}</image>"
        f"</annotations>"
    )


def labelme(root, *, shapes=()):
    """Write LabelMe's JSON of two images."""
    rectangle = {"label": "cat", "shape_type": "rectangle", "points": [[8, 10], [4, 5]]}
    polygon = {"label": "dog", "points": [[4, 5], [8, 5], [6, 10]]}
    size = {"imageWidth": 40, "imageHeight": 20, "version": "5"}
    first = {"shapes": [rectangle, polygon], "imagePath": "a.png", **size}
    (root / "a.json").write_text(json.dumps(first))
    second = {"shapes": list(shapes), "imagePath": "..\\x\\b.png"}
    (root / "sub/b.json").write_text(json.dumps(second))


def create_ml(root, *, shapes=()):
    """Write Create ML's JSON of two images."""
    box = {"x": 6, "y": 7.5, "width": 4, "height": 5}
    both = [{"label": label, "coordinates": box} for label in ("cat", "dog")]
    images = [
        {"image": "a.png", "annotations": both},
        {"image": "b.png", "annotations": list(shapes)},
    ]
    (root / "annotations.json").write_text(json.dumps(images))


# how the document is written, the numbers of cat and dog
FORMATS = [(cvat, "cvat", 1, 0), (labelme, "labelme", 0, 1), (create_ml, "create_ml", 0, 1)]


@pytest.mark.parametrize(("write", "name", "cat", "dog"), FORMATS)
def test_boxes(write, name, cat, dog, tmp_path, make_pictures):
    """Rectangles and polygons become shares; an image without objects stays."""
    make_pictures("a.png", "sub/b.png")
    write(tmp_path / "in")
    dataset = recordgen.convert(str(tmp_path / "in"), tmp_path / "out").dataset
    assert dataset.options["format"] == name
    found = boxes_of(tmp_path / "out")
    corners = [0.1, 0.25, 0.2, 0.5]
    assert found["a.png"][1] == [("cat", cat, corners), ("dog", dog, corners)]
    assert found["sub/b.png"][1] == []


HUGE = 10**400  # more than a float holds

BAD = [
    (cvat, "<box label='cat' xtl='x' ytl='5' xbr='8' ybr='10'/>"),
    (cvat, "<box label='cat' xtl='1' ytl='5' xbr='8' ybr='10' rotation='x'/>"),
    (cvat, "<box label='' xtl='1' ytl='5' xbr='8' ybr='10'/>"),
    (cvat, "<polygon label='cat' points='1,2;3'/>"),
    (labelme, [{"label": "cat", "shape_type": "cuboid", "points": [[1, 2], [3, 4]]}]),
    (labelme, [{"label": "cat", "points": [[1, 2], [3, "x"]]}]),
    (labelme, [{"label": " ", "points": [[1, 2], [3, 4]]}]),
    (labelme, [{"label": "cat", "points": [[1, 2], [3, HUGE]]}]),
    (labelme, [7]),
    (create_ml, [{"label": "cat"}]),
    (create_ml, [{"label": "cat", "coordinates": {"x": 1, "y": 2, "width": None, "height": 3}}]),
    (
        create_ml,
        [{"label": "cat", "coordinates": dict.fromkeys(("x", "y", "width", "height"), HUGE)}],
    ),
    (create_ml, [7]),
]


@pytest.mark.parametrize(("write", "shapes"), BAD)
def test_an_object_without_a_box_rejects_its_image(write, shapes, tmp_path, make_pictures):
    make_pictures("a.png", "sub/b.png")
    write(tmp_path / "in", shapes=shapes)
    result = recordgen.convert(str(tmp_path / "in"), tmp_path / "out", max_reject_fraction=1)
    assert [(item.uri, item.code) for item in result.rejects] == [("sub/b.png", "bad_annotation")]
    assert list(boxes_of(tmp_path / "out")) == ["a.png"]


def test_circles_and_ellipses(tmp_path, make_pictures):
    """Their boxes enclose them."""
    make_pictures("a.png", "sub/b.png")
    circle = {"label": "cat", "shape_type": "circle", "points": [[20, 10], [20, 15]]}
    labelme(tmp_path / "in", shapes=[circle])
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    expected = [("cat", 0, [0.375, 0.25, 0.625, 0.75])]
    assert boxes_of(tmp_path / "out")["sub/b.png"][1] == expected
    for path in (tmp_path / "in").rglob("*.json"):
        path.unlink()
    cvat(tmp_path / "in", shapes="<ellipse label='cat' cx='20' cy='10' rx='5' ry='5'/>")
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out2")
    assert boxes_of(tmp_path / "out2")["sub/b.png"][1] == [("cat", 1, [0.375, 0.25, 0.625, 0.75])]


def test_videos_of_cvat_stop(tmp_path):
    """Tracks are not images."""
    path = tmp_path / "annotations.xml"
    path.write_text("<annotations><meta></meta><track id='0' label='cat'></track></annotations>")
    with pytest.raises(SourceError, match="video"):
        recordgen.plan(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "<annotations><image name='a'>",
        "<!DOCTYPE x><annotations><image name='a'/>",
        f"<!--<annotations><image {'x' * 70_000}--><!DOCTYPE x><annotations><image name='a'/>",
        "<annotations><meta><label></meta><image name='a'/></annotations>",
    ],
)
def test_a_cut_document_or_a_doctype_is_an_error_with_the_path(text, tmp_path):
    path = tmp_path / "annotations.xml"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"annotations\.xml"):
        recordgen.plan(str(path))
