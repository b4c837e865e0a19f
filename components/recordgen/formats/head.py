"""The first rows of import files, from which detection infers the task and the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from recordgen.core.dataset.splits import UNASSIGNED, is_ml_use
from recordgen.formats.field_kinds import filled_at, kind_of
from recordgen.formats.header import Header, find_split
from recordgen.formats.label_fields import Classes, separated


class Line(NamedTuple):
    """The fields of a line, read as a row without a header.

    Attributes:
        where: file and line.
        fields: stripped, without empty fields at the end.
        has_ml_use: the line begins with ML_USE, which may be empty.
        place: the index of the path or text.
        subject: the path or text.
        kind: of the path or text, see :func:`recordgen.formats.field_kinds.kind_of`.
        annotation: the fields after the path or text.
        labels: the filled fields of the annotation.
        is_quoted: the path or text is in quotes.
    """

    where: str
    fields: Sequence[str]
    has_ml_use: bool
    place: int
    subject: str
    kind: str
    annotation: Sequence[str]
    labels: Sequence[str]
    is_quoted: bool

    @classmethod
    def of(
        cls, where: str, fields: Sequence[str], *, is_quoted: bool = False, separator: str = ""
    ) -> Line:
        """Return a line; the path or text follows ML_USE, which may be misspelt.

        ``separator`` separates several labels in one field; empty if a field is a label.
        """
        first, second = (*fields, "", "")[:2]
        has_ml_use = len(fields) > 1 and is_ml_use(first)
        at, kind = int(has_ml_use), kind_of(second if has_ml_use else first)
        if not kind and not has_ml_use and kind_of(second) in ("image", "video"):
            at, kind = 1, kind_of(second)
        annotation = fields[at + 1 :]
        labels = list(filter(None, separated(annotation, separator)))
        subject = second if at else first
        return cls(where, fields, has_ml_use, at, subject, kind, annotation, labels, is_quoted)


@dataclass(frozen=True)
class Head:
    """The first records of a CSV file or a DataFrame, or the first objects of a JSONL file.

    Attributes:
        path: the file.
        where: file and line of the first record.
        rows: all records, including the header.
        columns: the columns of a header or of options; None if position decides.
        has_header: whether the first record is a header.
        lines: the records below the header.
        lists: columns whose cells are lists.
        objects: the objects of a JSONL file, with their line numbers.
        delimiter: the separator of a CSV file.
        label_separator: separates several labels in one field; empty if a field is a label.
        splits_of_objects: the words for the splits of objects.
        in_doubt: whether the first record is neither a header of known names nor like the others.
    """

    path: str
    where: str
    rows: Sequence[Sequence[str]] = ()
    columns: Header | None = None
    has_header: bool = False
    lines: Sequence[Line] = ()
    lists: Set[int] = frozenset()
    objects: Sequence[tuple[int, Mapping[str, Any]]] = ()
    delimiter: str = ","
    label_separator: str = ""
    splits_of_objects: Sequence[str] = ()
    in_doubt: bool = False

    @property
    def header(self) -> Sequence[str] | None:
        """The known names of the columns; None if position decides."""
        return None if self.columns is None else self.columns.known

    @property
    def classes(self) -> Mapping[int, Classes]:
        """The classes of one-hot columns, by index."""
        return {} if self.columns is None else self.columns.classes

    @property
    def names(self) -> Sequence[str]:
        """The columns as ``--columns`` takes them: by name, key, or number without a header."""
        if self.has_header:
            return self.rows[0]
        return [str(number) for number, _ in enumerate(self.header or self.rows[0], start=1)]

    def filled(self, at: int) -> list[str]:
        """Return the fields of a column below the header, without empty ones."""
        return filled_at((line.fields for line in self.lines), at)

    @property
    def says_unassigned(self) -> bool:
        """Whether a row asks for an assigned split."""
        return UNASSIGNED in self._split_words

    @property
    def names_splits(self) -> bool:
        """Whether a row names a split."""
        return any(is_ml_use(word) for word in self._split_words - {"", UNASSIGNED})

    @property
    def _split_words(self) -> Set[str]:
        """The contents of the rows' fields for the split, in lower case."""
        at = 0 if self.header is None else find_split(self.header)
        fields = (line.fields[at] for line in self.lines if at < len(line.fields))
        return {text.strip().lower() for text in chain(fields, self.splits_of_objects)}


class Candidate(NamedTuple):
    """A possible task, with the evidence.

    Attributes:
        task: its name.
        reason: a line, and what the line has.
        lines: number of lines that show the task; 0 for a guess from lines without annotations.
    """

    task: str
    reason: str
    lines: int = 1
