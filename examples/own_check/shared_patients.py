"""A check for Recordgen: patients whose images are in several splits.

p17/a.png in train and p17/b.png in test: a model is measured on a patient whom it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordgen.checks.check import Check, Examined, FoundRows


class SharedPatient(Check):
    """Images of one folder, which holds one patient, are in several splits."""

    code = "SHARED_PATIENT"
    level = "error"
    needs = ("images",)
    threshold = 1  # a patient with fewer images in other splits is no finding
    remedies = ("give all images of a patient one split",)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images whose patient is in an earlier split, too; train is the first."""
        facts = examined.facts
        uris = facts.columns["uri"].to_pylist()
        patients = np.array([uri.rpartition("/")[0] for uri in uris])
        first: dict[str, int] = {}
        for row in np.argsort(facts.splits, kind="stable").tolist():
            first.setdefault(patients[row], row)
        partners = np.array([first[patient] for patient in patients], np.intp)
        is_shared = facts.splits != facts.splits[partners]
        shared, counts = np.unique(patients[is_shared], return_counts=True)
        often = shared[counts >= examined.thresholds[self.code]]
        rows = np.flatnonzero(is_shared & np.isin(patients, often))

        def message(at: int) -> str:
            return f"the patient of {facts.place(partners[rows[at]])} is in another split"

        yield FoundRows(rows, message, partners[rows])
