"""Measures how many planted faults the checks of tables find, and their false findings.

    python -m benchmarks.lint_tables

Makes tables with columns of many kinds and no fault, adds a column for each known fault, checks
them, and prints for each fault the share of tables in which it was found. Findings about a column
without that fault are false. Half of the tables have a target of two classes, half an amount.
"""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import recordgen

Random = np.random.Generator
Fault = Callable[[Random, Mapping[str, Any]], Any]

_COLUMN = re.compile(r"column '([^']*)'")


def make_columns(random: Random, rows: int, *, has_labels: bool) -> dict[str, Any]:
    """Return columns without a fault; the target depends on some of them, with noise."""
    size = random.normal(50, 10, rows)
    signal = size + random.normal(0, 12, rows)
    days = np.datetime64("2026-01-01") + random.integers(0, 300, rows)
    return {
        "split": random.choice(["TRAIN", "TRAIN", "TRAIN", "VALIDATE", "TEST"], rows),
        "id": np.arange(rows),
        "size": size.round(3),
        "pay (lognormal)": random.lognormal(3, 1, rows).round(2),
        "waiting (exponential)": random.exponential(30, rows).round(2),
        "balance (normal, both signs)": random.normal(1500, 3000, rows).round(2),
        "calls (mostly 0)": random.poisson(0.2, rows),
        "wealth (Pareto)": (random.pareto(2, rows) + 1).round(3),
        "return (Student's t)": random.standard_t(3, rows).round(4),
        "age": random.integers(18, 95, rows),
        "is new": (random.random(rows) < 0.01).astype(int),
        "gaps": np.where(random.random(rows) < 0.3, "", random.normal(0, 1, rows).round(3)),
        "job": random.choice(["cook", "smith", "clerk", "nurse"], rows, p=[0.6, 0.3, 0.09, 0.01]),
        "city": [f"city {number}" for number in random.integers(0, rows // 4, rows)],
        "postcode": [f"{number:05d}" for number in random.integers(0, 99999, rows)],
        "day": days,
        "related": (signal + random.normal(0, 3, rows)).round(3),
        "target": np.where(signal > 55, "yes", "no") if has_labels else signal.round(3),
    }


# --- faults -----------------------------------------------------------------------------------


def _with(share: float, value: Any, of: str) -> Fault:
    """Replace a part of a column, at least one value."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = np.array(columns[of]).astype(object)
        count = max(1, round(share * len(found)))
        found[random.choice(len(found), count, replace=False)] = value
        return found

    return plant


def _times(factor: float, of: str) -> Fault:
    """Multiply one value."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = np.array(columns[of])
        found[np.argsort(found)[len(found) // 2]] *= factor
        return found

    return plant


def _shifted(deviations: float) -> Fault:
    """Return random numbers with another mean in split test."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = random.normal(0, 1, len(columns["id"]))
        found[columns["split"] == "TEST"] += deviations
        return found.round(4)

    return plant


def _copied(noise: float) -> Fault:
    """Return the target in other words; a part of the rows does not follow it."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        target = columns["target"]
        is_other = random.random(len(target)) < noise
        if target.dtype.kind == "U":
            return np.where((target == "yes") ^ is_other, "paid", "open")
        return (2.54 * target + np.std(target) * noise * random.normal(0, 2.54, len(target))).round(
            5
        )

    return plant


def _filled_after(random: Random, columns: Mapping[str, Any]) -> Any:
    """Fill a column only where the target is high."""
    target = columns["target"]
    is_high = target == "yes" if target.dtype.kind == "U" else target > np.median(target)
    return np.where(is_high, random.normal(0, 1, len(target)).round(4), "")


def _by_threshold(random: Random, columns: Mapping[str, Any]) -> Any:
    """Return numbers in the order of the target: a threshold divides the classes."""
    target = columns["target"]
    order = target == "yes" if target.dtype.kind == "U" else np.exp((target - 50) / 10)
    return (order + random.random(len(target)) * (0.9 if target.dtype.kind == "U" else 0)).round(6)


def _of_two(random: Random, columns: Mapping[str, Any]) -> Any:
    """Return one of two texts at random, other texts in split test."""
    rows = len(columns["id"])
    old, new = random.choice(["a", "b"], rows), random.choice(["b", "c"], rows)
    return np.where(columns["split"] == "TEST", new, old)


# Fault: its code, and the function that plants it.
FAULTS: Mapping[str, tuple[str, Fault]] = {
    "one value": ("CONSTANT", lambda _, columns: np.full(len(columns["id"]), 7)),
    "no value": ("CONSTANT", lambda _, columns: np.full(len(columns["id"]), "")),
    "one word among numbers": ("MIXED_TYPES", _with(0, "old", "size")),
    "words in 1 %": ("MIXED_TYPES", _with(0.01, "unknown", "size")),
    "words in 8 %": ("MIXED_TYPES", _with(0.08, "young", "age")),
    "words in 15 %": ("MIXED_TYPES", _with(0.15, "young", "age")),
    "one word among dates": ("MIXED_TYPES", _with(0, "today", "day")),
    "target in other words": ("GIVE_AWAY", _copied(0)),
    "target, 0.2 % noise": ("GIVE_AWAY", _copied(0.002)),
    "target, 2 % noise": ("GIVE_AWAY", _copied(0.02)),
    "target, 10 % noise": ("GIVE_AWAY", _copied(0.1)),
    "order of the target": ("GIVE_AWAY", _by_threshold),
    "filled for high targets": ("GIVE_AWAY", _filled_after),
    "one 9999 in an age": ("OUTLIER", _with(0, 9999, "age")),
    "999 in 1 % of ages": ("OUTLIER", _with(0.01, 999, "age")),
    "-1 in 3 % of ages": ("OUTLIER", _with(0.03, -1, "age")),
    "one size × 10": ("OUTLIER", _times(10, "size")),
    "one size × 3": ("OUTLIER", _times(3, "size")),
    "one pay × 1000": ("OUTLIER", _times(1000, "pay (lognormal)")),
    "one balance × 100": ("OUTLIER", _times(100, "balance (normal, both signs)")),
    "test shifted by 0.25 deviations": ("SKEW", _shifted(0.25)),
    "test shifted by 0.5 deviations": ("SKEW", _shifted(0.5)),
    "test shifted by 1 deviation": ("SKEW", _shifted(1)),
    "other words in test": ("SKEW", _of_two),
}


# --- findings ---------------------------------------------------------------------------------


def findings_of(columns: Mapping[str, Any], folder: Path) -> set[tuple[str, str]]:
    """Return the code and column of each finding about a table's columns."""
    source = folder / "table.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    result = recordgen.check(str(source), task="tabular", columns="target=target,split=split")
    if result.lint is None:
        raise RuntimeError("nothing was checked")
    return {
        (item.code, found[1])
        for item in result.lint.findings()
        if (found := _COLUMN.match(item.message))
    }


def measure(tables: int, rows: int, *, has_labels: bool) -> tuple[Counter[str], Counter[str]]:
    """Return how often each fault was found, and the counts of false findings."""
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="recordgen-tables-") as folder:
        for seed in range(tables):
            random = np.random.default_rng(seed)
            columns = make_columns(random, rows, has_labels=has_labels)
            planted = {name: plant(random, columns) for name, (_, plant) in FAULTS.items()}
            for code, name in findings_of({**columns, **planted}, Path(folder)):
                if name in FAULTS and code == FAULTS[name][0]:
                    found[name] += 1
                else:
                    false[f"{code} of {name!r}"] += 1
    return found, false


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10, metavar="N", help="of each kind")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000])
    args = parser.parse_args()
    kinds = {
        f"{rows:,} rows, {name}": measure(args.tables, rows, has_labels=has_labels)
        for rows in args.rows
        for name, has_labels in (("classes", True), ("amounts", False))
    }
    print(f"| fault | code | {' | '.join(kinds)} |")
    print(f"|---|---|{'---|' * len(kinds)}")
    for fault, (code, _) in FAULTS.items():
        cells = (f"{found[fault] / args.tables:.0%}" for found, _ in kinds.values())
        print(f"| {fault} | {code} | {' | '.join(cells)} |")
    for kind, (_, false) in kinds.items():
        said = ", ".join(f"{count} {what}" for what, count in sorted(false.items()))
        print(f"\nFalse, {kind}: {said or 'none'}", end="")
    print()


if __name__ == "__main__":
    main()
