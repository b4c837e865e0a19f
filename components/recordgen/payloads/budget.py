"""Memory for decoded images: one budget for all threads of a process.

    a photo of 12 megapixels, baseline JPEG     2 MB   starts at once
    a WEBP of 12 megapixels                   150 MB   waits until the budget has room
    a PNG of 100 megapixels                   1.2 GB   exceeds the budget: decoded on its own

An image that exceeds the budget is not refused: whether an image is accepted must not depend on the
machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition

from PIL import _imaging

from recordgen.storage.memory import memory_limit

#: Images that need less skip the budget: threads cannot hold enough of them to matter.
SMALL_BYTES = 32_000_000

# Share of the machine's memory for all processes of a run, at most one for each core.
_SHARE = 1 / 2
_LEAST_BYTES = 256_000_000

# glibc keeps freed blocks of up to 32 MB for their thread, and returns larger ones to the system.
_BLOCK_BYTES = 64 << 20


class MemoryBudget:
    """A limit on the bytes that several threads hold at the same time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._held = 0

    @contextmanager
    def hold(self, size: int, most: int) -> Iterator[None]:
        """Hold ``size`` bytes, after waiting until they fit in ``most`` or none are held."""
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
    """Return half of the memory of this machine or container, divided by its cores."""
    cores = os.cpu_count() or 1
    return max(_LEAST_BYTES, int(memory_limit() * _SHARE / cores))


@cache
def keep_pillow_memory_low() -> None:
    """Let Pillow allocate images in larger blocks than its default of 16 MB.

    Otherwise the blocks that threads keep would exceed the budget.
    """
    if hasattr(_imaging, "set_block_size"):  # not part of Pillow's documented interface
        _imaging.set_block_size(_BLOCK_BYTES)
