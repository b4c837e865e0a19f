"""The files beside which a format is looked for: a folder, or one file and its folder.

Listing.of("photos/")           names: data.yaml, train/images/1.jpg, …; only: ""
Listing.of("photos/data.yaml")  the same names, but ``only`` is data.yaml
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import IO

from recordgen import storage
from recordgen.errors import SourceError
from recordgen.formats import folder_rows
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.storage.access import Access

#: The bytes of a file that detection may read: enough for the first keys of a document.
HEAD_BYTES = 64 * 1024

_HEADS_KEPT = 64


class Listing:
    """The files below a folder. They are listed, and opened, when they are first needed.

    Attributes:
        root: the folder; its path or URL ends with ``/``.
        only: the name of the file in it that the user passed; empty if it was the folder.
        access: the rules for links that leave the folder; None: they are followed.
    """

    def __init__(self, root: str, only: str = "", access: Access | None = None) -> None:
        self.root = root
        self.only = only
        self.access = access
        self._heads: dict[str, bytes] = {}

    @classmethod
    def of(cls, path: str, access: Access | None = None) -> Listing:
        """Return the listing of a folder, whose path ends with ``/``, or of one file."""
        if path.endswith("/"):
            return cls(path, access=access)
        folder, _, name = path.rpartition("/")
        return cls(f"{folder}/" if folder or path.startswith("/") else "./", name, access)

    @cached_property
    def names(self) -> Sequence[str]:
        """All files below the folder except hidden ones, relative to it, sorted.

        Raises: as :func:`recordgen.formats.folder_rows.files_below`; SourceError: on a web server.
        """
        if storage.is_http(self.root):
            raise SourceError(
                f"{self.root}{self.only}: a web server does not list the files beside this one; "
                f"copy the dataset to a folder or bucket"
            )
        return sorted(folder_rows.files_below(self.root, folder_rows.Listing()))

    @cached_property
    def images(self) -> Sequence[str]:
        """The files whose names have the suffix of an image."""
        return [name for name in self.names if IMAGE_SUFFIX.search(name)]

    @cached_property
    def others(self) -> Sequence[str]:
        """The other files: documents, labels, and what lies beside them."""
        return [name for name in self.names if not IMAGE_SUFFIX.search(name)]

    @cached_property
    def _there(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def by_base(self) -> Mapping[str, Sequence[str]]:
        """Images by their file name without folders."""
        return _grouped(self.images, posixpath.basename)

    @cached_property
    def by_stem(self) -> Mapping[str, Sequence[str]]:
        """Images by their path without the suffix."""
        return _grouped(self.images, lambda name: posixpath.splitext(name)[0])

    def __contains__(self, name: object) -> bool:
        """Return whether a file exists."""
        return name in self._there

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

    def check_link(self, name: str) -> None:
        """Check that a file is no link to one that rows may not reach. Raises: SourceError."""
        path = storage.join(self.root, name)
        if self.access is not None and (refusal := self.access.refusal(path, self.root)):
            raise SourceError(f"{path}: this link to a file leaves its folder: {refusal}")

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raises: SourceError: it is unreadable; StorageError."""
        path = storage.join(self.root, name)
        if name != self.only and storage.is_local(path):
            place = storage.local_path(path)
            if os.path.exists(place) and not os.path.isfile(place):  # a pipe would block
                raise SourceError(f"{path}: this is no regular file; remove it from the folder")
        try:
            return storage.open_read(path)
        except OSError as exc:
            raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc

    def image_at(self, name: str, *folders: str) -> str | Sequence[str]:
        """Return the image that a document names, as its authors may have written the path.

        Tried in turn: below each folder as written; the same path with fewer leading folders, as
        paths of another machine need; then the only image of this file name anywhere.

        Args:
            name: the path as written: with any separators, absolute or relative.
            folders: folders in which relative paths may start, relative to the root.

        Returns:
            The image's name in this listing; or, if there is not one, all images of this file
            name, none or several.
        """
        path = posixpath.normpath(name.strip().replace("\\", "/")).lstrip("/")
        parts = [part for part in path.split("/") if part not in ("..", ".")]
        for start in range(len(parts)):
            for folder in folders or ("",):
                tried = posixpath.normpath(posixpath.join(folder, *parts[start:]))
                if tried in self._there:
                    return tried
        same = self.by_base.get(parts[-1] if parts else "", ())
        return same[0] if len(same) == 1 else same


def _grouped(names: Sequence[str], key: Callable[[str], str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[key(name)].append(name)
    return found
