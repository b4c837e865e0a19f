"""The files in a ZIP or tar archive, read in place as if they were those of a folder.

    photos.zip           data.yaml, images/train/a.jpg, labels/train/a.txt
    photos.zip/          the root of their listing, in which every format looks for evidence

Documents are inflated while they are read. An image is a range of the archive
(:class:`recordgen.core.rows.row.Range`), inflated when its shard is written. Nothing is written
to disk, so names cannot lead anywhere.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import IO, Any

from recordgen import storage
from recordgen.core import allowance, limits
from recordgen.core.rows.row import Range
from recordgen.errors import PayloadError, SourceError, StorageError
from recordgen.rejects import RejectCode

SUFFIXES = (".zip", ".tar")

# A document that is deflated further has no larger allowance of memory.
_USUAL_RATIO = 20

_ENCRYPTED, _UTF8 = 0x1, 0x800  # flags of an entry
_SIZE_END = 10**18  # a range has fewer digits
_DIRECTORY_END = struct.Struct("<4s4H2LH")
_DIRECTORY_MARK = b"PK\x05\x06"
_MEMBER = struct.Struct("<4s22x2H")
_MEMBER_MARK = b"PK\x03\x04"
_READ_BYTES = 1 << 16


@lru_cache(64)
def is_archive(path: str) -> bool:
    """Return whether a path is a ZIP or tar archive, by its name and its first bytes."""
    if not path.lower().endswith(SUFFIXES) or storage.is_http(path):
        return False
    try:
        with storage.open_read(path) as file:
            head = file.read(512)
    except (OSError, StorageError):
        return False
    return head.startswith((_MEMBER_MARK, _DIRECTORY_MARK)) or head[257:262] == b"ustar"


def archive_at(root: str) -> Archive | None:
    """Return the archive whose files have the root ``photos.zip/``; None for a folder."""
    path = root[:-1]
    if not is_archive(path):
        return None
    return Archive(storage.absolute(path))


class Archive:
    """The files in an archive."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def entries(self) -> Mapping[str, Range | PayloadError]:
        """The places of all files by name, or why a file cannot be read.

        Raises:
            SourceError: the archive is damaged, encrypted, or exceeds a limit; or it holds links,
                names that lead out of it, or two files of one name.
        """
        with storage.open_read(self.path) as file:
            allowance.grow_by(file)
            is_tar = file.read(len(_MEMBER_MARK)) not in (_MEMBER_MARK, _DIRECTORY_MARK)
            found: dict[str, Range | PayloadError] = {}
            for name, entry in self._tar(file) if is_tar else self._zip(file):
                parts = name.split("/")
                if ".." in parts or not parts[0]:
                    raise self._error(f"{name!r:.80} leads out of the archive")
                name = "/".join(part for part in parts if part not in ("", "."))
                if name in found:
                    raise self._error(f"two files have the name {name!r:.80}")
                found[name] = entry
                try:
                    limits.ENTRIES.check(len(found))
                except ValueError as exc:
                    raise self._error(str(exc)) from exc
        return found

    def folders(self) -> Mapping[str, Mapping[tuple[str, bool], None]]:
        """Return what each folder holds, as :func:`recordgen.storage.list_dir` does for one."""
        found: dict[str, dict[tuple[str, bool], None]] = {"": {}}
        for name in sorted(self.entries):
            folder, parts = "", name.split("/")
            for part in parts[:-1]:
                found[folder][part, True] = None
                folder = f"{folder}{part}/"
                found.setdefault(folder, {})
            found[folder][parts[-1], False] = None
        return found

    def _error(self, what: str) -> SourceError:
        return SourceError(f"{self.path}: {what}; unpack it, and pass the folder")

    def _tar(self, file: IO[bytes]) -> Iterator[tuple[str, Range | PayloadError]]:
        from recordgen.formats.tar_members import BadMember, tar_members  # no ZIP needs it

        for member in tar_members(file):
            if isinstance(member, BadMember) and member.code == RejectCode.TOO_MANY_PARTS:
                message = f"{self.path}: {member.message}"
                yield member.name, PayloadError(member.code.value, message)
                continue
            if isinstance(member, BadMember):
                raise self._error(f"{member.name}: {member.message}".removeprefix(": "))
            yield member.name, Range(self.path, member.offset, member.size)

    def _zip(self, file: IO[bytes]) -> Iterator[tuple[str, Range | PayloadError]]:
        announced = self._check_directory(file)
        try:
            with zipfile.ZipFile(file) as found:
                entries = found.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as exc:
            raise self._error(f"damaged archive: {exc}") from exc
        if announced not in (None, len(entries)):
            raise self._error(f"damaged archive: {announced} files, but {len(entries)} are listed")
        entries.sort(key=lambda entry: entry.header_offset)
        starts = [*(entry.header_offset for entry in entries), found.start_dir]
        for entry, end in zip(entries, starts[1:], strict=True):
            name = entry.filename if "/" in entry.filename else entry.filename.replace("\\", "/")
            if not name:
                raise self._error("damaged archive: a file in it has no name")
            if entry.is_dir() or name.endswith("/"):
                continue
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise self._error(f"{name!r:.80} is a link")
            if entry.flag_bits & _ENCRYPTED:
                raise self._error(f"{name!r:.80} is encrypted")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self._error(f"{name!r:.80} is packed with method {entry.compress_type}")
            try:
                limits.check_name(name)
            except ValueError as exc:
                name = limits.shortened_name(name, entry.header_offset)
                message = f"{self.path}: {exc}"
                yield name, PayloadError(RejectCode.TOO_MANY_PARTS.value, message)
            else:
                yield name, self._place(file, entry, end)

    def _place(self, file: IO[bytes], entry: zipfile.ZipInfo, end: int) -> Range | PayloadError:
        """Return where a file is: behind a header of its own, whose length only it says.

        The next file, or the list of files, begins at byte ``end``.
        """
        file.seek(max(0, entry.header_offset))
        head = file.read(_MEMBER.size)
        if not head.startswith(_MEMBER_MARK) or len(head) < _MEMBER.size:
            message = f"{self.path}: {entry.filename!r:.80} is not where the list of files says"
            return PayloadError(RejectCode.CORRUPT.value, message)
        _, *behind = _MEMBER.unpack(head)
        encoding = "utf-8" if entry.flag_bits & _UTF8 else "cp437"
        if file.read(behind[0]).decode(encoding, "replace") != entry.orig_filename:
            message = f"{self.path}: {entry.filename!r:.80} has another name where it is stored"
            return PayloadError(RejectCode.CORRUPT.value, message)
        offset = entry.header_offset + _MEMBER.size + sum(behind)
        is_stored = entry.compress_type == zipfile.ZIP_STORED
        size = entry.file_size if is_stored else entry.compress_size
        if offset + size > end or entry.file_size >= _SIZE_END:
            message = (
                f"{self.path}: {entry.filename!r:.80} does not end before the next file begins"
            )
            return PayloadError(RejectCode.CORRUPT.value, message)
        inflated = None if is_stored else entry.file_size
        return Range(self.path, offset, size, inflated, crc=entry.CRC)

    def _check_directory(self, file: IO[bytes]) -> int | None:
        """Check the size of a ZIP's list of entries, which is read as a whole.

        Returns:
            The number of entries that it announces; None if it is too large for that field.
        """
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - _DIRECTORY_END.size - 0xFFFF))
        tail = file.read()
        at = tail.rfind(_DIRECTORY_MARK)
        if 0 <= at <= len(tail) - _DIRECTORY_END.size:
            count, size = _DIRECTORY_END.unpack_from(tail, at)[4:6]
            most = limits.DIRECTORY_BYTES.most
            if most < size < 0xFFFFFFFF or (size == 0xFFFFFFFF and end > most):
                raise self._error(f"its list of files has {size:,} bytes or more")
            return None if count == 0xFFFF else int(count)
        return None

    def range_of(self, name: str) -> Range:
        """Return where a file is in the archive. Raises: PayloadError: it is not there."""
        found = self.entries[name]
        if isinstance(found, PayloadError):
            raise found
        return found

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading from its beginning. Raises: SourceError: there is none."""
        if name not in self.entries:
            raise SourceError(f"{self.path}: there is no {name} in this archive")
        try:
            part = self.range_of(name)
        except PayloadError as exc:
            raise SourceError(exc.message) from exc
        if part.length > max(limits.INFLATED_BYTES.most, limits.INFLATED_TIMES.most * part.stored):
            raise self._error(f"{name!r:.80} would grow to {part.length:,} bytes")
        return io.BufferedReader(_Part(part, f"{self.path}/{name}"), _READ_BYTES)


class _Part(io.RawIOBase):
    """The bytes of a file in an archive, inflated as they are read."""

    def __init__(self, part: Range, where: str) -> None:
        self._where = where
        file = storage.open_read(part.file)
        allowance.grow(part.stored, min(part.length, _USUAL_RATIO * part.stored))
        file.seek(part.offset)
        entry = zipfile.ZipInfo(where)
        is_packed = part.inflated is not None
        entry.compress_type = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
        entry.compress_size, entry.file_size = part.stored, part.length
        entry.CRC = part.crc  # type: ignore[assignment]  # None: a tar has no checksums
        self._file = zipfile.ZipExtFile(file, "r", entry, None, close_fileobj=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read1(len(buffer))
        except (zipfile.BadZipFile, EOFError, zlib.error) as exc:
            raise SourceError(
                f"{self._where}: damaged in the archive: it has another checksum, or fewer bytes, "
                f"than the archive says ({exc}); copy the archive again"
            ) from exc
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
