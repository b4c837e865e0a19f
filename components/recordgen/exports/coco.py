"""COCO: ``annotations/instances_train.json`` and ``train/rex.jpg``, for each split.

Boxes are x, y, width and height in pixels, with four decimals. Categories have ids from 1, in the
order of the dataset's labels. The format: "Data format", cocodataset.org.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from itertools import count
from tempfile import TemporaryFile
from typing import IO, Any

from recordgen import storage
from recordgen.exports import copying
from recordgen.exports.columns import DECIMALS, RLE, shapes_in_pixels
from recordgen.features import IS_CROWD
from recordgen.lineage import dataset_name
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.objects import StoredBox
from recordgen.tasks import ObjectDetection


class Coco(copying.ImageCopyExport):
    """A document of boxes and a folder of images for each split."""

    name = "coco"
    tasks = (ObjectDetection.name,)
    keeps = (
        *("images", "labels", "numbers", "splits", "boxes", "crowd", "area", "keypoints"),
        "outlines",
    )

    def check(self, copy: copying.Copy) -> None:
        copying.check_sizes(copy)

    def write(self, copy: copying.Copy) -> None:
        for split in copy.splits:
            word = self.word(split)
            with (
                storage.replacing(copy.path(f"annotations/instances_{word}.json")) as file,
                TemporaryFile() as annotations,
            ):
                _write_head(file, copy)
                ids = count(1)
                for at, image in enumerate(self.images(copy, split, copying.in_folder(word))):
                    width, height = image.size
                    named = {"file_name": image.name, "width": width, "height": height}
                    _write_item(file, {"id": at + 1, **named}, is_first=at == 0)
                    for box in image.boxes:
                        item = next(ids)
                        found = {"id": item, "image_id": at + 1, **_annotation(image, box)}
                        _write_item(annotations, found, is_first=item == 1)
                file.write(b'\n],\n"annotations": [')
                annotations.seek(0)
                shutil.copyfileobj(annotations, file)
                file.write(b"\n]\n}\n")


def _write_head(file: IO[bytes], copy: copying.Copy) -> None:
    labels = copy.dataset.labels
    info = {"description": dataset_name(copy.dataset), "version": copy.dataset.digest}
    names = copy.dataset.keypoints.get("names", ())
    more = {"keypoints": [*names], "skeleton": []} if names else {}
    categories = [{"id": at, "name": label, **more} for at, label in enumerate(labels, start=1)]
    head = {"info": info, "licenses": [], "categories": categories}
    lines = ",\n".join(f"{_json(name)}: {_json(value)}" for name, value in head.items())
    file.write(f'{{\n{lines},\n"images": ['.encode())


def _write_item(file: IO[bytes], item: Mapping[str, Any], *, is_first: bool) -> None:
    file.write(f"{'' if is_first else ','}\n{_json(item)}".encode())


def _annotation(image: copying.ImageExample, box: StoredBox) -> Mapping[str, Any]:
    x, y, width, height = box.in_pixels(*image.size)
    details, found = box.details, shapes_in_pixels(box.details, image.size)
    own = width * height if details.area is None else details.area
    if RLE in found:
        found["segmentation"] = found.pop(RLE)
    if shown := found.get("keypoints", ())[2::KEYPOINT]:
        found["num_keypoints"] = sum(map(bool, shown))
    return {
        "category_id": box.number + 1,
        "bbox": [x, y, width, height],
        "area": round(own, DECIMALS),
        "iscrowd": int(IS_CROWD in details.flags),
        **found,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
