"""The facts about examples that tasks have, and that checks need.

builder.py          collects the facts about the rows of a shard
columns.py          the facts as columns, and ``examples.parquet``
kept_rows.py        the rows of a table that are kept whole: a sample, and rare values
perceptual_hash.py  thumbnails of pictures and their hashes
pictures.py         measures of pictures, and which are alike
neighbours.py       near-duplicates among 64-bit hashes, or by keys of any kind
text_samples.py     measures of texts
minhash.py          similarity of texts
"""

from __future__ import annotations

from typing import NamedTuple

#: Format, height, width, channels and colours of one image in each example.
IMAGES = "images"
#: One text in each example.
TEXTS = "texts"
#: Measures of pixels or words: workers examine each payload, which takes time.
MEASURES = "measures"
#: Boxes in the annotation.
BOXES = "boxes"
#: A class for each pixel.
MASKS = "masks"
#: A part of a video in each example.
SEGMENTS = "segments"
#: Rows of a table, a sample of which is kept.
ROWS = "rows"
#: The payloads themselves: the check opens them.
PAYLOADS = "payloads"


class ImageNote(NamedTuple):
    """The image of an example; its fields are the values of the columns of images.

    Attributes:
        format: see :func:`recordgen.core.dataset.counts.ImageStats`.
        height: in pixels; None if unknown.
        width: likewise.
        gray: whether it has one channel; None if unknown.
        colours: what viewers apply to its colours; None if nothing.
        frames: pictures in the file; None if unknown.
    """

    format: str
    height: int | None
    width: int | None
    gray: bool | None = None
    colours: str | None = None
    frames: int | None = None
