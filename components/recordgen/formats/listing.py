"""The files beside which a format is looked for: a folder, or one file and its folder.

Listing.of("photos/")           names: data.yaml, train/images/1.jpg, …; only: ""
Listing.of("photos/data.yaml")  the same names, but ``only`` is data.yaml
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import IO, Any, TypeVar

from recordgen import storage
from recordgen.core import allowance
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, is_output, read_dataset
from recordgen.core.dataset.splits import split_named, word_in_folders
from recordgen.core.limits import check_name
from recordgen.core.rows.row import ROW_BYTES, Range
from recordgen.errors import SourceError
from recordgen.formats.archives import Archive, archive_at
from recordgen.formats.field_kinds import IMAGE_SUFFIX, known_words
from recordgen.storage.access import Access

#: The bytes of a file that detection may read: enough for the first keys of a document.
HEAD_BYTES = 64 * 1024

# In such folders, programs keep files of their own.
_NO_IMAGE_FOLDERS = known_words("folders_of_programs")

_Key = TypeVar("_Key")

_HEADS_KEPT = 64
_MAX_LINE = 1 << 20
_SHOWN = 80  # letters of a path that is too deep


@dataclass(frozen=True)
class Tree:
    """The names below a folder.

    Attributes:
        files: all files except hidden ones, relative to the folder, sorted.
        skipped: folders in which programs keep files of their own; they end with ``/``.
        datasets: folders with converted datasets.
    """

    files: Sequence[str]
    skipped: Sequence[str]
    datasets: Sequence[str]

    @cached_property
    def images(self) -> Sequence[str]:
        """The files whose names have the suffix of an image."""
        return [name for name in self.files if IMAGE_SUFFIX.search(name)]

    @cached_property
    def others(self) -> Sequence[str]:
        """The other files."""
        return [name for name in self.files if not IMAGE_SUFFIX.search(name)]

    @cached_property
    def there(self) -> frozenset[str]:
        """All files."""
        return frozenset(self.files)

    @cached_property
    def by_base(self) -> Mapping[str, Sequence[str]]:
        """Images by their file name without folders."""
        return grouped(self.images, posixpath.basename)

    @cached_property
    def by_stem(self) -> Mapping[str, Sequence[str]]:
        """Images by their path without the suffix."""
        return grouped(self.images, lambda name: posixpath.splitext(name)[0])


@dataclass(eq=False)
class Listing:
    """The files below a folder. They are listed, and opened, when they are first needed.

    A pickled listing begins anew.

    Attributes:
        root: the folder; its path or URL ends with ``/``.
        only: the name of the file in it that the user passed; empty if it was the folder.
        access: the rules for links that leave the folder; None: they are followed.
        archive: the archive that holds the files; None for a folder.
    """

    root: str
    only: str = ""
    access: Access | None = None
    archive: Archive | None = None
    _heads: dict[str, bytes] = field(default_factory=dict, repr=False)
    _parsed: dict[str, Any] = field(default_factory=dict, repr=False)
    _trees: dict[str, Tree] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, path: str, access: Access | None = None) -> Listing:
        """Return the listing of a folder, whose path ends with ``/``, or of one file."""
        if path.endswith("/"):
            return cls(path, access=access, archive=archive_at(path))
        folder, _, name = path.rpartition("/")
        return cls(f"{folder}/" if folder or path.startswith("/") else "./", name, access)

    def at(self, name: str) -> Listing:
        """Return this listing as if the user had passed the file ``name`` in it."""
        return replace(self, only=name)

    def with_folder(self, folder: str) -> Listing:
        """Return the listing of a local file that also holds another folder, if one is given.

        ``photos/docs/one.json``, ``photos/img`` → root ``photos/``, only ``docs/one.json``
        """
        path = f"{self.root}{self.only}"
        if not folder:
            return self
        file, other = map(storage.absolute, (path, folder))
        root = os.path.commonpath([os.path.dirname(file), other])
        shown = root if path.startswith("/") else os.path.relpath(root)
        return Listing(posixpath.join(shown, ""), os.path.relpath(file, root), self.access)

    def __reduce__(self) -> tuple[type[Listing], tuple[str, str, Access | None, Archive | None]]:
        archive = None if self.archive is None else Archive(self.archive.path)
        return Listing, (self.root, self.only, self.access, archive)

    @property
    def tree(self) -> Tree:
        """All files below the folder. Raises: as :func:`list_tree`."""
        if "" not in self._trees:
            self._trees[""] = list_tree(self.root, archive=self.archive)
        return self._trees[""]

    @property
    def names(self) -> Sequence[str]:
        """All files below the folder except hidden ones, relative to it, sorted.

        Raises: as :func:`list_tree`; SourceError: on a web server.
        """
        if storage.is_http(self.root):
            what = "a web server lists no files; copy the dataset to a folder or bucket"
            raise SourceError(f"{self.root}{self.only}: {what}")
        return self.tree.files

    @property
    def images(self) -> Sequence[str]:
        """The files whose names have the suffix of an image."""
        return self.names and self.tree.images

    @property
    def others(self) -> Sequence[str]:
        """The other files: documents, labels, and what lies beside them."""
        return self.names and self.tree.others

    def __contains__(self, name: object) -> bool:
        """Return whether a file exists."""
        return name in self.tree.there

    def candidates(self, *suffixes: str) -> Sequence[str]:
        """Return the file that the user passed, or all files, with one of the suffixes."""
        names = [self.only] if self.only else self.others
        return [name for name in names if name.lower().endswith(suffixes)]

    def head(self, name: str) -> bytes:
        """Return the first :data:`HEAD_BYTES` of a file. Raises: SourceError, StorageError."""
        if name not in self._heads:
            self.check_link(name)
            with self.open(name) as file:
                head = file.read(HEAD_BYTES)
            if len(self._heads) >= _HEADS_KEPT:  # a folder may have a document for each image
                self._heads.clear()
            self._heads[name] = head
        return self._heads[name]

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file. Raises: ValueError: it has more bytes; SourceError, StorageError."""
        with self.open(name) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it has more than {most >> 20} MiB")
        return data

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a text that are not blank, with their numbers; long ones are cut."""
        with self.open(name) as file:
            for number, raw in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), start=1):
                if text := raw.decode("utf-8-sig", "replace").strip():
                    yield number, text

    def known(self, name: str) -> bytes | None:
        """Return the whole content of a file if its head was read and is all of it, or None."""
        head = self._heads.get(name)
        return head if head is not None and len(head) < HEAD_BYTES else None

    def parsed(self, name: str, parse: Callable[[Listing, str], Any]) -> Any:
        """Return what ``parse`` makes of a file, which is kept until :meth:`forget`."""
        if name not in self._parsed:
            self._parsed[name] = parse(self, name)
        return self._parsed[name]

    def forget(self, name: str) -> None:
        """Forget a parsed file whose rows have been read; after the last one, all of the names."""
        if self._parsed.pop(name, None) is not None and not self._parsed:
            self._trees.clear()

    @property
    def is_parsed(self) -> bool:
        """Whether it has parsed files, which are worth keeping."""
        return bool(self._parsed)

    def check_link(self, name: str) -> None:
        """Check that a file is no link to one that rows may not reach. Raises: SourceError."""
        if self.archive is not None or self.access is None:
            return
        path = storage.join(self.root, name)
        if refusal := self.access.refusal(path, self.root):
            raise SourceError(f"{path}: this link to a file leaves its folder: {refusal}")

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raises: SourceError: it is unreadable; StorageError."""
        if self.archive is not None:
            return self.archive.open(name)
        path = storage.join(self.root, name)
        if name != self.only and storage.is_local(path):
            place = storage.local_path(path)
            if os.path.exists(place) and not os.path.isfile(place):  # a pipe would block
                raise SourceError(f"{path}: this is no regular file; remove it from the folder")
        return open_path(path)

    @contextmanager
    def whole(self, name: str, kind: str) -> Iterator[IO[bytes]]:
        """Open a document. Raises: SourceError: reading it raises ValueError, as it is damaged."""
        try:
            with self.open(name) as file:
                yield file
        except ValueError as exc:
            raise SourceError(f"{self.root}{name}: this is no whole {kind}: {exc}") from exc

    def check_ranges(self, name: str) -> None:
        """Check that parts of a file can be read one by one. Raises: SourceError."""
        if storage.is_http(self.root):
            what = "few web servers allow to read parts of a file; copy it to a folder or bucket"
            raise SourceError(f"{self.root}{name}: {what}")

    def payload(self, name: str) -> Range | None:
        """Return where a file is in the archive; None in a folder. Raises: PayloadError."""
        if self.archive is None or name not in self.archive.entries:
            return None
        return self.archive.range_of(name)

    def image_at(self, name: str, *folders: str, split: str | None = None) -> str | Sequence[str]:
        """Return the image that a document names, as its authors may have written the path.

        Tried in turn: below each folder as written; the same path with fewer leading folders, as
        paths of another machine need; then the only image of this file name that is not in a folder
        of another split.

        Args:
            name: the path as written: with any separators, absolute or relative.
            folders: folders in which relative paths may start, relative to the root.
            split: the split of the document, or the word for it.

        Returns:
            The image's name in this listing; or, if there is not one, all images of this file
            name, none or several. None has a name that is too long or too deep.
        """
        name = name.strip().replace("\\", "/")
        try:
            check_name(name)
        except ValueError:
            return ()
        path = posixpath.normpath(name).lstrip("/")
        parts = [part for part in path.split("/") if part not in ("..", ".")]
        for start in range(len(parts)):
            rest = "/".join(parts[start:])
            for prefix in _prefixes(folders or ("",)):
                if (tried := f"{prefix}{rest}") in self.tree.there:
                    return tried
        same = self.tree.by_base.get(parts[-1] if parts else "", ())
        if split:
            same = [each for each in same if not _is_of_another(each, split)]
        return same[0] if len(same) == 1 else same


def open_path(path: str) -> IO[bytes]:
    """Open a file of a source for reading. Raises: SourceError: it is unreadable; StorageError."""
    try:
        file = storage.open_read(path)
        allowance.grow_by(file)
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    return file


@lru_cache
def _prefixes(folders: tuple[str, ...]) -> Sequence[str]:
    """Return what comes before a path in each of some folders."""
    places = map(posixpath.normpath, folders)
    return ["" if place == "." else f"{place}/" for place in places]


def _is_of_another(image: str, split: str) -> bool:
    word = word_in_folders(image)
    return word is not None and split_named(word) != split_named(split)


def grouped(names: Iterable[str], key: Callable[[str], _Key]) -> dict[_Key, list[str]]:
    """Return names by what ``key`` returns for each."""
    groups: dict[_Key, list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return groups


def list_tree(folder: str, most: int | None = None, archive: Archive | None = None) -> Tree:
    """Return the names of all files below a folder, whose path ends with ``/``, or in an archive.

    Folders with a converted dataset, and folders in which programs keep files of their own, are not
    searched. ``most``: the number of folders that are listed, the nearest first; None for all.

    Raises:
        SourceError: a link leads back to a folder above it, or a path is too long or too deep.
        StorageError: storage failed.
    """
    files: list[str] = []
    skipped: list[str] = []
    datasets: list[str] = []
    folders, packed = [""], {} if archive is None else archive.folders()
    for path in islice(folders, most):  # grows
        place = storage.join(folder, path) if path else folder
        entries = [*packed[path]] if packed else storage.list_dir(place)
        size = len(entries) * ROW_BYTES
        allowance.grow(size, size)
        if is_output(entries):
            datasets.append(path)
            continue
        for name, is_folder in entries:
            if name.startswith("."):
                continue
            if not is_folder:
                files.append(f"{path}{name}")
            elif name.lower() in _NO_IMAGE_FOLDERS:
                skipped.append(f"{path}{name}/")
            else:
                if archive is None:  # whose names are checked
                    _check_folder(folder, f"{path}{name}")
                folders.append(f"{path}{name}/")
    return Tree(sorted(files), sorted(skipped), sorted(datasets))


def _check_folder(folder: str, path: str) -> None:
    """Check the name of a folder, and where it leads if it is a link. Raises: SourceError."""
    try:
        check_name(storage.join(folder, path, ""))
    except ValueError as exc:
        raise SourceError(f"{folder}{path[:_SHOWN]}…: {exc}; move its files up") from exc
    _check_link(folder, path)


def _check_link(folder: str, path: str) -> None:
    link = storage.join(folder, path)
    if storage.is_local(link) and os.path.islink(storage.local_path(link)):
        target = os.path.realpath(storage.local_path(link))
        place = storage.local_path(folder)
        steps = path.split("/")
        above = [os.path.join(place, *steps[:depth]) for depth in range(len(steps))]
        # Behind another link, the folders above have more than one path.
        if any(os.path.commonpath([target, os.path.realpath(each)]) == target for each in above):
            raise SourceError(f"{link}: this link leads back to {target} above it; remove it")


def dataset_of(listing: Listing) -> Dataset | None:
    """Return the dataset that a folder, or a file in it, belongs to, if Recordgen wrote one."""
    roots = [listing.root]
    if listing.only:
        roots.append(storage.folder_of(listing.root.rstrip("/")))
    for root in roots:
        if not storage.is_http(root) and storage.is_file(storage.join(root, DATASET_FILE)):
            with suppress(SourceError):  # another program's file of this name
                return read_dataset(root)
    return None
