"""How planning grows with the number of rows: time and memory.

    python -m benchmarks.rows --rows 10000 100000 1000000

For each number, ``recordgen convert --check none --dry-run`` runs in its own process on a CSV with
this many rows. Each row names a different file: one tiny image and hard links to it, 10,000 in a
folder. Time is for planning without imports; peak memory is the proportional set size of the
process and all its descendants together, imports included.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import import_first, measure_growth

FOLDER_IMAGES = 10_000  # file systems allow some 65,000 links to a file, and folders stay fast
LABELS = 10

# A GIF of one pixel.
IMAGE = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def make_images(root: Path, count: int) -> Iterator[str]:
    """Make ``count`` files below ``root``; yield their paths."""
    for number in range(count):
        folder = root / f"{number // FOLDER_IMAGES:04d}"
        path = folder / f"{number % FOLDER_IMAGES:04d}.gif"
        if number % FOLDER_IMAGES == 0:
            folder.mkdir()
            path.write_bytes(IMAGE)
        else:
            os.link(folder / "0000.gif", path)
        yield str(path)


def make_csv(root: Path, rows: int) -> dict[str, tuple[str, int]]:
    """Write a CSV, and the images that it names."""
    source = root / "rows.csv"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"{path},{n % LABELS}\n" for n, path in enumerate(make_images(root, rows)))
    return {"": (str(source), rows)}


def _plan(source: str, rows: int) -> float:
    from recordgen.conversion.api import plan

    import_first()
    started = time.perf_counter()
    planned = plan(source, check="none").rows
    seconds = time.perf_counter() - started
    if planned != rows:
        raise RuntimeError(f"{planned} of {rows} rows were planned")
    return seconds


if __name__ == "__main__":
    measure_growth(__doc__, make_csv, _plan)
