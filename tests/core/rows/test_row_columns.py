"""Rows as columns: hashes of their shares, and their parts."""

import numpy as np

from recordgen.core.rows import columns
from recordgen.core.rows.row import PlannedRow


def test_mixed_hashes_never_change():
    """They are SplitMix64's of the same numbers: buckets of an output depend on them."""
    mixed = columns.mixed(np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64))
    assert [f"{number:x}" for number in mixed.tolist()] == [
        "0", "5692161d100b05e5", "25c26ea579cea98a", "b4d055fcf2cbbd7b",
    ]  # fmt: skip


def test_parts_are_cut_evenly():
    """All parts but the last have the same number of rows, in order."""
    rows = [PlannedRow(n, "a.csv", n, f"{n}", None, 1, "", assigned=False) for n in range(7)]
    parts = [columns.columns_of(PlannedRow, rows[:3]), columns.columns_of(PlannedRow, rows[3:])]
    found = [
        [row.line for row in columns.rows_of(PlannedRow, it)] for it in columns.evenly(parts, 2)
    ]
    assert found == [[0, 1], [2, 3], [4, 5], [6]]
    assert [*columns.evenly([], 2)] == []
