"""How fast tables are converted: rows per second and memory, from CSV to finished shards.

    python -m benchmarks.tabular --rows 100000 1000000

For each number, ``recordgen convert --task tabular`` runs with and without the checks of the data
(``--lint=-ALL``), in its own process, on a CSV with ten columns: a split, three columns of whole
numbers, three of fractions, two of text and a target with two classes; three columns lack one value
in ten. Time is for the conversion without imports; peak
memory is the proportional set size of the process and all its descendants, imports included.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import import_first, measure_growth

HEADER = "ml_use,id,age,children,balance,score,duration,job,city,deposit"
JOBS = ("management", "technician", "entrepreneur", "blue-collar", "retired", "services")


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


def make_tables(root: Path, rows: int) -> dict[str, tuple[str, str, int, dict[str, Any]]]:
    """Write a CSV, to be converted with the checks and without."""
    source = root / "table.csv"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(make_lines(rows))
    return {
        "": (str(source), str(root / "checked"), rows, {}),
        "--lint=-ALL": (str(source), str(root / "unchecked"), rows, {"lint": "-ALL"}),
    }


def _convert(source: str, output: str, rows: int, options: dict[str, Any]) -> float:
    from recordgen.conversion.api import convert

    import_first()
    started = time.perf_counter()
    result = convert(source, output, task="tabular", columns="target=deposit", **options)
    seconds = time.perf_counter() - started
    if result.dataset.examples != rows:
        raise RuntimeError(f"{result.dataset.examples} of {rows} rows were converted")
    return seconds


if __name__ == "__main__":
    measure_growth(__doc__, make_tables, _convert, (100_000, 1_000_000))
