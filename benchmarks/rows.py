"""How planning grows with the number of rows: time and memory.

    python -m benchmarks.rows --rows 10000 100000 1000000 --plot docs/images/rows.svg

For each number, what ``recordgen convert --check none --dry-run`` does, in a process of its own, on
a CSV of so many rows. Each row names a file of its own: one tiny image and hard links to it, 10,000
to a folder. Time is that of the planning without imports; peak memory is the proportional set size
of the process and all its descendants together, imports included.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.memory import run_apart
from benchmarks.plot import Panel, log_log_svg

FOLDER_IMAGES = 10_000  # a file system allows a file some 65,000 links, and folders stay quick
LABELS = 10

# A GIF of one pixel.
IMAGE = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@dataclass(frozen=True)
class Measurement:
    """One planning; MB are 10^6 bytes."""

    rows: int
    seconds: float
    rows_per_s: float
    peak_mb: float


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


def measure(source: str, rows: int) -> Measurement:
    """Plan a CSV in a fresh process."""
    seconds, peak_mb = run_apart(_plan, source, rows)
    return Measurement(rows, seconds, rows / seconds, peak_mb)


def _plan(source: str, rows: int) -> float:
    from recordgen.conversion.api import plan

    started = time.perf_counter()
    planned = plan(source, check="none").rows
    seconds = time.perf_counter() - started
    if planned != rows:
        raise RuntimeError(f"{planned} of {rows} rows were planned")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--json", action="store_true", help="print only JSON")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw time and memory over rows")
    args = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory(prefix="recordgen-rows-") as folder:
        paths = list(make_images(Path(folder), max(args.rows)))
        for rows in sorted(args.rows):
            source = os.path.join(folder, f"{rows}.csv")
            with open(source, "w", encoding="utf-8") as file:
                file.writelines(f"{path},{n % LABELS}\n" for n, path in enumerate(paths[:rows]))
            measured.append(found := measure(source, rows))
            if not args.json:
                print(
                    f"{rows:11,} rows  {found.seconds:8.2f} s  {found.rows_per_s:9,.0f} rows/s  "
                    f"{found.peak_mb:6,.0f} MB"
                )
    if args.json:
        print(json.dumps([asdict(item) for item in measured], indent=2))
    if args.plot:
        args.plot.parent.mkdir(parents=True, exist_ok=True)
        args.plot.write_text(_plot(measured), encoding="utf-8")


def _plot(measured: list[Measurement]) -> str:
    seconds = [(item.rows, item.seconds) for item in measured]
    memory = [(item.rows, item.peak_mb) for item in measured]
    return log_log_svg("rows", [Panel("seconds", seconds), Panel("peak memory, MB", memory)])


if __name__ == "__main__":
    main()
