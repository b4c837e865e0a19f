"""scikit-learn's table of wines as an import file."""

from __future__ import annotations

import os

from sklearn.datasets import load_wine

from pipelines.samples import write_csv

# The splits of ten wines; the table is sorted by cultivar, so each split gets all cultivars.
_ML_USE = ("TRAIN",) * 6 + ("VALIDATE", "TEST") * 2
_CULTIVARS = ("barolo", "grignolino", "barbera")
_GAPS = {"malic_acid": 11, "proline": 13, "hue": 17}  # one in this many values is missing


def write_wines(folder: str, rows: int | None = None) -> str:
    """Write the chemical analysis of 178 wines as ``wines.csv``; return its path.

    The target ``cultivar`` has three classes. Some values are missing. ``rows`` are sampled evenly.
    """
    data = load_wine()
    names = [name.replace("/", "_") for name in data.feature_names]
    lines = [["ml_use", *names, "cultivar"]]
    step = 1 if rows is None else max(1, len(data.target) // rows)
    for number in range(0, len(data.target), step):
        values = [
            "" if name in _GAPS and number % _GAPS[name] == 1 else f"{value:g}"
            for name, value in zip(names, data.data[number], strict=True)
        ]
        use = _ML_USE[number // step % len(_ML_USE)]
        lines.append([use, *values, _CULTIVARS[data.target[number]]])
    return write_csv(os.path.join(folder, "wines.csv"), lines)
