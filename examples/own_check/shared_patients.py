"""A check for Recordgen: patients whose images are in several splits.

p17/a.png in train and p17/b.png in test: a model is measured on a patient whom it knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from recordgen.checks.check import KEYED, Check, Examined, ExampleFacts, FoundRows


class SharedPatient(Check):
    """Images of one folder, which holds one patient, are in several splits."""

    code = "SHARED_PATIENT"
    level = "error"
    scope = KEYED  # workers examine the images of a patient together
    needs = ("images",)
    threshold = 1  # a patient with fewer images in other splits is no finding
    remedies = ("give all images of a patient one split",)

    @staticmethod
    def keys(facts: ExampleFacts) -> Any:
        """Return a hash of each image's folder."""
        folders = [uri.rpartition("/")[0].encode() for uri in facts.columns["uri"].to_pylist()]
        hashes = [hashlib.blake2b(folder, digest_size=8).digest() for folder in folders]
        return np.frombuffer(b"".join(hashes), "<u8")

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images whose patient is in an earlier split, too; train is the first."""
        facts = examined.facts
        patients = self.keys(facts)
        first: dict[int, int] = {}
        for row in np.argsort(facts.splits, kind="stable").tolist():
            first.setdefault(int(patients[row]), row)
        partners = np.array([first[patient] for patient in patients.tolist()], np.intp)
        is_shared = facts.splits != facts.splits[partners]
        shared, counts = np.unique(patients[is_shared], return_counts=True)
        often = shared[counts >= examined.thresholds[self.code]]
        rows = np.flatnonzero(is_shared & np.isin(patients, often))

        def message(at: int) -> str:
            return f"the patient of {facts.place(partners[rows[at]])} is in another split"

        yield FoundRows(rows, message, partners[rows])
