r"""AutoML's CSV files of texts: ``[ML_USE],TEXT``, followed by the task's annotation.

There is no header; ML_USE and the labels are optional *per row*. For text classification::

    TRAIN,"Good, and cheap.",praise  →  text "Good, and cheap.", label praise, in train
    Good and cheap.,praise           →  text "Good and cheap.", label praise, split assigned
    TEST,gs://bucket/1.txt           →  the text in that file, without a label, in test

Quoted fields may contain commas and line breaks (:mod:`recordgen.formats.csv_records`). A text is
kept as written, except for blanks before it, or before its quotes. A first line of column names
only (``split,text,label``, in any order) is a header, and so is any line that repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recordgen.core.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.core.rows.row import Row, content_uri
from recordgen.core.task.annotation import AnnotationError, check_uri, named_split
from recordgen.core.task.task import ADDING, SEVERAL
from recordgen.formats.column_names import TEXT_COLUMNS, TEXT_FILE_COLUMNS
from recordgen.formats.field_kinds import is_file, is_known_url, is_media, without_padding
from recordgen.formats.row_parser import RowParser
from recordgen.rejects import Reject, RejectCode
from recordgen.tasks.texts.task import TextContent, inline, stored

_CAPITALS = re.compile(r"[A-Z]+", re.ASCII)


class TextParser(RowParser):
    """Makes rows from texts, or from paths of text files, and their labels."""

    paths = TEXT_FILE_COLUMNS
    texts = TEXT_COLUMNS
    strips = False

    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a record of a file without a header; see the module's examples."""
        used = without_padding([field if field.strip() else "" for field in fields])
        first = used[0].strip() if used else ""
        has_ml_use = bool(used) and is_ml_use(first) and (len(used) > 1 or len(fields) > 1)
        if (media := next(filter(is_media, used[has_ml_use : has_ml_use + 1]), None)) is not None:
            message = (
                "the row names an image or a video, but this is a file of texts; keep the rows of "
                "different tasks in separate files (if it is a text, add a header such as "
                "split,text,label)"
            )
            return AnnotationError(RejectCode.BAD_LINE, message).reject(source, line, media.strip())
        if has_ml_use:
            text, labels = used[1] if len(used) > 1 else "", used[2:]
            return self._of_text(first, text, labels, source, line)
        is_full = self._task.labelling != SEVERAL and len(used) == 3
        # "BEST" and "TEXT" are about as close to "TEST" as its own misspellings.
        is_misspelt = _CAPITALS.fullmatch(first) and near_ml_use(first, 0.8)
        if len(used) > 1 and (is_full or is_misspelt or is_file(used[1])):
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
        stripped, uri = text.strip(), path.strip()
        if stripped:  # a column of texts may contain URLs, but not paths
            uri = stripped if is_known_url(stripped) else ""
        try:
            split = named_split(ml_use)
            labels = without_padding([field.strip() for field in fields])
            annotation = TextContent.decode(self.decoded(labels)).said
            row = stored(check_uri(uri), annotation) if uri else inline(text, annotation)
        except AnnotationError as exc:
            if stripped and not uri and self._task.labelling in ADDING:
                uri = content_uri(text)  # which its other rows have
            return exc.reject(source, line, uri)
        return Row(source, line, split, *row)
