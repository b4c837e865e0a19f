"""scikit-learn's table of wines as an import file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from sklearn.datasets import load_wine

from pipelines.samples import Sample, write_csv
from recordgen.training import TrainingConfig

# The splits of ten wines; the table is sorted by cultivar, so each split gets all cultivars.
_ML_USE = ("TRAIN",) * 6 + ("VALIDATE", "TEST") * 2

_SPLIT = "ml_use"
_TARGET = "cultivar"
_NAMES = ("barolo", "grignolino", "barbera")

# Columns with gaps: one in this many values is missing.
_GAPS = {"malic_acid": 11, "proline": 13, "hue": 17}


def write_wines(folder: str, rows: int | None = None) -> str:
    """Write the chemical analysis of 178 wines as ``wines.csv``; return its path.

    The target ``cultivar`` has three classes. Some values are missing. ``rows`` are sampled evenly.
    """
    return write_csv(os.path.join(folder, "wines.csv"), _lines(rows))


WINES = Sample(
    name="wines",
    data="a table of wines",
    write=write_wines,
    training=TrainingConfig(batch_size=16, epochs=30, learning_rate=3e-3),
    min_score=0.9,
    options={"target_column": _TARGET},
)


def _lines(rows: int | None) -> Iterator[Sequence[object]]:
    data = load_wine()
    names = [name.replace("/", "_") for name in data.feature_names]
    yield [_SPLIT, *names, _TARGET]
    step = 1 if rows is None else max(1, len(data.target) // rows)
    for number in range(0, len(data.target), step):
        values = [
            "" if name in _GAPS and number % _GAPS[name] == 1 else f"{value:g}"
            for name, value in zip(names, data.data[number], strict=True)
        ]
        yield [_ML_USE[number // step % len(_ML_USE)], *values, _NAMES[data.target[number]]]
