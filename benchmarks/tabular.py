"""How fast tables are converted: rows a second, and memory, from CSV to finished shards.

    python -m benchmarks.tabular --rows 100000 1000000

For each number, what ``recordgen convert --task tabular`` does, with the checks of the data and
without them (``--ignore ALL``), in a process of its own, on a CSV of ten columns: a split, three of
whole numbers, three of fractions, two of text and a target of two classes; of three, one value in
ten is missing. Time is that of the conversion without imports; peak
memory is the proportional set size of the process and all its descendants, imports included.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.memory import run_apart

HEADER = "ml_use,id,age,children,balance,score,duration,job,city,deposit"
JOBS = ("management", "technician", "entrepreneur", "blue-collar", "retired", "services")


@dataclass(frozen=True)
class Measurement:
    """One conversion without the checks ``ignore``; MB are 10^6 bytes."""

    rows: int
    ignore: str
    seconds: float
    cpu_seconds: float
    rows_per_s: float
    peak_mb: float


def make_lines(rows: int) -> Iterator[str]:
    """Yield the lines of a table."""
    draw = random.Random(0)
    yield f"{HEADER}\n"
    for number in range(rows):
        ml_use = ("TRAIN", "TRAIN", "TRAIN", "VALIDATE", "TEST")[draw.randrange(5)]
        age = "" if draw.random() < 0.1 else draw.randrange(18, 95)
        balance = "" if draw.random() < 0.1 else f"{draw.gauss(1500, 3000):.2f}"
        job = "" if draw.random() < 0.1 else draw.choice(JOBS)
        yield (
            f"{ml_use},{number},{age},{draw.randrange(6)},{balance},{draw.random():.6f},"
            f"{draw.expovariate(0.01):.1f},{job},city {draw.randrange(5000)},"
            f"{draw.choice(('yes', 'no'))}\n"
        )


def measure(source: Path, output: Path, rows: int, ignore: str) -> Measurement:
    """Convert a CSV in a fresh process."""
    found, peak_mb = run_apart(_convert, str(source), str(output), rows, ignore)
    seconds, cpu_seconds = found
    return Measurement(rows, ignore, seconds, cpu_seconds, rows / seconds, peak_mb)


def _convert(source: str, output: str, rows: int, ignore: str) -> tuple[float, float]:
    from recordgen.conversion.api import convert

    started, cpu_started = time.perf_counter(), time.process_time()
    options: dict[str, Any] = {"ignore": ignore} if ignore else {}
    result = convert(source, output, task="tabular", target_column="deposit", **options)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    if result.dataset.examples != rows:
        raise RuntimeError(f"{result.dataset.examples} of {rows} rows were converted")
    return seconds, cpu_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory(prefix="recordgen-tabular-") as folder:
        for rows in sorted(args.rows):
            source = Path(folder, f"{rows}.csv")
            with source.open("w", encoding="utf-8") as file:
                file.writelines(make_lines(rows))
            for ignore in ("", "ALL"):
                output = Path(folder, f"{rows}{ignore}")
                measured.append(found := measure(source, output, rows, ignore))
                if not args.json:
                    print(
                        f"{rows:11,} rows  {found.seconds:8.2f} s  {found.cpu_seconds:8.2f} s CPU  "
                        f"{found.rows_per_s:9,.0f} rows/s  {found.peak_mb:6,.0f} MB"
                        f"{'  --ignore ALL' if ignore else ''}"
                    )
    if args.json:
        print(json.dumps([asdict(item) for item in measured], indent=2))


if __name__ == "__main__":
    main()
