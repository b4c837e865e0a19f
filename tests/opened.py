"""The files that this process opens, and the folders that it lists, by Python's audit events."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_watching: list[tuple[str, list[str]]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    for watched, paths in _watching:
        if event == watched:
            paths.append(str(arguments[0]))


sys.addaudithook(_note)  # stays until the process ends


@contextmanager
def opened(event: str = "open") -> Iterator[list[str]]:
    """Collect the paths of files that are opened, or of folders with the event ``os.scandir``."""
    watching = event, list[str]()
    _watching.append(watching)
    yield watching[1]
    _watching.remove(watching)
