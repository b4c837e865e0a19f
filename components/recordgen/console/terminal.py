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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from recordgen.errors import StorageError, UsageError
from recordgen.messages import INVISIBLE, megabytes
from recordgen.messages.masking import masked, masked_values

if TYPE_CHECKING:
    from rich.progress import TaskID

    from recordgen.core.progress import Phase, Progress, Snapshot


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
    """Print a safe text. Raises: as :func:`output`."""
    with output():
        print(text, end=end)


@contextmanager
def output() -> Iterator[None]:
    """Flush what is written, so that a fault of the output is known before the command ends.

    Raises:
        StorageError: the output takes no more, such as a full disk.
        BrokenPipeError: the reader of the output is gone.
    """
    try:
        yield
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


def progress_text(snapshot: Snapshot, more: str = "", unit: str = "") -> str:
    """Return ``12 of 40, 1.2 MB, 6/s, 0:00:05 left, 0 rejects``, with words after its numbers."""
    words = [f"{snapshot.examples:,} of {snapshot.rows:,}{more}", megabytes(snapshot.done_bytes)]
    if snapshot.examples_per_s is not None:
        words.append(f"{snapshot.examples_per_s:,.0f}{unit}/s")
    if snapshot.seconds_left is not None:
        words.append(f"{timedelta(seconds=round(snapshot.seconds_left))} left")
    if snapshot.rows_read:
        words.append(f"{snapshot.rejects:,} rejects")
    return ", ".join(words)


def progress_message(snapshot: Snapshot) -> str:
    """Return the progress as a line, ``12 of 40 images (30%), 1.2 MB, …``."""
    share = snapshot.done_bytes / snapshot.bytes if snapshot.bytes else 1.0
    unit = f" {snapshot.noun}s"
    return progress_text(snapshot, f"{unit} ({share:.0%})", unit)


class ProgressBar:
    """A live bar of the bytes done, followed by examples, examples/s, time left and rejects."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[text]}", markup=False),
            console=Console(stderr=True),
            expand=True,
            refresh_per_second=4,  # rendering takes time from decoding
        )
        self._task = self._bar.add_task("Planning", total=None, text="")
        self._phase: TaskID | None = None

    def planning(self) -> None:
        """Show a bar without an end."""
        self._bar.start()

    def planning_rows(self, snapshot: Snapshot) -> None:
        """Show the number of rows."""
        text = f"{snapshot.rows_read:,} rows read, {snapshot.rows:,} planned"
        self._bar.update(self._task, text=text)

    def writing(self, snapshot: Snapshot) -> None:
        """Move the bar."""
        self._bar.start()  # an export has no planning
        self._bar.update(
            self._task,
            description=f"{snapshot.noun.title()}s" if snapshot.done_bytes else "Planned",
            total=snapshot.bytes,
            completed=snapshot.done_bytes,
            text=progress_text(snapshot),
        )

    def phase(self, phase: Phase) -> None:
        """Show a second bar, below the one of the shards."""
        self._bar.start()
        if self._phase is None:
            self._phase = self._bar.add_task("", total=None, text="")
        self._bar.update(self._phase, description=phase.name.title(), text=str(phase))

    def finished(self) -> None:
        """Leave the bar where it is."""
        self._bar.stop()


def progress_for(wanted: Progress | Literal["auto"] | None) -> Progress | None:
    """Return the progress that a caller wants.

    ``auto`` is a line below the cell of a notebook, a bar on a terminal, and None elsewhere, such
    as in pipelines, and in other threads: several runs at once would share one line.

    Raises: UsageError: it is none of these.
    """
    if not isinstance(wanted, str):
        if not hasattr(wanted, "planning") and wanted is not None:
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


class ProgressLine:
    """A line below the cell that changes while it runs; needs no ipywidgets."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display").display
        self._handle: Any = None
        self._written = ""

    def planning(self) -> None:
        """Show that rows are being read."""
        self._show("Reading and planning rows")

    def planning_rows(self, snapshot: Snapshot) -> None:
        """Show the number of rows."""
        self._show(f"Planning: {snapshot.rows_read:,} rows read, {snapshot.rows:,} planned")

    def writing(self, snapshot: Snapshot) -> None:
        """Show the number of examples."""
        self._written = progress_message(snapshot)
        self._show(self._written)

    def phase(self, phase: Phase) -> None:
        """Show the phase."""
        self._show(str(phase).capitalize())

    def finished(self) -> None:
        """End with the number of examples, also after the last phase."""
        if self._written:
            self._show(self._written)

    def _show(self, text: str) -> None:
        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
