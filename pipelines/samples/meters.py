"""Made-up readings of two meters, each a scanned digit.

The label says whether the reading is higher than expected. It depends on the sum of both digits, on
the usual sum, and on a note about unusual events; none of these is enough by itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from pipelines.samples import Sample, write_csv
from pipelines.samples.digits import write_scan
from recordgen.training import TrainingConfig

#: Number of readings of the demo.
READINGS = 2000

# The type of each column, as in a schema.
_COLUMNS = {
    "split": "split",
    "day": "image",
    "night": "image",
    "usual": "int",
    "note": "text",
    "verdict": "label",
}

_ML_USE = ("TRAIN",) * 8 + ("VALIDATION", "TEST")

# Expected differences from the usual sum, and notes for them.
NOTES = (
    (4, ("Guests {}.", "The pump ran {}.", "We had a party {}.", "The heating was on {}.")),
    (0, ("Nothing new {}.", "Quiet {}.", "As ever {}.", "Nothing to report {}.")),
    (-4, ("Nobody at home {}.", "Away {}.", "The boiler was off {}.", "A power cut {}.")),
)
_TIMES = ("all day", "all week", "all night", "since Monday", "for a while")

# Readings at most this far from the expected sum are neither more nor less, and are not used.
_CLOSE = 2


def write_meters(folder: str, readings: int | None = None) -> str:
    """Write the digits as PNG files, and ``meters.csv``, a row for each reading; return its path.

    A row is ``TRAIN,images/0877.png,images/1201.png,9,Guests all week.,less``. A scan is only in
    readings of one split.
    """
    digits = load_digits()
    rows = list(_rows(digits.target, READINGS if readings is None else readings))
    for number in sorted({scan for _, scans, _ in rows for scan in scans}):
        write_scan(os.path.join(folder, _image(number)), digits.images[number])
    lines = [(ml_use, *map(_image, scans), *rest) for ml_use, scans, rest in rows]
    return write_csv(os.path.join(folder, "meters.csv"), [list(_COLUMNS), *lines])


METERS = Sample(
    name="meters",
    data="made-up readings of two meters, in scanned digits, with a number and a note",
    write=write_meters,
    training=TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3),
    min_score=0.95,
    options={"schema": json.dumps(_COLUMNS)},
)


def _rows(
    digits: npt.NDArray[np.int64], readings: int
) -> Iterator[tuple[str, Sequence[int], tuple[int, str, str]]]:
    """Yield each reading's ML use, the scans of its digits, and the further columns."""
    random = np.random.default_rng(0)
    shuffled = random.permutation(len(digits))
    for number in range(readings):
        part = number % len(_ML_USE)
        apart = 0
        while abs(apart) <= _CLOSE:
            day, night = map(int, random.choice(shuffled[part :: len(_ML_USE)], 2))
            usual = int(random.integers(19))
            more, notes = NOTES[random.integers(len(NOTES))]
            apart = int(digits[day]) + int(digits[night]) - usual - more
        note = str(random.choice(notes)).format(random.choice(_TIMES))
        yield _ML_USE[part], (day, night), (usual, note, "more" if apart > 0 else "less")


def _image(scan: int) -> str:
    return f"images/{scan:04d}.png"
