"""Lines below a header → rows: the columns of split, path, text, annotation and group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recordgen.core.rows.row import Row
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import UsageError
from recordgen.formats.column_names import NOWHERE
from recordgen.formats.label_fields import Classes, classes_of
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.roles import AUTO


class Places(NamedTuple):
    """The indices of columns; :data:`NOWHERE` if a column is missing.

    Attributes:
        split: the column of splits.
        path: the column of paths.
        annotation: the columns of annotations, in the task's order.
    """

    split: int
    path: int
    annotation: Sequence[int]


@dataclass(frozen=True)
class ByHeader:
    """Parses lines whose columns a header names.

    Attributes:
        to_row: makes rows of the columns' contents, see
            :meth:`recordgen.formats.row_parser.RowParser.to_row`.
        takes_labels: an annotation consists only of labels.
        places: the indices of the columns.
        text: the index of the column of texts.
        count: the largest number of fields of a line.
        group: the index of the column of groups.
        classes: the classes of each one-hot column of the annotation; empty if none is one-hot.
        uncertain: see :class:`recordgen.tables.roles.Columns`.
    """

    to_row: Callable[..., Row | Reject]
    takes_labels: bool
    places: Places
    text: int
    count: int
    group: int = NOWHERE
    classes: Sequence[Classes] = ()
    uncertain: str = AUTO

    def __call__(self, row: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line."""
        split, path, annotation_at = self.places
        if len(row) > self.count and any(field.strip() for field in row[self.count :]):
            message = too_many_fields(self.count, len(row))
            code = RejectCode.TOO_MANY_FIELDS.value
            return Reject(source, line, field_at(row, path), code, message)
        annotation = [field_at(row, index) for index in annotation_at]
        if self.takes_labels:
            try:
                annotation = self.labels(annotation)
            except AnnotationError as exc:
                return exc.reject(source, line, field_at(row, path))
        text = row[self.text] if self.text < len(row) else ""
        ml_use, uri = field_at(row, split), field_at(row, path)
        made = self.to_row(ml_use, uri, text, annotation, source, line)
        if self.group == NOWHERE or isinstance(made, Reject):
            return made
        return made._replace(group=field_at(row, self.group) or None)

    def labels(self, fields: Sequence[str]) -> list[str]:
        """Return the labels in the columns of the annotation. Raises: AnnotationError."""
        if not self.classes:
            return list(filter(None, fields))
        return classes_of(fields, self.classes, self.uncertain)


def too_many_fields(expected: int, got: int) -> str:
    """Return the message about a line with more fields than the header."""
    return (
        f"expected {expected} fields as in the header (got {got}); quote a field that holds a comma"
    )


def check_twice(header: Sequence[str], columns: dict[str, list[int]]) -> None:
    """Check that only the label has several columns with one name. Raises: UsageError."""
    for role, found in columns.items():
        for index in found if role != "label" else ():
            if list(header).count(header[index]) > 1:
                raise UsageError(
                    f"two columns are named {header[index]!r} ({','.join(header):.200}); rename "
                    f"one, or choose one by number: --columns {role}={index + 1}"
                )


def field_at(row: Sequence[str], index: int) -> str:
    """Return a field, stripped, or "" if the line is shorter."""
    return row[index].strip() if index < len(row) else ""


def without_padding(fields: Sequence[str]) -> Sequence[str]:
    """Return fields without the empty fields at the end."""
    end = len(fields)
    while end and not fields[end - 1]:
        end -= 1
    return fields[:end]
