"""Import files, the search for files that match a pattern, and what detection reads of them.

Each file is opened once, and each folder listed once, before the conversion reads the rows.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import nullcontext, suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple, TypeAlias

from recordgen import storage
from recordgen.core.dataset.splits import ML_USE_WORDS, is_ml_use
from recordgen.errors import SourceError, StorageError, UsageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX, have_words, words_of
from recordgen.formats.image_root import ImageRoot
from recordgen.formats.lines import OpenLines, bounded_lines, open_lines
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.storage.access import Access

#: Physical lines without their line feeds.
Lines: TypeAlias = tuple[bytes, ...]

#: What the names of import files in a folder of images end with.
IMPORT_SUFFIXES = (".csv", ".jsonl", ".ndjson")

# What other names of files of rows end with.
_ROWS = (*IMPORT_SUFFIXES, ".tsv", ".tab", ".json", ".txt", ".data", ".dat", ".train")

# What may be a path in a line of such a file.
_FIELD = re.compile(r"""[^\\,;"'\t\r\n]+""")
_QUOTED = re.compile(r'(?<=")[^"\n]+(?=")')
_TOKEN = re.compile(r"[^\s,;:\"'<>|]+")


class ImportFile(NamedTuple):
    """One import file, or a folder of images.

    Attributes:
        path: local path or URL.
        split: split of the rows without one (a TFX input split); None if it is assigned by hash.
        named_by: the import file that names this list of videos; None for the user's own files.
        bytes: its size, or None if unknown.
        has_header: whether detection found that its first line is a header; None if it has not read
            the file.
        folder: the root of the listing in which a format found this document; see
            :class:`recordgen.formats.listing.Listing`.
        lines: lines to read instead of the file, see
            :class:`Samples`; None if the file is to be read.
        listing: the listing of its folder; None if the folder is to be listed.
        images: the folder where the paths of its rows start, if it is known; see
            :mod:`recordgen.formats.image_root`.
        layout: what the paths of a folder say, see :mod:`recordgen.tables.path_layout`; empty
            if its known form says it.
    """

    path: str
    split: str | None = None
    named_by: str | None = None
    bytes: int | None = None
    has_header: bool | None = None
    folder: str = ""
    lines: Lines | None = None
    listing: Listing | None = None
    images: ImageRoot | None = None
    layout: str = ""

    @property
    def around(self) -> Listing:
        """The listing in which it was found."""
        found = self.listing or Listing.of(self.folder or self.path)
        return found.at(self.path.removeprefix(found.root))


def open_file(file: ImportFile, encoding: str) -> OpenLines:
    """Open an import file, or take the lines that are known. Raises: as :func:`open_lines`."""
    known = file.lines
    return open_lines(file.path, encoding) if known is None else nullcontext(iter(known))


#: Import files that are read together.
Files: TypeAlias = Sequence[ImportFile]


def find_import_files(source: str | Sequence[str]) -> list[ImportFile]:
    """Return the import files that paths or globs match; the path of a folder ends with ``/``.

    Raises:
        SourceError: a path or glob matches no file.
        UsageError: a path is empty, which would mean the working directory.
    """
    found: dict[str, None] = {}
    for pattern in [source] if isinstance(source, str) else source:
        if not pattern:
            raise UsageError("the source must be a path, a URL or a glob (got an empty text)")
        try:
            found.update(dict.fromkeys(storage.expand(pattern)))
        except SourceError:
            folder = storage.normal(pattern).rstrip("/")
            with suppress(OSError, StorageError):
                if storage.list_dir(folder):
                    found[f"{folder}/"] = None
                    continue
            raise
    for path in found:
        if not path.isascii() and path.encode("utf-8", "replace").decode() != path:
            raise SourceError(f"{path!r}: a path must be UTF-8; rename the file or its folder")
    return [ImportFile(path) for path in found]


def files_of_rows(names: Collection[str]) -> str:
    """Return the likeliest file of rows in a folder, or the pattern of several; "" without one.

    ``data/train.tsv, data/test.tsv, README.txt`` →  ``data/*.tsv``; beside files of splits, another
    one may hold all their rows: ``all.csv, test.csv, train.csv``  →  ``t*.csv``. Of versions such
    as ``train.csv, train_old.csv``, the one of fewer words counts.
    """
    rows = [name for name in names if name.lower().endswith(_ROWS)]
    words = {name: words_of(posixpath.basename(name)) for name in rows}
    tables = [it for it in rows if not have_words("names_of_files_without_rows", words[it])]
    # A mapping of other names, such as those of classes, may also be the only table.
    tables = [it for it in tables if "mapping" not in words[it]] or tables
    kinds = {frozenset(words[it]) for it in tables}
    more = {it: {*filter(str.isalpha, words[it])}.difference(ML_USE_WORDS) for it in tables}
    versions = {it for it in tables if any({*words[it]} - {word} in kinds for word in more[it])}
    tables = [it for it in tables if it not in versions or not any(map(is_ml_use, words[it]))]
    for suffix in _ROWS:
        found = [name for name in tables if name.lower().endswith(suffix)]
        of_splits = [name for name in found if any(map(is_ml_use, words[name]))]
        first = ""
        if 1 < len(of_splits) < len(found):
            found, letters = of_splits, {posixpath.basename(name)[0] for name in of_splits}
            first = letters.pop() if len(letters) == 1 else f"[{''.join(sorted(letters))}]"
        folders = {posixpath.dirname(name) for name in found}
        are_outer = len(folders) > 1 and not any("/" in folder for folder in folders)
        folder = "*" if are_outer else "".join(folders)
        for pattern in (posixpath.join(folder, f"{it}*{suffix}") for it in (first, "")):
            matches = [name for name in names if fnmatchcase(name, pattern)]
            if len(found) > 1 and matches in (found, tables):
                return pattern
        if found:
            return max(found, key=lambda name: ("train" in words[name], name not in of_splits))
    return ""


def names_images(head: bytes, images: Iterable[str]) -> bool:
    """Return whether the first bytes of an import file have the file name of one of the images."""
    text = head.decode("utf-8", "replace")
    names = {posixpath.basename(field.strip()) for field in _FIELD.findall(text)}
    return any(posixpath.basename(image) in names for image in images)


def stems_in(head: bytes, stems: Set[str]) -> Set[str]:
    """Return the names without a suffix that a text holds; two letters may be an epoch's number."""
    text = head.decode("utf-8", "replace")
    tokens = {*_TOKEN.findall(text), *_QUOTED.findall(text)}
    names = {posixpath.basename(it) for it in tokens if IMAGE_SUFFIX.search(it) or len(it) > 2}
    return stems & {posixpath.splitext(name)[0] for name in names}


# --- what detection has read, for the preview and for tables --------------------------------------

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

    def _open(self, path: str) -> OpenLines:
        """Open a file as :func:`open_lines`, unless a format has read all of it."""
        listing = self._listings.get(Listing.of(path).root)
        known = None if listing is None else listing.known(path.removeprefix(listing.root))
        if known is None:
            return open_lines(path, self._encoding)
        return nullcontext(bounded_lines(io.BytesIO(known), path, self._encoding))

    def listing(self, path: str, access: Access | None = None, image_root: str = "") -> Listing:
        """Return the listing of a folder, or of a file and its folder; see :class:`Listing`.

        ``image_root``: another folder that the listing of a file must hold.
        """
        found = Listing.of(path, access).with_folder(image_root)
        return self._listings.setdefault(found.root, found).at(found.only)

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
