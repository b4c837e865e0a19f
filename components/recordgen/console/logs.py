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

from recordgen.console.terminal import JsonFormatter, TextFormatter
from recordgen.core import progress
from recordgen.errors import DataError, RemediedError
from recordgen.messages import counted, megabytes
from recordgen.messages.masking import masked, masked_json
from recordgen.version import __version__

if TYPE_CHECKING:
    from recordgen.core.progress import Snapshot
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
        self._is_planned = False
        self._unlogged: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Log the plan once, and all else every few seconds."""
        if snapshot.phase == progress.SHARDS:
            self._unlogged = snapshot
            read = snapshot.count(progress.ROWS_READ)
            if read and not self._is_planned:
                self._is_planned = True
                message = (
                    f"planned {snapshot.count(progress.ROWS_PLANNED):,} of {read:,} rows "
                    f"({megabytes(snapshot.planned_bytes)}), "
                    f"{counted(snapshot.count(progress.ROWS_REJECTED), 'reject')}"
                )
                self._log("planned", snapshot, message)
        if time.monotonic() >= self._next:
            self._log(_EVENTS.get(snapshot.phase, "phase"), snapshot, str(snapshot))

    def finished(self) -> None:
        """Log the last progress, unless it is logged already."""
        if self._unlogged is not None and self._unlogged.count(progress.PAYLOAD_BYTES):
            self._log("progress", self._unlogged, str(self._unlogged))

    def _log(self, name: str, snapshot: Snapshot, message: str) -> None:
        self._next = time.monotonic() + self._seconds
        if name == "progress":
            self._unlogged = None
        numbers = {**vars(snapshot), **snapshot.counts, "name": snapshot.phase}
        event(name, message, {each: _rounded(numbers.get(each, 0)) for each in _FIELDS[name]})


_EVENTS = {progress.PLANNING: "planning", progress.SHARDS: "progress"}

# The fields of each event.
_ROWS = (progress.ROWS_READ, progress.ROWS_PLANNED, progress.ROWS_REJECTED, "seconds")
_FIELDS = {
    "planning": _ROWS,
    "planned": (*_ROWS, "planned_bytes"),
    "progress": (
        *(*_ROWS, "planned_bytes", "examples_per_s", "seconds_left"),
        *(progress.EXAMPLES_WRITTEN, progress.PAYLOADS_REJECTED, progress.PAYLOAD_BYTES),
    ),
    "phase": ("name", "seconds"),
}


def by_code(rejects: Sequence[Reject]) -> dict[str, int]:
    """Return the number of rejects of each code."""
    return dict(sorted(Counter(item.code for item in rejects).items()))


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def _thread_died(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    _log.error("thread %s died: %s", name, args.exc_value, exc_info=args.exc_value)
