"""Boxes that globox writes, in each format that it knows, as both programs read them; and back."""

import numpy as np
import pytest
from globox import Annotation, AnnotationSet, BoundingBox
from PIL import Image

import recordgen
from recordgen.exports import ExportOptions
from recordgen.registry import EXPORTS

LABELS = ("cat", "dog", "big bird")
NUMBERS = {label: number for number, label in enumerate(LABELS)}
IMAGES = 12
SIDES = ("xmin", "ymin", "xmax", "ymax")


def yolo(boxes, root):
    boxes.save_yolo_v5(root / "labels", label_to_id=NUMBERS)
    (root / "data.yaml").write_text(f"train: images\nnames: {list(LABELS)}\n")
    return AnnotationSet.from_yolo_v5(root / "labels", image_folder=root / "images")


def coco(boxes, root):
    boxes.save_coco(root / "boxes.json", auto_ids=True)
    return AnnotationSet.from_coco(root / "boxes.json")


def pascal_voc(boxes, root):
    boxes.save_pascal_voc(root / "images")
    return AnnotationSet.from_pascal_voc(root / "images")


def cvat(boxes, root):
    boxes.save_cvat(root / "boxes.xml")
    return AnnotationSet.from_cvat(root / "boxes.xml")


def labelme(boxes, root):
    boxes.save_labelme(root / "images")
    return AnnotationSet.from_labelme(root / "images")


def open_images(boxes, root):
    path = root / "images" / "boxes-annotations-bbox.csv"
    boxes.save_openimage(path)
    return AnnotationSet.from_openimage(path, image_folder=root / "images")


def via(boxes, root):
    boxes.save_via_json(root / "boxes.json", image_folder=root / "images", label_key="class")
    return AnnotationSet.from_via_json(root / "boxes.json", label_key="class")


def random_boxes(root):
    """Write random images below ``root``; return random boxes in them, in fractions of a pixel."""
    rng = np.random.default_rng(35)
    found = AnnotationSet()
    (root / "images").mkdir(parents=True)
    for number in range(IMAGES):
        size = tuple(rng.integers(16, 900, 2).tolist())
        name = f"{number}.jpg"
        Image.effect_noise(size, 50).save(root / "images" / name)
        boxes = []
        for _ in range(rng.integers(1, 9)):
            left, right = np.sort(rng.random(2) * size[0]).tolist()
            top, low = np.sort(rng.random(2) * size[1]).tolist()
            label = LABELS[rng.integers(len(LABELS))]
            boxes.append(BoundingBox(label=label, xmin=left, ymin=top, xmax=right, ymax=low))
        found.add(Annotation(image_id=name, image_size=size, boxes=boxes))
    return found


@pytest.mark.parametrize("write", [yolo, coco, pascal_voc, cvat, labelme, open_images, via])
def test_boxes(write, tmp_path):
    """A folder is read with no option but its path; corners are alike up to 1e-4 pixels."""
    source, out = tmp_path / "in", tmp_path / "out"
    theirs = write(random_boxes(source), source)
    found = recordgen.convert(f"{source}/", out, lint="-ALL").dataset
    assert (found.options["format"], found.rows.rejects) == (write.__name__, 0)
    images = 0
    for split in found.splits:
        for record in recordgen.source(out, split):
            expected = theirs[record["image/source_id"].rsplit("/", 1)[-1]].boxes
            width, height = int(record["image/width"]), int(record["image/height"])
            mine = np.stack([record[f"image/object/bbox/{side}"] for side in SIDES], 1)
            mine = mine * (width, height, width, height)
            labels = [NUMBERS[label] for label in record["image/object/class/text"]]
            mine = np.column_stack([labels, mine])
            numbers = [
                (NUMBERS[LABELS[int(it.label)] if it.label.isdecimal() else it.label], *it.ltrb)
                for it in expected
            ]
            np.testing.assert_allclose(in_order(mine), in_order(numbers), rtol=0, atol=1e-4)
            images += 1
    assert images == IMAGES


@pytest.mark.parametrize("name", ["yolo", "coco"])
def test_exported_boxes(name, tmp_path):
    """An export has the boxes that were converted, up to a hundredth of a pixel."""
    drawn, to = random_boxes(tmp_path / "in"), tmp_path / "to"
    coco(drawn, tmp_path / "in")
    recordgen.convert(f"{tmp_path}/in/", tmp_path / "out", split="1,0,0", lint="-ALL")
    EXPORTS[name]().export(str(tmp_path / "out"), ExportOptions(to=str(to)))
    found = (
        AnnotationSet.from_yolo_v5(to / "labels/train", image_folder=to / "images/train")
        if name == "yolo"
        else AnnotationSet.from_coco(to / "annotations/instances_train.json")
    )
    assert len(found) == IMAGES
    for each in found:
        mine, theirs = ([(0, *it.ltrb) for it in s.boxes] for s in (each, drawn[each.image_id]))
        np.testing.assert_allclose(in_order(mine), in_order(theirs), rtol=0, atol=0.01)


def in_order(boxes):
    """Return boxes by label and then from left to right; no two begin in one place."""
    boxes = np.asarray(boxes)
    return boxes[np.lexsort((boxes[:, 1], boxes[:, 0]))]
