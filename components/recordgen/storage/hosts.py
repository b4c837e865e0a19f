"""Hosts that fail request after request: a circuit breaker for each, in each process.

    request ─fails, as often as it was repeated─▶ 16 in a row ─▶ no more requests for 60 s
            ─is answered, with whatever──────────▶ 0 in a row       then a single one, for 120 s, …

Only failures that began after the host's last answer are in a row: dead files among sound ones of
the same host fail late, as they are asked for again and again, and do not speak against the host.
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
from recordgen.masking import without_secrets
from recordgen.rejects import Reject, RejectCode
from recordgen.storage.addresses import PORTS, origin_of
from recordgen.storage.paths import is_http, resolve, scheme_of
from recordgen.storage.terms import without_retries

#: How many requests to a host fail in a row before it gets no more.
MOST_FAILURES = 16

#: How long it gets none then; twice as long after each further failure.
PAUSE_SECONDS = 60.0

_HOSTS_SHOWN = 5

_log = logging.getLogger(__name__)


class _Host:
    """What is known of a host: how many requests failed since it last answered."""

    __slots__ = ("_answered", "_closed_until", "_failures", "_lock", "_pause", "name")  # many

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._failures = 0
        self._answered = 0.0
        self._pause = PAUSE_SECONDS
        self._closed_until = 0.0

    def is_suspect(self, path: str) -> bool:
        """Say whether a request is a trial of a failing host; it is the only one for a while.

        Raises: UnreachableError: there may be no request now.
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
        """Note that the host has answered."""
        with self._lock:
            self._failures, self._pause = 0, PAUSE_SECONDS
            self._answered = time.monotonic()

    def note_failure(self, began: float) -> None:
        """Note that a request failed for good which began at a time of ``time.monotonic``."""
        with self._lock:
            if began < self._answered:
                return
            self._failures += 1
            if self._failures == MOST_FAILURES:
                self._close(time.monotonic())
                _log.warning(
                    "%s: %d requests in a row failed; it gets no further requests, but one from "
                    "time to time",
                    self.name,
                    self._failures,
                )

    def _close(self, now: float) -> None:
        self._closed_until = now + self._pause
        self._pause *= 2


# By process: workers of a runner that are processes learn by themselves, and a lock that is taken
# when a process forks would never be given back in the child.
_hosts: dict[tuple[int, str], _Host] = {}


def forget_failures() -> None:
    """Forget how hosts have behaved: a run that begins asks them all."""
    _hosts.clear()


@contextmanager
def watched(path: str) -> Iterator[None]:
    """Watch a request about a file that is far away, with all its repetitions.

    Raises:
        UnreachableError: there was no request, as the file's host fails all the time.
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
    except (OSError, StorageError):  # it is missing, say: the host has answered
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
    """Return how many rows could not be reached on which hosts: ``https://a 412, https://b 3``.

    Empty: there are none.
    """
    counts = Counter(
        host_of(resolve(item.uri, item.source))
        for item in rejects
        if item.code == RejectCode.UNREACHABLE.value
    )
    shown = [f"{name} {count:,}" for name, count in counts.most_common(_HOSTS_SHOWN)]
    if len(counts) > _HOSTS_SHOWN:
        shown.append(f"… {len(counts):,} hosts")
    return ", ".join(shown)
