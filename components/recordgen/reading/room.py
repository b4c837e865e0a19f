"""How much memory is free for a cache."""

from __future__ import annotations

import os
from pathlib import Path

# A cache takes at most this share of what is free: the model and the shuffle buffer need the rest.
_SHARE = 0.5

# Limit and use of a control group: versions 2 and 1.
_LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def room_in_memory(machine: str = "/proc/meminfo", group: str = "/sys/fs/cgroup") -> int:
    """Return how many bytes a cache may take: half of what is free.

    Args:
        machine: the file that says what the machine has free.
        group: the folder that says what the control group may take, as a container's limit.
    """
    return int(_SHARE * min([_free_of_machine(machine), *_free_of_group(group)]))


def _free_of_machine(path: str) -> int:
    try:
        values = dict(line.split(":", 1) for line in Path(path).read_text().splitlines())
        return 1024 * int(values["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _free_of_group(folder: str) -> list[int]:
    free = []
    for names in _LIMITS:
        try:
            most, taken = (int(Path(folder, name).read_text()) for name in names)
        except (OSError, ValueError):
            continue  # there is none, or its limit is "max"
        free.append(max(0, most - taken))
    return free
