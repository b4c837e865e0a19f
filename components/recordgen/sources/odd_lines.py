"""Lines that say that an import file was put together of several, for the checks."""

from __future__ import annotations

from codecs import BOM_UTF8

from recordgen.rows.row import Adjustments

#: What begins some files of UTF-8, and stands nowhere else unless two were joined.
MARK = BOM_UTF8


def note_header(adjusted: Adjustments, source: str, line: int) -> None:
    """Note a line that repeats the header of its file."""
    message = (
        "the header stands here once more, as where files were put together; the line was left out"
    )
    adjusted.add_line(source, line, "REPEATED_HEADER", message)


def note_other_header(adjusted: Adjustments, source: str, line: int) -> None:
    """Note a line that reads as the header of another file."""
    message = (
        "the line names columns as a header does, and is not the header of this file: it was read "
        "as a row, and the lines behind it by the columns of those before"
    )
    adjusted.add_line(source, line, "REPEATED_HEADER", message)


def note_mark(adjusted: Adjustments, source: str, line: int) -> None:
    """Note a line that begins with a byte order mark, which no reader keeps."""
    message = (
        "a byte order mark (U+FEFF) stands at the start of the line, as where files were put "
        "together; it was left out"
    )
    adjusted.add_line(source, line, "BYTE_ORDER_MARK", message)


def note_inner_mark(adjusted: Adjustments, source: str, line: int) -> None:
    """Note a line that holds a byte order mark, which stays part of what the line says."""
    message = (
        "a byte order mark (U+FEFF) stands within the line, as where files were put together that "
        "did not end with a line break; nobody sees it, but it belongs to a field"
    )
    adjusted.add_line(source, line, "BYTE_ORDER_MARK", message)
