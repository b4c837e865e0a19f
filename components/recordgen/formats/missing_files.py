"""Where missing files may be: in another folder, with another suffix, or in another letter case.

    labels.csv    1.jpg, 2.jpg, …
    images/       1.JPG, 2.JPG, …   →  "1.jpg may be images/1.JPG"

One listing of the import file's folder answers for all rows; if it has none of the files, a listing
of the folder around it does: ``Anno/list.txt`` beside ``Img/``. The answer is only a hint, with
the folder for ``--image-root``: a name alone does not show that a file is the right one.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from recordgen import storage
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import StorageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.rejects import Reject, RejectCode

# Enough to see what the rows have in common; a listing must stay cheap beside a conversion.
_REJECTS = 1000
_FILES = 100_000
_FOLDERS = 200

_SUFFIX = re.compile(r"\.[a-z0-9]{1,5}$", re.IGNORECASE)

# A folder holds the files of an import file if it has this share of them.
_NEARLY_ALL = 0.9

_NO_FOLDER = (
    "the paths of missing files have no folder; if their files are in another one, use "
    "--image-root FOLDER, or a path made of columns, such as --columns path=FOLDER/{id}.jpg"
)


class Hint(NamedTuple):
    """Where missing files may be.

    Attributes:
        text: the end of a message; empty if nothing is known.
        root: the one folder of these files, as ``--image-root`` takes it; empty if there is none.
    """

    text: str = ""
    root: str = ""


def missing_hint(rejects: Sequence[Reject]) -> Hint:
    """Return where the missing files of rejects may be."""
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
        roots |= {_root(source, pairs)} if pairs else set()
    if not found:
        are_names = missing and not any({"/", "\\"} & {*item.uri} for item in missing)
        return Hint(_NO_FOLDER if are_names else "")
    shown = ", ".join(f"{uri:.80} may be {path:.80}" for uri, path in found[:2])
    return Hint(
        f"{len(found):,} of the first {len(missing):,} missing files are in another folder, or "
        f"have another suffix or letter case: {shown}",
        roots.pop() if len(roots) == 1 else "",
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
    return _root(source, found)


def _found(paths: Sequence[str], source: str) -> list[tuple[str, str]]:
    """Return the paths that may mean a file, each with that file.

    Files are below the import file's folder, and relative to it; or, if none of the paths means one
    of these, below the folder around it: ``../Img/1.jpg``.
    """
    folder = storage.folder_of(source)
    for root, way in ((folder, ""), (storage.folder_of(folder), "../")):
        there = _by_stem(root)
        if pairs := [(path, way + found) for path in paths if (found := _only(there, path))]:
            return pairs
    return []


def _root(source: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the folder below which paths name images, relative as the import file's.

    It is empty if the files are no images: ``/data/a/1.jpg`` means ``in/a/1.jpg`` below ``in/``.
    """
    if not all(IMAGE_SUFFIX.search(path) for _, path in pairs):
        return ""
    root = storage.resolve(posixpath.commonpath([_above(*pair) for pair in pairs]), source)
    if storage.is_local(source):
        root = posixpath.normpath(root)
    return storage.join(root, "")


def _above(uri: str, path: str) -> str:
    """Return the folders of a file that are above what a path says of them."""
    folders, said = path.split("/")[:-1], uri.replace("\\", "/").split("/")[:-1]
    while folders and said and folders[-1] == said[-1]:
        folders.pop()
        said.pop()
    return "/".join(folders)


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
    if len(same) > 1:  # the folders of the path decide
        same = [path for path in same if f"/{uri}".endswith(f"/{path}")]
    return same[0] if len(same) == 1 else ""


def _stem(path: str) -> str:
    return _SUFFIX.sub("", posixpath.basename(path.replace("\\", "/"))).casefold()
