"""Limits of a request, and the information about a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

from recordgen.errors import FileTooLargeError, StorageError


class FileInfo(NamedTuple):
    """Size and version of a regular file.

    Attributes:
        size: in bytes.
        version: a text that changes when the file does: its mtime, generation or etag.
    """

    size: int
    version: str


def too_large(path: str, size: int) -> FileTooLargeError:
    """Return the error for a file that exceeds its size limit: it has at least ``size`` bytes."""
    return FileTooLargeError(f"{path}: too large: {size:,} bytes or more", size)


class UrlPolicy:
    """Rules for http requests; this class has the rules for files that the user named."""

    def refusal(self, url: str) -> str | None:
        """Return why a redirect to ``url`` must not be followed, else None."""
        if url.startswith(("http://", "https://")):
            return None
        return "only http and https are followed"

    def may_be_private(self, url: str, *, redirected: bool) -> bool:
        """Return whether ``url`` may be at a private address."""
        return not redirected

    def may_get_credentials(self, url: str, *, redirected: bool) -> bool:
        """Return whether configured headers and credentials may be sent to ``url``."""
        return not redirected


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Policy and limits of a request.

    Attributes:
        policy: rules for http requests.
        stop: once it is set, the request is not retried.
        at_most: largest size of interest in bytes; ``info`` may stop counting above it.
        deadline: time of ``time.monotonic`` at which the request fails, retries included; None if
            unlimited.
    """

    policy: UrlPolicy = UrlPolicy()  # noqa: RUF009 it has no state
    stop: Event | None = None
    at_most: int | None = None
    deadline: float | None = None


#: A request that only the number of attempts limits.
ANY_REQUEST = RequestContext()

_retrying = ContextVar("_retrying", default=True)


@contextmanager
def without_retries() -> Iterator[None]:
    """Do not retry requests of this thread."""
    token = _retrying.set(False)
    try:
        yield
    finally:
        _retrying.reset(token)


def may_retry() -> bool:
    """Return whether failed requests of this thread may be retried."""
    return _retrying.get()


@contextmanager
def only_storage_errors(path: str, doing: str) -> Iterator[None]:
    """Turn any OSError into StorageError; ``doing`` is the failure, such as ``cannot write``."""
    try:
        yield
    except OSError as exc:
        detail = f" ({exc.strerror})" if exc.strerror else ""
        if isinstance(exc, PermissionError):
            reason = f"permission denied{detail}; check your credentials and their rights"
        elif isinstance(exc, FileNotFoundError):
            reason = f"no such bucket or folder{detail}"
        else:
            reason = f"{type(exc).__name__}: {exc}"
        raise StorageError(f"{path}: {doing}: {reason}") from exc
