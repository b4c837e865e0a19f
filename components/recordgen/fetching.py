"""Payloads from storage: their bytes, their size, or why one is refused."""

from __future__ import annotations

import hashlib

from recordgen import storage
from recordgen.errors import PayloadError, UnknownSchemeError
from recordgen.options import ConvertOptions
from recordgen.payloads.image import check_size
from recordgen.rows import Named, RejectCode


def fetch(uri: str, source: str) -> bytes:
    """Return the bytes of the payload that a row names.

    Raises:
        PayloadError: there is none, or it may not be read.
        StorageError: storage failed.
    """
    path = storage.resolve(uri, source)
    try:
        return storage.read_bytes(path)
    except (OSError, UnknownSchemeError) as exc:
        raise _refusal(exc, path) from exc


def payload_info(row: Named, options: ConvertOptions) -> storage.FileInfo | PayloadError:
    """Return a payload's size and version, or why it is refused.

    Raises:
        StorageError: storage failed.
    """
    path = storage.resolve(row.uri, row.source)
    try:
        info = storage.info(path)
    except (OSError, UnknownSchemeError) as exc:
        return _refusal(exc, path)
    if info.size == 0:
        return PayloadError(RejectCode.EMPTY_FILE.value, "the file is empty (0 bytes)")
    try:
        check_size(info.size, options)
    except PayloadError as exc:
        return exc
    return info


def content_key(row: Named) -> bytes | PayloadError:
    """Return the sha256 of a payload, or why it is refused. Raises: StorageError."""
    try:
        return hashlib.sha256(fetch(row.uri, row.source)).digest()
    except PayloadError as exc:
        return exc


def _refusal(exc: Exception, path: str) -> PayloadError:
    """Return "not there" and "may not" as the refusal of a payload."""
    if isinstance(exc, PermissionError):
        return PayloadError(RejectCode.PERMISSION_DENIED.value, f"may not read {path}")
    if isinstance(exc, UnknownSchemeError):
        return PayloadError(RejectCode.UNKNOWN_SCHEME.value, str(exc))
    if isinstance(exc, IsADirectoryError):
        return PayloadError(RejectCode.NOT_A_FILE.value, f"expected a regular file: {path}")
    return PayloadError(RejectCode.MISSING_FILE.value, f"no such file: {path}")
