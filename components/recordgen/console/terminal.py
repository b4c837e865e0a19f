r"""Safe text for a terminal: escapes characters that control it or falsify the shown text.

A label ``cat\x1b[2J`` would clear the screen, ``\u202e`` reverses the text after it. The dataset
keeps both; a terminal shows ``\u001b[2J`` and the six letters ``\u202e``.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from recordgen.core.progress import PAYLOAD_BYTES, SHARDS
from recordgen.errors import StorageError, UsageError
from recordgen.messages import INVISIBLE
from recordgen.messages.masking import masked, masked_values

if TYPE_CHECKING:
    from recordgen.core.progress import Progress, Snapshot


# Control characters except line breaks, and lone surrogates.
_UNSAFE = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}]")


def escaped(text: str) -> str:
    r"""Return a text that a terminal shows unchanged; line breaks stay.

    The escapes are JSON escapes (``\u001b``), so JSON keeps its meaning.
    """
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return a text as :func:`escaped`, with ``\n`` for line breaks."""
    return escaped(text).replace("\n", "\\n")


def show(text: str) -> None:
    """Print a text without control characters and without secrets of URLs."""
    put(escaped(masked_values(text)))


def put(text: str, end: str = "\n") -> None:
    """Print a safe text, and flush it: a fault of the output is known before the command ends.

    Raises:
        StorageError: the output takes no more, such as a full disk.
        BrokenPipeError: the reader of the output is gone.
    """
    try:
        print(text, end=end)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        drop_output()
        raise StorageError(f"cannot write to the standard output: {exc.strerror or exc}") from exc


def drop_output() -> None:
    """Redirect the standard output to nothing: the final flush would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 1 << 16 else json.dumps(found[0])[1:-1]


def aligned(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> list[str]:
    """Return the lines of a table; columns in ``left`` are left-aligned, the others right."""
    cells = [tuple(map(one_line, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


class TextFormatter(logging.Formatter):
    """``recordgen: message``; records of libraries have their level and name instead."""

    def __init__(self) -> None:
        super().__init__("recordgen: %(message)s")
        self._foreign = logging.Formatter("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        ours = record.name.partition(".")[0] == "recordgen"
        text = super().format(record) if ours else self._foreign.format(record)
        return escaped(masked(text))


class JsonFormatter(logging.Formatter):
    """One JSON object per record, on one line, in ASCII.

    Records of libraries have the event ``warning``, or ``log`` below that level.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        foreign = "warning" if record.levelno >= logging.WARNING else "log"
        line = {
            "time": f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", foreign),
            "message": masked(record.getMessage()),
            "logger": record.name,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = masked(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


#: Progress for a person who waits, else none.
AUTO: Literal["auto"] = "auto"


class _Written:
    """A Progress that ends with what was written, also after the phases behind it."""

    def __init__(self) -> None:
        self._written: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Show a moment, in place of the one before."""
        if snapshot.phase == SHARDS:
            self._written = snapshot
        self.put(snapshot)

    def finished(self) -> None:
        """End with the number of examples."""
        if self._written is not None:
            self.put(self._written)

    def put(self, snapshot: Snapshot) -> None:
        """Draw a moment."""
        raise NotImplementedError


class ProgressBar(_Written):
    """A live bar of the bytes done, followed by examples, examples/s, time left and rejects."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        super().__init__()
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            expand=True,
            refresh_per_second=4,  # rendering takes time from decoding
        )
        self._task = self._bar.add_task("", total=None)

    def put(self, snapshot: Snapshot) -> None:
        """Move the bar; it has no end in a phase without bytes."""
        total, done = snapshot.planned_bytes or None, snapshot.count(PAYLOAD_BYTES)
        self._bar.update(self._task, total=total, completed=done, description=str(snapshot))
        self._bar.start()  # which draws it the first time

    def finished(self) -> None:
        """Leave the bar where it is."""
        super().finished()
        self._bar.stop()


def progress_for(wanted: Progress | Literal["auto"] | None) -> Progress | None:
    """Return the progress that a caller wants.

    ``auto`` is a line below the cell of a notebook, a bar on a terminal, and None elsewhere, such
    as in pipelines, and in other threads: several runs at once would share one line.

    Raises: UsageError: it is none of these.
    """
    if not isinstance(wanted, str):
        if not hasattr(wanted, "show") and wanted is not None:
            raise UsageError(f"progress must be 'auto', None or a Progress (got {wanted!r:.80})")
        return wanted
    if threading.current_thread() is not threading.main_thread():
        return None
    if _is_notebook():
        return ProgressLine()
    return ProgressBar() if sys.stderr is not None and sys.stderr.isatty() else None


def _is_notebook() -> bool:
    """Return whether the process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # imported in every kernel
    shell: Any = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class ProgressLine(_Written):
    """A line below the cell that changes while it runs; needs no ipywidgets."""

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = import_module("IPython.display").display
        self._handle: Any = None

    def put(self, snapshot: Snapshot) -> None:
        """Replace the line."""
        shown = {"text/plain": str(snapshot)}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
