"""Where missing files may be: in another folder, with another suffix, or in another letter case.

    labels.csv    1.jpg, 2.jpg, …
    images/       1.JPG, 2.JPG, …   →  "1.jpg may be images/1.JPG"

One listing of the import file's folder answers for all rows. The answer is only a hint, with the
folder for ``--image-root``: a name alone does not show that a file is the right one.
"""

from __future__ import annotations

import posixpath
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from recordgen import storage
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import StorageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.rejects import Reject, RejectCode

# Enough to see what the rows have in common; a listing must stay cheap beside a conversion.
_REJECTS = 1000
_FILES = 100_000
_FOLDERS = 200

# A folder holds the files of an import file if it has this share of them.
_NEARLY_ALL = 0.9

_NO_FOLDER = (
    "the paths of missing files have no folder; if their files are in another one, use "
    "--image-root FOLDER, or a path made of columns, such as --columns path=FOLDER/{id}.jpg"
)


def missing_hint(rejects: Sequence[Reject]) -> str:
    """Return where the missing files of rejects may be, as the end of a message; "" if unknown."""
    missing = [
        item
        for item in rejects
        if item.code == RejectCode.MISSING_FILE.value
        and item.uri
        and not is_content_uri(item.uri)
        and not item.source.endswith("/")  # a format with documents of its own
        and not storage.is_http(storage.normal(item.source))
    ][:_REJECTS]
    found: list[tuple[str, str]] = []
    roots: set[str] = set()
    for source in {item.source: None for item in missing}:
        pairs = _found([item.uri for item in missing if item.source == source], source)
        found += pairs
        roots |= {_root(source, [path for _, path in pairs])} if pairs else set()
    if not found:
        return (
            _NO_FOLDER if missing and not any({"/", "\\"} & {*item.uri} for item in missing) else ""
        )
    shown = ", ".join(f"{uri:.80} may be {path:.80}" for uri, path in found[:2])
    root = roots.pop() if len(roots) == 1 else ""
    option = f"use --image-root {shlex.quote(root)}, or " if root else ""
    return (
        f"{len(found):,} of the first {len(missing):,} missing files are in another folder, or "
        f"have another suffix or letter case: {shown}; {option}correct the paths"
    )


def folder_of_images(paths: Iterable[str], source: str) -> str:
    """Return the folder that holds nearly all images that rows name, as ``--image-root`` takes it.

    It is empty if rows name them exactly, or if no folder below the import file's holds them.

    Args:
        paths: as written in rows of an import file.
        source: the import file.
    """
    some = list(dict.fromkeys(filter(None, islice(paths, _REJECTS))))
    if not some or storage.is_http(storage.normal(source)):
        return ""
    found = _found(some, source)
    are_exact = all(path == written for written, path in found)
    if are_exact or len(found) < len(some) * _NEARLY_ALL:
        return ""
    return _root(source, [path for _, path in found])


def _found(paths: Iterable[str], source: str) -> list[tuple[str, str]]:
    """Return the paths that may mean a file below the import file's folder, each with that file."""
    there = _by_stem(storage.folder_of(source))
    return [(path, found) for path in paths if (found := _only(there, path))]


def _root(source: str, files: Sequence[str]) -> str:
    """Return the innermost folder of images, relative as the import file; "" of other files."""
    if not all(map(IMAGE_SUFFIX.search, files)):
        return ""
    inner = posixpath.commonpath([posixpath.dirname(path) for path in files])
    return storage.join(storage.resolve(inner, source), "") or "./"


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
