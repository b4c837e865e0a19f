# ruff: noqa: E501 - tables with a case on each line
"""What real data sets have beside the rules of their formats: input → fact, or code of a reject."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

import recordgen
from recordgen.core.records.run_lengths import pixels_of
from recordgen.core.rows.row import Row
from recordgen.errors import SourceError
from recordgen.formats.source import open_source
from recordgen.options import ConvertOptions
from tests.conftest import stored_examples
from tests.formats.boxes import Outcome
from tests.formats.test_coco import CATEGORIES, box, image
from tests.formats.test_pascal_voc import document as voc
from tests.formats.test_yolo import NAMES
from tests.rows import read_rows

pytestmark = pytest.mark.once

BOX = [0.1, 0.25, 0.2, 0.5]
CAT = [("cat", BOX)]
SIDES = (4, 5, 4, 5)
LINE = "0 0.15 0.375 0.1 0.25\n"
YAML = f"train: images\n{NAMES}"


def coco(*images, boxes=None, **more):
    """Return a COCO document."""
    boxes = [box(1, 2, *SIDES)] if boxes is None else boxes
    content = {"images": images, "annotations": boxes, "categories": CATEGORIES}
    return json.dumps({**content, **more})


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def labelme(*shapes, **more):
    size = {"imageWidth": 40, "imageHeight": 20}
    return json.dumps({"shapes": shapes, "imagePath": "a.jpg", **size, **more})


def cvat(*shapes, name="a.jpg", **more):
    given = "".join(f" {key}='{value}'" for key, value in more.items())
    attributes = f"name='{name}' width='40' height='20'{given}"
    return f"<annotations><image {attributes}>{''.join(shapes)}</image></annotations>"


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
    - name: category
      dtype: {class_label: {names: {'0': cat, '1': dog}}}
  - name: label
    dtype:
      class_label:
        names:
          '0': yes
          '1': no
---
# Yes or no
"""
TWICE = coco(
    image(1, "a.jpg"), image(2, "a.jpg"), boxes=[box(1, 2, *SIDES), box(2, 18, 0, 0, 4, 5)]
)

# name, files, images that are there, the labels of the images that are used
READ = [
    ("coco: beside", {"a.json": coco(image(1, "a.jpg"))}, "a.jpg", CAT),
    ("coco: images/", {"x/a.json": coco(image(1, "a.jpg"))}, "x/images/a.jpg", CAT),
    ("coco: data/", {"labels.json": coco(image(1, "a.jpg"))}, "data/a.jpg", CAT),
    ("coco: stem", {"ann/part1.json": coco(image(1, "a.jpg"))}, "part1/a.jpg", CAT),
    ("coco: base name", {"a.json": coco(image(1, "q/a.jpg"))}, "x/y/a.jpg", CAT),
    ("coco: ./", {"a.json": coco(image(1, "./a.jpg"))}, "a.jpg", CAT),
    ("coco: absolute", {"a.json": coco(image(1, "/home/me/set/a.jpg"))}, "set/a.jpg", CAT),
    ("coco: BOM", {"a.json": "\ufeff" + coco(image(1, "a.jpg"))}, "a.jpg", CAT),
    ("coco: twice", {"a.json": TWICE}, "a.jpg", [("cat", BOX), ("dog", [0, 0, 0.1, 0.25])]),
    ("retinanet", {"_annotations.csv": "a.jpg,4,5,8,10,cat\n", "_classes.csv": "dog,1\ncat,0\n"}, "a.jpg", CAT),
    ("retinanet: SKU-110K", {"annotations.csv": "a.jpg,4,5,8,10,cat,40,20\n"}, "a.jpg", CAT),
    ("yolo: images/images", {"data.yaml": f"train: images/images\n{NAMES}", "images/labels/a.txt": LINE}, "images/images/a.jpg", CAT),
    ("yolo: tabs", {"data.yaml": YAML, "labels/a.txt": LINE.replace(" ", "\t")}, "images/a.jpg", CAT),
    ("yolo: oriented", {"data.yaml": YAML, "labels/a.txt": "0 .1 .25 .2 .25 .2 .5 .1 .5\n"}, "images/a.jpg", CAT),
    ("yolo: over the edge", {"data.yaml": YAML, "labels/a.txt": "0 0.95 0.5 0.12 1\n"}, "images/a.jpg", [("cat", [0.89, 0, 1, 1])]),
    ("yolo: text keys", {"data.yaml": "train: images\nnames: {'0': cat, '2': dog}\n", "labels/a.txt": LINE}, "images/a.jpg", CAT),
    ("yolo: gaps", {"data.yaml": "train: images\nnames: {0: cat, 2: dog}\n", "labels/a.txt": "1 0.15 0.375 0.1 0.25\n"}, "images/a.jpg", [("1", BOX)]),
    ("yolo: notes.json", {"classes.txt": "cat\n", "notes.json": "{}", "labels/a.txt": LINE}, "images/a.jpg", CAT),
    ("yolo: prefix of a word", {"data.yaml": YAML, "labels/a.txt": f"\n{LINE}\n"}, "images/a.jpg", CAT),
    ("voc: swapped", {"a.xml": voc("a.jpg", ("cat", "8 10 4 5"))}, "a.jpg", CAT),
    ("voc: <path>", {"a.xml": voc("b.jpg", ("cat", "4 5 8 10")).replace("<size>", "<path>/q/b.jpg</path><size>")}, "a.jpg", CAT),
    ("voc: no suffix", {"Annotations/1.xml": voc("a", ("cat", "4 5 8 10"))}, "JPEGImages/1.jpg", CAT),
    ("voc: filename", {"Annotations/1.xml": voc("a.jpg", ("cat", "4 5 8 10"))}, "JPEGImages/a.jpg", CAT),
    ("voc: blanks", {"a.xml": voc("a.jpg", (" cat ", "4 5 8 10"))}, "a.jpg", CAT),
    ("hf: dict of lists", {"metadata.jsonl": lines({"file_name": "a.jpg", "objects": OBJECTS})}, "a.jpg", CAT),
    ("hf: list of dicts", {"metadata.jsonl": lines({"file_name": "a.jpg", "objects": [{"bbox": SIDES, "label": "cat"}]})}, "a.jpg", CAT),
    ("hf: JSON in CSV", {"metadata.csv": f"file_name,objects\na.jpg,{json.dumps(json.dumps(OBJECTS)).replace(chr(92) + chr(34), chr(34) * 2)}\n"}, "a.jpg", CAT),
    ("hf: no classes of folders", {"metadata.jsonl": lines({"file_name": "dog/a.jpg", "label": "cat"})}, "dog/a.jpg", ["cat"]),
    ("cvat: folders", {"annotations.xml": cvat(CVAT_BOX, name="q/a.jpg")}, "images/q/a.jpg", CAT),
    ("cvat: rotation", {"annotations.xml": cvat(TURNED)}, "a.jpg", [("cat", [0.0875, 0.275, 0.2125, 0.475])]),
    ("cvat: points", {"annotations.xml": cvat(CVAT_BOX, "<points label='cat' points='1,2'/>")}, "a.jpg", CAT),
    ("cvat: tag", {"annotations.xml": cvat("<tag label='cat'/>", "<tag label='dog'/>")}, "a.jpg", ["cat", "dog"]),
    ("labelme: \\", {"x/b.json": labelme(RECTANGLE, imagePath="..\\y\\a.jpg")}, "y/a.jpg", CAT),
    ("labelme: imageData", {"a.json": labelme(RECTANGLE, imageData="iVBOR")}, "a.jpg", CAT),
    ("labelme: point", {"a.json": labelme(RECTANGLE, {"label": "eye", "shape_type": "point", "points": [[1, 2]]})}, "a.jpg", CAT),
    ("labelme: __ignore__", {"a.json": labelme(RECTANGLE, {**RECTANGLE, "label": "__ignore__"})}, "a.jpg", CAT),
    ("labelme: flags", {"a.json": labelme(flags={"__ignore__": False, "cat": True, "dog": False})}, "a.jpg", ["cat"]),
    ("labelme: several flags", {"a.json": labelme(flags={"cat": True, "dog": True})}, "a.jpg", ["cat", "dog"]),
    ("labelme: group_id", {"a.json": labelme(*PARTS)}, "a.jpg", CAT),
    ("labelme: oriented", {"a.json": labelme(TILTED)}, "a.jpg", CAT),
    ("create_ml: Apple's names", {"a.json": json.dumps([{"imagefilename": "a.jpg", "annotation": [{"label": "cat", "coordinates": {"x": 6, "y": 7.5, "width": 4, "height": 5}}]}])}, "a.jpg", CAT),
    ("open_images: FiftyOne", {"labels/detections.csv": "ImageID,LabelName,XMin,XMax,YMin,YMax\na,/m/1,.1,.2,.25,.5\n", "metadata/classes.csv": "/m/1,cat\n"}, "data/a.jpg", CAT),
    ("hf: README.md", {"README.md": README, "metadata.jsonl": lines({"file_name": "a.jpg", "label": 1})}, "a.jpg", ["no"]),
    ("hf: README.md, objects", {"README.md": README, "train/metadata.jsonl": lines({"file_name": "a.jpg", "objects": {"bbox": [SIDES], "category": [0]}})}, "train/a.jpg", CAT),
    ("labelme: line", {"a.json": labelme(RECTANGLE, {"label": "eye", "shape_type": "line", "points": [[1, 2], [3, 4]]})}, "a.jpg", CAT),
]  # fmt: skip


def write(root, files):
    """Write text files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "name", "labels"), [each[1:] for each in READ], ids=[each[0] for each in READ]
)
def test_it_is_read(files, name, labels, tmp_path, make_pictures):
    make_pictures(name)
    write(tmp_path / "in", files)
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert (found.images, found.rejects) == ({name: labels}, {})


# name, files, images that are there, a change or check, and how often
COUNTED = [
    ("cvat: rotation", {"annotations.xml": cvat(TURNED)}, "boxes_rotated", 1),
    ("cvat: points", {"annotations.xml": cvat(CVAT_BOX, "<polyline points='1,2'/>")}, "shapes_dropped", 1),
    ("labelme: point", {"a.json": labelme(RECTANGLE, {"shape_type": "point"})}, "shapes_dropped", 1),
    ("voc: swapped", {"a.xml": voc("a.jpg", ("cat", "8 10 4 5"))}, "boxes_swapped", 1),
    ("voc: no size", {"a.xml": voc("a.jpg", ("cat", "4 5 8 10")).replace("width", "w")}, "size_missing", 1),
    ("coco: no size", {"a.json": coco(image(1, "a.jpg", width=0))}, "size_missing", 1),
    ("cvat: no size", {"annotations.xml": cvat(CVAT_BOX).replace(" width='40'", "")}, "size_missing", 1),
    ("labelme: no size", {"a.json": labelme(RECTANGLE, imageWidth=0)}, "size_missing", 1),
    ("labelme: __ignore__", {"a.json": labelme(RECTANGLE, {"label": "__ignore__"})}, "shapes_dropped", 1),
    ("voc: filename", {"a.xml": voc("q/b.jpg", ("cat", "4 5 8 10"))}, "filename_differs", 1),
    ("yolo: edge", {"classes.txt": "cat", "a.txt": "0 0.95 0.5 0.12 1\n"}, "boxes_clipped", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "code", "count"), [each[1:] for each in COUNTED], ids=[each[0] for each in COUNTED]
)
def test_it_is_counted(files, code, count, tmp_path, make_pictures):
    make_pictures("a.jpg")
    write(tmp_path / "in", files)
    assert Outcome(tmp_path / "in", tmp_path / "out").adjusted[code] == count


# files beside a.jpg and b.jpg, of which only a.jpg is described
NOT_LISTED = [
    {"a.json": coco(image(1, "a.jpg"))},
    {"metadata.jsonl": lines({"file_name": "a.jpg", "label": "cat"})},
    {"a.xml": voc("a.jpg", ("cat", "4 5 8 10"))},
    {"a.json": labelme(RECTANGLE)},
]


@pytest.mark.parametrize("files", NOT_LISTED)
def test_images_that_no_document_names_are_counted(files, tmp_path, make_pictures):
    """They are not labelled, and no images without objects."""
    make_pictures("a.jpg", "b.jpg")
    write(tmp_path / "in", files)
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert list(found.images) == ["a.jpg"]
    assert [text for text in found.skipped if "b.jpg" in text]


def test_cvat_projects_have_a_folder_for_each_subset(tmp_path, make_pictures):
    """Images in them may have the same names."""
    make_pictures("images/Train/a.jpg", "images/Test/a.jpg")
    shapes = [
        cvat(box, subset=subset)[13:-14] for box, subset in ((CVAT_BOX, "Train"), (TURNED, "Test"))
    ]
    write(tmp_path / "in", {"annotations.xml": f"<annotations>{''.join(shapes)}</annotations>"})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.splits == {"images/Train/a.jpg": "train", "images/Test/a.jpg": "test"}
    assert found.images["images/Train/a.jpg"] == CAT


def png(pixels):
    """Return the pixels of a mask as LabelMe writes them."""
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


PIXELS = np.arange(20).reshape(5, 4) % 3 == 1
RUNS = [1, 1, *[2, 1] * 6]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.json",
            labelme(
                {**PART, "shape_type": "mask", "points": [[4, 5], [7, 9]], "mask": png(PIXELS)},
                {
                    **PART,
                    "shape_type": "mask",
                    "points": [[38, 19], [40, 21]],
                    "mask": png(np.eye(3)),
                },
            ),
        ),
        (
            "annotations.xml",
            cvat(
                f"<mask label='cat' left='4' top='5' width='4' height='5' rle='{str(RUNS)[1:-1]}'/>"
            ),
        ),
    ],
)
def test_masks_of_objects(name, text, tmp_path, make_pictures):
    """LabelMe's points are the first and the last pixel; pixels outside of the image go."""
    make_pictures("a.jpg")
    write(tmp_path / "in", {name: text})
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    [(_, example)] = stored_examples(tmp_path / "out")
    expected = np.zeros((20, 40), np.uint8)
    expected[5:10, 4:8] = PIXELS
    is_last = name == "a.json"
    expected[19, 38] = is_last
    found = pixels_of(example["image/object/mask/runs"], 20, 40)
    np.testing.assert_array_equal(found, expected)
    assert example["image/object/bbox/xmin"] == pytest.approx([0.1])
    assert example["image/object/bbox/xmax"] == pytest.approx([1.0 if is_last else 0.2])


TWO_LABELS = README.replace(
    "    - name: category",
    """    - name: bbox
    - name: colour
      dtype: {class_label: {names: {'0': red, '1': blue}}}
    - name: category""",
)


def test_crowds_beside_other_class_labels(tmp_path, make_pictures):
    """Only the names of the category are those of classes."""
    make_pictures("a.jpg")
    objects = {"bbox": [SIDES], "colour": [1], "category": [0], "iscrowd": [1]}
    document = lines({"file_name": "a.jpg", "objects": objects})
    write(tmp_path / "in", {"README.md": TWO_LABELS, "metadata.jsonl": document})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert (found.images, found.classes) == ({"a.jpg": CAT}, ("cat", "dog"))
    [(_, example)] = stored_examples(tmp_path / "out")
    assert example["image/object/is_crowd"] == [1]


def test_keypoints_without_names_have_numbers(tmp_path, make_pictures):
    make_pictures("a.jpg", "b.jpg")
    boxes = [box(at, 2, *SIDES, keypoints=[4, 5, 2, 8, 10, 1][: 6 // at]) for at in (1, 2)]
    write(tmp_path / "in", {"a.json": coco(image(1, "a.jpg"), image(2, "b.jpg"), boxes=boxes)})
    dataset = recordgen.convert(str(tmp_path / "in"), tmp_path / "out").dataset
    assert dataset.keypoints["names"] == ["0", "1"]
    found = {
        example["image/source_id"][0]: example["image/object/keypoint/visibility"]
        for _, example in stored_examples(tmp_path / "out")
    }
    assert found == {b"a.jpg": [2, 1], b"b.jpg": [2, 0]}


def test_an_image_of_another_split_is_not_taken(tmp_path, make_pictures):
    """Splits often number their images alike, and one of them may lack some."""
    make_pictures("train/a.jpg", "valid/a.jpg", "valid/b.jpg")
    documents = {
        "train/x.json": coco(image(1, "a.jpg"), image(2, "b.jpg")),
        "valid/x.json": coco(image(1, "a.jpg"), image(2, "b.jpg")),
    }
    write(tmp_path / "in", documents)
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.rejects == {"b.jpg": "missing_file"}
    assert found.splits == {"train/a.jpg": "train", "valid/a.jpg": "eval", "valid/b.jpg": "eval"}


POINT = {"label": "eye", "shape_type": "point", "points": [[1, 2]]}
VIA_POINT = {
    "shape_attributes": {"name": "point", "cx": 1, "cy": 2},
    "region_attributes": {"a": "eye"},
}
VIA_BOX = {
    "shape_attributes": {"name": "rect", "x": 4, "y": 5, "width": 4, "height": 5},
    "region_attributes": {"a": "cat"},
}


def via(name, region):
    return {name: {"filename": name, "regions": [region]}}


OTHER_SIZE = image(1, "a.jpg", width=20, height=40)

# name, files beside a.jpg and b.jpg, the code of a.jpg
REJECTED = [
    ("another size", {"x.json": coco(OTHER_SIZE, image(2, "b.jpg"))}, "bad_annotation"),
    ("labelme: only points", {"a.json": labelme(POINT), "b.json": labelme(RECTANGLE, imagePath="b.jpg")}, "bad_annotation"),
    ("via: only points", {"a.json": json.dumps({**via("a.jpg", VIA_POINT), **via("b.jpg", VIA_BOX)})}, "bad_annotation"),
    ("cvat: only points", {"x.xml": "<annotations>" + "".join(cvat(shape, name=name)[13:-14] for name, shape in (("a.jpg", "<points label='cat' points='1,2'/>"), ("b.jpg", CVAT_BOX))) + "</annotations>"}, "bad_annotation"),
    ("labelme: mask of another size", {"a.json": labelme({**PART, "shape_type": "mask", "points": [[4, 5], [8, 9]], "mask": png(PIXELS)}), "b.json": labelme(RECTANGLE, imagePath="b.jpg")}, "bad_annotation"),
    ("labelme: kinds in a group", {"a.json": labelme(PARTS[0], {**RECTANGLE, "group_id": 0}), "b.json": labelme(RECTANGLE, imagePath="b.jpg")}, "bad_annotation"),
    ("cvat: cut mask", {"x.xml": "<annotations>" + "".join(cvat(shape, name=name)[13:-14] for name, shape in (("a.jpg", "<mask label='cat' left='4' top='5' width='4' height='5' rle='2, 3'/>"), ("b.jpg", CVAT_BOX))) + "</annotations>"}, "bad_annotation"),
    ("cvat: mask nowhere", {"x.xml": "<annotations>" + "".join(cvat(shape, name=name)[13:-14] for name, shape in (("a.jpg", "<mask label='cat' left='inf' top='5' width='4' height='5' rle='2, 3'/>"), ("b.jpg", CVAT_BOX))) + "</annotations>"}, "bad_annotation"),
    ("yolo: keypoints without kpt_shape", {"data.yaml": "train: .\nnames: [cat]\n", "a.txt": LINE[:-1] + " .1 .2 2 .1 .2 0\n", "b.txt": LINE}, "bad_annotation"),
    ("hf: no category", {"metadata.jsonl": lines({"file_name": "a.jpg", "objects": [{"bbox": SIDES}]}, {"file_name": "b.jpg", "objects": OBJECTS})}, "bad_annotation"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "code"), [each[1:] for each in REJECTED], ids=[each[0] for each in REJECTED]
)
def test_it_is_rejected(files, code, tmp_path, make_pictures):
    make_pictures("a.jpg", "b.jpg")
    write(tmp_path / "in", files)
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.rejects == {"a.jpg": code}
    assert list(found.images) == ["b.jpg"]


CORNERS = {"file_name": "a.jpg", "objects": {"bbox": [[20, 5, 38, 18]], "categories": ["cat"]}}

# name, files beside a.jpg
STOPS = [
    ("hf: corners", {"metadata.jsonl": lines(CORNERS)}),
    ("cvat: track", {"a.xml": "<annotations><meta></meta><track id='0'></track></annotations>"}),
    ("coco: image_info", {"a.json": json.dumps({"images": [image(1, "a.jpg")], "categories": CATEGORIES})}),
    ("yolo: labels elsewhere", {"data.yaml": f"train: .\n{NAMES}", "q/a.txt": LINE}),
]  # fmt: skip


@pytest.mark.parametrize("files", [each[1] for each in STOPS], ids=[each[0] for each in STOPS])
def test_an_unclear_form_stops_the_run(files, tmp_path, make_pictures):
    make_pictures("a.jpg")
    write(tmp_path / "in", files)
    with pytest.raises(SourceError):
        recordgen.plan(str(tmp_path / "in"))


def test_boxes_over_the_edge_are_no_corners(tmp_path, make_pictures):
    """Only if all boxes fit as corners, they may be some."""
    make_pictures("a.jpg", "b.jpg")
    records = {"file_name": "b.jpg", "objects": {"bbox": [list(SIDES)], "categories": ["cat"]}}
    write(tmp_path / "in", {"metadata.jsonl": lines(CORNERS, records)})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.images["a.jpg"] == [("cat", [0.5, 0.25, 1, 1])]
    assert found.adjusted == {"boxes_clipped": 1}


def test_an_image_in_two_splits_is_reported(tmp_path, make_pictures):
    """It stays in the first one."""
    make_pictures("a.jpg")
    found = dict.fromkeys(("train/x.json", "val/x.json"), coco(image(1, "a.jpg")))
    write(tmp_path / "in", found)
    assert Outcome(tmp_path / "in", tmp_path / "out").splits == {"a.jpg": "train"}
    assert "SEVERAL_SPLITS" in (tmp_path / "out/lint.jsonl").read_text()


CREATE_ML = {"label": "cat", "coordinates": {"x": 6, "y": 7.5, "width": 4, "height": 5}}
STUDIO = {"x": 10, "y": 25, "width": 10, "height": 25, "rectanglelabels": ["cat"]}
RESULT = [{"type": "rectanglelabels", "original_width": 40, "original_height": 20, "value": STUDIO}]
IN_SPLITS = ("train/a.jpg", "images/val2017/b.jpg", "test/c.jpg")
HF = lines(*({"file_name": name, "label": "cat"} for name in IN_SPLITS))

# name, one document of images in folders of splits
ONE_DOCUMENT = {
    "coco": coco(*(image(at, name) for at, name in enumerate(IN_SPLITS, start=1))),
    "via": json.dumps({key: value for name in IN_SPLITS for key, value in via(name, VIA_BOX).items()}),
    "create_ml": json.dumps([{"image": name, "annotations": [CREATE_ML]} for name in IN_SPLITS]),
    "label_studio": json.dumps([{"data": {"image": name}, "annotations": [{"result": RESULT}]} for name in IN_SPLITS]),
    "cvat": "".join(["<annotations>", *(cvat(CVAT_BOX, name=name)[13:-14] for name in IN_SPLITS), "</annotations>"]),
    "open_images": "ImageID,LabelName,XMin,XMax,YMin,YMax\n" + "".join(f"{name},cat,.1,.2,.25,.5\n" for name in "abc"),
    "hugging_face": HF,
}  # fmt: skip
NAMED = {"cvat": "a.xml", "open_images": "a.csv", "hugging_face": "metadata.jsonl"}


def splits_in(folder, split="names=auto"):
    """Return the splits of rows before any are assigned."""
    source, options = open_source(folder, ConvertOptions(split=split))
    rows = read_rows(options, *source.files)
    return {row.split for row in rows if isinstance(row, Row)}


@pytest.mark.parametrize("name", ONE_DOCUMENT)
def test_folders_of_images_are_splits_where_no_document_says_more(name, tmp_path, make_pictures):
    """Else images of test would teach."""
    make_pictures(*IN_SPLITS)
    write(tmp_path / "in", {NAMED.get(name, "a.json"): ONE_DOCUMENT[name]})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.splits == dict(zip(IN_SPLITS, ("train", "eval", "test"), strict=True))
    assert splits_in(tmp_path / "in", "names=no") == {None}


def test_the_name_of_an_image_is_no_split(tmp_path, make_pictures):
    """A document for each image is named after it, and this one shows a train."""
    names = ("train_1.jpg", "test.jpg")
    make_pictures(*names)
    write(tmp_path / "in", {f"{name[:-4]}.xml": voc(name, ("cat", "4 5 8 10")) for name in names})
    assert splits_in(tmp_path / "in") == {None}


def test_lines_of_retinanet(tmp_path, make_pictures):
    """Empty fields are no object, lines of an image are merged, and folders are splits."""
    make_pictures("train/a.jpg", "train/b.jpg", "valid/c.jpg", "valid/d.jpg")
    train = "a.jpg,4,5,8,10,cat\nb.jpg,,,,,\n\na.jpg,0,0,4,5,dog\n"
    files = {
        "train/_annotations.csv": train,
        "valid/_annotations.csv": "c.jpg,4,5,8,10,cat\nd.jpg,4,5,x,9,cat\n",
    }
    write(tmp_path / "in", {**files, "train/_classes.csv": "dog,0\ncat,1\n"})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.classes == ("dog", "cat")
    assert found.images == {
        "train/a.jpg": [*CAT, ("dog", [0, 0, 0.1, 0.25])],
        "train/b.jpg": [],
        "valid/c.jpg": CAT,
    }
    assert found.splits["valid/c.jpg"] == "eval"
    assert found.rejects == {"valid/d.jpg": "bad_annotation"}


def test_a_column_of_metadata_names_splits(tmp_path, make_pictures):
    make_pictures("a.jpg", "b.jpg")
    write(
        tmp_path / "in",
        {"metadata.csv": "file_name,label,split\na.jpg,cat,train\nb.jpg,cat,TEST\n"},
    )
    found = Outcome(tmp_path / "in", tmp_path / "out")
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
def test_lists_of_darknet_are_splits(files, splits, tmp_path, make_pictures):
    """One list says nothing, and one that is not here neither. Others are counted."""
    make_pictures("a.jpg", "b.jpg", "c.jpg")
    labels = {f"{name}.txt": LINE for name in "abc"}
    write(tmp_path / "in", {"obj.names": "cat\n", **labels, **files})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert len(found.images) == (len(splits) or 3)
    assert not splits or found.splits == splits
    assert bool(found.skipped) == (len(found.images) < 3)


@pytest.mark.parametrize(
    ("flag", "is_set"), [("Unspecified", 0), ("False", 0), ("1", 1), ("true", 1)]
)
def test_flags_of_voc_as_programs_write_them(flag, is_set, tmp_path, make_pictures):
    """``Unspecified`` is as usual as 0."""
    make_pictures("a.jpg")
    document = voc("a.jpg", ("cat", "4 5 8 10"))
    more = f"</name><difficult>{flag}</difficult><truncated>1</truncated>"
    write(tmp_path / "in", {"a.xml": document.replace("</name>", more)})
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    [(_, example)] = stored_examples(tmp_path / "out")
    assert example.get("image/object/difficult", [0]) == [is_set]
    assert example["image/object/truncated"] == [1]


def test_a_stray_classes_txt_is_no_evidence(tmp_path, make_pictures):
    """Without labels beside images, it names no classes of boxes."""
    make_pictures("cat/a.jpg", "dog/b.jpg")
    write(tmp_path / "in", {"classes.txt": "cat\ndog\n"})
    assert Outcome(tmp_path / "in", tmp_path / "out").task == "image_classification"


def test_trainval_counts_without_train_and_val(tmp_path, make_pictures):
    make_pictures("JPEGImages/a.jpg", "JPEGImages/b.jpg")
    files = {f"Annotations/{name}.xml": voc(f"{name}.jpg", ("cat", "4 5 8 10")) for name in "ab"}
    lists = {"ImageSets/Main/trainval.txt": "a\n", "ImageSets/Main/test.txt": "b\n"}
    write(tmp_path / "in", {**files, **lists})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.splits == {"JPEGImages/a.jpg": "train", "JPEGImages/b.jpg": "test"}


def test_categories_of_one_name_are_merged(tmp_path, make_pictures):
    make_pictures("a.jpg")
    names = [*CATEGORIES, {"id": 95, "name": " cat "}]
    boxes = [box(1, 2, *SIDES), box(1, 95, 0, 0, 4, 5)]
    write(tmp_path / "in", {"a.json": coco(image(1, "a.jpg"), boxes=boxes, categories=names)})
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.images == {"a.jpg": [("cat", [0, 0, 0.1, 0.25]), ("cat", BOX)]}
    assert found.classes == ("cat", "dog", "owl")
    assert any("'cat'" in text for text in found.skipped)
