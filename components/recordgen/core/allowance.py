"""What reading a source may take: memory and processor time that grow with the bytes that it holds.

    source of 1 MB         0.8 GB and  20 s
    source of 400 MB       4.0 GB and  over half an hour

:mod:`recordgen.core.limits` bounds what is known to be costly. This bounds the rest: parsers of
documents from elsewhere run while nothing else does in the main thread of a local run, so the
limits of the process are theirs. Beyond them, an allocation fails and a timer interrupts Python:
the run ends with one sentence. A library that does not return is ended by the kernel, together with
the process, which leaves nothing that looks finished; the parent of a command says so
(:mod:`recordgen.console.supervising`). In another thread, such as those of a Beam worker, and
without the limits of Linux, there is no allowance.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypeVar

from recordgen.errors import SourceError

if sys.platform == "linux":
    import resource

#: Memory and processor time of any source, and what each of its bytes adds.
MEMORY_BYTES, MEMORY_PER_BYTE = 800_000_000, 8
SECONDS, SECONDS_PER_BYTE = 15.0, 5e-6

# A larger container does not need more to list what it holds.
_MOST_BYTES_AT_ONCE = 1 << 30

# Limits are raised in steps, as each takes system calls.
_STEP_BYTES = 1 << 20

# An interrupt that a handler of errors has swallowed is repeated; the kernel acts later.
_AGAIN_SECONDS, _KERNEL_SECONDS = 1.0, 10

#: The clock of this process's user and system time (CPUCLOCK_PROF of Linux's clock ids).
CLOCK_OF_TICKS = -8

_Item = TypeVar("_Item")


class _Allowance:
    """The limits of this process while it reads a source."""

    def __init__(self) -> None:
        self._stored = self._unpacked = self._waiting = 0  # bytes
        self._data = _data_bytes()
        self._began = _spent()
        self._before = {
            kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_DATA, resource.RLIMIT_CPU)
        }
        self._handler = signal.getsignal(signal.SIGPROF)
        self._is_over = False

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self._interrupt)
        self.apply()

    @property
    def _memory(self) -> int:
        return MEMORY_BYTES + self._unpacked * MEMORY_PER_BYTE

    @property
    def _seconds(self) -> float:
        return SECONDS + self._stored * SECONDS_PER_BYTE

    def grow(self, stored: int, unpacked: int) -> None:
        self._stored += min(stored, _MOST_BYTES_AT_ONCE)
        self._unpacked += min(unpacked, _MOST_BYTES_AT_ONCE)
        self._waiting += unpacked
        if self._waiting >= _STEP_BYTES:
            self._waiting = 0
            self.apply()

    def apply(self) -> None:
        left = max(_AGAIN_SECONDS, self._began + self._seconds - _spent())
        end = math.ceil(_spent_by_ticks() + left) + _KERNEL_SECONDS
        self._limit(resource.RLIMIT_DATA, self._data + self._memory)
        self._limit(resource.RLIMIT_CPU, end)
        signal.setitimer(signal.ITIMER_PROF, left, _AGAIN_SECONDS)

    def _limit(self, kind: int, most: int) -> None:
        soft, hard = self._before[kind]
        if soft == resource.RLIM_INFINITY or most < soft:
            resource.setrlimit(kind, (most, hard))

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._is_over:
            raise self._error(f"{self._seconds:,.0f} s of processor time")

    def out_of_memory(self) -> SourceError:
        return self._error(f"{self._memory / 1e9:,.1f} GB of memory")

    def _error(self, what: str) -> SourceError:
        return SourceError(
            f"reading the source takes more than {what}, the limit for the "
            f"{self._stored / 1e6:,.1f} MB read so far: a document or container in it is damaged "
            f"or hostile; pass its files one by one to find it"
        )

    def close(self) -> None:
        self._is_over = True  # an interrupt that is on its way would leave the limits
        signal.setitimer(signal.ITIMER_PROF, 0)
        for kind, limits in self._before.items():
            resource.setrlimit(kind, limits)
        # A reader that nobody finishes may be collected in another thread, which sets no handlers.
        with suppress(ValueError):
            signal.signal(signal.SIGPROF, self._handler)


_current: list[_Allowance] = []


@contextmanager
def allowed() -> Iterator[None]:
    """Limit what the block takes, which reads a source. Raises: SourceError: it took more."""
    if not _is_possible():
        yield
        return
    allowance = _Allowance()
    _current.append(allowance)
    try:
        allowance.begin()
        yield
    except MemoryError as exc:
        raise allowance.out_of_memory() from exc
    finally:
        end()


def while_reading(parts: Iterable[_Item], size: int) -> Iterator[_Item]:
    """Yield the parts of a source; limit what is taken from the first to behind the last one.

    A run that fails before the last one calls :func:`end`.

    Args: size: the bytes of the source, as not every reader opens it again.
    """
    with allowed():
        grow(size, size)
        yield from parts


def end() -> None:
    """Lift the limits, if there are any."""
    for allowance in [*_current]:
        allowance.close()
        with suppress(ValueError):  # another thread has removed it
            _current.remove(allowance)


def grow(stored: int, unpacked: int) -> None:
    """Allow more time for bytes in storage, and memory for what they unpack to."""
    for allowance in _of_this_thread():
        allowance.grow(stored, unpacked)


def count_processes() -> None:
    """Count the processor time of a process that has ended."""
    for allowance in _of_this_thread():
        allowance.apply()


def grow_by(file: IO[bytes]) -> None:
    """Allow more, because an opened file of a source is about to be read."""
    if _current:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        grow(size, size)
        file.seek(0)


def within(items: Iterable[Any]) -> Iterator[Any]:
    """Yield what is read. Raises: SourceError: it took more memory than is allowed."""
    try:
        yield from items
    except MemoryError as exc:
        if _current:
            raise _current[0].out_of_memory() from exc
        raise


def _is_possible() -> bool:
    return (
        sys.platform == "linux"
        and not _current
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_PROF)[0] == 0  # a profiler uses it
    )


def _of_this_thread() -> list[_Allowance]:
    """Return the allowance in the main thread; none in another, which may act after its end."""
    return _current[:1] if threading.current_thread() is threading.main_thread() else []


def _spent() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _spent_by_ticks() -> float:
    """Return this process's processor time as ``RLIMIT_CPU`` counts it.

    The kernel adds a whole tick to whoever runs at its end: after some minutes, this may be seconds
    more than the exact time, and a limit by that would end the process at once.
    """
    try:
        return time.clock_gettime(CLOCK_OF_TICKS)
    except OSError:  # a kernel that is not Linux's own
        return time.process_time()


def _data_bytes() -> int:
    """Return the bytes that count for ``RLIMIT_DATA``: private and writable memory."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
    return 0


# --- memory of this machine or of its control group -----------------------------------------------

# The limit of a container is the limit of its control group (version 2 or 1). The limits of parent
# groups are not read: a container sees its own group as the root.

#: The folder of the control group.
GROUP = "/sys/fs/cgroup"

# Files with limit and usage of a control group: versions 2 and 1.
_LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)

# The memory of a machine that does not say it, such as one with Windows.
_UNKNOWN = 8_000_000_000


def memory_limit(group: str = GROUP) -> int:
    """Return the memory of the machine, or of the control group if it has less, in bytes."""
    return min([memory_of_machine(), *(most for most, _ in memory_of_group(group))])


def memory_of_machine() -> int:
    """Return the memory of the machine in bytes."""
    if not hasattr(os, "sysconf"):
        return _UNKNOWN
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_of_group(folder: str) -> list[tuple[int, int]]:
    """Return limit and usage of a control group; empty if it has no limit."""
    found = []
    for names in _LIMITS:
        try:
            most, taken = (int(Path(folder, name).read_text()) for name in names)
        except (OSError, ValueError):
            continue  # no such file, or the limit is "max"
        found.append((most, taken))
    return found
