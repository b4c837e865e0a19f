"""The members of a tar archive: their names, and where their bytes are in it.

    header of 512 bytes: 0001.jpg, 20,480 bytes │ 20,480 bytes │ header: 0001.cls, 1 byte │ …

Python's ``tarfile`` allocates what a header announces, and follows negative sizes in circles. This
reader takes 512 bytes at a time, always moves forward, reads no more of an extended header than
:data:`recordgen.core.limits.HEADER_BYTES`, and keeps only the keywords that it needs. Formats:
POSIX.1-2001 (pax), ustar, and GNU tar with long names.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import IO, NamedTuple

from recordgen.core.limits import HEADER_BYTES, NAME_BYTES, check_name, shortened_name
from recordgen.rejects import RejectCode

_BLOCK = tarfile.BLOCKSIZE

_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
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
        block = _read(file, at, _BLOCK)
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
            name = long or _text(more.get(_PATH, b"")) or name
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
            more |= _pax(_read(file, start, min(size, HEADER_BYTES.most)))
            try:
                HEADER_BYTES.check(size)
            except ValueError as exc:
                refusal = str(exc)
            continue
        if kind == tarfile.GNUTYPE_LONGNAME:
            long = _text(_read(file, start, min(size, NAME_BYTES.most + 1)))
            continue
        if kind in _BESIDE:
            continue
        if refusal:
            yield BadMember(name, RejectCode.TOO_MANY_PARTS, refusal)
        elif kind in _LINKS:
            yield BadMember(name, RejectCode.NOT_A_FILE, "it is a link; pack the file itself")
        elif _SPARSE in more:
            yield BadMember(name, RejectCode.CORRUPT, _HAS_HOLES)
        elif kind in _FILES and not name.endswith("/"):
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
    if _number(said) != sum(block) - sum(said) + 8 * ord(" "):
        raise ValueError("its checksum is wrong")
    name = _text(block[:100])
    if block[345] and block[257:263] == b"ustar\0":
        name = f"{_text(block[345:500])}/{name}"
    return name, _number(block[124:136]), block[156:157]


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _number(field: bytes) -> int | None:
    """Return a number in octal digits, or in bytes after 0x80; None if it is negative or none."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        found = int(field.partition(b"\0")[0] or b"0", 8)
    except ValueError:
        return None
    return found if found >= 0 else None


def _read(file: IO[bytes], at: int, size: int) -> bytes:
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
