"""An AutoML import file with its images.

    import.csv          training,images/train/rex.jpg,dog
    images/train/rex.jpg

The format: "Prepare image training data", Vertex AI. In an object store, the CSV has whole URLs.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterator, Sequence

import numpy as np

from recordgen import storage
from recordgen.core.dataset.splits import EVAL, TEST, TRAIN
from recordgen.errors import RecordError
from recordgen.exports.copying import (
    Copy,
    ImageCopyExport,
    ImageExample,
    has_boxes,
    in_folder,
)
from recordgen.features import WEBP
from recordgen.messages import listed
from recordgen.messages.masking import masked
from recordgen.tasks import ImageClassification, ImageMultiLabel, ObjectDetection

_log = logging.getLogger(__name__)

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_ML_USE = {TRAIN: "training", EVAL: "validation", TEST: "test"}


class AutoMl(ImageCopyExport):
    """``import.csv`` and the images that it names."""

    name = "automl"
    tasks = (ImageClassification.name, ImageMultiLabel.name, ObjectDetection.name)
    keeps = ("images", "labels", "several labels", "numbers", "splits", "boxes")
    only_splits = tuple(_ML_USE)
    refused_formats = (WEBP,)  # Vertex AI reads none

    def check(self, copy: Copy) -> None:
        if odd := [label for label in copy.dataset.labels if label.startswith(_FORMULA)]:
            _log.warning(
                "%s: labels are written as they are, and a spreadsheet may run these as formulas: "
                "%s; open import.csv with an editor of texts",
                masked(copy.to),
                listed(odd),
            )

    def write(self, copy: Copy) -> None:
        with storage.replacing(copy.path("import.csv")) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            table = csv.writer(text, lineterminator="\n")
            for split, word in _ML_USE.items():
                if split not in copy.splits:
                    continue
                folder = f"images/{self.word(split)}"
                for image in self.images(copy, split, in_folder(folder)):
                    name = f"{folder}/{image.name}"
                    uri = name if storage.is_local(copy.to) else copy.path(name)
                    for annotation in _annotations(image, has_boxes=has_boxes(copy.dataset)):
                        try:
                            table.writerow((word, uri, *annotation))
                        except csv.Error as exc:  # NUL, before Python 3.11
                            raise RecordError(f"{image.where}: {annotation[0]!r}: {exc}") from exc
            text.flush()
            text.detach()
        copy.write_labels()


def _annotations(image: ImageExample, *, has_boxes: bool) -> Iterator[Sequence[str]]:
    """Yield the fields behind the uri of each row: labels; or a label and a box."""
    if not has_boxes:
        yield image.labels
        return
    for box in image.objects:
        shares = (np.float32(share) for share in box[2:6])
        xmin, ymin, xmax, ymax = (np.format_float_positional(it, trim="-") for it in shares)
        yield box.label, xmin, ymin, "", "", xmax, ymax, "", ""
    if not image.objects:
        yield ("",) * 9  # background
