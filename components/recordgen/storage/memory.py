"""Memory of this machine or of its control group, and processes killed for lack of it.

The limit of a container is the limit of its control group (version 2 or 1). The limits of parent
groups are not read: a container sees its own group as the root.
"""

from __future__ import annotations

import os
from pathlib import Path

# The machine's free memory, and the folder of the control group.
_MACHINE = "/proc/meminfo"
_GROUP = "/sys/fs/cgroup"

# Files with limit and usage of a control group: versions 2 and 1.
_LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)

# The memory of a machine that does not say it, such as one with Windows.
_UNKNOWN = 8_000_000_000

_EVENTS = ("memory.events", "memory/memory.oom_control")


def memory_limit(group: str = _GROUP) -> int:
    """Return the memory of the machine, or of the control group if it has less, in bytes."""
    return min([_all_of_machine(), *(most for most, _ in _of_group(group))])


def free_memory(machine: str = _MACHINE, group: str = _GROUP) -> int:
    """Return the free memory of the machine, or of the control group if it is less, in bytes."""
    free = [max(0, most - taken) for most, taken in _of_group(group)]
    return min([_free_of_machine(machine), *free])


def memory_kills(group: str = _GROUP) -> int:
    """Return the control group's processes killed for lack of memory; 0 if it does not count."""
    for name in _EVENTS:
        try:
            counts = dict(line.split() for line in Path(group, name).read_text().splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def _all_of_machine() -> int:
    if not hasattr(os, "sysconf"):
        return _UNKNOWN
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _free_of_machine(path: str) -> int:
    try:
        values = dict(line.split(":", 1) for line in Path(path).read_text().splitlines())
        return 1024 * int(values["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux
        return _all_of_machine()


def _of_group(folder: str) -> list[tuple[int, int]]:
    """Return limit and usage of a control group; empty if it has no limit."""
    found = []
    for names in _LIMITS:
        try:
            most, taken = (int(Path(folder, name).read_text()) for name in names)
        except (OSError, ValueError):
            continue  # no such file, or the limit is "max"
        found.append((most, taken))
    return found
