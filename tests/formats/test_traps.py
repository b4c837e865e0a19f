# ruff: noqa: E501 - tables with a case on each line
"""What real data sets have beside the rules of their formats: input → fact, or code of a reject."""

import base64
import json

import numpy as np
import pytest
from PIL import Image

import recordgen
from recordgen.errors import SourceError, UsageError
from recordgen.subjects.masks import pixels_of, runs_of
from tests.conftest import encoded
from tests.formats import test_label_studio as studio
from tests.formats import test_via as via
from tests.formats.sources import json_lines, write_files
from tests.formats.test_coco import CATEGORIES, box, coco, image
from tests.formats.test_pascal_voc import CAT as CAT_IN_XML
from tests.formats.test_pascal_voc import document as voc
from tests.formats.test_yolo import NAMES, YAML

BOX = [0.1, 0.25, 0.2, 0.5]
CAT = [("cat", BOX)]
SIDES = (4, 5, 4, 5)
LINE = "0 0.15 0.375 0.1 0.25\n"


def labelme(*shapes, **more):
    size = {"imageWidth": 40, "imageHeight": 20}
    return json.dumps({"shapes": shapes, "imagePath": "a.jpg", **size, **more})


def cvat_image(*shapes, name="a.jpg", **more):
    given = "".join(f" {key}='{value}'" for key, value in more.items())
    attributes = f"name='{name}' width='40' height='20'{given}"
    return f"<image {attributes}>{''.join(shapes)}</image>"


def cvat_of(*images):
    return f"<annotations>{''.join(images)}</annotations>"


def cvat(*shapes, **more):
    return cvat_of(cvat_image(*shapes, **more))


DOTA = "imagesource:GoogleEarth\r\ngsd:0.25\r\n4 5 8 5 8 10 4 10 cat 1\r\n"
RECTANGLE = {"label": "cat", "shape_type": "rectangle", "points": [[8, 10], [4, 5]]}
PART = {"label": "cat", "group_id": 0}
PARTS = [
    {**PART, "points": [[4, 5], [8, 5], [8, 7]]},
    {**PART, "points": [[4, 8], [8, 8], [6, 10]]},
]
TILTED = {**PART, "shape_type": "oriented_rectangle", "points": [[6, 5], [8, 7], [6, 10], [4, 8]]}
CVAT_BOX = "<box label='cat' xtl='4' ytl='5' xbr='8' ybr='10'/>"
TURNED = "<box label='cat' xtl='4' ytl='5' xbr='8' ybr='10' rotation='90'/>"
OBJECTS = {"bbox": [list(SIDES)], "category": ["cat"]}
README = """---
dataset_info:
- config_name: default
  features:
  - name: objects
    sequence:
    - {name: category, dtype: {class_label: {names: {'0': cat, '1': dog}}}}
  - name: label
    dtype: {class_label: {names: {'0': yes, '1': no}}}
---
# Yes or no
"""
TWICE = coco(
    image(1, "a.jpg"), image(2, "a.jpg"), boxes=[box(1, 2, *SIDES), box(2, 18, 0, 0, 4, 5)]
)
ADDRESSED = {"id": 1, "coco_url": "http://x/train2017/a.jpg", "width": 40, "height": 20}
OUTLINE = {"image_id": 1, "category_id": 2, "segmentation": [[4, 5, 8, 5, 6, 10]]}

# names of classes, image, labels: Label Studio's folders and Darknet's
WITHOUT_YAML = [
    ("classes.txt", "images/a.jpg", "labels/a.txt"),
    ("classes.txt", "images/JPEGImages/a.jpg", "images/labels/a.txt"),
    ("labels/classes.txt", "JPEGImages/a.jpg", "labels/a.txt"),
    ("train/_darknet.labels", "train/a.jpg", "train/a.txt"),
    ("obj.names", "obj_train_data/a.jpg", "obj_train_data/a.txt"),
]

# name, files, the image, its labels, the change that is counted
READ = [
    ("coco: beside", {"a.json": coco(image(1, "a.jpg"))}, "a.jpg", CAT),
    ("coco: images/", {"x/a.json": coco(image(1, "a.jpg"))}, "x/images/a.jpg", CAT),
    ("coco: stem", {"ann/part1.json": coco(image(1, "a.jpg"))}, "part1/a.jpg", CAT),
    ("coco: base name", {"a.json": coco(image(1, "q/a.jpg"))}, "x/y/a.jpg", CAT),
    ("coco: ./", {"a.json": coco(image(1, "./a.jpg"))}, "a.jpg", CAT),
    ("coco: absolute", {"a.json": coco(image(1, "/home/me/set/a.jpg"))}, "set/a.jpg", CAT),
    ("coco: BOM", {"a.json": "\ufeff" + coco(image(1, "a.jpg"))}, "a.jpg", CAT),
    ("coco: twice", {"a.json": TWICE}, "a.jpg", [("cat", BOX), ("dog", [0, 0, 0.1, 0.25])]),
    ("coco: address", {"a.json": coco(ADDRESSED)}, "train2017/a.jpg", CAT),
    ("coco: file of an address", {"a.json": coco(ADDRESSED)}, "images/a.jpg", CAT),
    ("coco: table with tabs", {"a.json": coco(image(1, "a.jpg")), "list.tsv": "a.jpg\tred\n"}, "a.jpg", CAT),
    ("coco: polygon", {"a.json": coco(image(1, "a.jpg"), boxes=[OUTLINE])}, "a.jpg", CAT),
    ("dota", {"labelTxt/a.txt": DOTA}, "images/a.jpg", CAT),
    ("dota: blanks, no headers", {"labelTxt-v1.5/a.txt": "\ufeff\n 4.0 5 8 5 8 10 4 10  cat\n\n"}, "images/a.jpg", CAT),
    ("yolo: images/images", {"data.yaml": f"train: images/images\n{NAMES}", "images/labels/a.txt": LINE}, "images/images/a.jpg", CAT),
    ("yolo: oriented", {"data.yaml": YAML, "labels/a.txt": "0 .1 .25 .2 .25 .2 .5 .1 .5\n"}, "images/a.jpg", CAT),
    ("yolo: table with tabs", {"data.yaml": YAML, "labels/a.txt": LINE, "index.tsv": "images/a.jpg\tred\n"}, "images/a.jpg", CAT),
    ("yolo: polygon", {"data.yaml": YAML, "labels/a.txt": "0 .1 .25 .2 .25 .15 .5\n"}, "images/a.jpg", CAT),
    ("yolo: over the edge", {"data.yaml": YAML, "labels/a.txt": "0 0.95 0.5 0.12 1\n"}, "images/a.jpg", [("cat", [0.89, 0, 1, 1])], "boxes_clipped"),
    ("yolo: classes in labels/", {"labels/classes.txt": "cat\n", "labels/a.txt": LINE}, "images/a.jpg", CAT),
    ("yolo: classes above classes", {**dict.fromkeys(("labels/classes.txt", "labels/train/classes.txt"), "cat\n"), "labels/train/a.txt": LINE}, "images/train/a.jpg", CAT),
    ("yolo: gaps", {"data.yaml": "train: images\nnames: {0: cat, 2: dog}\n", "labels/a.txt": "1 0.15 0.375 0.1 0.25\n"}, "images/a.jpg", [("1", BOX)]),
    ("yolo: notes.json", {"classes.txt": "cat\n", "notes.json": "{}", "labels/a.txt": LINE}, "images/a.jpg", CAT),
    *((f"yolo: {names}", {names: "cat\ndog\n", labels: LINE}, image, CAT) for names, image, labels in WITHOUT_YAML),
    ("yolo: prefix of a word", {"data.yaml": YAML, "labels/a.txt": f"\n{LINE}\n"}, "images/a.jpg", CAT),
    ("voc: swapped", {"a.xml": voc("a.jpg", ("cat", "8 10 4 5"))}, "a.jpg", CAT, "boxes_swapped"),
    ("voc: <path>", {"a.xml": voc("b.jpg", ("cat", "4 5 8 10")).replace("<size>", "<path>/q/b.jpg</path><size>")}, "a.jpg", CAT, "filename_differs"),
    ("voc: no suffix", {"Annotations/1.xml": voc("a", ("cat", "4 5 8 10"))}, "JPEGImages/1.jpg", CAT, "filename_differs"),
    ("voc: as ImageNet", {"xml/x/c.xml": voc("a", ("cat", "4 5 8 10"))}, "data/x/a.jpg", CAT),
    ("voc: filename", {"Annotations/1.xml": voc("a.jpg", ("cat", "4 5 8 10"))}, "JPEGImages/a.jpg", CAT),
    ("voc: other XML", {**dict.fromkeys(("a.xml", "b.xml", "c.xml"), "<settings/>"), "z.xml": voc("", ("cat", "4 5 8 10"))}, "z.jpg", CAT),
    ("voc: blanks", {"a.xml": voc("a.jpg", (" cat ", "4 5 8 10"))}, "a.jpg", CAT),
    ("hf: dict of lists", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": OBJECTS})}, "a.jpg", CAT),
    ("hf: list of dicts", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": [{"bbox": SIDES, "label": "cat"}]})}, "a.jpg", CAT),
    ("hf: JSON in CSV", {"metadata.csv": f"file_name,objects\na.jpg,{json.dumps(json.dumps(OBJECTS)).replace(chr(92) + chr(34), chr(34) * 2)}\n"}, "a.jpg", CAT),
    ("hf: CSV", {"metadata.csv": "file_name,label\na.jpg,cat\n"}, "a.jpg", ["cat"]),
    ("hf: labels", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "labels": ["dog", "cat"]})}, "a.jpg", ["cat", "dog"]),
    ("hf: a number", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "label": 1})}, "a.jpg", ["1"]),
    ("hf: number of a category", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": {"bbox": [SIDES], "category": [7]}})}, "a.jpg", [("7", BOX)]),
    ("hf: no classes of folders", {"metadata.jsonl": json_lines({"file_name": "dog/a.jpg", "label": "cat"})}, "dog/a.jpg", ["cat"]),
    ("cvat: polygon", {"annotations.xml": cvat("<polygon label='cat' points='4,5;8,5;6,10'/>")}, "a.jpg", CAT),
    ("cvat: folders", {"annotations.xml": cvat(CVAT_BOX, name="q/a.jpg")}, "images/q/a.jpg", CAT),
    ("cvat: rotation", {"annotations.xml": cvat(TURNED)}, "a.jpg", [("cat", [0.0875, 0.275, 0.2125, 0.475])], "boxes_rotated"),
    ("cvat: points", {"annotations.xml": cvat(CVAT_BOX, "<points label='cat' points='1,2'/>")}, "a.jpg", CAT, "shapes_dropped"),
    ("cvat: tag", {"annotations.xml": cvat("<tag label='cat'/>", "<tag label='dog'/>")}, "a.jpg", ["cat", "dog"]),
    ("labelme: \\", {"x/b.json": labelme(RECTANGLE, imagePath="..\\y\\a.jpg")}, "y/a.jpg", CAT),
    ("labelme: imageData", {"a.json": labelme(RECTANGLE, imageData="iVBOR")}, "a.jpg", CAT),
    ("labelme: point", {"a.json": labelme(RECTANGLE, {"label": "eye", "shape_type": "point", "points": [[1, 2]]})}, "a.jpg", CAT, "shapes_dropped"),
    ("labelme: __ignore__", {"a.json": labelme(RECTANGLE, {**RECTANGLE, "label": "__ignore__"})}, "a.jpg", CAT, "shapes_dropped"),
    ("labelme: flags", {"a.json": labelme(flags={"__ignore__": False, "cat": True, "dog": False})}, "a.jpg", ["cat"]),
    ("labelme: group_id", {"a.json": labelme(*PARTS)}, "a.jpg", CAT),
    ("labelme: polygon", {"a.json": labelme({"label": "cat", "points": [[4, 5], [8, 5], [6, 10]]})}, "a.jpg", CAT),
    ("labelme: oriented", {"a.json": labelme(TILTED)}, "a.jpg", CAT),
    ("create_ml: Apple's names", {"a.json": json.dumps([{"imagefilename": "a.jpg", "annotation": [{"label": "cat", "coordinates": {"x": 6, "y": 7.5, "width": 4, "height": 5}}]}])}, "a.jpg", CAT),
    ("via: any attribute", {"a.json": via.as_export([via.image("a.jpg", via.region(animal="cat"))])}, "a.jpg", CAT),
    ("open_images: FiftyOne", {"labels/detections.csv": "ImageID,LabelName,XMin,XMax,YMin,YMax\na,/m/1,.1,.2,.25,.5\n", "metadata/classes.csv": "/m/1,cat\n"}, "data/a.jpg", CAT),
    ("hf: README.md", {"README.md": README, "metadata.jsonl": json_lines({"file_name": "a.jpg", "label": 1})}, "a.jpg", ["no"]),
    ("hf: README.md, objects", {"README.md": README, "train/metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": {"bbox": [SIDES], "category": [0]}})}, "train/a.jpg", CAT),
    ("voc: no size", {"a.xml": voc("a.jpg", ("cat", "4 5 8 10")).replace("width", "w")}, "a.jpg", CAT, "size_missing"),
    ("coco: no size", {"a.json": coco(image(1, "a.jpg", width=0))}, "a.jpg", CAT, "size_missing"),
    ("cvat: no size", {"annotations.xml": cvat(CVAT_BOX).replace(" width='40'", "")}, "a.jpg", CAT, "size_missing"),
    ("labelme: no size", {"a.json": labelme(RECTANGLE, imageWidth=0)}, "a.jpg", CAT, "size_missing"),
]  # fmt: skip


@pytest.mark.parametrize("case", READ, ids=[each[0] for each in READ])
def test_it_is_read(case, outcome):
    """The labels are those of the document, and what had to be changed is counted."""
    _, files, name, labels, *changes = case
    found = outcome(files, name)
    assert (found.images, found.rejects) == ({name: labels}, [])
    assert [*found.adjusted] == changes


# files beside a.jpg and b.jpg, of which only a.jpg is described
NOT_LISTED = [
    {"a.json": coco(image(1, "a.jpg"))},
    {"metadata.jsonl": json_lines({"file_name": "a.jpg", "label": "cat"})},
    {"a.xml": voc("a.jpg", ("cat", "4 5 8 10"))},
    {"a.json": labelme(RECTANGLE)},
]


@pytest.mark.parametrize("files", NOT_LISTED)
def test_images_that_no_document_names_are_counted(files, outcome):
    """They are not labelled, and no images without objects."""
    found = outcome(files, "a.jpg", "b.jpg")
    assert [*found.images] == ["a.jpg"]
    assert "b.jpg" in "".join(found.skipped)


def test_cvat_projects_have_a_folder_for_each_subset(outcome):
    """Images in them may have the same names."""
    images = cvat_image(CVAT_BOX, subset="Train"), cvat_image(TURNED, subset="Test")
    names = "images/Train/a.jpg", "images/Test/a.jpg"
    found = outcome({"annotations.xml": cvat_of(*images)}, *names)
    assert found.splits == dict(zip(names, ("train", "test"), strict=True))
    assert found.images["images/Train/a.jpg"] == CAT


def png(pixels):
    """Return the pixels of a mask as LabelMe writes them."""
    return base64.b64encode(encoded(Image.fromarray(pixels.astype(np.uint8)))).decode()


PIXELS = np.arange(20).reshape(5, 4) % 3 == 1
RUNS = [1, 1, *[2, 1] * 6]


MASK = {**PART, "shape_type": "mask"}
MASKS = [
    {**MASK, "points": [[4, 5], [7, 9]], "mask": png(PIXELS)},
    {**MASK, "points": [[38, 19], [40, 21]], "mask": png(np.eye(3))},
]
CVAT_MASK = "<mask label='cat' left='4' top='5' width='4' height='5' rle='{}'/>"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", labelme(*MASKS)), ("annotations.xml", cvat(CVAT_MASK.format(str(RUNS)[1:-1])))],
)
def test_masks_of_objects(name, text, outcome):
    """LabelMe's points are the first and the last pixel; pixels outside of the image go."""
    found = outcome({name: text}, "a.jpg")
    expected = np.zeros((20, 40), np.uint8)
    expected[5:10, 4:8] = PIXELS
    is_last = name == "a.json"
    expected[19, 38] = is_last
    [details] = found.details["a.jpg"]
    np.testing.assert_array_equal(pixels_of(runs_of(details.mask.counts), 20, 40), expected)
    [(_, (left, _, right, _))] = found.images["a.jpg"]
    assert (left, right) == (0.1, 1.0 if is_last else 0.2)


COLOUR = "- {name: colour, dtype: {class_label: {names: {'0': red, '1': blue}}}}"
TWO_LABELS = README.replace("- {name: cat", f"- name: bbox\n    {COLOUR}\n    - {{name: cat")


def test_crowds_beside_other_class_labels(outcome):
    """Only the names of the category are those of classes."""
    objects = {"bbox": [SIDES], "colour": [1], "category": [0], "iscrowd": [1]}
    document = json_lines({"file_name": "a.jpg", "objects": objects})
    found = outcome({"README.md": TWO_LABELS, "metadata.jsonl": document}, "a.jpg")
    assert (found.images, found.classes) == ({"a.jpg": CAT}, ("cat", "dog"))
    assert [each.flags for each in found.details["a.jpg"]] == [{"is_crowd"}]


def test_keypoints_without_names_have_numbers(outcome):
    """Keypoints without names are numbered and padded to the longest."""
    boxes = [box(at, 2, *SIDES, keypoints=[4, 5, 2, 8, 10, 1][: 6 // at]) for at in (1, 2)]
    document = coco(image(1, "a.jpg"), image(2, "b.jpg"), boxes=boxes)
    found = outcome({"a.json": document}, "a.jpg", "b.jpg")
    assert found.keypoints["names"] == ["0", "1"]
    visible = {name: [*each.keypoints[2::3]] for name, [each] in found.details.items()}
    assert visible == {"a.jpg": [2, 1], "b.jpg": [2, 0]}


def test_an_image_of_another_split_is_not_taken(outcome):
    """Splits often number their images alike, and one of them may lack some."""
    document = coco(image(1, "a.jpg"), image(2, "b.jpg"))
    splits = {"train/a.jpg": "train", "valid/a.jpg": "eval", "valid/b.jpg": "eval"}
    found = outcome(dict.fromkeys(("train/x.json", "valid/x.json"), document), *splits)
    assert found.rejected == {"b.jpg": "missing_file"}
    assert found.splits == splits


POINT = {"label": "eye", "shape_type": "point", "points": [[1, 2]]}
VIA_POINT = via.region({"name": "point", "cx": 1, "cy": 2})
POINTS = "<points label='cat' points='1,2'/>"
CUT_MASK = CVAT_MASK.format("2, 3")
SECOND = cvat_image(CVAT_BOX, name="b.jpg")
OTHER = {"b.json": labelme(RECTANGLE, imagePath="b.jpg")}


def with_second(*boxes):
    """Return a COCO document in which b.jpg has a whole cat, and a.jpg has these boxes."""
    images = image(1, "a.jpg"), image(2, "b.jpg")
    return {"a.json": coco(*images, boxes=[*boxes, box(2, 2, 0, 0, 40, 20)])}


# what the message names: a line of YOLO's labels
BAD_LINES = {
    " 2, but there are 2 ": "2 0.5 0.5 1 1",
    "confidence": "1 0.5 0.5 1 1 0.9",
    "3 numbers": "1 0.5 0.5 1",
    "0,5": "1 0,5 0,5 1 1",
    "coordinate": "1 0.5 nan 1 1",
    "pixels": "1 320 240 100 100",
    "finite": "0 .5 .5 .2 .2 .5 nan 2 .4 .4 nan",  # a keypoint has no place
}
POSES = f"kpt_shape: [2, 3]\ntrain: .\n{NAMES}"
ENTITY = '<!DOCTYPE a [<!ENTITY owl "owl">]>' + voc("a.jpg", ("&owl;", "4 5 8 10"))
# likewise: an XML of Pascal VOC
BAD_XML = {
    "<name>": voc("a.jpg", ("", "4 5 8 10")),
    "ten": voc("a.jpg", ("cat", "4 5 8 ten")),
    "<bndbox>": "<annotation><object><name>cat</name></object></annotation>",
    "a.xml": "<annotation><object>",
    # FAIR1M's objects; otherwise, it would be an image without objects
    "<objects>": "<annotation><objects><object><points/></object></objects></annotation>",
    "DOCTYPE": '<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>',
    "": ENTITY.encode("utf-16"),  # the encoding must not hide a DOCTYPE
}

# name, files beside a.jpg and b.jpg, of which a.jpg has a bad annotation, what the message names
REJECTED = [
    *((f"yolo: {words}", {"data.yaml": POSES, "a.txt": f"{LINE}{line}\n", "b.txt": LINE}, words) for words, line in BAD_LINES.items()),
    *((f"voc: {words}", {"a.xml": text, "b.xml": CAT_IN_XML}, words) for words, text in BAD_XML.items()),
    ("coco: no such category", with_second(box(1, 2, *SIDES), box(1, 77, *SIDES, id=501)), "501"),
    ("coco: no number", with_second(box(1, 2, 1, 1, 2, float("nan")))),
    ("dota: no class", {"labelTxt/a.txt": "4 5 8 5 8 10 4 10\n", "labelTxt/b.txt": DOTA}),
    ("dota: not UTF-8", {"labelTxt/a.txt": DOTA.replace("cat", "caf\xe9").encode("latin-1"), "labelTxt/b.txt": DOTA}),
    ("labelme: only points", {"a.json": labelme(POINT), **OTHER}),
    ("via: only points", {"a.json": via.as_export([via.image("a.jpg", VIA_POINT), via.image("b.jpg", via.region())])}),
    ("cvat: only points", {"x.xml": cvat_of(cvat_image(POINTS), SECOND)}),
    ("labelme: mask of another size", {"a.json": labelme({**MASKS[0], "points": [[4, 5], [8, 9]]}), **OTHER}),
    ("labelme: kinds in a group", {"a.json": labelme(PARTS[0], {**RECTANGLE, "group_id": 0}), **OTHER}),
    ("cvat: cut mask", {"x.xml": cvat_of(cvat_image(CUT_MASK), SECOND)}),
    ("cvat: mask nowhere", {"x.xml": cvat_of(cvat_image(CUT_MASK.replace("'4'", "'inf'", 1)), SECOND)}),
    ("yolo: keypoints without kpt_shape", {"data.yaml": "train: .\nnames: [cat]\n", "a.txt": LINE[:-1] + " .1 .2 2 .1 .2 0\n", "b.txt": LINE}),
    ("hf: shares", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": {"bbox": [BOX], "category": ["cat"]}}, {"file_name": "b.jpg", "objects": OBJECTS})}),
    ("hf: no category", {"metadata.jsonl": json_lines({"file_name": "a.jpg", "objects": [{"bbox": SIDES}]}, {"file_name": "b.jpg", "objects": OBJECTS})}),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTED, ids=[each[0] for each in REJECTED])
def test_it_is_rejected(case, outcome):
    """Only the image of the trap is lost."""
    _, files, *words = case
    found = outcome(files, "a.jpg", "b.jpg")
    assert found.rejected == {"a.jpg": "bad_annotation"}
    assert all(word in found.rejects[0].message for word in words)
    assert [*found.images] == ["b.jpg"]


def test_names_of_other_bytes_are_shown(tmp_path, make_pictures):
    """A name that is no UTF-8 is escaped in its reject."""
    make_pictures("images/a.jpg", "images/\udcff.jpg")
    files = {"labelTxt/a.txt": DOTA, "labelTxt/\udcfe.txt": DOTA}
    result = recordgen.check(write_files(tmp_path / "in", files), max_reject_fraction=1)
    assert [item.uri for item in result.rejects] == [r"\udcfe.png"]
    assert result.lint.counts["SKIPPED"] == 1


def test_a_class_folder_with_a_name_of_other_bytes(tmp_path, make_pictures):
    """Only that image is lost."""
    make_pictures("cat/a.jpg", "cat/\udcff.jpg", "dog/b.jpg")
    result = recordgen.check(str(tmp_path), max_reject_fraction=1)
    assert [item.code for item in result.rejects] == ["bad_encoding"]


def test_an_image_of_another_size_is_rejected(tmp_path, make_pictures):
    """Boxes in pixels of another picture are no boxes of this one."""
    make_pictures("a.jpg", "b.jpg")
    images = image(1, "a.jpg", width=20, height=40), image(2, "b.jpg")
    result = recordgen.check(write_files(tmp_path / "in", {"x.json": coco(*images)}))
    assert {item.uri: item.code for item in result.rejects} == {"a.jpg": "bad_annotation"}


CORNERS = {"file_name": "a.jpg", "objects": {"bbox": [[20, 5, 38, 18]], "categories": ["cat"]}}

METADATA = json_lines({"file_name": "a.jpg", "label": "cat"})
OPEN_IMAGES = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf"

# name, files beside a.jpg
STOPS = [
    ("hf: corners", {"metadata.jsonl": json_lines(CORNERS)}),
    ("cvat: track", {"a.xml": "<annotations><meta></meta><track id='0'></track></annotations>"}),
    ("cvat: cut off", {"a.xml": "<annotations><image name='a.jpg'>"}),
    ("cvat: doctype", {"a.xml": "<!DOCTYPE x><annotations><image name='a.jpg'/>"}),
    ("cvat: late doctype", {"a.xml": f"<!--<annotations><image {'x' * 70_000}--><!DOCTYPE x><annotations><image name='a.jpg'/>"}),
    ("cvat: open label", {"a.xml": "<annotations><meta><label></meta><image name='a.jpg'/></annotations>"}),
    ("via: two attributes", {"via.json": via.as_export([via.image("a.jpg", via.region(animal="cat", colour="red"))])}),
    ("via: cut off", {"via.json": via.as_export([via.image("a.jpg", via.region())])[:-9]}),
    ("studio: no labels", {"p.json": json.dumps([studio.task([{"type": "rating", "value": {"rating": 4}}], image="a.jpg")])}),
    ("studio: cut off", {"p.json": json.dumps([studio.task([studio.region()], image="a.jpg")])[:-5]}),
    ("studio: one result", {"p.json": '[{"annotations": [{"result": [{"type": "rectanglelabels"}'}),
    ("voc: two lists", {"a.xml": voc("", ("cat", "4 5 8 10")), **dict.fromkeys(("ImageSets/Main/train.txt", "ImageSets/Main/val.txt"), "a\n")}),
    ("hf: no file_name", {"metadata.csv": "image,label\na.jpg,x\n"}),
    ("coco: two names", {f"{at}/x.json": coco(image(1, "a.jpg"), categories=[{"id": 2, "name": name}]) for at, name in (("train", "cat"), ("val", "dog"))}),
    ("yolo: most without labels", {"data.yaml": YAML, "labels/b.txt": LINE, **dict.fromkeys(("images/b.jpg", "images/c.jpg", "images/d.jpg"), "")}),
    ("open images: another image", {"train-annotations-bbox.csv": f"{OPEN_IMAGES}\nx,xclick,/m/cat,1,0.1,0.2,0.25,0.5,0\n"}),
    ("open images: no line", {"train-annotations-bbox.csv": f"{OPEN_IMAGES}\n"}),
    ("coco: image_info", {"a.json": json.dumps({"images": [image(1, "a.jpg")], "categories": CATEGORIES})}),
    ("hf: labels.csv", {"metadata.jsonl": METADATA, "labels.csv": "TRAIN,a.jpg,dog\n"}),
    ("hf: two metadata", {"metadata.jsonl": METADATA, "metadata.csv": "file_name,label\na.jpg,dog\n"}),
    ("voc: labels.jsonl", {"a.xml": voc("a.jpg", ("cat", "4 5 8 10")), "l.jsonl": json_lines({"imageGcsUri": "x/a.jpg"})}),
    ("dota: two folders", {"labelTxt-v1.0/a.txt": DOTA, "labelTxt-v1.5/a.txt": DOTA}),
    ("yolo: labels elsewhere", {"data.yaml": f"train: .\n{NAMES}", "q/a.txt": LINE}),
]  # fmt: skip


@pytest.mark.parametrize("files", [each[1] for each in STOPS], ids=[each[0] for each in STOPS])
def test_an_unclear_form_stops_the_run(files, outcome):
    """Nothing is guessed."""
    with pytest.raises((SourceError, UsageError), match="|".join(files)):
        outcome(files, "a.jpg")


def test_a_csv_beside_a_format_is_ignored_if_it_names_no_image_or_the_user_says_so(outcome):
    """A CSV beside a format counts only if it names images."""
    outcome({"metadata.jsonl": METADATA, "history.csv": "epoch,loss\n1,0.5\n"}, "a.jpg")
    found = outcome({"labels.csv": "a.jpg,dog\n"}, format="hugging_face")
    assert found.images == {"a.jpg": ["cat"]}


def test_boxes_over_the_edge_are_no_corners(outcome):
    """Only if all boxes fit as corners, they may be some."""
    records = {"file_name": "b.jpg", "objects": {"bbox": [list(SIDES)], "categories": ["cat"]}}
    found = outcome({"metadata.jsonl": json_lines(CORNERS, records)}, "a.jpg", "b.jpg")
    assert found.images["a.jpg"] == [("cat", [0.5, 0.25, 1, 1])]
    assert found.adjusted == {"boxes_clipped": 1}


def test_an_image_in_two_splits_is_reported(tmp_path, make_pictures):
    """It stays in the first one."""
    make_pictures("a.jpg")
    files = dict.fromkeys(("train/x.json", "val/x.json"), coco(image(1, "a.jpg")))
    dataset = recordgen.check(write_files(tmp_path / "in", files)).dataset
    assert {name: split.examples for name, split in dataset.splits.items()} == {"train": 1}
    assert dataset.lint["MIXED_SPLITS"] == 1


CREATE_ML = {"label": "cat", "coordinates": {"x": 6, "y": 7.5, "width": 4, "height": 5}}
IN_SPLITS = ("train/a.jpg", "images/val2017/b.jpg", "test/c.jpg")
HF = json_lines(*({"file_name": name, "label": "cat"} for name in IN_SPLITS))

# name, one document of images in folders of splits
ONE_DOCUMENT = {
    "coco": coco(*(image(at, name) for at, name in enumerate(IN_SPLITS, start=1))),
    "via": via.as_export([via.image(name, via.region()) for name in IN_SPLITS]),
    "create_ml": json.dumps([{"image": name, "annotations": [CREATE_ML]} for name in IN_SPLITS]),
    "label_studio": json.dumps([studio.task([studio.region()], image=name) for name in IN_SPLITS]),
    "cvat": cvat_of(*(cvat_image(CVAT_BOX, name=name) for name in IN_SPLITS)),
    "open_images": "ImageID,LabelName,XMin,XMax,YMin,YMax\n" + "".join(f"{name},cat,.1,.2,.25,.5\n" for name in "abc"),
    "hugging_face": HF,
}  # fmt: skip
NAMED = {"cvat": "a.xml", "open_images": "a.csv", "hugging_face": "metadata.jsonl"}


@pytest.mark.parametrize("name", ONE_DOCUMENT)
def test_folders_of_images_are_splits_where_no_document_says_more(name, outcome):
    """Else images of test would teach."""
    files = {NAMED.get(name, "a.json"): ONE_DOCUMENT[name]}
    found = outcome(files, *IN_SPLITS)
    assert found.splits == dict(zip(IN_SPLITS, ("train", "eval", "test"), strict=True))
    assert {*outcome(files, split="names=no").splits.values()} == {None}


def test_the_name_of_an_image_is_no_split(outcome):
    """A document for each image is named after it, and this one shows a train."""
    names = ("train_1.jpg", "test.jpg")
    files = {f"{name[:-4]}.xml": voc(name, ("cat", "4 5 8 10")) for name in names}
    assert outcome(files, *names).splits == dict.fromkeys(names)


def test_corners_of_dota(outcome):
    """They are outlines, the last number is a flag, and folders are splits."""
    tilted = DOTA.replace("4 5 8 5 8 10 4 10 cat 1", "6 5 8 7 6 10 4 8 ship 0")
    empty = DOTA.rpartition("4 5")[0]
    files = {
        "train/labelTxt/a.txt": DOTA,
        "val/labelTxt/b.txt": tilted,
        "val/labelTxt/d.txt": empty,
    }
    images = ("train/images/a.jpg", "val/images/b.jpg", "val/images/d.jpg")
    found = outcome(files, *images, "test/images/c.jpg")
    assert found.splits == dict(zip(images, ("train", "eval", "eval"), strict=True))
    assert [*found.images.values()] == [CAT, [("ship", BOX)], []]
    [flagged], [plain], _ = found.details.values()
    assert (flagged.flags, plain.flags) == ({"difficult"}, frozenset())
    assert [*plain.polygons] == [(0.15, 0.25, 0.2, 0.35, 0.15, 0.5, 0.1, 0.4)]
    assert "c.jpg" in "".join(found.skipped)


@pytest.mark.parametrize("folders", ["{}", "labels/{}"])
def test_classes_beside_the_labels_of_each_split(folders, outcome):
    """Roboflow's Darknet and LabelImg write them so; classes that differ stop the run."""
    files, images = {}, []
    for split in ("train", "valid"):
        folder = folders.format(split)
        files |= {f"{folder}/classes.txt": "dog\ncat\n", f"{folder}/{split}.txt": f"1{LINE[1:]}"}
        images.append(f"{folder}/{split}.jpg".replace("labels", "images"))
    found = outcome(files, *images)
    assert found.splits == dict(zip(images, ("train", "eval"), strict=True))
    assert (found.images, found.classes) == (dict.fromkeys(images, CAT), ("dog", "cat"))
    with pytest.raises(SourceError):
        outcome({f"{folders.format('train')}/classes.txt": "cat\ndog\n"})


def test_a_column_of_metadata_names_splits(outcome):
    """Its words are those of all splits."""
    text = "file_name,label,split\na.jpg,cat,train\nb.jpg,cat,TEST\n"
    found = outcome({"metadata.csv": text}, "a.jpg", "b.jpg")
    assert found.splits == {"a.jpg": "train", "b.jpg": "test"}


DATA = "classes = 2\ntrain = data/train.txt\nvalid = data/other.txt\nnames = data/obj.names\n"

# Darknet's files, and the splits of a.jpg, b.jpg and c.jpg; {} if they are assigned
DARKNET = [
    ({"obj.data": DATA, "train.txt": "data/a.jpg\n", "other.txt": "data/b.jpg\n"}, {"a.jpg": "train", "b.jpg": "eval"}),
    ({"train.txt": "a.jpg\nb.jpg\n", "test.txt": "c.jpg\n"}, {"a.jpg": "train", "b.jpg": "train", "c.jpg": "test"}),
    ({"obj.data": DATA}, {}),
    ({"obj.data": DATA.replace("other", "train"), "train.txt": "data/a.jpg\n"}, {}),
    ({"train.txt": "a.jpg\n"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "splits"), DARKNET)
def test_lists_of_darknet_are_splits(files, splits, outcome):
    """One list says nothing, and one that is not here neither. Others are counted."""
    labels = {f"{name}.txt": LINE for name in "abc"}
    found = outcome({"obj.names": "cat\n", **labels, **files}, "a.jpg", "b.jpg", "c.jpg")
    assert found.splits == (splits or dict.fromkeys(("a.jpg", "b.jpg", "c.jpg")))
    assert bool(found.skipped) == (len(found.images) < 3)


def test_a_stray_classes_txt_is_no_evidence(outcome):
    """Without labels beside images, it names no classes of boxes."""
    found = outcome({"classes.txt": "cat\ndog\n"}, "cat/a.jpg", "dog/b.jpg")
    assert found.task == "image_classification"


def test_trainval_counts_without_train_and_val(outcome):
    """A list of both is the training split."""
    files = {f"Annotations/{name}.xml": voc(f"{name}.jpg", ("cat", "4 5 8 10")) for name in "ab"}
    lists = {"ImageSets/Main/trainval.txt": "a\n", "ImageSets/Main/test.txt": "b\n"}
    splits = {"JPEGImages/a.jpg": "train", "JPEGImages/b.jpg": "test"}
    assert outcome({**files, **lists}, *splits).splits == splits


def test_categories_of_one_name_are_merged(outcome):
    """Categories that differ in spaces are one class, with a remark."""
    names = [*CATEGORIES, {"id": 95, "name": " cat "}]
    boxes = [box(1, 2, *SIDES), box(1, 95, 0, 0, 4, 5)]
    found = outcome({"a.json": coco(image(1, "a.jpg"), boxes=boxes, categories=names)}, "a.jpg")
    assert found.images == {"a.jpg": [("cat", [0, 0, 0.1, 0.25]), ("cat", BOX)]}
    assert found.classes == ("cat", "dog", "owl")
    assert any("'cat'" in text for text in found.skipped)
