"""Boxes of random documents are those that were written, as their formats describe them."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.core.rows.row import Row
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.tasks.object_detection.annotation import Boxes
from tests.formats.sources import write_files
from tests.rows import read_rows

WIDTH, HEIGHT = 64, 48
NAMES = ["cat", "a dog", "owl & mouse", "été"]


share = st.floats(0.01, 0.49).map(lambda value: round(value, 6))
#: number of a class; center and half of the sides, in shares of the image
boxes = st.lists(st.tuples(st.integers(0, 3), share, share, share, share), max_size=4)
images = st.dictionaries(st.text("abcxyz-_", min_size=1, max_size=6), boxes, min_size=2, max_size=5)
line_end = st.sampled_from(["\n", "\r\n"])
fast = settings(max_examples=20, deadline=None)


def corners(box):
    """Return corners within the image: the center is at least as far from the edge as 0.25."""
    _, x, y, width, height = box
    return x + 0.25 - width / 2, y + 0.25 - height / 2, x + 0.25 + width / 2, y + 0.25 + height / 2


def read(found):
    """Return the boxes of each image as Recordgen reads them."""
    rows = read_rows(found.options, *found.files)
    return {
        Path(row.uri).stem: sorted(
            (box.label, [*box[1:]]) for box in Boxes.from_json(row.annotation or "[]").boxes
        )
        for row in rows
        if isinstance(row, Row)
    }


def check(files, content):
    """Check that files have the boxes that were written, but repeated ones; return the classes."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_files(Path(folder), files)
        found = detect([ImportFile(f"{root}/")], ConvertOptions())
        ours = read(found)
    assert ours.keys() == content.keys()
    for name, seen in ours.items():
        rest = [(NAMES[box[0]], pytest.approx([*corners(box)], abs=1e-4)) for box in content[name]]
        assert all(each in rest for each in seen)
        assert all(any(each == other for other in seen) for each in rest)
    return found.classes


@fast
@given(images, line_end, st.booleans())
def test_yolo(content, end, has_bom):
    """Labels as Ultralytics' documentation describes them."""
    files = {"data.yaml": f"train: images\nnames: {json.dumps(NAMES, ensure_ascii=False)}"}
    for name, objects in content.items():
        lines = []
        for box in objects:
            left, top, right, bottom = corners(box)
            x, y = (left + right) / 2, (top + bottom) / 2
            lines.append(f"{box[0]} {x:.6f} {y:.6f} {right - left:.6f} {bottom - top:.6f}{end}")
        files[f"images/{name}.jpg"] = ""
        files[f"labels/{name}.txt"] = "\ufeff" * has_bom + "".join(lines)
    check(files, content)


@fast
@given(images, st.booleans())
def test_pascal_voc(content, is_challenge):
    """Documents with pixels from 0 or, of the challenge, from 1."""
    files = {}
    shift = int(is_challenge)
    for name, objects in content.items():
        items = []
        for box in objects:
            left, top, right, bottom = corners(box)
            label = NAMES[box[0]].replace("&", "&amp;")
            items.append(
                f"<object>\n<name>{label}</name><bndbox><xmin>{left * WIDTH + shift}</xmin>"
                f"<ymax>{bottom * HEIGHT}</ymax><ymin>{top * HEIGHT + shift}</ymin>"
                f"<xmax> {right * WIDTH} </xmax></bndbox></object>"
            )
        files[f"JPEGImages/{name}.jpg"] = ""
        files[f"Annotations/{name}.xml"] = (
            f"<annotation><folder>{'VOC2007' if is_challenge else 'x'}</folder>"
            f"<size><height>{HEIGHT}</height><width>{WIDTH}</width></size>{''.join(items)}"
            f"</annotation>"
        )
    check(files, content)


@fast
@given(images, st.permutations(["images", "annotations", "categories"]), st.randoms())
def test_coco(content, keys, random):
    """Documents with keys, images and annotations in any order, and ids with gaps."""
    ids = random.sample(range(1000), len(content) + len(NAMES))
    of_image, of_class = dict(zip(content, ids, strict=False)), ids[len(content) :]
    annotations = []
    for name, objects in content.items():
        for box in objects:
            left, top, right, bottom = corners(box)
            sides = [left * WIDTH, top * HEIGHT]
            sides += [(right - left) * WIDTH, (bottom - top) * HEIGHT]
            item = {"image_id": of_image[name], "category_id": of_class[box[0]], "bbox": sides}
            annotations.append({**item, "id": len(annotations), "iscrowd": 0, "area": 1})
    if not annotations:
        return
    random.shuffle(annotations)
    values = {
        "images": [
            {"id": own, "file_name": f"{name}.jpg", "width": WIDTH, "height": HEIGHT}
            for name, own in of_image.items()
        ],
        "annotations": annotations,
        "categories": [
            {"id": own, "name": name} for own, name in zip(of_class, NAMES, strict=True)
        ],
    }
    document = json.dumps({key: values[key] for key in keys})
    files = {"instances.json": document, **{f"{name}.jpg": "" for name in content}}
    assert check(files, content) == tuple(
        name for _, name in sorted(zip(of_class, NAMES, strict=True))
    )
