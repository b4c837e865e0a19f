"""Import files, and the search for files that match a pattern."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence, Set
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from recordgen import storage
from recordgen.errors import SourceError, StorageError, UsageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX, words_of
from recordgen.formats.image_root import ImageRoot
from recordgen.formats.listing import Listing

#: Physical lines without their line feeds.
Lines: TypeAlias = tuple[bytes, ...]

#: What the names of import files in a folder of images end with.
IMPORT_SUFFIXES = (".csv", ".jsonl", ".ndjson")

# What other names of files of rows end with, and words of names of files that are none.
_ROWS = (*IMPORT_SUFFIXES, ".tsv", ".tab", ".json", ".txt", ".data", ".dat", ".train")
_NO_ROWS = frozenset(
    {"readme", "license", "licence", "requirements", "submission"}
    | {"classes", "vocab", "categories", "mapping"}
)

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
            :class:`recordgen.formats.samples.Samples`; None if the file is to be read.
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

    ``data/train.tsv, data/test.tsv, README.txt`` →  ``data/*.tsv``
    """
    others = [name for name in names if _NO_ROWS.isdisjoint(words_of(posixpath.basename(name)))]
    for suffix in _ROWS:
        found = [name for name in others if name.lower().endswith(suffix)]
        folders = {posixpath.dirname(name) for name in found}
        are_outer = len(folders) > 1 and not any("/" in folder for folder in folders)
        folder = "*" if are_outer else "".join(folders)
        pattern = posixpath.join(folder, f"*{suffix}")
        matches = [name for name in names if fnmatchcase(name, pattern)]
        if found:
            best = max(found, key=lambda name: "train" in words_of(posixpath.basename(name)))
            return pattern if len(found) > 1 and matches == found else best
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
