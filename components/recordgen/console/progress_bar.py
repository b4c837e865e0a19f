"""Progress for a person who waits: a bar on a terminal, a line below the cell of a notebook."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from recordgen.messages import megabytes

if TYPE_CHECKING:
    from rich.progress import TaskID

    from recordgen.core.progress import Phase, Progress, Snapshot

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
    """
    if not isinstance(wanted, str):
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
