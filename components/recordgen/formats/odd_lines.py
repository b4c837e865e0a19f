"""Odd lines which show that an import file was joined from several files.

Each constant is the code and the message for :meth:`recordgen.core.rows.row.Adjustments.add_line`.
"""

from codecs import BOM_UTF8

#: Begins some UTF-8 files; elsewhere it shows that files were joined.
MARK = BOM_UTF8

#: A line that repeats the header of its file.
HEADER = (
    "REPEATED_HEADER",
    "this line repeats the header, as if files had been joined; it was skipped",
)

#: A line that reads as the header of another file.
OTHER_HEADER = (
    "REPEATED_HEADER",
    "this line names columns like a header, but is not the header of this file: it was read as a "
    "row, and the lines below it were read with the same columns as the lines above",
)

#: A line that begins with a byte order mark, which every reader removes.
FIRST_MARK = (
    "BYTE_ORDER_MARK",
    "this line begins with a byte order mark (U+FEFF), as if files had been joined; the mark was "
    "removed",
)

#: A line that contains a byte order mark, which stays part of a field.
INNER_MARK = (
    "BYTE_ORDER_MARK",
    "this line contains a byte order mark (U+FEFF), as if files without a final line break had "
    "been joined; the mark is invisible, but it is part of a field",
)

#: The code of files in a folder of images that are no images.
SKIPPED = "SKIPPED"
