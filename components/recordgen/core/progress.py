"""The progress of a run or of an export: counts, seconds of its phases, and who receives both.

Names of a run's counts are the same in Beam's metrics, in the JSON log and in the results:
``rows_read == rows_planned + rows_rejected + rows_duplicate + rows_merged + rows_dropped +
rows_existing``, and at the end ``rows_planned == examples_written + payloads_rejected``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

from recordgen.core.ordered import beside
from recordgen.messages import counted, megabytes

if TYPE_CHECKING:
    from threading import Event

#: The namespace of the counts in Beam's metrics.
NAMESPACE = "recordgen"

#: Rows in the import files.
ROWS_READ = "rows_read"
#: Rows that become examples unless their payload is refused.
ROWS_PLANNED = "rows_planned"
#: Rows rejected while planning; their payload was not opened.
ROWS_REJECTED = "rows_rejected"
#: Rows that repeat another row.
ROWS_DUPLICATE = "rows_duplicate"
#: Rows that add something to another row's example.
ROWS_MERGED = "rows_merged"
#: Rows without a split, dropped by ``missing_split=drop``.
ROWS_DROPPED = "rows_dropped"
#: Rows whose example is in the dataset that is appended to.
ROWS_EXISTING = "rows_existing"
#: Examples written; for a check, the examples that a conversion would write.
EXAMPLES_WRITTEN = "examples_written"
#: Planned rows whose payload was refused.
PAYLOADS_REJECTED = "payloads_rejected"
#: Bytes of the processed payloads, including refused ones.
PAYLOAD_BYTES = "payload_bytes"
#: Bytes of the shards written.
SHARD_BYTES = "shard_bytes"

#: Phases in their order. The results measure PLANNING as a part of SHARDS: one graph does both.
# The checks of examples are steps of it, too: CHECKS is what the launcher does with their findings.
PLANNING, SHARDS, CHECKS, COMMIT = "planning", "shards", "checks", "commit"

#: A short export shows no progress, longer ones show it this often.
FIRST_SECONDS = 2.0
SECONDS = 0.5

# Short phases are not shown.
_POLL_SECONDS = 0.5

# Heartbeats lag behind the work: over a shorter time than this, the speed would be wrong.
_PACE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a run or of an export at one moment."""

    phase: str = SHARDS  # PLANNING, SHARDS (also of an export), CHECKS or COMMIT
    seconds: float  # since the run began; after the shards, since the phase began
    noun: str = "example"  # the word for an example, such as `image`
    counts: Mapping[str, int] = field(default_factory=dict)  # so far, by the names above
    planned_bytes: int = 0  # of all payloads; 0 during planning
    examples_per_s: float | None = None  # examples written per second; None if not known yet
    seconds_left: float | None = None  # estimate by payload bytes; None if not known yet

    def count(self, *names: str) -> int:
        """Return the sum of some counts."""
        return sum(self.counts.get(name, 0) for name in names)

    def __str__(self) -> str:
        """Return the progress as a line.

        ``planning: 90 rows read, 80 planned``; ``checks, 12 s``;
        ``12 of 40 images (30%), 1.2 MB, 6/s, 0:00:05 left, 0 rejects``
        """
        read = self.count(ROWS_READ)
        if self.phase == PLANNING:
            planned = f"planning: {read:,} rows read, {self.count(ROWS_PLANNED):,} planned"
            return planned if read else "reading and planning rows"
        if self.phase != SHARDS:
            return f"{self.phase}, {self.seconds:.0f} s"
        done, size = self.count(EXAMPLES_WRITTEN), self.count(PAYLOAD_BYTES)
        of_all = f"{self.count(ROWS_PLANNED):,} {self.noun}s"
        share = size / self.planned_bytes if self.planned_bytes else 1.0
        words = [f"{done:,} of {of_all} ({share:.0%})", megabytes(size)]
        if self.examples_per_s is not None:
            words.append(f"{self.examples_per_s:,.0f}/s")
        if self.seconds_left is not None:
            words.append(f"{timedelta(seconds=round(self.seconds_left))} left")
        if read:  # an export reads no rows
            words.append(counted(self.count(ROWS_REJECTED, PAYLOADS_REJECTED), "reject"))
        return ", ".join(words)


class Progress(Protocol):
    """Receives the progress of a run or of an export, in a separate thread."""

    def show(self, snapshot: Snapshot) -> None:
        """Called when a run begins, and then about twice a second."""

    def finished(self) -> None:
        """Called when the shards are written, or the run failed; and after phases that follow."""


class Phases(ExitStack):
    """Measures phases, and reports them to a Progress from a thread of its own.

    Attributes:
        progress: where phases are reported.
        seconds: how long each finished phase took, in their order.
    """

    def __init__(
        self, progress: Progress | None = None, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self.progress = progress
        self._poll_seconds = poll_seconds
        self._now: tuple[str, float] | None = None
        self._reports = False

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Measure a phase, and report it."""
        started = time.monotonic()
        self._now = name, started
        if name != SHARDS and not self._reports and self.progress is not None:
            self._reports = True
            self.enter_context(beside(partial(self._report, self.progress)))
        try:
            yield
        finally:
            self._now = None
            self.seconds[name] = time.monotonic() - started

    def _report(self, progress: Progress, done: Event) -> None:
        is_shown = False
        while not done.wait(self._poll_seconds):
            if (now := self._now) is not None:
                is_shown = True
                progress.show(Snapshot(phase=now[0], seconds=time.monotonic() - now[1]))
        if is_shown:
            progress.finished()


class Pace:
    """The speed since the first poll: work that was done before it does not count."""

    def __init__(self) -> None:
        self._first: tuple[float, int, int] | None = None

    def added_to(self, snapshot: Snapshot, now: float) -> Snapshot:
        """Return a snapshot with its speed and the time left, if they are known yet."""
        examples, size = snapshot.count(EXAMPLES_WRITTEN), snapshot.count(PAYLOAD_BYTES)
        if self._first is None:
            self._first = now, examples, size
        then, examples_then, size_then = self._first
        seconds, fresh = now - then, size - size_then
        if seconds < _PACE_SECONDS or fresh <= 0:
            return snapshot
        return replace(
            snapshot,
            examples_per_s=(examples - examples_then) / seconds,
            seconds_left=(snapshot.planned_bytes - size) * seconds / fresh,
        )


class Counter:
    """Counts what an export copies, and reports it twice a second, from the first seconds on."""

    def __init__(self, progress: Progress | None, examples: int, size: int) -> None:
        self._progress = progress
        self._counts = {ROWS_PLANNED: examples, EXAMPLES_WRITTEN: 0, PAYLOAD_BYTES: 0}
        self._bytes = size
        self._started = time.monotonic()
        self._next = self._started + FIRST_SECONDS
        self._pace = Pace()
        self._is_shown = False

    def count(self, examples: int, size: int) -> None:
        """Count examples and the bytes of their records."""
        self._counts[EXAMPLES_WRITTEN] += examples
        self._counts[PAYLOAD_BYTES] += size
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS
            self._show()

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: object) -> None:
        """Report the last state, if any was reported."""
        if self._is_shown and self._progress is not None:
            self._show()
            self._progress.finished()

    def _show(self) -> None:
        if self._progress is None:
            return
        self._is_shown = True
        now = time.monotonic()
        snapshot = Snapshot(
            seconds=now - self._started, counts={**self._counts}, planned_bytes=self._bytes
        )
        self._progress.show(self._pace.added_to(snapshot, now))
