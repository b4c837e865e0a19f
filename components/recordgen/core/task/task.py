"""The interface of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from recordgen import storage
from recordgen.core.rows.placing import row_name
from recordgen.core.rows.row import CONTENT, Adjustments, Row, RowBatch
from recordgen.core.settings import TaskSettings
from recordgen.core.task.annotation import AnnotationError, RowContent, check_uri
from recordgen.core.task.annotations import Annotations, Declaration
from recordgen.core.task.examples import Examples

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture


# Arrow's stubs, where there are any, differ from version to version.
Texts: TypeAlias = Any  # pa.StringArray
Sizes: TypeAlias = Any  # pa.Int64Array


class Payloads(Declaration):
    """Finds the payloads of rows.

    Class attributes:
        names_payloads: whether a row has a uri that identifies it; else the row holds the whole
            example.
        by_address: whether payloads are identified and placed by their resolved address, not by
            its spelling in a line, so that the parts of one payload share a split. Planned rows
            then have the uris of :func:`recordgen.core.flow.reading.located`.
    """

    names_payloads: ClassVar[bool] = True
    by_address: ClassVar[bool] = False

    def part(self, annotation: str | None) -> str:
        """Return the part of its payload that a row is about; "" is the whole payload.

        Rows of one part make one example.
        """
        return ""

    def check_uri(self, uri: str) -> str:
        """Return the address of a payload, as :func:`check_uri` does. Raises: AnnotationError."""
        return check_uri(uri)

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        """Return the addresses of the payloads in storage that each row needs."""
        return [() if not uri or uri.startswith(CONTENT) else (uri,) for uri in uris]

    def with_uris(self, annotation: str | None, uris: Mapping[str, str]) -> str | None:
        """Return an annotation with its addresses replaced; ``uris`` maps old ones to new ones."""
        return annotation

    def own_sizes(self, uris: Texts, annotations: Texts) -> Sizes:
        """Return the approximate bytes that each row itself adds to its record."""
        import pyarrow.compute as pc  # reading import files does not need Arrow

        return pc.utf8_length(annotations.fill_null("")).cast("int64")

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None] | None:
        """Return the rows' annotations without the payloads that they contain.

        None if nothing else is in them, or if the task's facts have them.
        """
        if not self.names_payloads:
            return None
        return annotations.to_pylist()

    @property
    def can_append(self) -> bool:
        """Whether a row's uri identifies its example, so that more rows can be appended."""
        return self.names_payloads


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

        Raises: AnnotationError: the annotation cannot be used.
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


class Task(Parsing, Annotations, Payloads, Examples):
    """One task: how its rows are parsed, what they mean, their payloads, and their examples.

    An instance holds the settings that affect it.
    """

    @classmethod
    def of(cls, settings: TaskSettings) -> Task:
        """Return the task with its settings. Raises: UsageError: one does not suit the task."""
        return cls()


# Attributes that the class of an installed task must define; the rest has a default.
_NEEDED = ("kind", "noun", "expected", "columns", "uri_key", "json_keys", "features", "batch_rows")


def check_declaration(name: str, task: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete task."""
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise TypeError(f"a task is a subclass of recordgen.tasks.Task (got {task!r})")
    if getattr(task, "name", None) != name:
        raise TypeError(
            f"the entry point is named {name!r}, and the task {getattr(task, 'name', None)!r}"
        )
    missing = [item for item in (*_NEEDED, "reading") if not hasattr(task, item)]
    if task.make is Task.make:
        missing.append("make")
    missing += [] if task.csv_parser or getattr(task, "json_keys", None) else ["csv_parser"]
    if missing:
        raise TypeError(f"the class {task.__name__} does not define {', '.join(missing)}")


def placing_name(row: Row | RowContent, task: Task, folder: str) -> str:
    """Return the text whose hash places a row.

    With :attr:`Task.by_address`, relative uris start in ``folder``, that of the first import file.
    """
    if task.by_address:
        return storage.below_shared(storage.resolve(row.uri, storage.join(folder, "")), folder)
    return row_name(row.uri, row.annotation)


def placing_names(rows: RowBatch, task: Task, folder: str) -> Iterator[str]:
    """Return the text whose hash places each row, as :func:`placing_name`."""
    if task.by_address:
        return (placing_name(row, task, folder) for row in rows.rows)
    if not any(rows.uris):  # each row is placed by its whole annotation
        return (annotation or "" for annotation in rows.annotations)
    return map(row_name, rows.uris, rows.annotations)
