"""Documents of every format, in which one value at a time is odd.

`python -m tests.formats.odd_values` reads all of them, and prints what ends in no error of
Recordgen's own; the test reads a part.
"""

import csv
import io
import json
import re
import resource
import shutil
import sys
import traceback
from collections import Counter
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np
import yaml
from PIL import Image

from recordgen.errors import RecordgenError
from tests.formats.sources import Reading, write_files
from tests.formats.written import WRITERS

_DEEP = 20_000
#: A text stands for itself in all documents; JSON writes the others.
TEXTS = (
    *("", " ", "cat", "5", "-1", "nan", "1e999", "true", "null", "http://[b.png", "gs://", "a\0b"),
    *("\ud800", "=1+1", "../../a.jpg", "/", "9" * 300, "9" * 5000, '"', "{}", "[", "[1,2]", "é\n"),
    *("x" * 140_000, "[" * _DEEP + "]" * _DEEP, '{"a":' * _DEEP),
)
VALUES = (
    *(None, True, False, 0, 5, -1, 2.5, float("nan"), float("inf"), 1e300, 10**300, 1 << 63),
    *([], [[]], [5], [None], ["cat"], {}, {"a": 5}, {"": {}}, [[1, 2], [3]], [[[5]]]),
)
#: What JSON's own writer cannot say, by the text that stands for it.
_RAW = {"<deep list>": "[" * _DEEP + "]" * _DEEP, "<digits>": "9" * 5000, "<cut>": '{"a": ['}
ODD = (*VALUES, *(text for text in TEXTS if len(text) < _DEEP), *_RAW)


def _places(value, path=()):
    """Yield the path to each place in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from _places(inner, (*path, key))


def _replaced(value, path, odd):
    if not path:
        return odd
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _replaced(value[key], rest, odd)
    return copy


def _json_text(value):
    text = json.dumps(value)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def _without(value, path):
    """Return a value without a key of an object; another key has what it held."""
    *above, key = path
    inner = value
    for each in above:
        inner = inner[each]
    kept = {name: each for name, each in inner.items() if name != key}
    return _replaced(value, above, {**kept, "": inner[key], "a\ud800": 1})


# Each function yields functions that make a document, since most are left out.


def _in_json(text):
    value = json.loads(text)
    for path in _places(value):
        for odd in ODD:
            yield lambda path=path, odd=odd: _json_text(_replaced(value, path, odd))
        if path and isinstance(path[-1], str):
            yield lambda path=path: _json_text(_without(value, path))


def _in_json_lines(text):
    lines = text.splitlines()
    for at, line in enumerate(lines):
        for made in _in_json(line):
            yield lambda at=at, made=made: "\n".join([*lines[:at], made(), *lines[at + 1 :], ""])


def _csv_text(rows, y, row):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([*rows[:y], row, *rows[y + 1 :]])
    return out.getvalue()


def _in_csv(text):
    rows = list(csv.reader(io.StringIO(text)))
    for y, row in enumerate(rows):
        for x in range(len(row)):
            marked = _csv_text(rows, y, [*row[:x], "\x01", *row[x + 1 :]])
            for odd in TEXTS:
                quoted = '"' + odd.replace('"', '""') + '"'
                yield lambda marked=marked, odd=odd: marked.replace("\x01", odd)
                yield lambda marked=marked, quoted=quoted: marked.replace("\x01", quoted)
        for changed in (row[: len(row) // 2], [*row, "more"]):
            yield lambda y=y, changed=changed: _csv_text(rows, y, changed)


def _in_words(text):
    """Yield a text with each word replaced: lines of boxes, or YAML."""
    for found in re.finditer(r"[^\s,\[\]{}:]+", text):
        before, after = text[: found.start()], text[found.end() :]
        for odd in TEXTS:
            yield lambda before=before, odd=odd, after=after: f"{before}{odd}{after}"


def _in_yaml(text):
    yield from _in_words(text)
    value = yaml.safe_load(text)
    for path in _places(value):
        for odd in (*VALUES, "", "cat", "\0", "{}", "1:2"):
            yield lambda path=path, odd=odd: yaml.safe_dump(_replaced(value, path, odd))
    yield lambda: f"<<: {{names: [a]}}\n{text}".replace("names: [cat", "nimes: [cat")


def _xml_text(text, at, change):
    root = ElementTree.fromstring(text)
    change([*root.iter()][at])
    return ElementTree.tostring(root, "unicode")


def _in_xml(text):
    texts = [each for each in TEXTS if each.isprintable() and len(each) < _DEEP]
    for at, element in enumerate(ElementTree.fromstring(text).iter()):
        changes = [lambda each, odd=odd: setattr(each, "text", odd) for odd in texts]
        for name in element.attrib:
            changes += [lambda each, name=name, odd=odd: each.set(name, odd) for odd in texts]
            changes.append(lambda each, name=name: each.attrib.pop(name))
        changes += [
            lambda each: each.clear(),
            lambda each: setattr(each, "tag", "odd"),
            lambda each: each.extend(list(each)),
        ]
        for change in changes:
            yield lambda at=at, change=change: _xml_text(text, at, change)
    yield lambda: text.replace(">", ">" + "<a>" * _DEEP, 1)


_KINDS = {
    ".json": _in_json,
    ".jsonl": _in_json_lines,
    ".csv": _in_csv,
    ".xml": _in_xml,
    ".yaml": _in_yaml,
    ".md": _in_yaml,
    ".txt": _in_words,
}

_SEGMENTED = {
    "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 20}],
    "annotations": [
        {
            **{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "iscrowd": 0},
            **{"segmentation": [[1, 1, 9, 1, 9, 9]], "keypoints": [1, 1, 2], "num_keypoints": 1},
        },
        {
            **{"id": 2, "image_id": 1, "category_id": 1, "iscrowd": 1, "area": 4},
            **{"segmentation": {"size": [20, 40], "counts": [4, 4, 792]}},
        },
        {
            **{"id": 3, "image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 20]},
            **{"segmentation": {"size": [20, 40], "counts": "44hh0"}},
        },
    ],
    "categories": [{"id": 1, "name": "cat", "supercategory": "pet", "keypoints": ["nose"]}],
}


def _result(kind, value, **more):
    sizes = {"original_width": 40, "original_height": 20}
    return {"id": "r", "type": kind, "value": value, "from_name": "x", **sizes, **more}


_SIDES = {"x": 10, "y": 10, "width": 30, "height": 30, "rotation": 5}
_STUDIO = [
    {
        "data": {"image": "/data/local-files/?d=a.jpg"},
        "annotations": [
            {
                "was_cancelled": False,
                "ground_truth": True,
                "result": [
                    _result("rectanglelabels", {**_SIDES, "rectanglelabels": ["cat"]}),
                    _result(
                        "polygonlabels",
                        {"points": [[1, 1], [9, 1], [9, 9]], "polygonlabels": ["cat"]},
                    ),
                    _result(
                        "ellipselabels",
                        {"x": 5, "y": 5, "radiusX": 2, "radiusY": 2, "ellipselabels": ["cat"]},
                    ),
                    _result("keypointlabels", {"x": 1, "y": 1, "keypointlabels": ["eye"]}),
                    _result("rectangle", dict(_SIDES), id="s"),
                    _result("labels", {**_SIDES, "labels": ["dog"]}, id="s"),
                ],
            },
            {"result": [_result("choices", {"choices": ["cat"]})]},
        ],
    },
    {
        "data": {"image": "gs://bucket/b.jpg"},
        "completions": [{"result": [_result("choices", {"choices": ["cat", "dog"]})]}],
    },
]
_CHOICES = [
    {
        "data": {"image": f"/data/upload/1/ab12cd34-{name}.jpg"},
        "annotations": [{"result": [_result("choices", {"choices": ["cat"]})]}],
    }
    for name in "ab"
]
_VIA_SHAPES = (
    {"name": "rect", "x": 1, "y": 1, "width": 3, "height": 3},
    {"name": "circle", "cx": 9, "cy": 9, "r": 3},
    {"name": "ellipse", "cx": 9, "cy": 9, "rx": 3, "ry": 2, "theta": 0.5},
    {"name": "polygon", "all_points_x": [1, 9, 9], "all_points_y": [1, 1, 9]},
    {"name": "point", "cx": 9, "cy": 9},
)
_VIA_REGIONS = [
    {"shape_attributes": shape, "region_attributes": {"class": {"cat": True} if at else "dog"}}
    for at, shape in enumerate(_VIA_SHAPES)
]
_VIA_IMAGES = {
    "a.jpg1": {"filename": "a.jpg", "size": 1, "file_attributes": {}, "regions": _VIA_REGIONS},
    "b.jpg1": {"filename": "b.jpg", "regions": dict(enumerate(_VIA_REGIONS[:1]))},
}
_VIA_HEAD = (
    "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
    "region_attributes\n"
)


def _via_csv():
    out = io.StringIO()
    for name, shape in zip("abb", _VIA_SHAPES, strict=False):
        row = [f"{name}.jpg", 1, "{}", 1, 0, json.dumps(shape), '{"class":"cat"}']
        csv.writer(out, lineterminator="\n").writerow(row)
    return _VIA_HEAD + out.getvalue()


def _lines(*items):
    return "".join(f"{json.dumps(item)}\n" for item in items)


_USE = {"dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"}}
_BOX = {"displayName": "cat", "xMin": 0.1, "yMin": 0.1, "xMax": 0.5, "yMax": 0.5}
_ENTITY = {"startOffset": 0, "endOffset": 3, "displayName": "pet"}
_VIDEO = {"displayName": "run", "timeSegment": {"startTime": "0s", "endTime": "1.5s"}}

#: Documents by a name, each with the one that is changed first.
MORE = {
    "coco of shapes": {"coco.json": json.dumps(_SEGMENTED)},
    "label_studio of shapes": {"studio.json": json.dumps(_STUDIO)},
    "label_studio of choices": {"studio.json": json.dumps(_CHOICES)},
    "via of shapes": {"via.json": json.dumps(_VIA_IMAGES)},
    "via project": {
        "via.json": json.dumps(
            {"_via_settings": {"ui": {}}, "_via_img_metadata": _VIA_IMAGES, "_via_attributes": {}}
        )
    },
    "via csv": {"via.csv": _via_csv()},
    "labelme of shapes": {
        "a.json": json.dumps(
            {
                "shapes": [
                    {
                        **{"label": "cat", "shape_type": "polygon", "group_id": 1, "flags": {}},
                        "points": [[1, 1], [9, 1], [9, 9]],
                    },
                    {
                        **{"label": "cat", "shape_type": "circle", "group_id": None},
                        "points": [[5, 5], [6, 6]],
                    },
                    {"label": "dog", "shape_type": "point", "points": [[5, 5]]},
                ],
                **{"imagePath": "a.jpg", "imageData": None, "imageWidth": 40, "imageHeight": 20},
                "flags": {"cat": True},
            }
        )
    },
    "hugging_face labels": {"metadata.csv": "file_name,label\na.jpg,cat\nb.jpg,dog\n"},
    "hugging_face boxes": {
        "metadata.csv": 'file_name,objects\na.jpg,"{""bbox"":[[1,1,3,3]],""category"":[0]}"\n'
        'b.jpg,"{""bbox"":[],""category"":[]}"\n',
        "classes.txt": "cat\ndog\n",
    },
    "hugging_face several": {
        "metadata.jsonl": _lines(
            {"file_name": "a.jpg", "label": [0, 1], "split": "train"},
            {"file_name": "b.jpg", "label": [1], "split": "test"},
        ),
    },
    "hugging_face objects": {
        "metadata.jsonl": _lines(
            {"file_name": "a.jpg", "objects": [{"bbox": [1, 1, 3, 3], "label": 0, "iscrowd": 1}]},
            {"file_name": "b.jpg", "objects": []},
        ),
    },
    "hugging_face readme": {
        "README.md": "---\ndataset_info:\n  features:\n  - name: label\n    dtype:\n"
        "      class_label:\n        names:\n          '0': cat\n          '1': dog\n---\n",
        "metadata.jsonl": _lines(
            {"file_name": "a.jpg", "label": 0}, {"file_name": "b.jpg", "label": 1}
        ),
    },
    "open_images labels": {
        "train-imagelabels.csv": "ImageID,Source,LabelName,Confidence\na,x,/m/1,1\nb,x,/m/2,0.5\n",
        "class-descriptions.csv": "/m/1,Cat\n/m/2,Dog\n",
    },
    "open_images names": {
        "class-descriptions.csv": "/m/1,Cat\n/m/2,Dog\n",
        "train-imagelabels.csv": "ImageID,Source,LabelName,Confidence\na,x,/m/1,1\nb,x,/m/2,0.5\n",
    },
    "yolo numbers": {
        "data.yaml": "path: .\ntrain: images\nnames: {0: cat, 1: dog}\nnc: 2\n",
        "images/c.jpg": b"",
        "labels/c.txt": "0 0.5 0.5 0.5 0.5\n",
    },
    "yolo shapes": {
        "labels/c.txt": "0 0.5 0.5 0.5 0.5\n1 0.1 0.1 0.5 0.1 0.5 0.5\n",
        "data.yaml": "train: images\nnames: [cat, dog]\n",
        "images/c.jpg": b"",
    },
    "cvat shapes": {
        "annotations.xml": "<annotations><meta><task><labels><label><name>cat</name><type>any"
        "</type></label></labels></task></meta>"
        '<image name="a.jpg" width="40" height="20" subset="train">'
        '<box label="cat" xtl="1" ytl="1" xbr="9" ybr="9" occluded="1" '
        'rotation="5"><attribute name="x">1</attribute></box>'
        '<polygon label="cat" points="1,1;9,1;9,9"/><ellipse label="cat" cx="9" cy="9" rx="2" '
        'ry="3"/><mask label="cat" rle="1,3" left="1" top="1" width="2" height="2"/>'
        '<points label="cat" points="1,1"/><tag label="dog"/></image></annotations>'
    },
    "pascal_voc more": {
        "a.xml": "<annotation><folder>x</folder><filename>a.jpg</filename><path>/x/a.jpg</path>"
        "<size><width>40</width><height>20</height><depth>3</depth></size><object><name>cat</name>"
        "<truncated>0</truncated><difficult>1</difficult><polygon><x1>1</x1><y1>1</y1></polygon>"
        "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox><part>"
        "<name>eye</name></part></object></annotation>"
    },
    "masks and classes": {
        "masks/class_dict.csv": "name,r,g,b\ncat,255,0,0\ndog,0,255,0\n",
        "images/c.jpg": b"",
        "masks/c.png": b"",
    },
    "masks and numbers": {
        "masks/_classes.csv": "Pixel Value, Class\n0, cat\n1, dog\n",
        "images/c.jpg": b"",
        "masks/c.png": b"",
    },
    "masks and colours": {
        "labelmap.txt": "# label:color_rgb:parts:actions\ncat:255,0,0::\ndog:0,255,0::\n",
        "JPEGImages/c.jpg": b"",
        "SegmentationClass/c.png": b"",
    },
    "automl classification": {
        "x.jsonl": _lines(
            {"imageGcsUri": "a.jpg", "classificationAnnotation": {"displayName": "cat"}, **_USE},
            {"imageGcsUri": "b.jpg", "classificationAnnotation": {"displayName": "dog"}},
        )
    },
    "automl several": {
        "x.jsonl": _lines(
            {"imageGcsUri": "a.jpg", "classificationAnnotations": [{"displayName": "cat"}], **_USE}
        )
    },
    "automl boxes": {
        "x.jsonl": _lines({"imageGcsUri": "a.jpg", "boundingBoxAnnotations": [_BOX, _BOX], **_USE})
    },
    "automl masks": {
        "x.jsonl": _lines(
            {
                "imageGcsUri": "a.jpg",
                "segmentationAnnotation": {
                    "maskGcsUri": "mask.png",
                    "annotationSpecColors": [
                        {"color": {"red": 0.5, "green": 0, "blue": 1}, "displayName": "cat"}
                    ],
                },
            }
        )
    },
    "automl polygons": {
        "x.jsonl": _lines(
            {
                "imageGcsUri": "a.jpg",
                "polygonAnnotations": [
                    {
                        "displayName": "cat",
                        "vertexes": [{"x": 0.1, "y": 0.1}, {"x": 0.5}, {"x": 0.5, "y": 0.5}],
                    }
                ],
            }
        )
    },
    "automl text": {
        "x.jsonl": _lines(
            {"textContent": "good", "classificationAnnotation": {"displayName": "a"}, **_USE},
            {"textGcsUri": "b.txt", "classificationAnnotation": {"displayName": "b"}},
        )
    },
    "automl sentiment": {
        "x.jsonl": _lines(
            {"textContent": "good", "sentimentAnnotation": {"sentiment": 1, "sentimentMax": 2}}
        )
    },
    "automl entities": {
        "x.jsonl": _lines({"textContent": "cat on", "textSegmentAnnotations": [_ENTITY], **_USE})
    },
    "automl older": {
        "x.jsonl": _lines(
            {
                "annotations": [
                    {
                        "text_extraction": {"text_segment": {"start_offset": 0, "end_offset": 3}},
                        "display_name": "pet",
                    }
                ],
                "text_snippet": {"content": "cat on"},
            }
        )
    },
    "automl video": {
        "x.jsonl": _lines(
            {"videoGcsUri": "a.mp4", "timeSegmentAnnotations": [_VIDEO], **_USE},
            {"videoGcsUri": "a.mp4", "classificationAnnotations": [_VIDEO]},
        )
    },
    "csv of images": {"x.csv": "TRAIN,a.jpg,cat\nTEST,b.jpg,dog\n"},
    "csv of boxes": {"x.csv": "TRAIN,a.jpg,cat,0.1,0.1,,,0.5,0.5,,\n,b.jpg,,,,,,,,,\n"},
    "csv of a header": {"x.csv": "image_uri,label,split\na.jpg,cat,train\nb.jpg,dog,test\n"},
    "csv of texts": {"x.csv": 'TRAIN,"a text, long",praise\nTEST,bad,complaint\n'},
    "csv of a table": {"x.csv": "age,job,y\n1,nurse,a\n2,cook,b\n3,cook,a\n"},
    "conll": {"x.conll": "-DOCSTART- -X- O O\n\nEU B-ORG\nrejects O\n\nPeter B-PER\n"},
}
#: Options of a document, whose `document` is passed alone.
OPTIONS = {
    **{
        name: {"document": "x" + suffix}
        for suffix, names in {
            ".jsonl": [each for each in MORE if each.startswith("automl")],
            ".csv": [each for each in MORE if each.startswith("csv of")],
            ".conll": ["conll"],
        }.items()
        for name in names
    },
    "masks and classes": {"task": "image_segmentation"},
    "coco of shapes": {"task": "image_segmentation"},
    "automl polygons": {"document": "x.jsonl", "task": "object_detection"},
}


class Sample:
    """A ``document`` of a format in the folder ``root`` with images."""

    def __init__(self, name, root):
        self.root, self.options = root, dict(OPTIONS.get(name, {}))
        self.passed = root / self.options.pop("document", "")
        rng = np.random.default_rng(0)
        for each in ("a.jpg", "b.jpg", "mask.png"):
            pixels = rng.integers(0, 2, (20, 40), np.uint8)
            Image.fromarray(pixels).save(root / each)
        if name in MORE:
            write_files(root, MORE[name])
            self.document = root / next(iter(MORE[name]))
            for path in MORE[name]:
                if path.endswith((".jpg", ".png")):
                    shutil.copy(
                        root / ("a.jpg" if path.endswith(".jpg") else "mask.png"), root / path
                    )
            if "masks" not in name:
                (root / "mask.png").unlink()
        else:
            inner = root / "train"
            inner.mkdir()
            (root / "mask.png").unlink()
            for each in ("a.jpg", "b.jpg"):
                (root / each).rename(inner / each)
            WRITERS[name](inner, ["a.jpg", "b.jpg"])
            others = [each for each in root.rglob("*") if each.suffix in _KINDS]
            self.document = min(others, key=lambda path: ("annotation" not in path.name, path))

    def documents(self, step):
        """Yield every ``step``-th of the documents with an odd value."""
        text = self.document.read_text()
        made = _KINDS.get(self.document.suffix, _in_words)(text.strip("-\n"))
        for each in islice(made, 0, None, step):
            yield f"---\n{each()}\n---\n" if self.document.suffix == ".md" else each()

    def fault(self, text):
        """Return the error that is none of Recordgen's own when a document is read, or None."""
        self.document.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            reading = Reading(str(self.passed) + "/" * self.passed.is_dir(), **self.options)
            for row in reading.rows:
                "".join(part for part in row if isinstance(part, str)).encode()
        except RecordgenError:
            return None
        except Exception as exc:  # noqa: BLE001 this is what is looked for
            return exc
        return None


NAMES = (*WRITERS, *MORE)


def faults(name, root, step=1):
    """Return how many documents were read, and the errors by place; every ``step``-th is read."""
    sample, found, count = Sample(name, root), {}, 0
    for text in sample.documents(step):
        count += 1
        if (exc := sample.fault(text)) is not None:
            last = traceback.extract_tb(exc.__traceback__)
            own = [each for each in last if "/recordgen/" in each.filename][-1]
            key = f"{Path(own.filename).name}:{own.lineno} {type(exc).__name__} {exc!s:.60}"
            found.setdefault(key, []).append(text)
    return count, found


def main():
    """Read all documents of the given formats, or of all."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    total, wrong = 0, Counter()
    for name in sys.argv[1:] or NAMES:
        with TemporaryDirectory() as folder:
            count, found = faults(name, Path(folder))
        total += count
        print(f"{name}: {count} documents, {sum(map(len, found.values()))} tracebacks", flush=True)
        for key, texts in found.items():
            wrong[key] += len(texts)
            print(f"    {len(texts)} × {key} e.g. {min(texts, key=len)!r:.300}")
    print(f"{total} documents, {wrong.total()} tracebacks in {len(wrong)} places")


if __name__ == "__main__":
    main()
