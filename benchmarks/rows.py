"""How the cost grows with the number of rows: time and memory of planning, and of whole tables.

    python -m benchmarks.rows --rows 10000 100000 1000000

For each number, these run in a process each; time is without imports, and peak memory is the
proportional set size of the process and all its descendants together, imports included:

    images     ``recordgen convert --check none --dry-run`` on a CSV, each row of which names a
               different file: one tiny image and hard links to it, 10,000 in a folder
    table      ``recordgen convert --task tabular`` on a CSV with ten columns: a split, three of
               whole numbers, three of fractions, two of text and a target with two classes; three
               columns lack one value in ten
    unchecked  the same without the checks of the data (``--lint=-ALL``)
    texts      ``recordgen convert --dry-run`` on a CSV of texts with a label
    quoted     the same texts in quotes, each with a comma
    named      the same texts as JSON Lines with names of their own, and ``--columns``
    entities   the same texts as AutoML's JSON Lines with two entities each
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import import_first, run_apart

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


def image_lines(root: Path, rows: int) -> Iterator[str]:
    """Make images; yield the lines that name them."""
    return (f"{path},{number % LABELS}\n" for number, path in enumerate(make_images(root, rows)))


def texts(rows: int) -> Iterator[tuple[str, str]]:
    """Yield sentences, no two alike, and their labels."""
    for number in range(rows):
        yield f"Trip {number} from London to Rome was long and cheap", JOBS[number % len(JOBS)]


def text_lines(_: Path, rows: int) -> Iterator[str]:
    """Yield lines without quotes."""
    return (f"TRAIN,{text},{label}\n" for text, label in texts(rows))


def quoted_lines(_: Path, rows: int) -> Iterator[str]:
    """Yield lines whose texts have quotes, since they have a comma."""
    return (f'TRAIN,"{text}, too",{label}\n' for text, label in texts(rows))


def named_lines(_: Path, rows: int) -> Iterator[str]:
    """Yield JSON objects with names that no definition knows."""
    return (f"{json.dumps({'body': text, 'topic': label})}\n" for text, label in texts(rows))


def entity_lines(_: Path, rows: int) -> Iterator[str]:
    """Yield AutoML's JSON objects in which both cities are entities."""
    for text, _label in texts(rows):
        places = {city: text.index(city) for city in ("London", "Rome")}
        spans = [
            {"startOffset": at, "endOffset": at + len(city), "displayName": "city"}
            for city, at in places.items()
        ]
        yield f"{json.dumps({'textContent': text, 'textSegmentAnnotations': spans})}\n"


def plan_rows(source: str, _: str, **options: Any) -> int:
    """Plan an import file; return the number of planned rows."""
    from recordgen.conversion.api import plan

    return plan(source, **options).rows


def convert_table(source: str, output: str, **options: Any) -> int:
    """Convert a table; return its number of examples."""
    from recordgen.conversion.api import convert

    table = convert(source, output, task="tabular", columns="target=deposit", **options)
    return table.dataset.examples


#: What makes the lines of an import file, and what is measured with it.
Case = tuple[Callable[[Path, int], Iterable[str]], Callable[[str, str], int]]

CASES: Mapping[str, Case] = {
    "images": (image_lines, partial(plan_rows, check="none")),
    "table": (lambda _, rows: make_lines(rows), convert_table),
    "unchecked": (lambda _, rows: make_lines(rows), partial(convert_table, lint="-ALL")),
    "texts": (text_lines, plan_rows),
    "quoted": (quoted_lines, plan_rows),
    "named": (named_lines, partial(plan_rows, columns="text=body,label=topic")),
    "entities": (entity_lines, plan_rows),
}

#: Names of import files that are no CSVs.
FILES = dict.fromkeys(("named", "entities"), "rows.jsonl")


def _measured(work: Callable[[str, str], int], source: str, output: str, rows: int) -> float:
    import_first()
    started = time.perf_counter()
    count = work(source, output)
    seconds = time.perf_counter() - started
    if count != rows:
        raise RuntimeError(f"{count} of {rows} rows are there")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=(10_000, 100_000, 1_000_000))
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    measured = []
    for rows in sorted(args.rows):
        for name in args.only:
            make, work = CASES[name]
            with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
                source = Path(folder, FILES.get(name, "rows.csv"))
                with source.open("w", encoding="utf-8") as file:
                    file.writelines(make(Path(folder), rows))
                output = os.path.join(folder, "out")
                seconds, peak_mb = run_apart(_measured, work, str(source), output, rows)
            found = {"rows": rows, "name": name, "seconds": seconds, "peak_mb": peak_mb}
            measured.append({**found, "rows_per_s": rows / seconds})
            if not args.json:
                print(
                    f"{rows:11,} rows  {seconds:8.2f} s  {rows / seconds:9,.0f} rows/s  "
                    f"{peak_mb:6,.0f} MB  {name}"
                )
    if args.json:
        print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
