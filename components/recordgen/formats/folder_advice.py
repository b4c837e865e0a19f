"""What a folder holds, in a few lines, and the layout that is likely to describe it."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Sequence

_LINES = 8
_SUFFIXES = 3


def shown_files(names: Sequence[str]) -> str:
    """Return the folders of files with the number of files of each suffix, in a few lines.

    ``train/cat/  120 .jpg, 1 .txt``
    """
    depth = max((name.count("/") for name in names), default=0)
    while depth and len({_folder(name, depth) for name in names}) > _LINES:
        depth -= 1
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        counts[_folder(name, depth)][posixpath.splitext(name)[1]] += 1
    folders = sorted(counts)
    lines = [f"  {folder or './'}  {_counted(counts[folder])}" for folder in folders[:_LINES]]
    more = len(folders) - len(lines)
    return "\n".join([*lines, f"  and {more:,} more folders"] if more else lines)


def _folder(name: str, depth: int) -> str:
    """Return the outer folders of a file, with a slash at their end."""
    folders = name.split("/")[:-1][:depth]
    return "".join(f"{folder}/" for folder in folders)


def _counted(suffixes: Counter[str]) -> str:
    shown = suffixes.most_common(_SUFFIXES)
    return ", ".join(f"{count:,} {suffix or 'without suffix'}" for suffix, count in shown)
