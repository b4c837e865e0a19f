"""What a line of an import file says of its task."""

from __future__ import annotations

from typing import NamedTuple


class Clue(NamedTuple):
    """What a line says.

    Attributes:
        task: the task as which it reads.
        reason: which line it is, and what it has.
        tells: it has an annotation of that task; else it only says what it is about.
        is_sure: annotations of other tasks do not look so; else it counts if no line is sure.
    """

    task: str
    reason: str
    tells: bool = True
    is_sure: bool = True
