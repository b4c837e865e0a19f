"""Local files, opened directly: the fast path."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import threading
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO
from weakref import finalize

from recordgen.errors import StorageError, UnreachableError
from recordgen.storage.access import FileInfo, too_large
from recordgen.storage.paths import local_path, with_slashes

# With these errors the file cannot exist; storage did not fail.
_NO_SUCH_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)

#: Non-blocking: opening a pipe would wait for a writer. Windows has only the last flag.
OPEN_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")
)

_seeking = threading.Lock()


def _seek_and_read(file: int, length: int, start: int) -> bytes:
    with _seeking:  # all threads share the place in an open file
        os.lseek(file, start, os.SEEK_SET)
        return os.read(file, length)


#: As ``os.pread``, which Windows lacks.
read_at: Callable[[int, int, int], bytes] = getattr(os, "pread", _seek_and_read)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn OSErrors into UnreachableError, except those for missing and forbidden files."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError):
        raise
    except OSError as exc:
        if exc.errno in _NO_SUCH_NAME:
            raise FileNotFoundError(exc.errno, exc.strerror, path) from exc
        raise UnreachableError(f"{path}: {type(exc).__name__}: {exc}") from exc
    except ValueError as exc:  # NUL, or text that cannot be encoded
        raise FileNotFoundError(errno.EINVAL, str(exc), path) from exc


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn every OSError into StorageError."""
    try:
        yield
    except OSError as exc:
        raise StorageError(f"{path}: cannot write: {exc.strerror or exc}") from exc


def info(path: str, context: object = None) -> FileInfo:
    """Look up a regular file. Raises: as :func:`recordgen.storage.info`."""
    with _reading(path):
        status = os.stat(local_path(path))
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(path)
    return FileInfo(status.st_size, str(status.st_mtime_ns))


def infos(paths: Iterable[str]) -> Iterator[FileInfo | None]:
    """Look up many files; see :func:`recordgen.storage.local_infos`."""
    for path in paths:
        try:
            status = os.stat(local_path(path))
        except (OSError, ValueError):
            yield None
        else:
            info = FileInfo(status.st_size, str(status.st_mtime_ns))
            yield info if stat.S_ISREG(status.st_mode) else None


def read_bytes(path: str, at_most: int | None, context: object = None) -> bytes:
    """Return a regular file's content. Raises: FileTooLargeError, before anything is read."""
    try:  # plain system calls: this runs for every row
        file = os.open(local_path(path), OPEN_FLAGS)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise IsADirectoryError(path)
            size = status.st_size
            if at_most is not None and size > at_most:
                raise too_large(path, size)
            data = os.read(file, size)
            while len(data) < size and (more := os.read(file, size - len(data))):
                data += more
            return data
        finally:
            os.close(file)
    except (OSError, ValueError):
        with _reading(path):
            raise


def read_range(path: str, start: int, length: int, context: object = None) -> bytes:
    with _reading(path):  # plain system calls: this runs for every row of a container
        file = os.open(local_path(path), OPEN_FLAGS)
        try:
            data = read_at(file, length, start)
            while len(data) < length and (
                more := read_at(file, length - len(data), start + len(data))
            ):
                data += more
            return data
        finally:
            os.close(file)


def open_read(path: str, context: object = None) -> IO[bytes]:
    with _reading(path):
        if (mode := _mode(local_path(path))) is not None and stat.S_ISFIFO(mode):
            raise StorageError(f"{path}: this is a pipe; files are read twice, so save it as one")
        return open(local_path(path), "rb")


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a file under a temporary name and rename it when it is complete."""
    plain = local_path(path)
    temporary = f"{plain}.{uuid.uuid4().hex}.tmp"
    with writing(path):
        _make_folder_of(plain)
        try:
            # Buffered: the system may write only a part of what an unbuffered file is given.
            with open(temporary, "wb") as file:
                yield file
            os.replace(temporary, plain)
        finally:
            remove(temporary)


def _make_folder_of(plain: str) -> None:
    folder = os.path.dirname(plain) or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except FileNotFoundError:  # somebody has just removed a folder above, which was empty
        os.makedirs(folder, exist_ok=True)


def write_bytes(path: str, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


def move(source: str, target: str) -> None:
    plain = local_path(target)
    with writing(target):
        _make_folder_of(plain)
        os.replace(local_path(source), plain)


def remove(path: str) -> None:
    plain = local_path(path)
    with writing(path):
        try:
            is_folder = os.path.isdir(plain) and not os.path.islink(plain)
            shutil.rmtree(plain) if is_folder else os.remove(plain)
        except (FileNotFoundError, NotADirectoryError):
            return


remove_file = remove


def remove_empty(folder: str) -> None:
    with suppress(OSError):
        os.rmdir(local_path(folder))


def is_file(path: str) -> bool:
    """Return whether there is a file at ``path``. Raises: PermissionError."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: str) -> int | None:
    """Return the mode of ``path``, None if it does not exist; os.path.exists would hide errors."""
    try:
        with _reading(path):
            return os.stat(local_path(path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def list_files(pattern: str) -> list[str]:
    plain = local_path(pattern)
    with _reading(pattern):
        if is_file(plain):
            return [plain]
        found = filter(os.path.isfile, glob.glob(plain, recursive=True))
        return sorted(map(with_slashes, found))


def list_dir(folder: str) -> list[tuple[str, bool]]:
    with _reading(folder):
        try:
            with os.scandir(local_path(folder) or ".") as entries:
                return sorted((entry.name, entry.is_dir()) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []


# --- data that wait to be read again, in memory or in a temporary file ----------------------------


class Spool:
    """Pieces of data by their number.

    The last ones, of so many bytes, are in memory, and the others in a file.
    """

    in_memory = 4 << 20

    def __init__(self) -> None:
        self._ends = array("q", [0])  # where each piece ends, after the start of the first
        self._last = bytearray()
        self._stored = 0
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, piece: bytes) -> int:
        """Add a piece, and return its number. Raises: StorageError: there is no room for a file."""
        self._last += piece
        self._ends.append(self._stored + len(self._last))
        if len(self._last) > self.in_memory:
            self._store()
        return len(self._ends) - 2

    def _store(self) -> None:
        try:
            if self._file is None:
                self._file = TemporaryFile(buffering=0)  # noqa: SIM115, closed with the spool
                finalize(self, self._file.close)
            self._file.seek(self._stored)
            with memoryview(self._last) as data:
                written = 0
                while written < len(data):
                    written += self._file.write(data[written:])
        except OSError as exc:
            raise StorageError(f"large data need a temporary file: {exc}; set TMPDIR") from exc
        self._stored += len(self._last)
        self._last = bytearray()

    def __getitem__(self, number: int) -> bytes:
        start, end = self._ends[number : number + 2]
        if self._file is None or start >= self._stored:
            return bytes(self._last[start - self._stored : end - self._stored])
        return read_at(self._file.fileno(), end - start, start)
