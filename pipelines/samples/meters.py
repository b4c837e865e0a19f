"""Made-up readings of two meters, each a scanned digit.

The label says whether the reading is higher than expected. It depends on the sum of both digits, on
the usual sum, and on a note about unusual events; none of these is enough by itself.
"""

from __future__ import annotations

import os

import numpy as np
from sklearn.datasets import load_digits

from pipelines.samples import USES, write_csv
from pipelines.samples.digits import write_scan

_COLUMNS = ("split", "day", "night", "usual", "note", "verdict")

# Expected differences from the usual sum, and notes for them.
NOTES = (
    (4, ("Guests {}.", "The pump ran {}.", "We had a party {}.", "The heating was on {}.")),
    (0, ("Nothing new {}.", "Quiet {}.", "As ever {}.", "Nothing to report {}.")),
    (-4, ("Nobody at home {}.", "Away {}.", "The boiler was off {}.", "A power cut {}.")),
)
_TIMES = ("all day", "all week", "all night", "since Monday", "for a while")


def write_meters(folder: str, readings: int | None = None) -> str:
    """Write the digits as PNG files, and ``meters.csv``, a row for each reading; return its path.

    A row is ``TRAIN,images/0877.png,images/1201.png,9,Guests all week.,less``. A scan is only in
    readings of one split.
    """
    digits = load_digits()
    random = np.random.default_rng(0)
    shuffled = random.permutation(len(digits.target))
    rows: list[tuple[object, ...]] = [_COLUMNS]
    for number in range(2000 if readings is None else readings):
        apart = 0
        while abs(apart) <= 2:  # too close to the expected sum to be more or less
            day, night = map(int, random.choice(shuffled[number % 10 :: 10], 2))
            usual = int(random.integers(19))
            more, notes = NOTES[random.integers(len(NOTES))]
            apart = int(digits.target[day]) + int(digits.target[night]) - usual - more
        note = str(random.choice(notes)).format(random.choice(_TIMES))
        images = [f"images/{scan:04d}.png" for scan in (day, night)]
        rows.append((USES[number % 10], *images, usual, note, "more" if apart > 0 else "less"))
        for name, scan in zip(images, (day, night), strict=True):
            write_scan(os.path.join(folder, name), digits.images[scan])
    return write_csv(os.path.join(folder, "meters.csv"), rows)
