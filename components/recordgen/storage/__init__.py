"""Read and write files by path or URL: local files directly, all others through fsspec.

fsspec knows gs://, s3://, https://, memory:// and the schemes of its plug-ins. Its libraries find
the credentials.

Transient failures are retried (:mod:`recordgen.storage.retries`). Missing files and forbidden files
have their own errors, so an outage never looks like either.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Protocol, cast

from recordgen.errors import SourceError, StorageError, UsageError, install
from recordgen.storage import local
from recordgen.storage.access import ANY_REQUEST as ANY_REQUEST
from recordgen.storage.access import FileInfo as FileInfo
from recordgen.storage.access import RequestContext as RequestContext
from recordgen.storage.access import only_storage_errors
from recordgen.storage.access import without_retries as without_retries
from recordgen.storage.local import OPEN_FLAGS as OPEN_FLAGS
from recordgen.storage.local import read_at as read_at
from recordgen.storage.paths import OBJECT_STORES
from recordgen.storage.paths import absolute as absolute
from recordgen.storage.paths import address as address
from recordgen.storage.paths import below_shared as below_shared
from recordgen.storage.paths import bytes_at_once as bytes_at_once
from recordgen.storage.paths import folder_of as folder_of
from recordgen.storage.paths import from_folder as from_folder
from recordgen.storage.paths import inside as inside
from recordgen.storage.paths import is_http as is_http
from recordgen.storage.paths import is_inside as is_inside
from recordgen.storage.paths import is_local as is_local
from recordgen.storage.paths import is_relative as is_relative
from recordgen.storage.paths import is_reserved as is_reserved
from recordgen.storage.paths import is_url as is_url
from recordgen.storage.paths import join as join
from recordgen.storage.paths import local_path as local_path
from recordgen.storage.paths import name_fault as name_fault
from recordgen.storage.paths import normal as normal
from recordgen.storage.paths import parents as parents
from recordgen.storage.paths import path_fault as path_fault
from recordgen.storage.paths import real as real
from recordgen.storage.paths import resolve as resolve
from recordgen.storage.paths import slip_hint as slip_hint

_NO_ACCESS = "cannot access"

# Requests at once.
_REQUESTS = 32


class _Storage(Protocol):
    """Functions that each storage module has; http.py has only the reading ones."""

    def info(self, path: str, context: RequestContext) -> FileInfo: ...
    def read_bytes(self, path: str, at_most: int | None, context: RequestContext) -> bytes: ...
    def read_range(self, path: str, start: int, length: int, context: RequestContext) -> bytes: ...
    def open_read(self, path: str, context: RequestContext) -> IO[bytes]: ...
    def replacing(self, path: str) -> AbstractContextManager[IO[bytes]]: ...
    def write_bytes(self, path: str, data: bytes) -> None: ...
    def move(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_file(self, path: str) -> None: ...
    def remove_empty(self, folder: str) -> None: ...
    def is_file(self, path: str) -> bool: ...
    def list_files(self, pattern: str) -> list[str]: ...
    def list_dir(self, folder: str) -> list[tuple[str, bool]]: ...


def has_private_files() -> bool:
    """Return whether this process has files that its child processes cannot read.

    They are in memory, or in a file system that the process itself registered.
    """
    if "fsspec" not in sys.modules:
        return False
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.registry import known_implementations, registry

    return bool(MemoryFileSystem.store) or any(
        name not in known_implementations for name in registry
    )


def _storage(path: str, *, writable: bool = False) -> _Storage:
    """Return the storage module for a path; import libraries only when they are needed."""
    if is_local(path):
        return local
    if writable:
        check_writable(path)
    if not is_http(path):
        from recordgen.storage import remote

        return remote
    try:
        from recordgen.storage import http
    except ImportError as exc:
        raise StorageError(f"{path}: needs a package: {exc}; {install('http')}") from exc
    return cast(_Storage, http)


def is_known(path: str) -> bool:
    """Return whether there is a storage for the scheme of ``path``."""
    if is_local(path):
        return True
    from recordgen.storage import remote

    return remote.is_known(path)


def check_writable(path: str) -> None:
    """Check that a folder at a path may be written. Raises: UsageError."""
    if not path:
        raise UsageError("the output must be a folder or URL (got an empty text)")
    place = local_path(path) if is_local(path) else ""
    while place and not os.path.lexists(place):
        place = os.path.dirname(place)
    if place and not os.path.isdir(place):
        raise UsageError(f"{path}: the output must be a folder or URL ({place} is no folder)")
    scheme, slash, rest = path.partition(":/")
    if slash and rest[:1] != "/" and scheme.lower() in ("file", "http", "https", *OBJECT_STORES):
        raise UsageError(
            f"{path}: a URL needs two slashes after its scheme: {scheme}://…; pathlib.Path removes "
            f"one, so pass a str"
        )
    if is_http(path):
        raise UsageError(
            f"{path}: web servers cannot be written to; give a folder or a URL such as gs:// or "
            f"s3://"
        )


def info(path: str, context: RequestContext = ANY_REQUEST) -> FileInfo:
    """Look up a regular file.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        PermissionError: access is denied.
        IsADirectoryError: it is not a regular file.
        NotAllowedError: ``context`` forbids the request.
        StorageError: storage failed.
    """
    return _storage(path).info(path, context)


def local_infos(paths: Iterable[str]) -> Iterator[FileInfo | None]:
    """Look up many local regular files; None where :func:`info` would raise."""
    return local.infos(paths)


def size(path: str) -> int:
    """Return the size of a regular file in bytes. Raises: as :func:`info`."""
    return info(path).size


def version(path: str, context: RequestContext = ANY_REQUEST) -> str:
    """Return a text that changes when the file does. Raises: as :func:`info`."""
    return "{}:{}".format(*info(path, context))


def read_bytes(
    path: str, at_most: int | None = None, context: RequestContext = ANY_REQUEST
) -> bytes:
    """Return the whole content of a regular file.

    Raises:
        FileTooLargeError: it has more than ``at_most`` bytes, which are not all read.
        OSError, StorageError: as :func:`info`.
    """
    return _storage(path).read_bytes(path, at_most, context)


def read_text(path: str) -> str:
    """Return the whole content of a UTF-8 file. Raises: as :func:`info`."""
    return read_bytes(path).decode("utf-8")


def read_range(path: str, start: int, length: int, context: RequestContext = ANY_REQUEST) -> bytes:
    """Return ``length`` bytes of a file from ``start``; not for web servers.

    Raises: StorageError: the file is shorter, or storage failed; OSError: as :func:`info`.
    """
    data = _storage(path, writable=True).read_range(path, start, length, context)
    if len(data) != length:
        raise StorageError(
            f"{path}: requested bytes {start} to {start + length}, got {len(data)} bytes"
        )
    return data


def open_read(path: str, context: RequestContext = ANY_REQUEST) -> IO[bytes]:
    """Open a file for buffered binary reading. Raises: as :func:`info`."""
    return _storage(path).open_read(path, context)


def replacing(path: str) -> AbstractContextManager[IO[bytes]]:
    """Open ``path`` for writing so that readers see the old or the new content, never a part.

    A local file is written under another name and renamed; an object appears when it is closed.
    Missing folders are created. Raises: StorageError.
    """
    return _storage(path, writable=True).replacing(path)


def write_bytes(path: str, data: bytes) -> None:
    """Write a small file, whole or not at all. Raises: StorageError."""
    _storage(path, writable=True).write_bytes(path, data)


def write_text(path: str, text: str) -> None:
    """Write a small UTF-8 file, whole or not at all. Raises: StorageError."""
    write_bytes(path, text.encode("utf-8"))


def move(source: str, target: str) -> None:
    """Move a file within one storage, replacing the one at ``target``. Raises: StorageError."""
    _storage(source, writable=True).move(source, target)


def remove(path: str) -> None:
    """Remove a file or a folder with its content, if it exists. Raises: StorageError."""
    _storage(path, writable=True).remove(path)


def remove_file(path: str) -> None:
    """Remove a file, if it exists, by one request. Raises: StorageError."""
    _storage(path, writable=True).remove_file(path)


def remove_empty(folder: str) -> None:
    """Remove a folder unless somebody has written into it; object stores have no folders."""
    _storage(folder, writable=True).remove_empty(folder)


def threads(paths: Iterable[str]) -> int:
    """Return how many threads read or write files at once, for ``map_in_order``.

    Object stores answer in tens of milliseconds. Local files take less than a thread costs, so the
    calling one does it.
    """
    return 0 if all(map(is_local, paths)) else _REQUESTS


def is_file(path: str) -> bool:
    """Return whether there is a file at ``path``. Raises: StorageError."""
    with only_storage_errors(path, _NO_ACCESS):
        return _storage(path).is_file(path)


def list_files(pattern: str) -> list[str]:
    """Return the files (not folders) that a path or glob matches, sorted. Raises: StorageError."""
    with only_storage_errors(pattern, _NO_ACCESS):
        return _storage(pattern).list_files(pattern)


def list_dir(folder: str) -> list[tuple[str, bool]]:
    """Return the entries of ``folder`` as (name, is a folder), sorted; empty if it does not exist.

    Raises: StorageError.
    """
    with only_storage_errors(folder, _NO_ACCESS):
        return _storage(folder).list_dir(folder)


def list_infos(
    folder: str, context: RequestContext, *, first: str = "", last: str | None = None
) -> Iterator[dict[str, FileInfo]]:
    """Yield the infos of the files directly in ``folder``, by path, in pages.

    Each page takes one request. There are no pages for local files, web servers and most plug-ins,
    nor for a folder that does not exist or may not be listed. A file that is missing here may still
    exist: look it up.

    Args:
        folder: path of the files up to the last ``/``.
        context: see :class:`RequestContext`.
        first: name of the first file to list, in the order of UTF-8; pages may begin earlier.
        last: name of the last file to list; its page is the last. None lists all.

    Raises: StorageError: storage failed.
    """
    if is_local(folder) or is_http(folder):
        return iter(())
    from recordgen.storage import remote

    return remote.list_infos(folder, context, first, last)


def list_folders(root: str, prefix: str) -> list[str]:
    """Return the names of the folders in ``root`` that start with ``prefix``, sorted."""
    return [name for name, is_folder in list_dir(root) if is_folder and name.startswith(prefix)]


def expand(source: str | list[str] | tuple[str, ...]) -> list[str]:
    """Return the import files that the paths or globs match, each once, in order.

    Raises:
        SourceError: a path or glob matches no file, or access to it is denied.
        StorageError: storage failed.
    """
    files: dict[str, None] = {}
    for pattern in [source] if isinstance(source, str) else source:
        try:
            path = normal(pattern)
            found = _storage(path).list_files(path)
        except OSError as exc:
            raise SourceError(
                f"{pattern}: cannot access this import file: {exc.strerror or exc}"
            ) from exc
        if not found:
            raise SourceError(
                f"{pattern}: no such import file, or a folder without files; give a path, a URL or "
                f"a quoted glob such as 'data/*.csv'"
            )
        files.update(dict.fromkeys(found))
    return list(files)
