"""Columns that look like geometry: boxes, masks, polygons, points.

A task of labels cannot use them, and a dataset without them would have lost what the annotators
drew. Names show geometry, and so do values::

    filename,class,xmin,ymin,width,height   xmin, ymin, width, height
    image,label,segmentation                segmentation
    image,label,shape → "[[3, 4], [10, 4]]" shape
    image,label,a,b,c,d → 10,20,30,40       a, b, c, d
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recordgen.formats.field_kinds import NUMBER, filled_at, is_media, mostly, words_of

# One of these words is enough.
_SHAPES = frozenset(
    {"bbox", "bboxes", "box", "boxes", "bndbox", "boundingbox", "roi", "rois", "quad", "rect"}
    | {"polygon", "polygons", "poly", "polyline", "contour", "contours", "vertices", "geometry"}
    | {"mask", "masks", "segmentation", "segmentations", "segmap", "rle", "encodedpixels", "wkt"}
    | {"keypoint", "keypoints", "landmark", "landmarks", "points", "coords", "coordinates"}
)

# Coordinates show geometry if there is one of each direction.
_SIDES = r"c|tl|br|tr|bl|min|max|mid|center|centre|start|end"
_ACROSS = re.compile(rf"({_SIDES})?x({_SIDES})?|left|right")
_DOWN = re.compile(rf"({_SIDES})?y({_SIDES})?|top|bottom")
_EXTENT = re.compile(r"w|h|width|height")

# The size of the whole image, with or without a word for it.
_SIZE_OF_IMAGE = re.compile(r"(image|img)?_?(width|height)", re.IGNORECASE)

# As many numbers as a box has.
_CORNERS = 4

_FLAGS = frozenset({"0", "1"})

# Numbers with one of these words are no coordinates.
_NO_CORNERS = frozenset(
    {"year", "month", "day", "hour", "minute", "second", "time", "date", "age", "id", "price"}
    | {"count", "score", "rating", "iso", "weight"}
)

_BETWEEN_NUMBERS = re.compile(r"[\s,;:\[\](){}\"']+")


def geometry_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], others: Sequence[int]
) -> list[int]:
    """Return the columns that look like geometry by their names or by single values.

    Args:
        header: the names of the columns as written.
        rows: the first rows.
        others: the indices of the columns without a role.
    """
    others = [at for at in others if header[at].strip()]
    values = {at: filled_at(rows, at) for at in others}
    found = {at for at in others if _names_shape(header[at]) and not mostly(_is_flag, values[at])}
    words = {at: words_of(header[at]) for at in others}
    across = [at for at in others if any(map(_ACROSS.fullmatch, words[at]))]
    down = [at for at in others if any(map(_DOWN.fullmatch, words[at]))]
    if across and down:
        found.update(across, down)
        found.update(at for at in others if any(map(_EXTENT.fullmatch, words[at])))
    found.update(at for at in others if mostly(is_list_of_numbers, values[at]))
    own = [at for at in range(len(header)) if at not in others]
    found.update(at for at in others if _are_other_files(at, rows, own))
    return sorted(found)


def runs_of_numbers(
    header: Sequence[str], rows: Sequence[Sequence[str]], others: Sequence[int]
) -> Iterator[list[int]]:
    """Yield four or more neighbouring columns of numbers, which may be boxes of any form.

    Args: as :func:`geometry_columns`. Flags, dates and the size of the image are none.
    """

    def fits(at: int) -> bool:
        values = filled_at(rows, at)
        return (
            mostly(NUMBER.fullmatch, values)
            and not set(values) <= _FLAGS
            and not _SIZE_OF_IMAGE.fullmatch(header[at].strip())
            and _NO_CORNERS.isdisjoint(words_of(header[at]))
        )

    run: list[int] = []
    for at in filter(fits, others):
        if run and at > run[-1] + 1:
            if len(run) >= _CORNERS:
                yield run
            run = []
        run.append(at)
    if len(run) >= _CORNERS:
        yield run


def _is_flag(value: str) -> bool:
    """Return whether a value is a number or a word, such as a score, an id, or "yes"."""
    return value.isalpha() or NUMBER.fullmatch(value) is not None


def is_list_of_numbers(value: str) -> bool:
    """Return whether a field holds a list of numbers: ``[3, 4]``, ``3 4 10``, ``{"x": 3, "y": 4}``.

    Without brackets, two numbers may also be one: ``1 234``.
    """
    text = value.strip()
    parts = [part for part in _BETWEEN_NUMBERS.split(text) if part]
    numbers = sum(NUMBER.fullmatch(part) is not None for part in parts)
    if text[:1] in "[{" or text.endswith(")"):  # "POLYGON ((3 4, 10 4))"
        return numbers > 1
    return numbers == len(parts) > 2


def _names_shape(name: str) -> bool:
    words = words_of(name)
    return not _SHAPES.isdisjoint([*words, "".join(words)])


def _are_other_files(at: int, rows: Sequence[Sequence[str]], own: Sequence[int]) -> bool:
    """Return whether a column names files, such as masks, and not the row's own image once more."""
    there = [row for row in rows if at < len(row) and row[at]]
    same = sum(
        "://" in row[at]
        or any(row[at].endswith(row[n]) or row[n].endswith(row[at]) for n in own if n < len(row))
        for row in there
    )
    return same * 2 < len(there) and mostly(is_media, [row[at] for row in there])
