"""Files by path or URL: local ones directly, everything else through fsspec.

fsspec knows gs://, s3://, https://, memory:// and what its plug-ins add; credentials are taken
the way those libraries take them.
"""

from __future__ import annotations

import errno
import glob
import os
import posixpath
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from fsspec import available_protocols, registry
from fsspec.core import url_to_fs

from recordgen.errors import RecordgenError, SourceError, StorageError, UnknownSchemeError


def is_local(path: str) -> bool:
    """Say whether ``path`` lies on this machine's file system."""
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> str:
    """Return the plain path of a local one: ``file:///a/b`` → ``/a/b``."""
    return path.removeprefix("file://")


def join(root: str, *parts: str) -> str:
    """Join path parts with ``/``, for local paths and URLs alike."""
    return posixpath.join(root, *parts)


def resolve(uri: str, source: str) -> str:
    """Return where the payload ``uri`` lies that a line of the import file ``source`` names.

    URLs and absolute paths are taken as they are, relative paths from the import file's folder.
    """
    if "://" in uri or uri.startswith("/"):
        return uri
    return posixpath.join(posixpath.dirname(source), uri)


# Says "there can be no such file", not "storage failed".
_NO_SUCH_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)


@contextmanager
def mapped_errors(path: str) -> Iterator[None]:
    """Turn what storage libraries raise into StorageError, but for what says "not there"."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError):
        raise
    except OSError as exc:
        if exc.errno in _NO_SUCH_NAME:
            raise FileNotFoundError(exc.errno, exc.strerror, path) from exc
        raise StorageError(f"{path}: {type(exc).__name__}: {exc}") from exc
    except RecordgenError:
        raise
    except Exception as exc:
        if is_local(path):
            raise
        # gcsfs, aiohttp and google-auth raise plain exceptions of their own.
        raise StorageError(f"{path}: {type(exc).__name__}: {exc}") from exc


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Turn any failure to write into StorageError: there is nothing to say "not there" about."""
    try:
        with mapped_errors(path):
            yield
    except OSError as exc:
        raise StorageError(f"{path}: cannot write: {exc.strerror or exc}") from exc


def _filesystem(path: str) -> tuple[Any, str]:
    """Return the fsspec file system for a URL and the path inside it."""
    scheme = path.split("://", 1)[0].rsplit("::", 1)[-1]
    # fsspec itself takes g:// for a Windows drive.
    if scheme not in available_protocols() and scheme not in registry:
        raise UnknownSchemeError(f"{path}: no storage is known for {scheme}://")
    try:
        fs, inner = url_to_fs(path)
    except ImportError as exc:
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}") from exc
    return fs, inner


class FileInfo(NamedTuple):
    """What storage says of a regular file.

    Attributes:
        size: in bytes.
        version: a text that changes when the file does: its mtime, generation or etag.
    """

    size: int
    version: str


def info(path: str) -> FileInfo:
    """Look up a regular file.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        PermissionError: it may not be looked at.
        IsADirectoryError: it is not a regular file.
        StorageError: storage failed.
    """
    if is_local(path):
        try:  # no context manager: this is asked for every row
            status = os.stat(local_path(path))
        except OSError:
            with mapped_errors(path):
                raise
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(path)
        return FileInfo(status.st_size, str(status.st_mtime_ns))
    with mapped_errors(path):
        fs, inner = _filesystem(path)
        found = fs.info(inner)
        if found["type"] != "file":
            raise IsADirectoryError(path)
        marks = (found[key] for key in _VERSION_KEYS if key in found)
        return FileInfo(int(found["size"]), str(next(marks, "")))


# Where fsspec's file systems keep what tells one version of an object from the next.
_VERSION_KEYS = ("generation", "ETag", "etag", "mtime", "created")


def size(path: str) -> int:
    """Return the size of a regular file in bytes. Raises: as :func:`info`."""
    return info(path).size


def version(path: str) -> str:
    """Return a text that changes when the file does. Raises: as :func:`info`."""
    return "{}:{}".format(*info(path))


def read_bytes(path: str) -> bytes:
    """Return the whole content of a file. Raises: as :func:`info`."""
    with mapped_errors(path):
        if is_local(path):
            with open(local_path(path), "rb", buffering=0) as file:
                return file.read()
        fs, inner = _filesystem(path)
        return bytes(fs.cat_file(inner))


def read_text(path: str) -> str:
    """Return the whole content of a UTF-8 file. Raises: as :func:`info`."""
    return read_bytes(path).decode("utf-8")


def open_read(path: str) -> IO[bytes]:
    """Open a file for buffered binary reading. Raises: as :func:`info`."""
    with mapped_errors(path):
        if is_local(path):
            return open(local_path(path), "rb")
        fs, inner = _filesystem(path)
        file: IO[bytes] = fs.open(inner, "rb")
        return file


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open ``path`` for writing so that readers see the old content or the new, never a part.

    A local file is written under another name and renamed; an object appears when it is closed.
    Folders are made. Raises: StorageError.
    """
    with _writing(path):
        if is_local(path):
            plain = local_path(path)
            temporary = f"{plain}.{uuid.uuid4().hex}.tmp"
            os.makedirs(os.path.dirname(plain) or ".", exist_ok=True)
            try:
                # Unbuffered: what is written here comes in large pieces.
                with open(temporary, "wb", buffering=0) as file:
                    yield file
                os.replace(temporary, plain)
            finally:
                remove(temporary)
            return
        fs, inner = _filesystem(path)
        fs.makedirs(posixpath.dirname(inner), exist_ok=True)
        try:
            with fs.open(inner, "wb") as file:
                yield file
        except BaseException:
            remove(path)  # closing a file, even after an error, makes it visible
            raise


def write_text(path: str, text: str) -> None:
    """Write a small UTF-8 file, whole or not at all. Raises: StorageError."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def move(source: str, target: str) -> None:
    """Move a file within one storage, replacing the one at ``target``. Raises: StorageError."""
    with _writing(target):
        if is_local(source):
            os.makedirs(os.path.dirname(local_path(target)) or ".", exist_ok=True)
            os.replace(local_path(source), local_path(target))
            return
        fs, inner = _filesystem(source)
        to = _filesystem(target)[1]
        fs.makedirs(posixpath.dirname(to), exist_ok=True)
        fs.mv(inner, to)


def remove(path: str) -> None:
    """Remove a file or a folder with all it holds; nothing there is fine. Raises: StorageError."""
    with _writing(path):
        try:
            if is_local(path):
                plain = local_path(path)
                is_folder = os.path.isdir(plain) and not os.path.islink(plain)
                shutil.rmtree(plain) if is_folder else os.remove(plain)
                return
            fs, inner = _filesystem(path)
            if fs.exists(inner):
                fs.rm(inner, recursive=True)
        except (FileNotFoundError, NotADirectoryError):
            return


def exists(path: str) -> bool:
    """Say whether there is a file or folder at ``path``."""
    with mapped_errors(path):
        if is_local(path):
            return os.path.exists(local_path(path))
        fs, inner = _filesystem(path)
        return bool(fs.exists(inner))


def list_files(pattern: str) -> list[str]:
    """Return the files that ``pattern`` matches, sorted; a pattern without magic is a path.

    Folders are left out. Nothing that matches gives an empty list.
    """
    with mapped_errors(pattern):
        if is_local(pattern):
            plain = local_path(pattern)
            found = [plain] if os.path.isfile(plain) else glob.glob(plain, recursive=True)
            return sorted(path for path in found if os.path.isfile(path))
        fs, inner = _filesystem(pattern)
        if fs.isfile(inner):
            return [pattern]
        details = fs.glob(inner, detail=True)
        return sorted(fs.unstrip_protocol(p) for p, i in details.items() if i["type"] == "file")


def list_dir(folder: str) -> list[tuple[str, bool]]:
    """Return what lies in ``folder`` as (name, is a folder), sorted; no folder: nothing."""
    with mapped_errors(folder):
        if is_local(folder):
            try:
                with os.scandir(local_path(folder) or ".") as entries:
                    return sorted((entry.name, entry.is_dir()) for entry in entries)
            except (FileNotFoundError, NotADirectoryError):
                return []
        fs, inner = _filesystem(folder)
        if not fs.isdir(inner):
            return []
        return sorted(
            (posixpath.basename(info["name"].rstrip("/")), info["type"] == "directory")
            for info in fs.ls(inner, detail=True)
        )


def list_folders(root: str, prefix: str) -> list[str]:
    """Return the names of the folders in ``root`` that start with ``prefix``, sorted."""
    return [name for name, is_folder in list_dir(root) if is_folder and name.startswith(prefix)]


def expand(source: str | list[str] | tuple[str, ...]) -> list[str]:
    """Return the import files that one or several paths or globs name, each once, in order.

    Raises:
        SourceError: a path or glob names no file.
    """
    files: dict[str, None] = {}
    for pattern in [source] if isinstance(source, str) else source:
        found = list_files(pattern)
        if not found:
            raise SourceError(
                f"{pattern}: no such import file; give a path, a URL or a quoted glob such as "
                f"'data/*.csv'"
            )
        files.update(dict.fromkeys(found))
    return list(files)
