"""The folder where the paths of rows start, and the search for paths that are not exact.

    --image-root train/
    7.jpg    →  train/7.jpg      the path is exact
    7        →  train/7.jpg      its suffix is missing
    A.png    →  train/b/a.JPG    suffix, letter case and folder differ, and no other file fits
    8        →  reject           train/8.jpg and train/8.png both fit

One listing of the folder answers for all rows of a run. A web server lists nothing, so paths below
it are exact.

Without the option, files that are missing may be in another folder, or have another suffix or
letter case::

    labels.csv    1.jpg, 2.jpg, …
    images/       1.JPG, 2.JPG, …   →  "1.jpg may be images/1.JPG"

One listing of the import file's folder answers. The answer is only a hint, with the folder for
``--image-root``: a name alone does not show that a file is the right one.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

from recordgen import storage
from recordgen.core.rows.row import ReadItem, Row, RowBatch, is_content_uri
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, StorageError, UsageError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.listing import Tree, list_tree
from recordgen.options import ConvertOptions
from recordgen.rejects import FOUND_BY_NAME, Counted, Reject, RejectCode, reject
from recordgen.storage.access import Access


class ImageRoot:
    """The folder or URL where the paths of rows start.

    Its files are listed when they are first needed. Pickling drops the list: a worker lists them
    again, rather than receive a million names.

    Args:
        root: the folder or URL, as the user wrote it.
        access: what rows may reach.
    """

    def __init__(self, root: str, access: Access | None = None) -> None:
        self.root = f"{root.rstrip('/')}/"
        self.access = access or Access()
        self._endings: dict[int, Mapping[str, Sequence[str]]] = {}

    @classmethod
    def of(cls, options: ConvertOptions) -> ImageRoot:
        """Return the folder that options give."""
        return cls(options.image_root, options.access)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what was listed."""
        return {"root": self.root, "access": self.access, "_endings": {}}

    @cached_property
    def tree(self) -> Tree:
        """All files; none on a web server. Raises: as :func:`list_tree`."""
        return Tree((), (), ()) if storage.is_http(self.root) else list_tree(self.root)

    def check(self) -> None:
        """Check that there are files. Raises: UsageError; as :func:`list_tree`."""
        if not self.tree.files and not storage.is_http(self.root):
            raise UsageError(f"image_root: there are no files below {self.root}")

    @cached_property
    def _names(self) -> frozenset[str]:
        """The file names of images without folders, each with and without its suffix."""
        bases = {posixpath.basename(name) for name in self.tree.images}
        return frozenset(bases | {IMAGE_SUFFIX.sub("", base) for base in bases})

    def _ending(self, depth: int) -> Mapping[str, Sequence[str]]:
        """Return images by their last folders, ``depth`` of them, and their stem."""
        if depth not in self._endings:
            found: dict[str, list[str]] = defaultdict(list)
            for name in self.tree.images:
                *folders, base = name.rsplit("/", depth + 1)[-depth - 1 :]
                if len(folders) == depth:
                    found["/".join((*folders, _stem(base)))].append(name)
            self._endings[depth] = found
        return self._endings[depth]

    def find(self, path: str, source: str) -> Sequence[str]:
        """Return the file that a path names, relative to the folder; or all files that it may name.

        The path itself if no file fits: whoever reads it reports that it is missing.
        """
        if path in self.tree.there:
            return (path,)
        written = posixpath.normpath(path.replace("\\", "/"))
        if written in self.tree.there or self._exists_elsewhere(path, source):
            return (written if written in self.tree.there else path,)
        folders, base = posixpath.split(written.lstrip("/"))
        nearest = self._nearest(folders, base)
        agreeing = [name for name in nearest if _agrees(name, base)]
        if not agreeing and len(nearest) == 1 and base in self._names:
            # Another one agrees in the name, this one in more folders: each may be meant.
            alike = self._ending(0)[_stem(base)]
            return [*nearest, *(name for name in alike if _agrees(name, base))]
        if not nearest and (plain := unquote(path)) != path:
            return self.find(plain, source)
        return agreeing or nearest or (path,)

    def _nearest(self, folders: str, base: str) -> Sequence[str]:
        """Return the images of a stem that agree with most of the folders before it."""
        steps = folders.split("/") if folders else []
        stems = dict.fromkeys((_stem(base), base.casefold()))
        for depth in range(len(steps), -1, -1):
            keys = ["/".join((*steps[len(steps) - depth :], stem)) for stem in stems]
            if found := [name for key in keys for name in self._ending(depth).get(key, ())]:
                return [name for name in found if posixpath.dirname(name) == folders] or found
        return ()

    def _exists_elsewhere(self, path: str, source: str) -> bool:
        """Return whether a local path leads out of the folder, to a file that rows may reach."""
        if not path.startswith(("/", "../")):
            return False
        full = storage.join(self.root, path)
        may_read = storage.is_local(full) and self.access.refusal(full, source) is None
        return may_read and os.path.isfile(storage.local_path(full))

    def prefix(self, source: str) -> str:
        """Return what comes before a file's name in the rows of the import file ``source``.

        Like paths that a person would write there: relative if the folder is in that of the import
        file, or if the user wrote it as a relative path.
        """
        mark = "_"
        path = storage.address(storage.join(self.root, mark), "./")
        outside = storage.is_relative(self.root)
        place = storage.from_folder(path, storage.folder_of(source), outside=outside)
        return place.removesuffix(mark)


def below_root(items: Iterable[ReadItem], root: ImageRoot, task: Task) -> Iterator[ReadItem]:
    """Yield a reader's items with the paths of files below a folder.

    Rows whose path may name several files become rejects. Rows whose path was not exact are counted
    as :data:`recordgen.rejects.FOUND_BY_NAME`, before their batch.
    """
    known: dict[str, _Places] = {}
    for item in items:
        if isinstance(item, Counted):
            yield item
            continue
        place = known.get(item.source) or known.setdefault(item.source, _Places(root, item.source))
        if isinstance(item, RowBatch):
            yield from _batch(item, place, task)
        else:
            uris, _ = place.of(item.uri)
            yield item._replace(uri=uris[0] if len(uris) == 1 else item.uri)


class _Places:
    """The paths in the rows of one import file."""

    def __init__(self, root: ImageRoot, source: str) -> None:
        self._root = root
        self._source = source
        self._prefix = root.prefix(source)
        self._there = root.tree.there

    def of(self, path: str) -> tuple[Sequence[str], bool]:
        """Return the path of a file for a row, or all that fit, and if it was found by name."""
        if path in self._there:
            return [self._prefix + path], False
        if not path or storage.is_url(path):
            return [path], False
        found = self._root.find(path, self._source)
        if list(found) == [path]:
            return [storage.resolve(path, self._prefix)], False
        return [self._prefix + name for name in found], found[0] != posixpath.normpath(path)


def _batch(batch: RowBatch, place: _Places, task: Task) -> Iterator[ReadItem]:
    """Yield the rows of a batch with the paths of their files, and rejects of the others."""
    rows: list[Row] = []
    count = 0
    for row, paths in zip(batch.rows, task.stored_uris(batch.uris, batch.annotations), strict=True):
        if not paths and row.uri and not is_content_uri(row.uri):
            paths = (row.uri,)  # a video, which no one fetches
        found = {path: place.of(path) for path in paths}
        if lost := next((path for path, (fitting, _) in found.items() if len(fitting) > 1), ""):
            message = f"{lost} may be {' or '.join(found[lost][0][:2])}; write folder and suffix"
            yield reject(row, RejectCode.AMBIGUOUS_PATH, message)
            continue
        uris = {path: uri for path, ([uri], _) in found.items()}
        count += sum(by_name for _, by_name in found.values())
        annotation = task.with_uris(row.annotation, uris) if uris else row.annotation
        rows.append(row._replace(uri=uris.get(row.uri, row.uri), annotation=annotation))
    if count:
        yield Counted(FOUND_BY_NAME, count)
    if rows:
        yield RowBatch.of(rows)


def _stem(name: str) -> str:
    """Return a file name without folders, the suffix of an image, letter case and Unicode form."""
    return normalize("NFC", IMAGE_SUFFIX.sub("", posixpath.basename(name))).casefold()


def _agrees(name: str, written: str) -> bool:
    """Return whether a file has the written name; one without a suffix agrees with any suffix."""
    base = posixpath.basename(name)
    if base == written:
        return True
    return not IMAGE_SUFFIX.search(written) and IMAGE_SUFFIX.sub("", base) == written


# --- where missing files may be ------------------------------------------------------------------

# Enough to see what the rows have in common; a listing must stay cheap beside a conversion.
_REJECTS = 1000
_FOLDERS = 200

# A folder holds the files of an import file if it has this share of them.
_NEARLY_ALL = 0.9


class Hint(NamedTuple):
    """Where missing files may be.

    Attributes:
        text: the end of a message; empty if nothing is known.
        root: the folder of these files, as ``--image-root`` takes it; empty if there is none.
    """

    text: str = ""
    root: str = ""


def missing_hint(rejects: Sequence[Reject], read: int) -> Hint:
    """Return where the missing files of rejects may be, of which ``read`` rows were read."""
    missing = [
        item
        for item in rejects
        if item.code == RejectCode.MISSING_FILE.value
        and item.uri
        and not is_content_uri(item.uri)
        and not item.source.endswith("/")  # a format with documents of its own
        and not storage.is_http(storage.normal(item.source))
    ]
    are_most, missing = len(missing) * 2 > read, missing[:_REJECTS]
    found: list[tuple[str, str]] = []
    roots: set[str] = set()
    for source in {item.source: None for item in missing}:
        pairs = _found([item.uri for item in missing if item.source == source], source)
        found += pairs
        roots |= {_root(source, pairs)} if pairs else set()
    if not found:
        are_names = not any({"/", "\\"} & {*item.uri} for item in missing)
        remedy = "name it with --image-root FOLDER, or --columns path=FOLDER/{id}.jpg"
        text = f"the paths of missing files have no folder; {remedy}"
        return Hint(text if are_names and are_most else "")
    shown = ", ".join(f"{uri:.80} may be {path:.80}" for uri, path in found[:2])
    what = "missing files are in another folder, or have another suffix or letter case"
    text = f"{len(found):,} of the first {len(missing):,} {what}: {shown}"
    if len(roots) > 1 and len(found) >= len(missing) * _NEARLY_ALL:
        above = _above_all(roots)
        names = {item.uri for item in missing}
        is_clear = bool(above) and len(_found([*names], f"{above}_")) == len(names)
        roots = {above if is_clear else ""}
    return Hint(text, roots.pop() if len(roots) == 1 else "")


def _above_all(folders: Collection[str]) -> str:
    """Return the folder that holds all of some local ones; empty if there is none."""
    if not all(map(storage.is_local, folders)):
        return ""
    with suppress(ValueError):  # only some are absolute
        if (above := posixpath.commonpath(folders)).strip("/."):
            return storage.join(above, "")
    return ""


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
    """Return the paths that may mean one image below the import file's folder, with that image."""
    images = ImageRoot(storage.folder_of(source))
    try:
        images.tree = list_tree(images.root, _FOLDERS)
    except (OSError, SourceError, StorageError):
        return []
    pairs = [(path, images.find(path, source)) for path in paths]
    there = images.tree.there
    return [(path, name) for path, [name, *more] in pairs if name in there and not more]


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
