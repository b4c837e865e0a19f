"""On which terms a file is read: what lies in between may be refused, and one may stop waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event


class Gate:
    """Where an http request may go. This one is for files that the user named."""

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
class Terms:
    """On which terms a file is read.

    Attributes:
        gate: where an http request may go.
        stop: once it is set, nobody waits for the file any longer.
        at_most: nobody wants to know how much larger than so many bytes the file is.
    """

    gate: Gate = Gate()  # noqa: RUF009 it has no state
    stop: Event | None = None
    at_most: int | None = None


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
