"""What foreign documents and containers may hold: one table, checked before anything is built.

A limit is far above what tools write, and low enough that a file of a megabyte takes less than a
gigabyte of memory and half a minute. ``--limit`` sets what a payload may cost; these are fixed.
"""

from __future__ import annotations

from typing import NamedTuple

ROW, DOCUMENT, RUN = "its row", "its document", "the run"

_LETTERS = 40  # of a name that is not read


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


def check_name(name: str) -> None:
    """Check the length and the depth of a file's path. Raises: ValueError."""
    NAME_BYTES.check(len(name.encode("utf-8", "surrogatepass")), "a path is too long")
    FOLDERS.check(name.count("/"), "a path is too deep")


def shortened_name(name: str, place: int) -> str:
    """Return a name that stands for one that is too long or too deep: ``a/…3584-x.png``.

    Args: place: where it is in its archive, which makes the name unique.
    """
    top, slash, rest = name.partition("/")
    folder = f"{top[:_LETTERS]}/" if slash else ""
    return f"{folder}…{place}-{(rest or top).rpartition('/')[2][-_LETTERS:]}"


# --- shapes of objects ----------------------------------------------------------------------------

MASK_PIXELS = Limit(100_000_000, "pixels in the mask of an object", ROW)
MASK_RUNS = Limit(1_000_000, "runs in the mask of an object", ROW)
KEYPOINTS = Limit(1_000, "keypoints of an object", ROW)
# Records have as many of each object as the one with most of them has.
IMAGE_KEYPOINTS = Limit(500_000, "keypoints of all objects of an image", ROW)
LABEL_LETTERS = Limit(1_000, "letters in a label", ROW)  # each object of a class has a copy
REGION_LABELS = Limit(30, "labels of a region", ROW)  # each has a copy of its outline
XML_TOKEN = Limit(64 << 20, "bytes in an XML tag, attribute or comment", DOCUMENT)
YAML_LEVELS = Limit(20, "levels of nesting in a YAML", DOCUMENT)  # PyYAML's time is their square
LABELME_BYTES = Limit(128 << 20, "bytes in a LabelMe document", ROW)  # with its image, as Base64
VOC_BYTES = Limit(16 << 20, "bytes in a Pascal VOC document", ROW)
YOLO_BYTES = Limit(16 << 20, "bytes in a file of YOLO labels", ROW)

# --- images of a run, beside --limit for each of them --------------------------------------------

# By the estimate of what their headers announce, which is more than it takes. For each byte, photos
# take a hundredth of that, and pages of two colours a half.
DECODING_SECONDS = Limit(15, "s of processor time to decode the images of a run", ROW)
DECODING_SECONDS_MB = Limit(25, "more s for each MB that they take in their files", ROW)
# Pillow's decoder keeps 16 bytes of each, and one colour compresses to nothing.
WEBP_PIXELS = Limit(60_000_000, "pixels in a WEBP", ROW)

# --- containers ----------------------------------------------------------------------------------

ONE_HOT = Limit(1 << 20, "letters in a list of labels", ROW)
HEADER_BYTES = Limit(1 << 20, "bytes in an extended header of a tar", ROW)  # some hundred are usual
DIRECTORY_BYTES = Limit(512 << 20, "bytes in the list of files of a ZIP", RUN)
# A document may grow to the larger of the two: text deflates to a tenth, rarely to a fiftieth.
INFLATED_BYTES = Limit(16 << 20, "bytes in an inflated document", DOCUMENT)
INFLATED_TIMES = Limit(100, "times the bytes of a deflated document", DOCUMENT)

TABLE_COLUMNS = Limit(10_000, "columns in a table", RUN)
COLUMNS = Limit(10_000, "columns in a Parquet file", DOCUMENT)
COLUMN_LEVELS = Limit(100, "levels of columns in a Parquet file", DOCUMENT)
# Rows of images take more bytes than that on average, if there are many.
ROWS = Limit(100_000, "rows in a Parquet file of so few bytes", DOCUMENT)
ROW_BYTES = Limit(10, "bytes for each row in a Parquet file", DOCUMENT)
# A row group may have more than the following bytes or values, but only so many times the bytes
# that it has packed.
UNPACKED_TIMES = Limit(100, "times the packed bytes of a Parquet file", DOCUMENT)
# Images hardly shrink. A value of a dictionary takes a few bits for each row, and all its bytes
# once it is unpacked.
UNPACKED_BYTES = Limit(64_000_000, "bytes of a row group that are unpacked together", DOCUMENT)
LIST_VALUES = Limit(1_000_000, "values in the lists of a row group", DOCUMENT)
TEXT_BYTES = Limit(1_000_000_000, "bytes in the unpacked texts of a row group", DOCUMENT)

# --- shards of a dataset from elsewhere ----------------------------------------------------------

#: Bytes that a byte of a deflated stream unpacks to at most.
MAX_INFLATION = 1032

# --- documents -----------------------------------------------------------------------------------

JSON_DEPTH = Limit(64, "levels of nested lists and objects in JSON", DOCUMENT)
# A single image, annotation or category is far smaller.
JSON_ITEM_CHARACTERS = Limit(64 << 20, "characters in an item of JSON", DOCUMENT)
CLASSES = Limit(100_000, "names of classes", DOCUMENT)
