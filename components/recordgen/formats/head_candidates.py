"""The tasks that the first rows of files show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recordgen.core.task.annotation import printable
from recordgen.errors import SourceError
from recordgen.formats import foreign_formats, other_columns, other_forms
from recordgen.formats.candidates import (
    SUBJECT_KEYS,
    Candidate,
    read_header,
    read_lines,
    read_object,
)
from recordgen.formats.column_checks import (
    first_lines_shown,
)
from recordgen.formats.column_names import PATH_COLUMNS, TEXT_COLUMNS, find_columns
from recordgen.formats.first_line import Line, is_table
from recordgen.formats.format import Format
from recordgen.formats.heads import Head
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import TASK_OF_TABLES

if TYPE_CHECKING:
    pass


def candidates_in(
    heads: Sequence[Head], options: ConvertOptions, format_: Format
) -> Iterator[Candidate]:
    """Yield the possible tasks of the files. Raises: UsageError, SourceError."""
    bare: list[Line] = []
    for head in heads:
        if head.header is not None:
            with first_lines_shown(head):
                is_given = options.columns.roles and not head.classes
                where = "--columns" if is_given else head.where
                yield read_header(head, where)
        elif not format_.has_headers:
            yield from _read_objects(head)
        elif options.columns.header == AUTO and is_table(head.rows):
            if form := other_columns.of_spans(head):
                raise SourceError(form)
            reason = f"{head.where} names columns, and the lines below fill them"
            yield Candidate(TASK_OF_TABLES, reason, len(head.rows))
            return  # only the first file of a table must have a header
        elif form := other_forms.of_table(head):
            raise SourceError(form)
        else:
            bare += head.lines
    if bare:
        yield from read_lines(bare)


def _read_objects(head: Head) -> Iterator[Candidate]:
    """Yield the tasks that AutoML's keys show. Raises: SourceError: no object has such a key."""
    readings = [
        reading
        for number, record in head.objects
        for reading in read_object(record, f"{head.path}:{number}")
    ]
    if head.objects and not readings:
        number, record = head.objects[0]
        if (foreign := foreign_formats.of_json(json.dumps(record).encode())) is not None:
            raise foreign.error(f"{head.path}:{number}")
        there = ", ".join(map(printable, record)) or "none"
        raise SourceError(
            f"{head.path}:{number}: no line has one of the keys {', '.join(SUBJECT_KEYS)} (this "
            f"line has {there:.80}); write an object per line as Vertex AI does, or name the keys, "
            f"such as --columns {_likely_roles([*record])}"
        )
    yield from readings


def _likely_roles(keys: Sequence[str]) -> str:
    """Return the value of ``--columns`` for keys with known names: ``text=text,label=label``."""
    texts = find_columns(keys, TEXT_COLUMNS)
    subject = "text" if texts else "path"
    known = {subject: TEXT_COLUMNS if texts else PATH_COLUMNS, "label": LABEL_COLUMNS}
    found = {role: find_columns(keys, names)[:1] for role, names in known.items()}
    return ",".join(f"{role}={keys[at[0]] if at else '…'}" for role, at in found.items())
