"""Import files: what one is, and which ones a pattern names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from recordgen import storage
from recordgen.errors import SourceError, StorageError, UsageError


class ImportFile(NamedTuple):
    """One import file, or a folder of images.

    Attributes:
        path: local path or URL.
        split: the split of its rows that name none (a TFX input split); None: drawn.
        named_by: the import file that names this list of videos; None: the user does.
        bytes: its size, if it is known.
    """

    path: str
    split: str | None = None
    named_by: str | None = None
    bytes: int | None = None


def find_import_files(source: str | Sequence[str]) -> list[ImportFile]:
    """Return the import files that paths or globs name; a folder's path gets a ``/`` at its end.

    Raises:
        SourceError: a path or glob names no file.
        UsageError: a path is empty, which would name the folder of the process.
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
    return [ImportFile(path) for path in found]
