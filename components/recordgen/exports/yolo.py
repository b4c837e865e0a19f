"""YOLO: ``data.yaml``, ``images/train/rex.jpg`` and ``labels/train/rex.txt``, for each split.

A line of labels is the number of the class, and center, width and height in shares of the image; if
the objects have keypoints, with those; else, if each object of an image has one polygon, the class
and the polygon.
The format: Ultralytics' "Object detection datasets overview".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from recordgen import storage
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.exports import copying
from recordgen.exports.export import environment
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.objects import StoredBox
from recordgen.tasks import ObjectDetection

# Of a share: 0.0001 pixels of an image of 10,000.
_DECIMALS = 8

# The largest difference of sides that are the same, in shares of the image.
_SAME = 1e-4


class Yolo(copying.ImageCopyExport):
    """Labels beside images, and the names of classes in ``data.yaml``."""

    name = "yolo"
    tasks = (ObjectDetection.name,)
    keeps = ("images", "labels", "numbers", "splits", "boxes", "keypoints", "outlines")
    only_splits = (TRAIN, EVAL, TEST)
    refused_formats = ("gif",)  # Ultralytics skips them

    def losses(self, copy: copying.Copy) -> Mapping[str, int]:
        """Count the outlines of the images whose objects have not one polygon each, too."""
        lost, count = super().losses(copy), 0
        if not {*copying.OBJECT_FEATURES["outlines"]} & {*copy.dataset.objects}:
            return lost
        uncounted = copying.Copy(copy.output, copy.splits, copy.to)
        for example in chain.from_iterable(map(uncounted.split_examples, copy.splits)):
            boxes = copying.ImageExample(example.where, "", b"", example.values()).objects
            if copy.dataset.keypoints or not _are_polygons(boxes):
                count += sum(bool(it.details.polygons or it.details.mask) for it in boxes)
        return {**lost, "outlines": count} if count else lost

    def write(self, copy: copying.Copy) -> None:
        keypoints = KEYPOINT * len(copy.dataset.keypoints.get("names", ()))

        def files_of(word: str, image: copying.ImageExample) -> dict[str, bytes]:
            boxes = image.objects
            if keypoints or not _are_polygons(boxes):
                text = "".join(_line(box, keypoints) for box in boxes)
            else:
                outlines = ((box.number, *box.details.polygons) for box in boxes)
                text = "".join(f"{number} {_numbers(points)}\n" for number, points in outlines)
            return {
                f"images/{word}/{image.name}": image.data,
                f"labels/{word}/{image.stem}.txt": text.encode(),
            }

        self.write_images(copy, files_of)
        config = environment().get_template("yolo.yaml")
        known = {"keypoints": copy.dataset.keypoints, "labels": copy.dataset.labels}
        words = [*map(self.word, copy.splits)]
        storage.write_text(
            copy.path("data.yaml"), config.render(words=words, numbers=KEYPOINT, **known)
        )


def _are_polygons(boxes: Sequence[StoredBox]) -> bool:
    """Return whether each object is one polygon: the lines of an image are all of one kind.

    Readers take the box of a polygon for the object's box, so they must be the same.
    """
    return all(len(box.details.polygons) == 1 and _is_around(box) for box in boxes)


def _is_around(box: StoredBox) -> bool:
    """Return whether a box is that of its polygon."""
    [points] = box.details.polygons.arrays()
    corners = (*points.min(0), *points.max(0))
    return bool(np.allclose(box[2:6], corners, rtol=0, atol=_SAME))


def _line(box: StoredBox, keypoints: int) -> str:
    sides = box.xmax - box.xmin, box.ymax - box.ymin
    shares = (box.xmin + sides[0] / 2, box.ymin + sides[1] / 2, *sides)
    points = box.details.keypoints or (0.0,) * keypoints
    return f"{box.number} {_numbers((*shares, *points[:keypoints]))}\n"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.{_DECIMALS}f}" for value in values)
