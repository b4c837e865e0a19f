"""A circuit breaker for each host that keeps failing, in each process.

    request ─fails, after all retries──▶ 16 in a row ─▶ no requests for 60 s, then one trial,
            ─gets any response─────────▶ 0 in a row     no requests for 120 s, …

A failure counts only if its request began after the host's last response: bad files among good ones
on the same host fail late, after their retries, and must not count against the host.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

from recordgen.errors import StorageError, UnreachableError
from recordgen.messages import listed
from recordgen.messages.masking import without_secrets
from recordgen.rejects import Reject, RejectCode
from recordgen.storage.paths import PORTS, is_http, origin_of, resolve, scheme_of
from recordgen.storage.terms import without_retries

#: Failures in a row after which a host gets no more requests.
MOST_FAILURES = 16

#: Length of the first pause without requests; each further failure doubles it.
PAUSE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class _Host:
    """The state of a host: requests that failed since its last response."""

    __slots__ = ("_answered", "_closed_until", "_failures", "_lock", "_pause", "name")  # many

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._failures = 0
        self._answered = 0.0
        self._pause = PAUSE_SECONDS
        self._closed_until = 0.0

    def is_suspect(self, path: str) -> bool:
        """Return whether a request is the single trial of a failing host after a pause.

        Raises: UnreachableError: the host is in a pause.
        """
        with self._lock:
            if self._failures < MOST_FAILURES:
                return False
            now = time.monotonic()
            if now < self._closed_until:
                raise UnreachableError(
                    f"{path}: not requested, because {self._failures} requests to {self.name} "
                    f"failed in a row"
                )
            self._close(now)
            return True

    def note_answer(self) -> None:
        """Note that the host has responded."""
        with self._lock:
            self._failures, self._pause = 0, PAUSE_SECONDS
            self._answered = time.monotonic()

    def note_failure(self, began: float) -> None:
        """Note a final failure of a request that began at this time of ``time.monotonic``."""
        with self._lock:
            if began < self._answered:
                return
            self._failures += 1
            if self._failures == MOST_FAILURES:
                self._close(time.monotonic())
                _log.warning(
                    "%s: %d requests in a row failed; requests to it are paused, except for an "
                    "occasional trial",
                    self.name,
                    self._failures,
                )

    def _close(self, now: float) -> None:
        self._closed_until = now + self._pause
        self._pause *= 2


# By process: each worker process learns by itself, and a lock that is held during a fork would
# never be released in the child.
_hosts: dict[tuple[int, str], _Host] = {}


def forget_failures() -> None:
    """Forget all failures, so that a new run tries every host."""
    _hosts.clear()


@contextmanager
def watched(path: str) -> Iterator[None]:
    """Count the outcome of a remote request, including its retries, for its host.

    Raises: UnreachableError: the request was not sent, because the host keeps failing.
    """
    name = host_of(path)
    host = _hosts.setdefault((os.getpid(), name), _Host(name))
    is_trial = host.is_suspect(path)
    began = time.monotonic()
    try:
        with without_retries() if is_trial else nullcontext():
            yield
    except UnreachableError:
        host.note_failure(began)
        raise
    except (OSError, StorageError):  # a missing file, for example: the host has responded
        host.note_answer()
        raise
    host.note_answer()


def host_of(path: str) -> str:
    """Return the server or bucket of a URL: ``https://me:pw@host/1.jpg`` → ``https://host``.

    ``gs://bucket/1.jpg`` → ``gs://bucket``; a local path → ``file://``.
    """
    if not is_http(path):
        rest = without_secrets(path).partition("://")[2]
        return f"{scheme_of(path)}://{rest.partition('/')[0]}"
    scheme, host, port = origin_of(path)
    return f"{scheme}://{host}" + ("" if port == PORTS.get(scheme) else f":{port}")


def unreachable_text(rejects: Iterable[Reject]) -> str:
    """Return the number of unreachable rows by host, most first: ``https://a 412, https://b 3``."""
    counts = Counter(
        host_of(resolve(item.uri, item.source))
        for item in rejects
        if item.code == RejectCode.UNREACHABLE.value
    )
    return listed([f"{name} {count:,}" for name, count in counts.most_common()], str)
