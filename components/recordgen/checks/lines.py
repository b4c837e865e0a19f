"""Checks whose findings readers of import files make while they read lines."""

from __future__ import annotations

from recordgen.checks.check import Check


class RepeatedHeader(Check):
    """A row repeats the header of its file."""

    code = "REPEATED_HEADER"


class ByteOrderMark(Check):
    """A byte order mark inside of a file."""

    code = "BYTE_ORDER_MARK"


class Skipped(Check):
    """Lines or files that hold no row."""

    code = "SKIPPED"


class SeveralSplits(Check):
    """Rows of one payload name several splits."""

    code = "SEVERAL_SPLITS"
    remedies = ("write the same split into all rows of the image or text",)


class BoxInverted(Check):
    """Corners of a box that were swapped."""

    code = "BOX_INVERTED"
    counted_as = "boxes_swapped"


class BoxOutside(Check):
    """A box that was clipped at the border of its image."""

    code = "BOX_OUTSIDE"
    counted_as = "boxes_clipped"


class BoxEmpty(Check):
    """A box without area that was dropped."""

    code = "BOX_EMPTY"
    counted_as = "boxes_dropped"
