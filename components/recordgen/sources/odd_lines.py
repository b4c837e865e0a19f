"""Lines that say that an import file was put together of several, for the checks.

Each is what :meth:`recordgen.rows.row.Adjustments.add_line` takes beside the place: code, message.
"""

from codecs import BOM_UTF8

#: What begins some files of UTF-8, and stands nowhere else unless two were joined.
MARK = BOM_UTF8

#: A line that repeats the header of its file.
HEADER = (
    "REPEATED_HEADER",
    "the header stands here once more, as where files were put together; the line was left out",
)

#: A line that reads as the header of another file.
OTHER_HEADER = (
    "REPEATED_HEADER",
    "the line names columns as a header does, and is not the header of this file: it was read as a "
    "row, and the lines behind it by the columns of those before",
)

#: A line that begins with a byte order mark, which no reader keeps.
FIRST_MARK = (
    "BYTE_ORDER_MARK",
    "a byte order mark (U+FEFF) stands at the start of the line, as where files were put together; "
    "it was left out",
)

#: A line that holds a byte order mark, which stays part of what the line says.
INNER_MARK = (
    "BYTE_ORDER_MARK",
    "a byte order mark (U+FEFF) stands within the line, as where files were put together that did "
    "not end with a line break; nobody sees it, but it belongs to a field",
)
