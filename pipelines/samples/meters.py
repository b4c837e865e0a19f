"""Made-up readings of two meters, each a scanned digit; ``meters.csv`` beside this has their rows.

The label says whether the reading is higher than expected. It depends on the sum of both digits, on
the usual sum, and on a note about unusual events; none of these is enough by itself.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from sklearn.datasets import load_digits

from pipelines.samples import write_lines
from pipelines.samples.digits import write_scan


def write_meters(folder: str, readings: int | None = None) -> str:
    """Write the digits as PNG files, and ``meters.csv``, a row for each reading; return its path.

    A row is ``TRAIN,images/0877.png,images/1201.png,9,Guests all week.,less``; the number of a scan
    is in its name. A scan is only in readings of one split.
    """
    rows = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines()
    lines = rows if readings is None else rows[: 1 + readings]  # with the header
    scans = load_digits().images
    for row in csv.DictReader(lines):
        for name in (row["day"], row["night"]):
            write_scan(os.path.join(folder, name), scans[int(Path(name).stem)])
    return write_lines(os.path.join(folder, "meters.csv"), lines)
