"""How the lines of import files become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import AnnotationError, RowContent
from recordgen.core.task.declaration import Declaration

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture

_Parsing = TypeVar("_Parsing", bound="Parsing")


class Parsing(Declaration):
    """Parses what an import file says about a row.

    Class attributes:
        expected: a line of its CSV, for messages.
        columns: accepted header names of an annotation's columns, by role, in the order in which
            :meth:`from_fields` takes them.
        uri_key: the key of a payload's uri in a line of JSONL.
        json_keys: the keys of annotations in a line of JSONL, the task's own key first.
        csv_parser: parser of the lines of its CSV files, a
            :class:`recordgen.formats.row_parser.CsvParser`; None if no CSV holds its rows. JSON
            Lines hold them if there are :attr:`json_keys`.
    """

    expected: ClassVar[str]
    columns: ClassVar[Mapping[str, frozenset[str]]]
    uri_key: ClassVar[str]
    json_keys: ClassVar[tuple[str, ...]]
    csv_parser: ClassVar[str | None] = None

    def for_file(self: _Parsing) -> _Parsing:
        """Return the task for one pass over the rows of one import file."""
        return self

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        """Return the annotation of the fields that follow the path in a CSV line.

        Args:
            fields: stripped, without empty ones at the end.
            adjusted: collects the changes that make the annotation usable.

        Raises:
            AnnotationError: the annotation cannot be used.
        """
        raise NotImplementedError

    def from_record(
        self, record: Mapping[str, Any], adjusted: Adjustments
    ) -> Sequence[RowContent | AnnotationError]:
        """Return the rows of a line of a JSONL file, one for each example that it names.

        Args and Raises: as :meth:`from_fields`; ``record`` is the parsed line.

        Returns:
            For each example its row, or the error that makes it unusable.
        """
        raise NotImplementedError

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        """Return the row of an image that a document of another tool describes.

        Args and Raises: as :meth:`from_fields`.
        """
        raise NotImplementedError

    def uri_of(self, record: Mapping[str, Any]) -> str:
        """Return the uri of the row in a line of a JSONL file that cannot be used, or ""."""
        uri = record.get(self.uri_key)
        return uri.strip() if isinstance(uri, str) else ""
