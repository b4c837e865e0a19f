"""Where missing files may be: in another folder, with another suffix, or in another letter case.

    labels.csv    1.jpg, 2.jpg, …
    images/       1.JPG, 2.JPG, …   →  "1.jpg may be images/1.JPG"

One listing of the import file's folder answers for all rows; if it has none of the files, a listing
of the folder around it does: ``Anno/list.txt`` beside ``Img/``. The answer is only a hint, with
the folder for ``--image-root``: a name alone does not show that a file is the right one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from recordgen import storage
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import SourceError, StorageError
from recordgen.formats.image_root import ImageRoot
from recordgen.formats.listing import list_tree
from recordgen.rejects import Reject, RejectCode

# Enough to see what the rows have in common; a listing must stay cheap beside a conversion.
_REJECTS = 1000
_FOLDERS = 200

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
    """Return the paths that may mean one image, each with that image.

    Images are below the import file's folder, and relative to it; or, if none of the paths means
    one of these, below the folder around it: ``../Img/1.jpg``.
    """
    folder = storage.folder_of(source)
    for root, way in ((folder, ""), (storage.folder_of(folder), "../")):
        images = ImageRoot(root)
        try:
            images.tree = list_tree(images.root, _FOLDERS)
        except (OSError, SourceError, StorageError):
            continue
        pairs = [(path, images.find(path, source)) for path in paths]
        there = images.tree.there
        if found := [
            (path, way + name) for path, [name, *more] in pairs if name in there and not more
        ]:
            return found
    return []


def _root(source: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the folder below which paths name images, relative as the import file's.

    ``/data/a/1.jpg`` means ``in/a/1.jpg`` below ``in/``.
    """
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
