"""The files in a ZIP or tar archive, read in place as if they were those of a folder.

    photos.zip           data.yaml, images/train/a.jpg, labels/train/a.txt
    photos.zip/          the root of their listing, in which every format looks for evidence

Documents are inflated while they are read. An image is a range of the archive
(:class:`recordgen.core.rows.row.Range`), inflated when its shard is written. Nothing is written
to disk, so names cannot lead anywhere.

Python's ``tarfile`` allocates what a header announces, and follows negative sizes in circles. The
reader of tars here takes 512 bytes at a time, always moves forward, reads no more of an extended
header than :data:`recordgen.core.limits.HEADER_BYTES`, and keeps only the keywords that it needs.
Formats: POSIX.1-2001 (pax), ustar, and GNU tar with long names.
"""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import IO, Any, NamedTuple

from recordgen import storage
from recordgen.core import allowance, limits
from recordgen.core.limits import HEADER_BYTES, NAME_BYTES, check_name, shortened_name
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
    return Archive(storage.absolute(path)) if is_archive(path) else None


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

    def _refused(self, code: RejectCode, what: str) -> PayloadError:
        return PayloadError(code.value, f"{self.path}: {what}")

    def _tar(self, file: IO[bytes]) -> Iterator[tuple[str, Range | PayloadError]]:
        for member in tar_members(file):
            if isinstance(member, Member):
                yield member.name, Range(self.path, member.offset, member.size)
            elif member.code == RejectCode.TOO_MANY_PARTS:
                yield member.name, self._refused(member.code, member.message)
            else:
                raise self._error(f"{member.name}: {member.message}".removeprefix(": "))

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
                yield name, self._refused(RejectCode.TOO_MANY_PARTS, str(exc))
            else:
                yield name, self._place(file, entry, end)

    def _place(self, file: IO[bytes], entry: zipfile.ZipInfo, end: int) -> Range | PayloadError:
        """Return where a file is: behind a header of its own, whose length only it says.

        The next file, or the list of files, begins at byte ``end``.
        """
        file.seek(max(0, entry.header_offset))
        head, name = file.read(_MEMBER.size), f"{entry.filename!r:.80}"
        if not head.startswith(_MEMBER_MARK) or len(head) < _MEMBER.size:
            return self._refused(RejectCode.CORRUPT, f"{name} is not where the list of files says")
        _, *behind = _MEMBER.unpack(head)
        encoding = "utf-8" if entry.flag_bits & _UTF8 else "cp437"
        if file.read(behind[0]).decode(encoding, "replace") != entry.orig_filename:
            return self._refused(RejectCode.CORRUPT, f"{name} has another name where it is stored")
        offset = entry.header_offset + _MEMBER.size + sum(behind)
        is_stored = entry.compress_type == zipfile.ZIP_STORED
        size = entry.file_size if is_stored else entry.compress_size
        if offset + size > end or entry.file_size >= _SIZE_END:
            return self._refused(RejectCode.CORRUPT, f"{name} overlaps the next file")
        return Range(self.path, offset, size, None if is_stored else entry.file_size, crc=entry.CRC)

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
        part = self.entries.get(name)
        if part is None:
            raise SourceError(f"{self.path}: there is no {name} in this archive")
        if isinstance(part, PayloadError):
            raise SourceError(part.message)
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
            what = f"its checksum or size is not what the archive says ({exc})"
            raise SourceError(f"{self._where}: damaged: {what}; copy the archive again") from exc
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


# --- members of a tar ----------------------------------------------------------------------------

_BLOCK = tarfile.BLOCKSIZE

_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_LINKS = (tarfile.LNKTYPE, tarfile.SYMTYPE)
_DEVICES = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
_WITHOUT_DATA = (tarfile.DIRTYPE, *_LINKS, *_DEVICES)
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
# These come between the headers of one member, and are not needed.
_BESIDE = (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK)
_EXTENDED = (*_PAX, tarfile.GNUTYPE_LONGNAME, *_BESIDE)

_PATH, _SIZE, _SPARSE = b"path", b"size", b"GNU.sparse."
_HAS_HOLES = "it has holes; pack it without --sparse"
_ZEROS = bytes(_BLOCK)


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    offset: int
    size: int


class BadMember(NamedTuple):
    """A part of an archive that cannot be read.

    Attributes:
        name: the name of the member, if it is known.
        code: why it is rejected.
        message: what was found, with the place in the archive.
    """

    name: str
    code: RejectCode
    message: str


def tar_members(file: IO[bytes]) -> Iterator[Member | BadMember]:
    """Yield the files in an archive, and its members that are none; folders are skipped.

    After damage that hides where the next header is, nothing follows.
    """
    end = file.seek(0, io.SEEK_END)
    at, long, more, refusal = 0, "", dict[bytes, bytes](), ""
    while at < end:
        block = _read_at(file, at, _BLOCK)
        if block == _ZEROS:  # two such blocks end an archive; some programs write one
            break
        try:
            name, size, kind = _header(block)
        except ValueError as exc:
            code = RejectCode.TRUNCATED if len(block) < _BLOCK else RejectCode.CORRUPT
            yield BadMember("", code, f"there is no header of a tar at byte {at:,}: {exc}")
            return
        head, start, is_extended = at, at + _BLOCK, kind in _EXTENDED
        if not is_extended:
            name = long or _field_text(more.get(_PATH, b"")) or name
            try:
                check_name(name)
                if b"\0" in more.get(_PATH, b""):
                    raise ValueError("its path has a NUL")
            except ValueError as exc:
                name, refusal = shortened_name(name, head), str(exc)
            if (said := more.get(_SIZE)) is not None:
                size = int(said) if said.isdigit() and len(said) < 19 else None
        uri = "" if is_extended else name
        if size is None:
            message = f"the header at byte {at:,} has no size, or one that no program writes"
            yield BadMember(uri, RejectCode.CORRUPT, message)
            return
        if kind == tarfile.GNUTYPE_SPARSE:
            yield BadMember(uri, RejectCode.CORRUPT, _HAS_HOLES)
            return
        at = start if kind in _WITHOUT_DATA else start + -(-size // _BLOCK) * _BLOCK
        if at > start and start + size > end:
            message = f"it has {size:,} bytes at byte {start:,}, and the tar ends at byte {end:,}"
            yield BadMember(uri, RejectCode.TRUNCATED, message)
            return
        if kind in _PAX:
            more |= _pax(_read_at(file, start, min(size, HEADER_BYTES.most)))
            try:
                HEADER_BYTES.check(size)
            except ValueError as exc:
                refusal = str(exc)
            continue
        if kind == tarfile.GNUTYPE_LONGNAME:
            long = _field_text(_read_at(file, start, min(size, NAME_BYTES.most + 1)))
            continue
        if kind in _BESIDE:
            continue
        if refusal:
            yield BadMember(name, RejectCode.TOO_MANY_PARTS, refusal)
        elif kind in _LINKS:
            yield BadMember(name, RejectCode.NOT_A_FILE, "it is a link; pack the file itself")
        elif _SPARSE in more:
            yield BadMember(name, RejectCode.CORRUPT, _HAS_HOLES)
        elif kind in _REGULAR and not name.endswith("/"):
            yield Member(name, start, size)
        long, more, refusal = "", {}, ""
    if refusal:
        yield BadMember("", RejectCode.TOO_MANY_PARTS, refusal)


def _header(block: bytes) -> tuple[str, int | None, bytes]:
    """Return name, size and type of a header; a size that is no number is None.

    Raises: ValueError: it is no header.
    """
    if len(block) < _BLOCK:
        raise ValueError("the tar ends")
    said = block[148:156]
    if _field_number(said) != sum(block) - sum(said) + 8 * ord(" "):
        raise ValueError("its checksum is wrong")
    name = _field_text(block[:100])
    if block[345] and block[257:263] == b"ustar\0":
        name = f"{_field_text(block[345:500])}/{name}"
    return name, _field_number(block[124:136]), block[156:157]


def _field_text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _field_number(field: bytes) -> int | None:
    """Return a number in octal digits, or in bytes after 0x80; None if it is negative or none."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        found = int(field.partition(b"\0")[0] or b"0", 8)
    except ValueError:
        return None
    return found if found >= 0 else None


def _read_at(file: IO[bytes], at: int, size: int) -> bytes:
    if file.tell() != at:
        file.seek(at)
    return file.read(size)


def _pax(data: bytes) -> dict[bytes, bytes]:
    """Return path, size and sparseness of an extended header, ``30 path=photos/0001.jpg``.

    What follows damage is ignored.
    """
    found = {}
    at = 0
    while at < len(data):
        length, mark, _ = data[at : at + 10].partition(b" ")
        if not mark or not length.isdigit() or not len(length) + 2 < int(length) <= len(data) - at:
            break
        key, _, value = data[at + len(length) + 1 : at + int(length)].partition(b"=")
        if key in (_PATH, _SIZE):
            found[key] = value.removesuffix(b"\n")
        elif key.startswith(_SPARSE):
            found[_SPARSE] = value
        at += int(length)
    return found
