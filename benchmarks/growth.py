"""Shared code of benchmarks of growth: time and memory by number of rows."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.memory import run_apart


def measure_growth(
    description: str,
    prepare: Callable[[Path, int], Mapping[str, tuple[Any, ...]]],
    work: Callable[..., float],
    sizes: Sequence[int] = (10_000, 100_000, 1_000_000),
) -> None:
    """Run a benchmark's command: print seconds, rows per second and peak memory for each size.

    Args:
        description: the benchmark's docstring.
        prepare: makes data with a number of rows in an empty folder; returns the arguments of each
            call of ``work``, by variant.
        work: runs in its own process; returns its seconds without imports.
        sizes: numbers of rows, unless ``--rows`` is given.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=sizes)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    measured = []
    for rows in sorted(args.rows):
        with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
            for name, arguments in prepare(Path(folder), rows).items():
                seconds, peak_mb = run_apart(work, *arguments)
                found = {"rows": rows, "name": name, "seconds": seconds, "peak_mb": peak_mb}
                measured.append({**found, "rows_per_s": rows / seconds})
                if not args.json:
                    print(
                        f"{rows:11,} rows  {seconds:8.2f} s  {rows / seconds:9,.0f} rows/s  "
                        f"{peak_mb:6,.0f} MB  {name}".rstrip()
                    )
    if args.json:
        print(json.dumps(measured, indent=2))


def import_first() -> None:
    """Import what a conversion imports when it is first used: imports are not the work."""
    from recordgen.exports.beside import CONVERTED, file_export
    from recordgen.registry import CHECKS

    with suppress(ImportError):  # PyArrow imports pandas for its first array, if it is there
        import pandas as pd  # noqa: F401
    list(CHECKS.values())
    list(map(file_export, CONVERTED))
