"""AutoML's two-level CSV of videos: an import file names lists, and these name segments.

    TRAIN,gs://bucket/train.csv              gs://bucket/1.mp4,car,120,180.5
    TEST,gs://bucket/test.csv                gs://bucket/1.mp4,bike,150,inf
    import file                              list

An import file may contain rows of segments as well as lines that name lists, or only rows. Paths in
a list are relative to the list's folder. The author of the import file chose the lists, so they
follow the same rules as the payloads of its rows: :mod:`recordgen.storage.access`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from recordgen import storage
from recordgen.core.rows.row import Adjustments, Row, RowBatch
from recordgen.core.task.task import Task
from recordgen.errors import FileTooLargeError, NotAllowedError, SourceError, UnknownSchemeError
from recordgen.formats.automl_csv import LineParser
from recordgen.formats.csv_records import Item, read_blocks
from recordgen.formats.field_kinds import LIST_SUFFIX, is_list
from recordgen.formats.format import Rows
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import bounded_lines, open_lines
from recordgen.rejects import Reject, RejectCode, reject
from recordgen.storage import RequestContext
from recordgen.storage.access import Access, RowUrlPolicy

# A list from a web server is untrusted and is kept in memory.
_MAX_LIST_BYTES = 256_000_000


class VideoParser(LineParser):
    """Makes rows from segments of videos; lines may also name lists of such rows."""

    names_lists = True

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Iterator[Row | Reject]:
        """Parse the lines of an import file, except those that name lists: :meth:`read_list`."""
        parsed = super().parse_lines(
            lines, source=source, task=task, adjusted=adjusted, given=given
        )
        for item in _rows(parsed):
            if isinstance(item, Reject) or not is_list(item.uri):
                yield item
            elif item.annotation is not None:
                message = (
                    f"expected ML_USE and the path of a list of videos; write labels and times in "
                    f"the list, as {task.expected}"
                )
                yield reject(item, RejectCode.TOO_MANY_FIELDS, message)

    @classmethod
    def find_lists(
        cls, lines: Iterable[bytes], source: str, task: Task, given: Given, access: Access
    ) -> Iterator[ImportFile]:
        """Yield the lists that lines name, in their order, with their sizes.

        Raises: SourceError: a list is missing, or may not be read; StorageError: storage failed.
        """
        records = _first_and_lists(read_blocks(lines, source))
        for item in cls(task, Adjustments()).parse_records(records, source, given):
            if isinstance(item, Row) and is_list(item.uri) and item.annotation is None:
                found = storage.resolve(item.uri, source)
                yield ImportFile(found, item.split, source, _list_bytes(found, item, access))

    @classmethod
    def read_list(
        cls, file: ImportFile, task: Task, adjusted: Adjustments, given: Given, access: Access
    ) -> Iterator[Row | Reject]:
        """Read the rows of a list, which another import file names.

        Raises: SourceError: it is missing, or may not be read; StorageError: storage failed.
        """
        path, named_by = file.path, str(file.named_by)
        _check_access(path, named_by, named_by, access)
        with _open_list(path, named_by, access, given.encoding) as lines:
            parsed = super().parse_lines(
                lines, source=path, task=task, adjusted=adjusted, given=given
            )
            for item in _rows(parsed):
                if isinstance(item, Row) and is_list(item.uri):
                    message = (
                        f"expected {task.expected}, but the path names another list; name it in "
                        f"the import file"
                    )
                    item = reject(item, RejectCode.BAD_ANNOTATION, message)
                yield item


@contextmanager
def _open_list(
    path: str, named_by: str, access: Access, encoding: str
) -> Iterator[Iterator[bytes]]:
    if not storage.is_http(path):
        with open_lines(path, encoding) as lines:
            yield lines
        return
    context = RequestContext(RowUrlPolicy(access, named_by))
    try:
        data = storage.read_bytes(path, _MAX_LIST_BYTES, context)
    except (OSError, NotAllowedError, FileTooLargeError) as exc:
        raise SourceError(f"{named_by}: cannot read the list of videos {path}: {exc}") from exc
    yield bounded_lines(io.BytesIO(data), path, encoding)


def _first_and_lists(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the records that may be a header or name a list: making all rows would be slow."""
    is_first = True
    for item in items:
        if not isinstance(item, Reject):
            texts = enumerate(item.texts)
            others = {at for at, text in texts if LIST_SUFFIX not in text.lower()}
            yield item.without(others - {0} if is_first else others)
            is_first = False


def _rows(items: Rows) -> Iterator[Row | Reject]:
    for item in items:
        yield from item.rows if isinstance(item, RowBatch) else [item]


def _list_bytes(path: str, row: Row, access: Access) -> int:
    """Return the size of a list. Raises: SourceError: it is missing or may not be read."""
    where = f"{row.source}:{row.line}"
    _check_access(path, row.source, where, access)
    try:
        return storage.info(path, RequestContext(RowUrlPolicy(access, row.source))).size
    except FileNotFoundError as exc:
        raise SourceError(f"{where}: there is no list of videos {path}") from exc
    except (OSError, NotAllowedError, UnknownSchemeError) as exc:
        raise SourceError(f"{where}: cannot read the list of videos {path}: {exc}") from exc


def _check_access(path: str, source: str, where: str, access: Access) -> None:
    if (refusal := access.refusal(path, source)) is not None:
        raise SourceError(f"{where}: the list of videos {path} may not be read: {refusal}")
