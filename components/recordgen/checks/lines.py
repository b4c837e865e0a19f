"""Checks whose findings readers of import files make while they read lines."""

from __future__ import annotations

from recordgen.checks.check import NONE, Check


class LineCheck(Check):
    """A check of a reader, which finds nothing here."""

    scope = NONE


class RepeatedHeader(LineCheck):
    """A row repeats the header of its file."""

    code = "REPEATED_HEADER"


class ByteOrderMark(LineCheck):
    """A byte order mark inside of a file."""

    code = "BYTE_ORDER_MARK"


class Skipped(LineCheck):
    """Lines or files that hold no row."""

    code = "SKIPPED"


class SeveralSplits(LineCheck):
    """Rows of one payload name several splits."""

    code = "SEVERAL_SPLITS"
    remedies = ("write the same split into all rows of the image or text",)


class BoxInverted(LineCheck):
    """Corners of a box that were swapped."""

    code = "BOX_INVERTED"
    counted_as = "boxes_swapped"


class BoxOutside(LineCheck):
    """A box that was clipped at the border of its image."""

    code = "BOX_OUTSIDE"
    counted_as = "boxes_clipped"


class BoxEmpty(LineCheck):
    """A box without area that was dropped."""

    code = "BOX_EMPTY"
    counted_as = "boxes_dropped"
