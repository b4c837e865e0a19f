"""Made-up readings of two meters, each a scanned digit.

The label says whether the reading is higher than expected. It depends on the sum of both digits, on
the usual sum, and on a note about unusual events; none of these is enough by itself. A scan is only
in readings of one split.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from sklearn.datasets import load_digits

from pipelines.samples import copy_lines
from pipelines.samples.digits import write_scan


def write_meters(folder: str, readings: int | None = None) -> str:
    """Write the digits as PNG files, and ``meters.csv``, a row for each reading; return its path.

    A row is ``TRAIN,images/0877.png,images/1201.png,9,Guests all week.,less``.
    """
    scans = load_digits().images
    path = copy_lines("declared/meters.csv", folder, readings, header=1)
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for name in (row["day"], row["night"]):
                write_scan(os.path.join(folder, name), scans[int(Path(name).stem)])
    return path
