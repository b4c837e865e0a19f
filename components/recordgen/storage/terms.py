"""The limits of a request, and the information it returns about a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

from recordgen.errors import FileTooLargeError


class FileInfo(NamedTuple):
    """What storage says of a regular file.

    Attributes:
        size: in bytes.
        version: a text that changes when the file does: its mtime, generation or etag.
    """

    size: int
    version: str


def too_large(path: str, size: int) -> FileTooLargeError:
    """Return the error that a file has more bytes than were asked for: at least ``size``."""
    return FileTooLargeError(f"{path}: too large: {size:,} bytes or more", size)


class UrlPolicy:
    """Where an http request may go; this class holds for files that the user named."""

    def refusal(self, url: str) -> str | None:
        """Return why a redirect to ``url`` must not be followed; None: it may."""
        if url.startswith(("http://", "https://")):
            return None
        return "only http and https are followed"

    def may_be_private(self, url: str, *, redirected: bool) -> bool:
        """Say whether ``url`` may lie at an address that is not public."""
        return not redirected

    def may_be_told(self, url: str, *, redirected: bool) -> bool:
        """Say whether configured headers and credentials may be sent to ``url``."""
        return not redirected


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What holds for a request.

    Attributes:
        policy: where an http request may go.
        stop: once it is set, the request is not repeated.
        at_most: counting a file's bytes may end above this number.
        deadline: the time of ``time.monotonic`` at which the request has failed, with all its
            repetitions; None: never.
    """

    policy: UrlPolicy = UrlPolicy()  # noqa: RUF009 it has no state
    stop: Event | None = None
    at_most: int | None = None
    deadline: float | None = None


#: A request that nothing limits but the number of its repetitions.
ANY_REQUEST = RequestContext()

_patient = ContextVar("_patient", default=True)


@contextmanager
def without_retries() -> Iterator[None]:
    """Let requests of this thread fail at once: their answers are not worth a wait."""
    token = _patient.set(False)
    try:
        yield
    finally:
        _patient.reset(token)


def is_patient() -> bool:
    """Say whether a request of this thread that fails may be sent again."""
    return _patient.get()
