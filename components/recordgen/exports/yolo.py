"""YOLO: ``data.yaml``, ``images/train/rex.jpg`` and ``labels/train/rex.txt``, for each split.

A line of labels is the number of the class, and center, width and height in shares of the image; if
the objects have keypoints, with those; else, if each object of an image has one polygon, the class
and the polygon.
The format: Ultralytics' "Object detection datasets overview".
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from recordgen import storage
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.records.boxes import StoredBox
from recordgen.core.rows.details import KEYPOINT
from recordgen.exports.copying import Copy
from recordgen.exports.image_files import ImageCopyExport, ImageExample, split_word
from recordgen.tasks import ObjectDetection

# Of a share: 0.0001 pixels of an image of 10,000.
_DECIMALS = 8


class Yolo(ImageCopyExport):
    """Labels beside images, and the names of classes in ``data.yaml``."""

    name = "yolo"
    tasks = (ObjectDetection.name,)
    keeps = ("images", "labels", "numbers", "splits", "boxes", "keypoints", "outlines")
    only_splits = (TRAIN, EVAL, TEST)
    refused_formats = ("gif",)  # Ultralytics skips them

    def write(self, copy: Copy) -> None:
        keypoints = KEYPOINT * len(copy.dataset.keypoints.get("names", ()))

        def files_of(word: str, image: ImageExample) -> dict[str, bytes]:
            return {
                f"images/{word}/{image.name}": image.data,
                f"labels/{word}/{image.stem}.txt": _lines(image.objects, keypoints).encode(),
            }

        self.write_images(copy, files_of)
        storage.write_text(copy.path("data.yaml"), _config(copy))


def _lines(boxes: Sequence[StoredBox], keypoints: int) -> str:
    """Return the lines of the boxes of one image, which are all polygons, or none is."""
    if not keypoints and all(len(box.details.polygons) == 1 for box in boxes):
        outlines = ((box.number, *box.details.polygons) for box in boxes)
        return "".join(f"{number} {_numbers(points)}\n" for number, points in outlines)
    return "".join(_line(box, keypoints) for box in boxes)


def _line(box: StoredBox, keypoints: int) -> str:
    sides = box.xmax - box.xmin, box.ymax - box.ymin
    shares = (box.xmin + sides[0] / 2, box.ymin + sides[1] / 2, *sides)
    points = box.details.keypoints or (0.0,) * keypoints
    return f"{box.number} {_numbers((*shares, *points[:keypoints]))}\n"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.{_DECIMALS}f}" for value in values)


def _config(copy: Copy) -> str:
    words = [split_word(split) for split in copy.splits]
    lines = [f"{word}: images/{word}" for word in words]
    if known := copy.dataset.keypoints:
        lines += [
            f"kpt_shape: [{len(known['names'])}, {KEYPOINT}]",
            f"flip_idx: {known['flip_idx']}",
        ]
        lines += [f"kpt_names: {{0: {json.dumps(known['names'], ensure_ascii=False)}}}"]
    lines += ["names:"]
    labels = copy.dataset.labels
    # JSON strings are YAML, too, and the class yes stays a text.
    lines += [f"  {at}: {json.dumps(name, ensure_ascii=False)}" for at, name in enumerate(labels)]
    return "".join(f"{line}\n" for line in lines)
