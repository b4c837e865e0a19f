"""Where missing files may be: in another folder, with another suffix, or in another letter case.

    labels.csv    1.jpg, 2.jpg, …
    images/       1.JPG, 2.JPG, …   →  "1.jpg may be images/1.JPG"

One listing of the import file's folder answers for all rows. The answer is only a hint: a name
alone does not show that a file is the right one.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from recordgen import storage
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import StorageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.rejects import Reject, RejectCode

# Enough to see what the rows have in common; a listing must stay cheap beside a conversion.
_REJECTS = 1000
_FILES = 100_000
_FOLDERS = 200


def missing_hint(rejects: Sequence[Reject]) -> str:
    """Return where the missing files of rejects may be, as the end of a message; "" if unknown."""
    missing = [
        item
        for item in rejects
        if item.code == RejectCode.MISSING_FILE.value
        and item.uri
        and not is_content_uri(item.uri)
        and not storage.is_http(storage.normal(item.source))
    ][:_REJECTS]
    found: list[tuple[str, str]] = []
    for folder in {storage.folder_of(item.source): None for item in missing}:
        there = _by_stem(folder)
        for item in missing:
            if storage.folder_of(item.source) == folder and (path := _only(there, item.uri)):
                found.append((item.uri, path))
    if not found:
        return ""
    shown = ", ".join(f"{uri:.80} may be {path:.80}" for uri, path in found[:2])
    return (
        f"{len(found):,} of the first {len(missing):,} missing files are in another folder, or "
        f"have another suffix or letter case: {shown}; correct the paths"
    )


def _by_stem(folder: str) -> dict[str, list[str]]:
    """Return the first files below a folder, relative to it, by name without suffix and case."""
    found: dict[str, list[str]] = defaultdict(list)
    with suppress(OSError, StorageError):
        for count, path in enumerate(_walk(folder)):
            if count == _FILES:
                break
            found[_stem(path)].append(path)
    return found


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a folder, the nearest first, without following endless links."""
    folders = [""]
    for at, path in enumerate(folders):  # grows
        if at == _FOLDERS:
            return
        for name, is_folder in storage.list_dir(storage.join(folder, path) if path else folder):
            if name.startswith("."):
                continue
            if is_folder:
                folders.append(f"{path}{name}/")
            else:
                yield f"{path}{name}"


def _only(there: dict[str, list[str]], uri: str) -> str:
    """Return the only file that a path may mean, or "": with two, neither is likelier."""
    found = there.get(_stem(uri), [])
    if IMAGE_SUFFIX.search(uri):  # and not the labels beside an image
        found = [path for path in found if IMAGE_SUFFIX.search(path)]
    name = posixpath.basename(uri)
    same = [path for path in found if posixpath.basename(path) == name] or found
    return same[0] if len(same) == 1 else ""


def _stem(path: str) -> str:
    name = posixpath.basename(path.replace("\\", "/"))
    stem, dot, _ = name.rpartition(".")
    return (stem if dot else name).casefold()
