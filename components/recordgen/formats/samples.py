"""What detection has read of a source, for those who need it afterwards: the preview, and tables.

Each file is opened once, and each folder listed once, before the conversion reads the rows.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from recordgen.formats.import_file import Files, ImportFile, Lines
from recordgen.formats.lines import bounded_lines, open_lines
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.storage.access import Access

# Enough to find rare forms, and little compared with the whole import files.
_MAX_FILES = 16
_MAX_LINES = 10_000
_MAX_BYTES = 4_000_000


class Samples:
    """The first lines of import files, and the listings of folders.

    ``encoding`` is that of the files; empty if their byte order marks decide.
    """

    def __init__(self, encoding: str = "") -> None:
        self._encoding = encoding
        self._lines: dict[str, Lines] = {}
        self._whole: set[str] = set()
        self._listings: dict[str, Listing] = {}

    def lines(self, path: str) -> Lines:
        """Return the first lines of a file. Raises: as :func:`open_lines`."""
        if path not in self._lines:
            with self._open(path) as lines:
                self._lines[path] = tuple(_first(lines))
                if next(lines, None) is None:
                    self._whole.add(path)
        return self._lines[path]

    @contextmanager
    def _open(self, path: str) -> Iterator[Iterator[bytes]]:
        """Open a file as :func:`open_lines`, unless a format has read all of it."""
        listing = self._listings.get(Listing.of(path).root)
        known = None if listing is None else listing.known(path.removeprefix(listing.root))
        if known is None:
            with open_lines(path, self._encoding) as lines:
                yield lines
        else:
            yield bounded_lines(io.BytesIO(known), path, self._encoding)

    def listing(self, path: str, access: Access | None = None, image_root: str = "") -> Listing:
        """Return the listing of a folder, or of a file and its folder; see :class:`Listing`.

        ``image_root``: another folder that the listing of a file must hold.
        """
        found = Listing.of(path, access).with_folder(image_root)
        known = self._listings.setdefault(found.root, found)
        return known.at(found.only)

    def begun(self, file: ImportFile) -> ImportFile:
        """Return an import file with its first lines, or with its listing, if they are known."""
        root = file.folder or Listing.of(file.path).root
        return file._replace(lines=self._lines.get(file.path), listing=self._listings.get(root))

    def kept(self, file: ImportFile) -> ImportFile:
        """Return an import file with its parsed documents, or with the lines of a small one."""
        known = self.begun(file)
        if known.listing is None or not known.listing.is_parsed:
            known = known._replace(listing=None)
        is_small = file.path in self._whole and sum(map(len, known.lines or ())) < HEAD_BYTES
        return known if is_small else known._replace(lines=None)

    def whole(self, file: ImportFile) -> ImportFile:
        """Return an import file with its lines, if all of them are known."""
        return self.begun(file) if file.path in self._whole else file


def sampled(files: Files) -> Files:
    """Return the files whose first lines are read."""
    return files[:_MAX_FILES]


def _first(lines: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for line in islice(lines, _MAX_LINES):
        yield line
        size += len(line)
        if size > _MAX_BYTES:
            return
