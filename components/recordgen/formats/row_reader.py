"""The rows of import files, as their format and task read them, and a few for a preview.

Users can check in the preview how rows were understood, before they trust a dataset.

Secrets of URLs are kept in a column that only requests read::

    https://host/1.jpg?X-Goog-Signature=8f…,cat
    →  Row(uri="https://host/1.jpg", annotation="cat",
           addresses='["https://host/1.jpg?X-Goog-Signature=8f…"]')

So nothing that is made from rows contains a secret, a row keeps its place and its split when its
URL is signed again, and ``--append`` and ``--resume`` recognise it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

from recordgen import storage
from recordgen.core.rows.row import FIRST_ROWS, Adjustments, ReadItem, Row, RowBatch, batched
from recordgen.core.task.task import Task
from recordgen.formats.format import Format
from recordgen.formats.header import Given
from recordgen.formats.image_root import ImageRoot, below_root
from recordgen.formats.image_sizes import NeedsSizes, with_image_sizes
from recordgen.formats.import_file import Files, ImportFile, Samples
from recordgen.messages.masking import masked, may_hold_secrets, without_secrets
from recordgen.options import ConvertOptions
from recordgen.registry import FORMATS
from recordgen.rejects import Counted, Finding, OddLine, Reject, place_of
from recordgen.tasks import task_for


class RowReader:
    """Reads rows with options whose task and format are decided.

    Args:
        options: the options of the conversion.
    """

    def __init__(self, options: ConvertOptions) -> None:
        self._task = task_for(options)
        self._name = options.format  # undecided if the rows are those of a DataFrame
        self._access = options.access
        self._given = Given.of(options)
        self._images = ImageRoot.of(options) if options.image_root else None

    @cached_property
    def _format(self) -> Format:
        return FORMATS[self._name]()

    def with_lists(self, files: Iterable[ImportFile]) -> list[ImportFile]:
        """Return import files, each followed by the lists of rows that its lines name.

        Raises:
            SourceError: a list is missing or may not be read; the message has the line that names
                it.
            StorageError: storage failed.
        """
        found: dict[ImportFile, None] = {}
        for file in files:
            found[file] = None
            lists = self._format.lists(file, self._task, self._given, self._access)
            found.update(dict.fromkeys(lists))
        return list(found)

    def read_part(self, part: ImportFile | Sequence[ReadItem]) -> Iterator[ReadItem]:
        """Yield the rows of a part of :meth:`recordgen.formats.source.Source.parts`."""
        return self.read(part) if isinstance(part, ImportFile) else iter(part)

    def read(self, file: ImportFile) -> Iterator[ReadItem]:
        """Read one import file; memory does not grow with the file.

        Yields:
            The usable lines in batches, a Finding for each change in one, and a Reject for each
            other line. Blank lines and headers are skipped.

        Raises:
            SourceError: the file is missing, unreadable, or not UTF-8.
            StorageError: storage failed.
        """
        adjusted = Adjustments()
        if file.named_by is not None:
            read_list = self._task.declared("csv_parser").read_list
            rows = read_list(file, self._task, adjusted, self._given, self._access)
        else:
            task, form, given = self._task, self._format, self._given
            if form.has_columns:
                task = task.for_file(lambda it: form.rows(file, it, Adjustments(), given))
            rows = form.rows(file, task, adjusted, given)
        items = batched(rows, adjusted)
        if self._images is not None:
            items = below_root(items, file.images or self._images, self._task)
        if isinstance(self._task, NeedsSizes):
            items = with_image_sizes(items, self._task, self._access)
        for item in without_url_secrets(items, self._task):
            yield item.with_split(file.split) if isinstance(item, RowBatch) else item

    def read_all(self, files: Iterable[ImportFile]) -> Iterator[ReadItem]:
        """Read several import files in turn, like :meth:`read`."""
        return chain.from_iterable(map(self.read, files))


ROWS_SHOWN = 3
_ROWS_READ = FIRST_ROWS
_CHARACTERS = 60

# Shown as the split of a row that names none.
ASSIGNED = "(assigned)"


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row as it was understood.

    Attributes:
        split: its split, or :data:`ASSIGNED`.
        subject: its path or its text; for a table, the whole row.
        annotation: its labels or boxes, empty without any; None for a table.
    """

    where: str
    split: str
    subject: str
    annotation: str | None

    def __str__(self) -> str:
        shown = [self.split, self.subject] if self.subject else [self.split]
        if self.annotation is not None:
            shown.append(self.annotation or "(no label)")
        return f"{self.where}: {' | '.join(shown)}"

    def to_json(self) -> Mapping[str, str | None]:
        """Return the row as ``--json`` prints it."""
        return asdict(self)


class Preview(NamedTuple):
    """Some of the first rows: a hundred, or the lines of a CSV that are read together.

    Attributes:
        rows: from the beginning, the middle and the end.
        found_by_name: how many paths of these were not exact.
    """

    rows: tuple[PreviewRow, ...]
    found_by_name: int


def preview_files(files: Files, options: ConvertOptions, samples: Samples) -> Preview:
    """Return the preview of files.

    Args:
        files: import files, and the lists that they name.
        options: the options of the conversion, with task and format decided.
        samples: what detection has read of the files.

    Raises:
        SourceError: a file is unreadable.
        UsageError: an option does not fit the files.
        StorageError: storage failed.
    """
    return preview_rows(RowReader(options).read_all(map(samples.begun, files)), task_for(options))


def preview_rows(items: Iterable[ReadItem], task: Task) -> Preview:
    """Return the preview of the rows among items."""
    rows: list[Row] = []
    by_name = 0
    for others, item in enumerate(items):
        by_name += item.number if isinstance(item, Counted) else 0
        rows += item.rows if isinstance(item, RowBatch) else ()
        if len(rows) + others >= _ROWS_READ:
            break
    if len(rows) > ROWS_SHOWN:
        rows = [rows[0], rows[len(rows) // 2], rows[-1]]
    return Preview(tuple(_of_row(row, task) for row in rows), by_name)


def _of_row(row: Row, task: Task) -> PreviewRow:
    where, split = place_of(row.source, row.line, row.uri), row.split or ASSIGNED
    subject, annotation = task.preview(row.uri, row.annotation)
    return PreviewRow(where, split, _cut(subject), None if annotation is None else _cut(annotation))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)
    return line if len(line) <= _CHARACTERS else f"{line[: _CHARACTERS - 1]}…"


# --- secrets in URLs -----------------------------------------------------------------------------

# What is in each URL, in JSON as well.
_URL_MARKS = (":/", ":\\", "//", "\\\\", "%")


def without_url_secrets(items: Iterable[ReadItem], task: Task) -> Iterator[ReadItem]:
    """Yield a reader's items with secrets removed from sources, uris and messages."""
    for item in items:
        if isinstance(item, RowBatch):
            yield _public_batch(item, task)
        else:
            yield item if isinstance(item, Counted) else _public_note(item)


def _public_row(row: Row, task: Task) -> Row:
    [stored] = task.stored_uris([row.uri], [row.annotation])
    if not any(map(may_hold_secrets, (row.source, row.uri, *stored))):
        return row
    source = without_secrets(row.source)
    uris = stored or ([row.uri] if row.uri else ())
    public = {uri: without_secrets(uri, is_url=storage.is_http(source)) for uri in uris}
    is_same = all(uri == name for uri, name in public.items())
    if is_same and source == row.source:
        return row
    requested: list[str | None] = []
    inside = chain(json.loads(row.addresses or "[]"), repeat(None))
    for uri, place in zip(uris, inside, strict=False):
        if place and source == row.source:
            requested.append(place)
        else:
            full = storage.resolve(place or uri, row.source)
            requested.append(full if full != storage.resolve(public[uri], source) else None)
    uri = public.get(row.uri, row.uri)
    annotation = row.annotation if is_same else task.with_uris(row.annotation, public)
    addresses = json.dumps(requested) if any(requested) else None
    return row._replace(source=source, uri=uri, annotation=annotation, addresses=addresses)


def _public_batch(batch: RowBatch, task: Task) -> RowBatch:
    names = [*batch.uris, batch.source]
    if task.names_payloads and type(task).stored_uris is not Task.stored_uris:
        text = "\n".join(filter(None, batch.annotations))
        # Of other files, only names that are URLs hold secrets.
        if storage.is_http(batch.source) or any(mark in text for mark in _URL_MARKS):
            names += chain.from_iterable(task.stored_uris(batch.uris, batch.annotations))
    if not may_hold_secrets("\n".join(names)):
        return batch
    return RowBatch.of([_public_row(row, task) for row in batch.rows])


def _public_note(item: Reject | Finding | OddLine) -> Reject | Finding | OddLine:
    source = without_secrets(item.source)
    uri = without_secrets(item.uri, is_url=storage.is_http(source))
    message = item.message
    for full, public in ((item.uri, uri), (item.source, source)):
        if full != public:  # its secrets may have characters that end a URL in a text
            message = message.replace(full, public)
    return item._replace(source=source, uri=uri, message=masked(message))
