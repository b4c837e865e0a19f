"""Outlines of other tools' documents become masks."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

import recordgen
from recordgen.core.image_settings import Limits
from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image
from recordgen.subjects import details
from recordgen.subjects.details import Details, Polygons
from recordgen.subjects.masks import runs_in, text_of
from recordgen.tasks.image_segmentation.stored_masks import drawn_mask, paint
from tests.conftest import encoded, error_of, exif_of
from tests.formats import test_label_studio as studio
from tests.formats import test_via as via
from tests.formats.boxes import masks_of
from tests.formats.sources import write_files
from tests.formats.test_coco import box, image
from tests.formats.test_coco import coco as document_of_coco
from tests.settings import payload_settings

SIZE = (4, 6)


def shares(*points):
    """Return points in pixels as shares of a picture of 6×4 pixels."""
    return tuple(value / SIZE[1 - at % 2] for at, value in enumerate(points))


def polygon(*points):
    return Details(polygons=Polygons.of([shares(*points)]))


def runs(pixels):
    return Details(mask=details.Mask(text_of(runs_in(np.array(pixels))), *np.shape(pixels)))


WHOLE = polygon(0, 0, 6, 0, 6, 4, 0, 4)
RING = polygon(0, 0, 6, 0, 6, 4, 0, 4, 0, 0, 1, 1, 1, 3, 5, 3, 5, 1, 1, 1)

# objects, the classes in the rows of the mask, whose background is 9
PAINTED = [
    ([], "999999 999999 999999 999999"),
    ([(1, polygon(1, 1, 4, 1, 4, 3, 1, 3))], "999999 911199 911199 999999"),
    # a pixel belongs to it if its centre does
    ([(1, polygon(0.4, 0, 2.6, 0, 2.6, 1, 0.4, 1))], "111999 999999 999999 999999"),
    # the small object is in front, whatever the order
    ([(2, polygon(1, 1, 2, 1, 2, 2, 1, 2)), (1, WHOLE)], "111111 121111 111111 111111"),
    # beyond the picture
    ([(1, polygon(4, -5, 9, -5, 9, 1, 4, 1))], "999911 999999 999999 999999"),
    # a ring of one line that crosses itself has a hole
    ([(1, RING)], "111111 199991 199991 111111"),
    # runs of a picture of half the size
    ([(3, runs([[0, 0, 1], [0, 1, 0]]))], "999933 999933 993399 993399"),
]


@pytest.mark.parametrize(("objects", "rows"), PAINTED)
def test_painted(objects, rows):
    """Pixels of objects have their classes, all others the background."""
    mask = [[*map(int, row)] for row in rows.split()]
    assert paint(objects, 9, SIZE, Limits()).tolist() == mask


# objects that cannot be drawn: they do not fill their picture, or have rows from and to nowhere
UNDRAWN = [
    Details(mask=details.Mask(text_of([3, 2]), 4, 6)),
    *(Details(polygons=Polygons.of([(0, 0, 1, odd, 0.5, 1)])) for odd in (np.nan, np.inf)),
]


@pytest.mark.parametrize("odd", UNDRAWN)
def test_an_outline_without_a_place_is_refused(odd):
    """It rejects the row."""
    assert error_of(PayloadError, paint, [(1, odd)], 0, SIZE, Limits()).code == "bad_annotation"


# what is drawn, the side of the image, limits: in truth, each takes far less than a second
ZIGZAG = Details(polygons=Polygons.of([(0, 0, 0, 1) * 1000]))
SLOW = [
    (Details(polygons=Polygons.of([(0, 0, 1, 0, 0.5, 1)] * 1000)), 1000, {"seconds": 0.1}),
    (ZIGZAG, 1000, {"seconds": 0.1}),
    (Details(mask=details.Mask(text_of([1, 99_999_999]), 10_000, 10_000)), 1000, {"seconds": 0.1}),
    (ZIGZAG, 5000, {}),  # long edges of a small document
]


@pytest.mark.parametrize(("slow", "side", "limits"), SLOW)
def test_drawing_takes_the_time_of_an_image(slow, side, limits):
    """Its estimate, which does not depend on the machine, is refused before anything is drawn."""
    error = error_of(PayloadError, paint, [(1, slow)], 0, (side, side), Limits(**limits))
    assert error.code == "too_slow"
    quick = Details(polygons=Polygons.of([(0, 0, 1, 0, 0.5, 1)]))
    assert paint([(1, quick)], 0, (1000, 1000), Limits(seconds=0.1)).mean() == pytest.approx(0.5)
    short = Details(polygons=Polygons.of([(0, 0, 0, 0.01) * 1000]))
    assert not paint([(1, short)], 0, (5000, 5000), Limits()).any()


def edge_distances(corners, points):
    """Return how far points are from the nearest edge of a polygon."""
    edges = np.roll(corners, -1, 0) - corners
    away = points[:, None] - corners
    along = ((away * edges).sum(-1) / (edges * edges).sum(-1)).clip(0, 1)
    return np.linalg.norm(away - along[..., None] * edges, axis=-1).min(1)


@pytest.mark.parametrize("way", range(1, 9))
def test_outlines_turn_with_their_image(way):
    """The mask lies where the stored pixels are."""
    lying = np.zeros((20, 32, 3), np.uint8)
    lying[2:8, 4:20] = 200
    data = encoded(Image.fromarray(lying), "JPEG", exif=exif_of(way), quality=100)
    photo = check_image(data, payload_settings())
    left, top, right, bottom = 4 / 32, 2 / 20, 20 / 32, 8 / 20
    box = Details(polygons=Polygons.of([(left, top, right, top, right, bottom, left, bottom)]))
    mask = drawn_mask([(1, box.to_json())], 0, photo, "stored", Limits())
    pixels = np.asarray(Image.open(io.BytesIO(photo.data)).convert("L"))
    classes = np.asarray(Image.open(io.BytesIO(mask.data)))
    assert ((pixels > 100) == (classes == 1)).mean() > 0.98
    assert mask.numbers == (0, 1)


def coco(folder, *annotations):
    """Write a document of two photos of 6×4 pixels; annotations are of the first."""
    images = (image(n, f"{name}.png", width=6, height=4) for n, name in enumerate("ab"))
    boxes = [box(0, 9, 1, 1, 3, 2, **each) for each in annotations]
    categories = [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}]
    document = document_of_coco(*images, boxes=boxes, categories=categories)
    photos = dict.fromkeys(("a.png", "b.png"), encoded(Image.new("RGB", (6, 4))))
    return str(write_files(folder, {**photos, "_annotations.coco.json": document}))


def test_coco(tmp_path):
    """Categories keep their numbers, and the background follows them."""
    folder = coco(
        tmp_path / "in",
        {"category_id": 9, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]]},
        {"category_id": 7, "segmentation": {"size": [4, 6], "counts": [0, 4, 20]}, "iscrowd": 1},
    )
    result = recordgen.convert(folder, tmp_path / "out", task="image_segmentation")
    assert result.dataset.labels == ("dog", "cat", "background")
    masks = {uri: mask.tolist() for uri, (*_, mask) in masks_of(tmp_path / "out").items()}
    row = [0, 1, 1, 1, 2, 2]
    assert masks == {"a.png": [[0, *[2] * 5], row, row, [0, *[2] * 5]], "b.png": [[2] * 6] * 4}


def test_coco_stays_boxes_without_the_task(tmp_path):
    """Polygons do not change what a document of instances is read as."""
    folder = coco(tmp_path / "in", {"category_id": 9, "segmentation": [[1, 1, 4, 1, 4, 3]]})
    assert recordgen.convert(folder, tmp_path / "out").dataset.task == "object_detection"


# the annotation of an object; the size of its picture as the document says it
UNUSABLE = [
    ({}, '"width": 6, "height": 4'),  # a box alone does not say which pixels are its own
    ({"segmentation": {"size": [6, 4], "counts": [0, 4, 20]}}, '"width": 4, "height": 6'),
]


@pytest.mark.parametrize(("annotation", "size"), UNUSABLE)
def test_an_object_without_an_outline_in_its_picture_rejects_it(annotation, size, tmp_path):
    """Neither is a mask guessed from a box, nor one whose proportions its document only says."""
    folder = coco(tmp_path / "in", {"category_id": 9, **annotation})
    document = Path(folder, "_annotations.coco.json")
    document.write_text(document.read_text().replace('"width": 6, "height": 4', size))
    options = {"task": "image_segmentation", "max_reject_fraction": 1}
    result = recordgen.convert(folder, tmp_path / "out", **options)
    assert [(reject.uri, reject.code) for reject in result.rejects] == [("a.png", "bad_annotation")]


def random_shapes(count):
    """Return random polygons in pixels, most of which cross themselves, with height and width."""
    rng = np.random.default_rng(35)
    sizes = rng.integers(20, 200, (count, 2)).tolist()
    return [(rng.random((rng.integers(3, 12), 2)) * size[::-1], size) for size in sizes]


def test_random_polygons_and_runs_are_those_of_pycocotools(tmp_path):
    """Runs are the same; of polygons, a pixel may differ whose centre is near an edge.

    pycocotools draws corners on a grid of fifths of pixels. That matters for needles alone: masks
    that share less than 0.85 of their pixels have fewer than 20.
    """
    folder, shapes = tmp_path / "in", random_shapes(300)
    folder.mkdir()
    images, annotations = [], []
    for number, (corners, (height, width)) in enumerate(shapes):
        Image.new("L", (width, height)).save(folder / f"{number}.png")
        sides = (*corners.min(0).tolist(), *np.ptp(corners, 0).tolist())
        outline = [corners.ravel().tolist()]
        [run] = coco_mask.frPyObjects(outline, height, width)
        run = {"size": [height, width], "counts": run["counts"].decode()}
        images.append(image(number, f"{number}.png", height=height, width=width))
        shape = {"id": number, "iscrowd": 0, "segmentation": run if number % 4 == 0 else outline}
        annotations.append(box(number, 2, *sides, **shape))
    (folder / "boxes.json").write_text(document_of_coco(*images, boxes=annotations))
    options = {"task": "image_segmentation", "lint": "-ALL"}
    assert recordgen.convert(f"{folder}/", tmp_path / "out", **options).dataset.rows.rejects == 0

    truth, common = COCO(folder / "boxes.json"), {}
    for uri, (*_, mask) in masks_of(tmp_path / "out").items():
        number, mine = int(Path(uri).stem), mask == 0
        theirs = truth.annToMask(truth.anns[number]) == 1
        rows, columns = np.nonzero(mine != theirs)
        corners, centres = shapes[number][0], np.stack([columns, rows], 1) + 0.5
        assert edge_distances(corners, centres).max(initial=0) < (0.2 if number % 4 else 1e-9)
        common[number] = (mine & theirs).sum() / (mine | theirs).sum(), theirs.sum()
    assert len(common) == len(shapes)
    assert all(share >= 0.85 or pixels < 20 for share, pixels in common.values())


def cvat(kind, place):
    """Return CVAT's document of a.png with one shape."""
    image = f"<image name='a.png' width='60' height='40'><{kind} label='cat' {place}/></image>"
    return {"a.xml": f"<annotations>{image}</annotations>"}


VIA_CIRCLE = {"name": "circle", "cx": 30, "cy": 20, "r": 10}
LABELME = {"label": "cat", "shape_type": "circle", "points": [[30, 20], [40, 20]]}
ELLIPSE = {"x": 50, "y": 50, "radiusX": 20, "radiusY": 10}
LARGE = {"original_width": 60, "original_height": 40}
STUDIO = studio.task([studio.region("ellipselabels", more=LARGE, **ELLIPSE)])
SQUARE = "0 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n"

# files, the number of pixels of the cat in a picture of 60×40
OUTLINED = [
    ({"a.txt": SQUARE, "classes.txt": "cat\n"}, 30 * 20),
    (cvat("polygon", "points='10,10;40,10;40,30;10,30'"), 30 * 20),
    (cvat("ellipse", "cx='30' cy='20' rx='20' ry='10'"), np.pi * 20 * 10),
    (cvat("box", "xtl='20' ytl='15' xbr='40' ybr='25' rotation='30'"), 20 * 10),
    ({"a.json": via.as_export([via.image("a.png", via.region(VIA_CIRCLE))])}, np.pi * 10 * 10),
    ({"a.json": json.dumps({"shapes": [LABELME], "imagePath": "a.png"})}, np.pi * 10 * 10),
    ({"a.json": json.dumps([STUDIO])}, np.pi * 12 * 4),
]


@pytest.mark.parametrize(("files", "pixels"), OUTLINED)
def test_outlines_of_other_tools(files, pixels, tmp_path):
    """Polygons, circles, ellipses and rotated boxes become masks if the task asks for them."""
    root = write_files(tmp_path / "in", {"a.png": encoded(Image.new("RGB", (60, 40))), **files})
    options = {"task": "image_segmentation"}
    labels = recordgen.convert(root, tmp_path / "out", **options).dataset.labels
    [(*_, mask)] = masks_of(tmp_path / "out").values()
    painted = mask == labels.index("cat")
    assert painted[20, 30]
    assert painted.sum() == pytest.approx(pixels, rel=0.03)


def line(*polygons):
    """Return a line of Vertex AI's JSONL; a polygon is its class and its points in shares."""
    annotations = [
        {"displayName": label, "vertexes": [dict(zip("xy", at, strict=False)) for at in points]}
        for label, points in polygons
    ]
    return json.dumps({"imageGcsUri": "a.png", "polygonAnnotations": annotations})


def test_polygons_of_vertex(tmp_path):
    """A zero may be left out."""
    Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(tmp_path / "a.png")
    left = ("cat", [({}), (0.5, 0), (0.5, 1), (0, 1)])
    (tmp_path / "a.jsonl").write_text(line(left))
    result = recordgen.convert(str(tmp_path / "a.jsonl"), tmp_path / "out")
    assert result.dataset.labels == ("background", "cat")
    [(*_, mask)] = masks_of(tmp_path / "out").values()
    assert mask.tolist() == [[1, 1, 1, 0, 0, 0]] * 4


@pytest.mark.parametrize("points", [[], [(0, 0), (1, 1)], [("a", 0), (1, 1), (0, 1)]])
def test_polygons_without_points(points, tmp_path):
    """They reject their row."""
    (tmp_path / "a.jsonl").write_text(line(("cat", points)))
    found = recordgen.check(str(tmp_path / "a.jsonl"), task="image_segmentation")
    assert [reject.code for reject in found.rejects] == ["bad_annotation"]
