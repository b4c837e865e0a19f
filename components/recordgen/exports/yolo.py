"""YOLO: ``data.yaml``, ``images/train/rex.jpg`` and ``labels/train/rex.txt``, for each split.

A line of labels is the number of the class, and center, width and height in shares of the image.
The format: Ultralytics' "Object detection datasets overview".
"""

from __future__ import annotations

import json

from recordgen import storage
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.core.records.boxes import StoredBox
from recordgen.exports.copying import Copy
from recordgen.exports.image_files import ImageCopyExport, ImageExample, split_word
from recordgen.tasks import ObjectDetection

# Of a share: 0.0001 pixels of an image of 10,000.
_DECIMALS = 8


class Yolo(ImageCopyExport):
    """Labels beside images, and the names of classes in ``data.yaml``."""

    name = "yolo"
    tasks = (ObjectDetection.name,)
    holds = "images with boxes"
    only_splits = (TRAIN, EVAL, TEST)
    refused_formats = ("gif",)  # Ultralytics skips them

    def write(self, copy: Copy) -> None:
        for split in copy.splits:

            def files(image: ImageExample, folder: str = split_word(split)) -> dict[str, bytes]:
                lines = "".join(map(_line, image.boxes))
                return {
                    f"images/{folder}/{image.name}": image.data,
                    f"labels/{folder}/{image.stem}.txt": lines.encode(),
                }

            for _ in self.images(copy, split, files):
                pass
        storage.write_text(copy.path("data.yaml"), _config(copy))


def _line(box: StoredBox) -> str:
    sides = box.xmax - box.xmin, box.ymax - box.ymin
    shares = (box.xmin + sides[0] / 2, box.ymin + sides[1] / 2, *sides)
    return f"{box.number} {' '.join(f'{share:.{_DECIMALS}f}' for share in shares)}\n"


def _config(copy: Copy) -> str:
    words = [split_word(split) for split in copy.splits]
    lines = [f"{word}: images/{word}" for word in words]
    lines += ["names:"]
    labels = copy.dataset.labels
    # JSON strings are YAML, too, and the class yes stays a text.
    lines += [f"  {at}: {json.dumps(name, ensure_ascii=False)}" for at, name in enumerate(labels)]
    return "".join(f"{line}\n" for line in lines)
