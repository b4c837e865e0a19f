"""Memory for decoded images: one budget for all threads of a process.

    a photo of 12 megapixels, baseline JPEG     2 MB   begins at once
    a WEBP of 12 megapixels                   150 MB   waits until the budget has room
    a PNG of 100 megapixels                   1.2 GB   more than the budget: decoded alone

An image that needs more than the budget is not refused: what is accepted must not depend on the
machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition

from recordgen.storage.memory import memory_limit

#: Images that need less need not ask: threads could not hold enough of them to matter.
SMALL_BYTES = 32_000_000

# Of the machine's memory, for all processes of a run, of which there is at most one for each core.
_SHARE = 1 / 2
_LEAST_BYTES = 256_000_000


class MemoryBudget:
    """Bytes that several threads may hold at once."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._held = 0

    @contextmanager
    def hold(self, size: int, most: int) -> Iterator[None]:
        """Wait until ``size`` more bytes do not exceed ``most``, or nobody holds any; hold them."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + size <= most)
            self._held += size
        try:
            yield
        finally:
            with self._changed:
                self._held -= size
                self._changed.notify_all()


#: The budget of this process.
DECODING = MemoryBudget()


@cache
def default_budget() -> int:
    """Return half of the memory that this machine or container has, shared among its cores."""
    cores = os.cpu_count() or 1
    return max(_LEAST_BYTES, int(memory_limit() * _SHARE / cores))
