"""Files by path or URL: local ones directly, everything else through fsspec.

fsspec knows gs://, s3://, https://, memory:// and what its plug-ins add; credentials are taken
the way those libraries take them.
"""

from __future__ import annotations

import glob
import os
import posixpath
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from fsspec import available_protocols
from fsspec.core import url_to_fs

from recordgen.errors import SourceError, StorageError, UnknownSchemeError


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


@contextmanager
def mapped_errors(path: str) -> Iterator[None]:
    """Turn what storage libraries raise into StorageError, but for what says "not there"."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError):
        raise
    except OSError as exc:
        raise StorageError(f"{path}: {type(exc).__name__}: {exc}") from exc


def _filesystem(path: str) -> tuple[Any, str]:
    """Return the fsspec file system for a URL and the path inside it."""
    scheme = path.split("://", 1)[0].rsplit("::", 1)[-1]
    if scheme not in available_protocols():  # fsspec itself takes g:// for a Windows drive
        raise UnknownSchemeError(f"{path}: no storage is known for {scheme}://")
    try:
        fs, inner = url_to_fs(path)
    except ImportError as exc:
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}") from exc
    return fs, inner


def size(path: str) -> int:
    """Return the size of a regular file in bytes.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        PermissionError: it may not be looked at.
        IsADirectoryError: it is not a regular file.
        StorageError: storage failed.
    """
    with mapped_errors(path):
        if is_local(path):
            status = os.stat(local_path(path))
            if not stat.S_ISREG(status.st_mode):
                raise IsADirectoryError(path)
            return status.st_size
        fs, inner = _filesystem(path)
        info = fs.info(inner)
        if info["type"] != "file":
            raise IsADirectoryError(path)
        return int(info["size"])


def version(path: str) -> str:
    """Return a text that changes when the file does: size with mtime, generation or etag.

    Raises: as :func:`size`.
    """
    with mapped_errors(path):
        if is_local(path):
            status = os.stat(local_path(path))
            return f"{status.st_size}:{status.st_mtime_ns}"
        fs, inner = _filesystem(path)
        info = fs.info(inner)
        mark = next(
            (
                info[key]
                for key in ("generation", "ETag", "etag", "mtime", "created")
                if key in info
            ),
            "",
        )
        return f"{info['size']}:{mark}"


def read_bytes(path: str) -> bytes:
    """Return the whole content of a file. Raises: as :func:`size`."""
    with mapped_errors(path):
        if is_local(path):
            with open(local_path(path), "rb") as file:
                return file.read()
        fs, inner = _filesystem(path)
        return bytes(fs.cat_file(inner))


def read_text(path: str) -> str:
    """Return the whole content of a UTF-8 file. Raises: as :func:`size`."""
    return read_bytes(path).decode("utf-8")


def open_read(path: str) -> IO[bytes]:
    """Open a file for buffered binary reading. Raises: as :func:`size`."""
    with mapped_errors(path):
        if is_local(path):
            return open(local_path(path), "rb")
        fs, inner = _filesystem(path)
        file: IO[bytes] = fs.open(inner, "rb")
        return file


def open_write(path: str) -> IO[bytes]:
    """Open a file for binary writing; its folders are made. Raises: StorageError."""
    with mapped_errors(path):
        if is_local(path):
            os.makedirs(os.path.dirname(local_path(path)) or ".", exist_ok=True)
            return open(local_path(path), "wb")
        fs, inner = _filesystem(path)
        fs.makedirs(posixpath.dirname(inner), exist_ok=True)
        file: IO[bytes] = fs.open(inner, "wb")
        return file


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open ``path`` for writing so that readers see the old content or the new, never a part.

    A local file is written under another name, flushed to disk and renamed; an object appears
    when it is closed. Raises: StorageError.
    """
    if not is_local(path):
        with open_write(path) as file, mapped_errors(path):
            yield file
        return
    plain = local_path(path)
    temporary = f"{plain}.{uuid.uuid4().hex}.tmp"
    try:
        with open_write(temporary) as file, mapped_errors(path):
            yield file
        os.replace(temporary, plain)
    finally:
        remove(temporary)


def write_text(path: str, text: str) -> None:
    """Write a small UTF-8 file, whole or not at all. Raises: StorageError."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def move(source: str, target: str) -> None:
    """Move a file or a folder within one storage, replacing a file at ``target``."""
    with mapped_errors(source):
        if is_local(source):
            os.makedirs(os.path.dirname(local_path(target)) or ".", exist_ok=True)
            os.replace(local_path(source), local_path(target))
            return
        fs, inner = _filesystem(source)
        fs.mv(inner, _filesystem(target)[1], recursive=True)


def remove(path: str) -> None:
    """Remove a file or a folder with all it holds; nothing there is fine."""
    with mapped_errors(path):
        try:
            if is_local(path):
                plain = local_path(path)
                shutil.rmtree(plain) if os.path.isdir(plain) else os.remove(plain)
                return
            fs, inner = _filesystem(path)
            if fs.exists(inner):
                fs.rm(inner, recursive=True)
        except FileNotFoundError:
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


def list_folders(root: str, prefix: str) -> list[str]:
    """Return the names of the folders in ``root`` that start with ``prefix``, sorted."""
    with mapped_errors(root):
        if is_local(root):
            found = glob.glob(os.path.join(glob.escape(local_path(root)), f"{prefix}*"))
            return sorted(os.path.basename(path) for path in found if os.path.isdir(path))
        fs, inner = _filesystem(root)
        if not fs.isdir(inner):
            return []
        names = (
            posixpath.basename(info["name"].rstrip("/"))
            for info in fs.ls(inner, detail=True)
            if info["type"] == "directory"
        )
        return sorted(name for name in names if name.startswith(prefix))


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
