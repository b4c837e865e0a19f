r"""AutoML's CSV files of texts: ``[ML_USE],TEXT``, followed by the fields of the task.

No header; ML_USE and the labels are optional *per row*. For text classification::

    TRAIN,"Good, and cheap.",praise  →  text "Good, and cheap.", label praise, in train
    Good and cheap.,praise           →  text "Good and cheap.", label praise, split assigned
    TEST,gs://bucket/1.txt           →  the text in that file, without a label, in test

Fields may be quoted, and then hold commas and line breaks (:mod:`recordgen.sources.csv_records`).
A text is kept as it is written, but for blanks before it, or before its quotes. A first line that
holds only column names (``split,text,label``, in any order) is a header, and so is any line that
repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recordgen.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Row
from recordgen.sources.field_kinds import is_file, is_known_url, is_media
from recordgen.sources.header import TEXT_COLUMNS, TEXT_FILE_COLUMNS, find_columns
from recordgen.sources.row_parser import RowParser, without_padding
from recordgen.tasks.task import AnnotationError, check_uri, named_split
from recordgen.tasks.text_task import TextContent, inline, stored

_CAPITALS = re.compile(r"[A-Z]+", re.ASCII)


def names_text_column(fields: Sequence[str]) -> bool:
    """Say whether a line can only name columns, a text's among them."""
    return (
        len(fields) > 1
        and bool(find_columns(fields, TEXT_COLUMNS))
        and not any(is_file(field) or (field and is_ml_use(field)) for field in fields)
        and not any(len(field.split()) > 3 for field in fields)
    )


class TextParser(RowParser):
    """Makes rows of texts, or of the files that hold them, and of their labels."""

    paths = TEXT_FILE_COLUMNS
    texts = TEXT_COLUMNS
    strips = False

    def names_columns(self, fields: Sequence[str]) -> bool:
        """Say whether a line can only be a header, see :class:`RowParser`."""
        return names_text_column(fields)

    def is_payload(self, field: str) -> bool:
        """Say whether a field names a file."""
        return is_file(field)

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a record without header; see the module's examples."""
        used = without_padding([field if field.strip() else "" for field in fields])
        first = used[0].strip() if used else ""
        has_ml_use = bool(used) and is_ml_use(first) and (len(used) > 1 or len(fields) > 1)
        if (media := next(filter(is_media, used[has_ml_use : has_ml_use + 1]), None)) is not None:
            message = (
                "the row names an image or a video, and the file is one of texts; keep the rows of "
                "each task in files of their own (if it is a text: a header such as "
                "split,text,label says so)"
            )
            return AnnotationError(RejectCode.BAD_LINE, message).reject(source, line, media.strip())
        if has_ml_use:
            text, labels = used[1] if len(used) > 1 else "", used[2:]
            return self._of_text(first, text, labels, source, line)
        is_full = self._task.repeats is None and len(used) == 3
        if len(used) > 1 and (is_full or _is_misspelt(first) or is_file(used[1])):
            try:
                parse_ml_use(first)
            except ValueError as exc:
                message = (
                    f"{exc}; quote a text that holds a comma, and write an empty field before one "
                    f"that looks like ML_USE"
                )
                return Reject(source, line, "", RejectCode.UNKNOWN_ML_USE.value, message)
        return self._of_text("", used[0] if used else "", used[1:], source, line)

    def _of_text(
        self, ml_use: str, text: str, labels: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        path, text = (text, "") if is_file(text) else ("", text)
        return self.to_row(ml_use, path, text, labels, source, line)

    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        """Make a row of what its columns hold, or say why there is none."""
        stripped, uri = text.strip(), path.strip()
        if stripped:  # a column of texts may hold URLs; names of files are texts there
            uri = stripped if is_known_url(stripped) else ""
        try:
            split = named_split(ml_use)
            labels = without_padding([field.strip() for field in fields])
            said = TextContent.decode(self._task.from_fields(labels, self._adjusted)).said
            row = stored(check_uri(uri), said) if uri else inline(text, said)
        except AnnotationError as exc:
            return exc.reject(source, line, uri)
        return Row(source, line, split, *row)


def _is_misspelt(field: str) -> bool:
    """Say whether a field can only be a misspelt ML_USE."""
    # "BEST" and "TEXT" are about as close to "TEST" as its own misspellings.
    return _CAPITALS.fullmatch(field) is not None and near_ml_use(field, 0.8) is not None
