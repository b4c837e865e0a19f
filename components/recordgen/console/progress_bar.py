"""A progress bar for terminals."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from recordgen.quoting import megabytes

if TYPE_CHECKING:
    from rich.progress import TaskID

    from recordgen.core.runs.phases import Phase
    from recordgen.core.runs.progress import Snapshot


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
            self._phase = self._bar.add_task("", text="")
        self._bar.update(
            self._phase,
            description=phase.name.title(),
            total=phase.total or None,
            completed=phase.done,
            text=str(phase),
        )

    def finished(self) -> None:
        """Leave the bar where it is."""
        self._bar.stop()
