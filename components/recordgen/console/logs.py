"""Logs on stderr, through the standard library's ``logging``: text for people, JSON for machines.

Each of our lines is one event, with a message for people and numbers for machines:

    recordgen: 1,200 of 1,797 images (67%), 503.4 kB, 619 images/s, 0:00:01 left, 0 rejects

    {"time": "2026-11-24T09:30:12.345Z", "level": "info", "event": "progress", "message": "…",
     "examples_written": 1200, "rows_planned": 1797, …}

Numbers have the names of :mod:`recordgen.core.progress`; docs/running.md lists events and
fields.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recordgen.console.terminal import JsonFormatter, TextFormatter, progress_message
from recordgen.core import progress
from recordgen.errors import DataError, RemediedError
from recordgen.messages import counted, megabytes
from recordgen.messages.masking import masked, masked_json
from recordgen.version import __version__

if TYPE_CHECKING:
    from recordgen.core.progress import Phase, Snapshot
    from recordgen.rejects import Reject

FORMATS = ("text", "json")

_LINE_SECONDS = 5.0

# Events without a line in text logs: the command prints them on stdout.
_ON_STDOUT = frozenset({"started", "warning", "finished"})

_log = logging.getLogger("recordgen")


def set_up(log_format: str, *, level: int) -> None:
    """Send our log records, and those of libraries from ``level`` on, to stderr.

    A program that has already set up logging keeps its set-up. As JSON, Python's warnings and
    uncaught exceptions are log records too.
    """
    handler = logging.StreamHandler()
    _log.setLevel(logging.INFO)
    if log_format == "json":
        handler.setFormatter(JsonFormatter())
        logging.captureWarnings(True)
        logging.getLogger("py.warnings").setLevel(logging.WARNING)
        sys.excepthook = lambda _, error, __: failed(error, 1, traceback=True)
        threading.excepthook = _thread_died
    else:
        handler.setFormatter(TextFormatter())
        handler.addFilter(lambda record: getattr(record, "event", "") not in _ON_STDOUT)
    logging.basicConfig(level=level, handlers=[handler])


# --- events -----------------------------------------------------------------------------------


def started(command: str, source: str, **more: str) -> None:
    """Log the command and its arguments."""
    fields = {"command": command, "source": source, **more, "version": __version__}
    event("started", f"{command} {source}", fields)


def event(
    name: str,
    message: str,
    fields: Mapping[str, Any] | None = None,
    *,
    level: int = logging.INFO,
    error: BaseException | None = None,
) -> None:
    """Log an event, with a message for people and fields for machines."""
    # Mask secrets here too: in a pipeline's step the records go to other handlers.
    extra = {"event": name, "fields": masked_json(fields or {})}
    _log.log(level, "%s", masked(message), exc_info=error, extra=extra)


def said(message: str) -> None:
    """Log the result of a pipeline's step."""
    _log.info("%s", masked(message))


def failed(error: BaseException, exit_code: int, *, traceback: bool) -> None:
    """Log why the command ends."""
    fields: dict[str, Any] = {"error": type(error).__name__, "exit_code": exit_code}
    if isinstance(error, DataError):
        fields |= {"rejects_file": error.rejects_file, "rejected": by_code(error.rejects)}
    if isinstance(error, RemediedError):
        fields |= {"reason": error.reason, "command": [*error.command]}
    shown = error if traceback else None
    event("failed", str(error), fields, level=logging.ERROR, error=shown)


def interrupted(error: BaseException, by: signal.Signals, hint: str, *, traceback: bool) -> int:
    """Log that a signal stopped the command; return the exit code, 128 + signal as in shells."""
    what = "interrupted" if by == signal.SIGINT else f"stopped by {by.name}"
    shown = error if traceback else None
    event("interrupted", f"{what}{hint}", {"exit_code": 128 + by}, level=logging.ERROR, error=shown)
    return 128 + by


def unfinished(output: str, shards: int) -> None:
    """Log that --resume can keep finished shards."""
    _log.warning("--resume keeps %s in %s", counted(shards, "finished shard"), masked(output))


class ProgressLog:
    """A Progress that logs rows while planning, the plan, then the progress, every few seconds."""

    def __init__(self, seconds: float = _LINE_SECONDS) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._planned = False
        self._unlogged: Snapshot | None = None

    def planning(self) -> None:
        """Log that rows are being read."""
        self._wait()
        zero = {progress.ROWS_READ: 0, progress.ROWS_PLANNED: 0, progress.ROWS_REJECTED: 0}
        event("planning", "reading and planning rows", {**zero, "seconds": 0.0})

    def planning_rows(self, snapshot: Snapshot) -> None:
        """Log rows read and planned so far, every few seconds."""
        if time.monotonic() >= self._next:
            self._wait()
            message = f"planning: {snapshot.rows_read:,} rows read, {snapshot.rows:,} planned"
            event("planning", message, _row_counts(snapshot))

    def writing(self, snapshot: Snapshot) -> None:
        """Log the plan once, then the progress every few seconds."""
        if not self._planned and snapshot.rows_read:
            self._planned = True
            self._wait()
            message = (
                f"planned {snapshot.rows:,} of {snapshot.rows_read:,} rows "
                f"({megabytes(snapshot.bytes)}), {snapshot.rows_rejected:,} rejects"
            )
            fields = {**_row_counts(snapshot), "planned_bytes": snapshot.bytes}
            event("planned", message, fields)
        self._unlogged = snapshot
        if time.monotonic() >= self._next:
            self._log_progress(snapshot)

    def phase(self, phase: Phase) -> None:
        """Log the phase at work, every few seconds."""
        if time.monotonic() >= self._next:
            self._wait()
            event("phase", str(phase), phase._asdict())

    def finished(self) -> None:
        """Log the last progress, unless it is logged already."""
        if self._unlogged is not None and self._unlogged.done_bytes:
            self._log_progress(self._unlogged)

    def _log_progress(self, snapshot: Snapshot) -> None:
        self._unlogged = None
        self._wait()
        fields = {
            **_row_counts(snapshot),
            progress.EXAMPLES_WRITTEN: snapshot.examples,
            progress.PAYLOADS_REJECTED: snapshot.payloads_rejected,
            progress.PAYLOAD_BYTES: snapshot.done_bytes,
            "planned_bytes": snapshot.bytes,
            "examples_per_s": _rounded(snapshot.examples_per_s),
            "seconds_left": _rounded(snapshot.seconds_left),
        }
        event("progress", progress_message(snapshot), fields)

    def _wait(self) -> None:
        self._next = time.monotonic() + self._seconds


def _row_counts(snapshot: Snapshot) -> dict[str, Any]:
    return {
        progress.ROWS_READ: snapshot.rows_read,
        progress.ROWS_PLANNED: snapshot.rows,
        progress.ROWS_REJECTED: snapshot.rows_rejected,
        "seconds": _rounded(snapshot.seconds),
    }


def by_code(rejects: Sequence[Reject]) -> dict[str, int]:
    """Return the number of rejects of each code."""
    return dict(sorted(Counter(item.code for item in rejects).items()))


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _thread_died(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    _log.error("thread %s died: %s", name, args.exc_value, exc_info=args.exc_value)
