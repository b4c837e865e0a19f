"""The progress of an export that copies examples: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from recordgen.console.logs import ProgressLog
from recordgen.console.progress_bar import ProgressBar
from recordgen.core.runs.progress import Pace, Progress, Snapshot

if TYPE_CHECKING:
    from recordgen.exports.export import Copied

# A short export shows nothing.
_FIRST_SECONDS = 2.0
_SECONDS = 0.5


class CopyProgress:
    """Shows how many examples are copied, from the first seconds on."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started + _FIRST_SECONDS
        self._pace = Pace()
        self._shown: Progress | None = None
        self._last: Copied | None = None

    def __call__(self, copied: Copied) -> None:
        """Show the progress, at most twice a second."""
        self._last = copied
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS
            if self._shown is None:
                self._shown = _begun()
            self._show(self._shown, copied)

    def finished(self) -> None:
        """Show the last progress, if any was shown."""
        if self._shown is not None and self._last is not None:
            self._show(self._shown, self._last)
            self._shown.finished()

    def _show(self, progress: Progress, copied: Copied) -> None:
        now = time.monotonic()
        speed, left = self._pace.at(now, copied.done, copied.done_bytes, copied.bytes)
        progress.writing(
            Snapshot(
                rows=copied.examples,
                bytes=copied.bytes,
                examples=copied.done,
                rejects=0,
                done_bytes=copied.done_bytes,
                rows_read=0,
                rows_rejected=0,
                seconds=now - self._started,
                examples_per_s=speed,
                seconds_left=left,
                noun="example",
            )
        )


def _begun() -> Progress:
    """Return a display that has begun."""
    if not sys.stderr.isatty():
        return ProgressLog()
    bar = ProgressBar()
    bar.planning()
    return bar
