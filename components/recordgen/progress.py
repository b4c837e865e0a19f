"""How far a run is: snapshots of the staging folder, handed to whoever wants to show them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from recordgen.errors import RecordgenError
from recordgen.staging import StagedPlan, Staging

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Snapshot:
    """How far the writing is.

    Attributes:
        rows: rows to write.
        bytes: bytes of their payloads.
        examples: examples written so far.
        rejects: rows rejected so far, while planning and while writing.
        done_bytes: payload bytes dealt with so far.
    """

    rows: int
    bytes: int
    examples: int
    rejects: int
    done_bytes: int


class Progress(Protocol):
    """Is told how far a run is, from a thread of its own, about twice a second."""

    def planning(self) -> None:
        """Rows are being read and planned."""

    def writing(self, snapshot: Snapshot) -> None:
        """Payloads are being read, checked and written."""

    def finished(self) -> None:
        """The runner is done, well or not."""


@contextmanager
def watching(staging: Staging, progress: Progress | None) -> Iterator[None]:
    """Report to ``progress`` while the block runs."""
    if progress is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(staging, progress, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress.finished()


def _watch(staging: Staging, progress: Progress, done: threading.Event) -> None:
    plan: StagedPlan | None = None
    finished: dict[str, tuple[int, int, int]] = {}
    progress.planning()
    last = False
    while not last:
        last = done.wait(_POLL_SECONDS)
        try:
            plan = plan or staging.read_plan()
            if plan is None:
                continue
            examples, rejects, size = staging.read_heartbeats(finished)
        except (OSError, RecordgenError):
            continue  # what cannot be read now is read next time; the run itself is not affected
        rejects += len(plan.rejects)
        progress.writing(Snapshot(plan.rows, plan.bytes, examples, rejects, size))
