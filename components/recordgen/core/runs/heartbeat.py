"""Heartbeats: progress files that workers write into the staging folder."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from recordgen import storage
from recordgen.errors import StorageError

#: Seconds between heartbeats in a local staging folder; remote folders get fewer.
LOCAL_HEARTBEAT_SECONDS = 0.5
_REMOTE_HEARTBEAT_SECONDS = 10.0


class Heartbeat:
    """Writes a worker's counts into a file at intervals, which works on every runner."""

    def __init__(self, path: str, seconds: float | None = None) -> None:
        self._path = path
        if seconds is None:
            local = storage.is_local(path)
            seconds = LOCAL_HEARTBEAT_SECONDS if local else _REMOTE_HEARTBEAT_SECONDS
        self.seconds = seconds
        self._next = time.monotonic() + self.seconds
        self._total = (0, 0, 0)

    def add(self, *counts: int) -> None:
        """Add to the counts since the start, and report the sums like :meth:`beat`."""
        first, second, third = map(sum, zip(self._total, counts, strict=True))
        self._total = (first, second, third)
        self.beat(*self._total)

    def beat(self, examples: int, rejects: int, size: int) -> None:
        """Report counts if the last report is old enough."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.seconds
            self._write(examples, rejects, size, done=False)

    def finish(self, examples: int, rejects: int, size: int) -> None:
        """Report the final counts."""
        self._write(examples, rejects, size, done=True)

    def _write(self, *counts: Any, done: bool) -> None:
        with suppress(StorageError):  # heartbeats only inform: a run works without them
            storage.write_text(self._path, json.dumps([*counts, done]))
