"""The sizes of images whose rows have boxes in pixels and say no size: the images say them.

Frame,Label,xmin,ymin,xmax,ymax
1.jpg,Car,5,6,25,21               →  the box (5/64, 6/48, 25/64, 21/48) if 1.jpg has 64×48 pixels
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from recordgen import storage
from recordgen.core.image_settings import Limits
from recordgen.core.rows.row import Adjustments, Range, ReadItem, Row, RowBatch, batched
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import PayloadError, SourceError
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.rejects import Reject
from recordgen.storage.access import Access

if TYPE_CHECKING:
    from recordgen.payloads.header import FileHeader

#: The size of an image may stand behind a profile or a small image that are larger than a head.
MAX_HEADER = 16 << 20

# Headers of images that are kept: rows of an image mostly follow each other.
_KEPT = 1000

# Images of a folder that are compared with those of others.
_LEAST_SIZES, _SIZES_READ = 4, 8


@runtime_checkable
class NeedsSizes(Protocol):
    """A task whose annotations may have to be made shares of their image, whose size is needed."""

    def lacks_size(self, annotation: str | None) -> bool:
        """Return whether an annotation is in pixels of an image of unknown size."""
        ...

    def sized(
        self, annotation: str, size: tuple[int, int], orientation: int, adjusted: Adjustments
    ) -> str | None:
        """Return such an annotation in shares of its image. Raises: AnnotationError."""
        ...


def with_image_sizes(
    items: Iterable[ReadItem], task: NeedsSizes, access: Access
) -> Iterator[ReadItem]:
    """Yield a reader's items with boxes in shares of their images; unreadable images are rejects.

    ``access`` is what rows may reach. Raises: StorageError.
    """
    sized = _Sized(task, access)
    for item in items:
        if isinstance(item, RowBatch) and any(map(task.lacks_size, item.annotations)):
            yield from batched(map(sized.row, item.rows), sized.adjusted)
        else:
            yield item


class _Sized:
    """Makes rows with shares of their images."""

    def __init__(self, task: NeedsSizes, access: Access) -> None:
        self.adjusted = Adjustments()
        self._task = task
        self._access = access
        self._headers: dict[str, FileHeader] = {}

    def row(self, row: Row) -> Row | Reject:
        """Return a row with its boxes in shares, or its reject."""
        if row.annotation is None or not self._task.lacks_size(row.annotation):
            return row
        try:
            header = self._header(row)
            size = header.width, header.height
            annotation = self._task.sized(row.annotation, size, header.orientation, self.adjusted)
        except PayloadError as exc:
            return Reject(row.source, row.line, row.uri, exc.code, exc.message)
        except AnnotationError as exc:
            return exc.reject(row.source, row.line, row.uri)
        return row._replace(annotation=annotation)

    def _header(self, row: Row) -> FileHeader:
        [place] = json.loads(row.addresses) if row.addresses else [row.uri]
        path = storage.resolve(place or row.uri, row.source)
        if path not in self._headers:
            if len(self._headers) >= _KEPT:
                self._headers.clear()
            self._headers[path] = _read_header(path, row.source, self._access)
        return self._headers[path]


def _read_header(path: str, source: str, access: Access) -> FileHeader:
    """Return the header of the image at a path. Raises: PayloadError, StorageError."""
    # Imported here: few rows need it.
    from recordgen.payloads.fetching import check_reach, context_of, read_part, requested
    from recordgen.payloads.opening import file_header
    from recordgen.storage.retries import retried

    part = Range.of(path)
    file = path if part is None else part.file
    check_reach(file, source, access)
    context = context_of(access, source, Event())

    def read() -> FileHeader:
        if part is not None:
            return file_header(read_part(part, "", context))
        with storage.open_read(path, context) as opened:
            return _header_of(opened)

    return requested(lambda: retried(read, file, context), file, Limits())


def header_in_file(listing: Listing, name: str) -> FileHeader | None:
    """Return the header of an image; None if it cannot be read."""
    with suppress(PayloadError, SourceError), listing.open(name) as file:
        return _header_of(file)
    return None


def _header_of(file: IO[bytes]) -> FileHeader:
    """Return the header of an image, of which most need only the head. Raises: PayloadError."""
    from recordgen.payloads.opening import file_header

    head = file.read(HEAD_BYTES)
    with suppress(PayloadError):
        return file_header(head)
    return file_header(head + file.read(MAX_HEADER))


def size_in_file(listing: Listing, name: str) -> tuple[int, int] | None:
    """Return the width and height in the header of an image; None if they cannot be read."""
    header = header_in_file(listing, name)
    return header and (header.width, header.height)


def are_versions(listing: Listing, folders: Mapping[str, Sequence[str]]) -> bool:
    """Return whether files of the same numbers are versions of one picture, as their sizes show.

    Those of one number have one size, and most numbers one of their own: classes seldom agree so.
    """
    sizes = [[size_in_file(listing, it) for it in some[:_SIZES_READ]] for some in folders.values()]
    first = sizes[0]
    are_own = None not in first and len({*first}) * 2 > len(first) >= _LEAST_SIZES
    return are_own and all(each == first for each in sizes)
