"""What foreign documents and containers may hold: one table, checked before anything is built.

A limit is far above what tools write, and low enough that a file of a megabyte takes less than a
gigabyte of memory and half a minute. ``--limit`` sets what a payload may cost; these are fixed.
"""

from __future__ import annotations

from typing import NamedTuple

ROW, DOCUMENT, RUN = "its row", "its document", "the run"


class Limit(NamedTuple):
    """The largest number of something.

    Attributes:
        most: the largest accepted number.
        what: what is counted, in the plural: ``folders in a path``.
        costs: what is lost if there are more: :data:`ROW`, :data:`DOCUMENT` or :data:`RUN`.
    """

    most: int
    what: str
    costs: str

    def check(self, count: int, where: str = "") -> None:
        """Check a number. Raises: ValueError: it exceeds the limit."""
        if count > self.most:
            prefix = f"{where}: " if where else ""
            raise ValueError(f"{prefix}at most {self.most:,} {self.what} are read (got {count:,})")


# --- names and entries ---------------------------------------------------------------------------

ENTRIES = Limit(2_000_000, "files in an archive", RUN)
NAME_BYTES = Limit(4096, "bytes in the path of a file", ROW)  # Linux's PATH_MAX
FOLDERS = Limit(100, "folders in a path", ROW)

# --- shapes of objects ----------------------------------------------------------------------------

MASK_PIXELS = Limit(100_000_000, "pixels in the mask of an object", ROW)
MASK_RUNS = Limit(1_000_000, "runs in the mask of an object", ROW)
KEYPOINTS = Limit(1_000, "keypoints of an object", ROW)
# Records have as many of each object as the one with most of them has.
IMAGE_KEYPOINTS = Limit(500_000, "keypoints of all objects of an image", ROW)
LABEL_LETTERS = Limit(1_000, "letters in a label", ROW)  # each object of a class has a copy
# Besides 4,000 pixels for each run: a rectangle with a notch has millions in a few.
CVAT_PIXELS = Limit(2_000_000_000, "pixels in masks of few runs in a CVAT document", ROW)
REGION_LABELS = Limit(30, "labels of a region", ROW)  # each has a copy of its outline
XML_TOKEN = Limit(64 << 20, "bytes in an XML tag, attribute or comment", DOCUMENT)
YAML_LEVELS = Limit(20, "levels of nesting in a YAML", DOCUMENT)  # PyYAML's time is their square
LABELME_BYTES = Limit(128 << 20, "bytes in a LabelMe document", ROW)  # with its image, as Base64
VOC_BYTES = Limit(16 << 20, "bytes in a Pascal VOC document", ROW)
YOLO_BYTES = Limit(16 << 20, "bytes in a file of YOLO labels", ROW)
