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

# --- documents -----------------------------------------------------------------------------------

JSON_DEPTH = Limit(64, "levels of nested lists and objects in JSON", DOCUMENT)
# PyYAML's time grows with the square of the depth.
YAML_DEPTH = Limit(20, "levels of nested lists and objects in YAML", DOCUMENT)
# A single image, annotation or category is far smaller.
JSON_ITEM_CHARACTERS = Limit(64 << 20, "characters in an item of JSON", DOCUMENT)
CLASSES = Limit(100_000, "names of classes", DOCUMENT)
