"""The progress of the Python API, for a person who waits at a notebook or a terminal."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from recordgen.console.progress_bar import ProgressBar, progress_message

if TYPE_CHECKING:
    from recordgen.core.runs.phases import Phase
    from recordgen.core.runs.progress import Progress, Snapshot

#: Progress for a person who waits, else none.
AUTO: Literal["auto"] = "auto"


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

    def planning(self) -> None:
        """Show that rows are being read."""
        self._show("Reading and planning rows")

    def planning_rows(self, snapshot: Snapshot) -> None:
        """Show the number of rows."""
        self._show(f"Planning: {snapshot.rows_read:,} rows read, {snapshot.rows:,} planned")

    def writing(self, snapshot: Snapshot) -> None:
        """Show the number of examples."""
        self._show(progress_message(snapshot))

    def phase(self, phase: Phase) -> None:
        """Show the phase."""
        self._show(str(phase).capitalize())

    def finished(self) -> None:
        """Leave the line as it is."""

    def _show(self, text: str) -> None:
        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
