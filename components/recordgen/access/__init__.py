"""Records at random places, for any trainer: NumPy values, without TensorFlow and PyArrow.

shards.py    the files of a split, and what ``dataset.json`` says about them
counting.py  counts of other tools' records, remembered
index.py     the length of each record
files.py     the bytes of a file at any place
parse.py     a record → its values
values.py    values → NumPy
source.py    the records of a split as a sequence
decode.py    an encoded image → pixels
images.py    images and labels as a sequence, and in batches
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordgen.access.images import Images as Images
    from recordgen.access.source import Source as Source


def __getattr__(name: str) -> Any:
    if name == "Images":  # finding shards needs no decoder of images
        from recordgen.access.images import Images

        return Images
    if name == "Source":
        from recordgen.access.source import Source

        return Source
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
