"""Scikit-learn's scanned digits, as image files with an AutoML import file."""

from __future__ import annotations

import csv
import io
import os

from PIL import Image
from sklearn.datasets import load_digits

from recordgen import storage

IMPORT_FILE = "digits.csv"
_SCALE = 255 / 16  # the scans have 17 levels of gray
# Of ten images, three say themselves where they belong; the others leave it to Recordgen.
_ML_USE = ("TRAIN", "VALIDATION", "TEST", "", "", "", "", "UNASSIGNED", "", "")


def write_digits(folder: str, images: int | None = None) -> str:
    """Write the digits as PNG files, and ``digits.csv`` that names them; return its path.

    ``TRAIN,images/0000.png,0`` is the import file's first line. What is there and complete is
    left alone, so that its time does not change and TFX's cache holds; what an interrupted run
    left out is added.

    Args:
        folder: made if it is not there.
        images: how many of the 1,797; None: all.
    """
    digits = load_digits()
    os.makedirs(os.path.join(folder, "images"), exist_ok=True)
    rows = []
    for number, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        if number == images:
            break
        name = f"images/{number:04d}.png"
        rows.append((_ML_USE[number % len(_ML_USE)], name, str(label)))
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            # Under another name first: a file that is there is whole.
            temporary = f"{path}.tmp"
            Image.fromarray((pixels * _SCALE).round().astype("uint8")).save(temporary, "PNG")
            os.replace(temporary, path)

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path = os.path.join(folder, IMPORT_FILE)
    if not os.path.exists(path) or storage.read_text(path) != text.getvalue():
        storage.write_text(path, text.getvalue())
    return path
