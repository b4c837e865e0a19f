# ruff: noqa: E501 - tables with a case on each line
"""CVAT, LabelMe and Create ML: the same boxes, objects without one; details of objects in all formats."""

import base64
import io
import json

import pytest
from PIL import Image

from recordgen.errors import PayloadError, SourceError
from recordgen.formats.xml_elements import elements
from recordgen.payloads import check
from recordgen.rejects import RejectCode
from recordgen.subjects.details import Details, Polygons
from recordgen.subjects.masks import runs_of
from tests.conftest import encoded
from tests.formats import test_label_studio as label_studio
from tests.formats import test_traps as traps
from tests.formats import test_via as via
from tests.formats.test_pascal_voc import document
from tests.formats.test_traps import CREATE_ML, CVAT_BOX, RECTANGLE

LABELS = "<labels><label><name>dog</name></label><label><name>cat</name></label></labels>"


def cvat(shapes=""):
    """Return CVAT's XML of two images."""
    images = traps.cvat_image(CVAT_BOX, name="a.png"), traps.cvat_image(shapes, name="sub/b.png")
    return {"annotations.xml": traps.cvat_of(f"<meta><task>{LABELS}</task></meta>", *images)}


def labelme(shapes):
    """Return LabelMe's JSON of two images."""
    second = {"shapes": shapes, "imagePath": "..\\x\\b.png"}
    return {
        "a.json": traps.labelme(RECTANGLE, imagePath="a.png"),
        "sub/b.json": json.dumps(second),
    }


def create_ml(shapes):
    """Return Create ML's JSON of two images."""
    both = {"a.png": [CREATE_ML], "b.png": shapes}.items()
    return {"a.json": json.dumps([{"image": name, "annotations": each} for name, each in both])}


IMAGES = "a.png", "sub/b.png"


@pytest.mark.parametrize("files", [cvat(), labelme([]), create_ml([])])
def test_an_image_without_objects_stays(files, outcome):
    """It is an example of its own."""
    corners = [0.1, 0.25, 0.2, 0.5]
    assert outcome(files, *IMAGES).images == {"a.png": [("cat", corners)], "sub/b.png": []}


def test_classes_of_cvat_have_the_order_of_its_labels(outcome):
    """Also those that no image shows."""
    assert outcome(cvat(), *IMAGES).classes == ("dog", "cat")


def mask_in_json(kind, width=2, height=2, *, pixel=255):
    """Return LabelMe's shape of a mask in an image format, at the upper left corner."""
    data = encoded(Image.new("L", (width, height), pixel), kind)
    return {
        "label": "cat",
        "shape_type": "mask",
        "points": [[0, 0], [width - 1, height - 1]],
        "mask": base64.b64encode(data).decode(),
    }


def masked(shape):
    """Return LabelMe's JSON of two images, the second with a size and one mask."""
    files = labelme([shape])
    second = json.loads(files["sub/b.json"]) | {"imageWidth": 40, "imageHeight": 20}
    return {**files, "sub/b.json": json.dumps(second)}


def mask_in_xml(rle, width, height):
    """Return CVAT's XML of two images, the second with a mask."""
    place = f"left='0' top='0' width='{width}' height='{height}'"
    return cvat(f"<mask label='cat' rle='{rle}' {place}/>")


HUGE = 10**400  # more than a float holds
HUGE_BOX = dict.fromkeys(("x", "y", "width", "height"), HUGE)

BAD = [
    cvat("<box label='cat' xtl='x' ytl='5' xbr='8' ybr='10'/>"),
    cvat("<box label='cat' xtl='1' ytl='5' xbr='8' ybr='10' rotation='x'/>"),
    cvat("<box label='' xtl='1' ytl='5' xbr='8' ybr='10'/>"),
    cvat("<polygon label='cat' points='1,2;3'/>"),
    cvat("<polygon label='cat' points='1,2;3,NaN;5,2'/>"),
    labelme([{"label": "cat", "shape_type": "cuboid", "points": [[1, 2], [3, 4]]}]),
    labelme([{"label": "cat", "points": [[1, 2], [3, "x"]]}]),
    labelme([{"label": " ", "points": [[1, 2], [3, 4]]}]),
    labelme([{"label": "cat", "points": [[1, 2], [3, HUGE]]}]),
    labelme([7]),
    masked(mask_in_json("GIF")),  # millions of pixels in a few bytes
    masked(mask_in_json("PNG", 41, 20)),  # larger than its image
    mask_in_xml("0,100000001", 100_000_001, 1),
    mask_in_xml("1," * 500_001 + "1", 1_000_003, 1),
    create_ml([{"label": "cat"}]),
    create_ml([{"label": "cat", "coordinates": {"x": 1, "y": 2, "width": None, "height": 3}}]),
    create_ml([{"label": "cat", "coordinates": HUGE_BOX}]),
    create_ml([7]),
]


@pytest.mark.parametrize("files", BAD)
def test_an_object_without_a_box_rejects_its_image(files, outcome):
    """An object that cannot be read, or exceeds a limit, costs its image; the other is read."""
    found = outcome(files, *IMAGES)
    assert found.rejected == {"sub/b.png": "bad_annotation"}
    assert [*found.images] == ["a.png"]


SQUARES = [masked(mask_in_json("PNG")), mask_in_xml("0,4", 2, 2), mask_in_xml("0,1,0,3", 2, 2)]


@pytest.mark.parametrize("files", SQUARES)
def test_masks_of_two_tools(files, outcome):
    """The pixels in a box of CVAT or LabelMe become runs down the columns of the image."""
    [details] = outcome(files, *IMAGES).details["sub/b.png"]
    assert runs_of(details.mask.counts) == [0, 2, 18, 2, 778]


def test_a_decoder_that_dies_costs_the_image_of_its_mask(outcome, monkeypatch):
    """A mask in a document goes the way of all images: a costly one has its own process."""

    def died(data, settings, uri):
        raise PayloadError(RejectCode.CORRUPT, "the decoder crashed")

    monkeypatch.setattr(check, "APART_SHARE", 1e-9)
    monkeypatch.setattr(check, "check_apart", died)
    found = outcome(masked(mask_in_json("PNG")), *IMAGES)
    assert found.rejected == {"sub/b.png": "bad_annotation"}
    assert [*found.images] == ["a.png"]


class Pieces(io.BytesIO):
    """A file that counts how often it is read."""

    count = 0

    def read(self, size=-1):
        self.count += 1
        return super().read(size)


@pytest.mark.parametrize("text", ["<a b='{}'/>", "<!--{}--><a/>", "<a><?b {}?></a>"])
def test_xml_of_one_long_token(text):
    """Expat reads a token anew with each piece, so pieces double: there are few."""
    file = Pieces(text.format("x" * (16 << 20)).encode())
    assert [each.tag for each in elements(file, "a")] == ["a"]
    assert file.count < 20


def test_xml_with_a_namespace(outcome):
    """Names of elements are not expanded by an address that may have any length."""
    text = cvat()["annotations.xml"].replace("<annotations>", "<annotations xmlns='urn:x'>")
    assert [*outcome({"annotations.xml": text}, *IMAGES).images] == [*IMAGES]


CIRCLE = {"label": "cat", "shape_type": "circle", "points": [[20, 10], [20, 15]]}
ELLIPSE = "<ellipse label='cat' cx='20' cy='10' rx='5' ry='5'/>"


@pytest.mark.parametrize("files", [labelme([CIRCLE]), cvat(ELLIPSE)])
def test_circles_and_ellipses(files, outcome):
    """Their boxes enclose them."""
    assert outcome(files, *IMAGES).images["sub/b.png"] == [("cat", [0.375, 0.25, 0.625, 0.75])]


# --- what each format says of objects besides label and box ----------------------------------------

# Of an image of 40 by 20: in pixels, and as shares.
PIXELS = [(4, 5), (12, 5), (8, 15)]
SHARES = (0.1, 0.25, 0.3, 0.25, 0.2, 0.75)
POLYGON = Details(polygons=Polygons.of([SHARES]))


def yolo(lines, **config):
    names = {"names": ["cat"], "train": "images", **config}
    return {"data.yaml": json.dumps(names), "labels/a.txt": lines}


def voc(flags):
    text = document("a.png", ("cat", "4 5 12 15")).replace("<part>", f"{flags}<part>")
    return {"images/a.xml": text}


def shape_of_cvat(shape):
    return {"annotations.xml": traps.cvat(shape, name="a.png")}


OUTLINED = {"imagePath": "a.png", "shapes": [{"label": "cat", "points": PIXELS}]}
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
    "cvat": (shape_of_cvat("<box label='cat' occluded='1' xtl='4' ytl='5' xbr='12' ybr='15'/>"), Details(frozenset({"occluded"})), {}),
    "cvat polygon": (shape_of_cvat(f"<polygon label='cat' occluded='0' {CVAT}/>"), POLYGON, {}),
    "labelme": ({"images/a.json": json.dumps(OUTLINED)}, POLYGON, {}),
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


WRONG = [{"flip_idx": [0, 0]}, {"flip_idx": "x"}, {"kpt_shape": [2, 4]}, {"kpt_shape": 2}]


@pytest.mark.parametrize("config", WRONG)
def test_keypoints_that_cannot_be(config, outcome):
    """A wrong entry about keypoints is named."""
    with pytest.raises(SourceError, match=next(iter(config))):
        outcome(yolo(KEYPOINTS, **{"kpt_shape": [2, 3], **config}), "images/a.png")
