"""Rows as columns: their places, hashes of their shares, and their parts."""

import numpy as np
import pyarrow as pa
import pytest

from recordgen.core.rows import columns
from recordgen.core.rows.row import PlacedRow, Row, RowBatch, placing


def test_mixed_hashes_never_change():
    """They are SplitMix64's of the same numbers: buckets of an output depend on them."""
    mixed = columns.mixed(np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64))
    assert [f"{number:x}" for number in mixed.tolist()] == [
        "0", "5692161d100b05e5", "25c26ea579cea98a", "b4d055fcf2cbbd7b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "text_bytes", "expected"),
    [
        (3, 10_000, [[0, 1, 2, 3], [4, 5, 6], []]),
        (100, 1250, [[0, 1], [2, 3], [4, 5, 6]]),
        (100, 10_000, [[0, 1, 2, 3, 4, 5, 6]]),
    ],
)
def test_parts_are_gathered(rows, text_bytes, expected):
    """A group ends as soon as it has enough rows, or texts of enough bytes; parts may be empty."""
    texts = pa.array(["x" * 100 * (9 - n) for n in range(7)])
    whole = pa.table({"n": range(7), "text": texts})
    parts = [whole.slice(start, 2) for start in range(0, 10, 2)]
    found = columns.gathered(parts, rows, text_bytes, ["text"])
    assert [[n for part in some for n in part["n"].to_pylist()] for some in found] == expected
    assert [*columns.gathered([], rows, text_bytes, ["text"])] == [[]]


def test_rows_in_one_place_are_in_the_order_of_their_files_and_lines():
    """The order does not depend on which file was read first."""
    places = [("b.csv", 1), ("a.csv", 9), ("a.csv", 2)]
    same = [RowBatch.of([Row(*place, None, "1.jpg", None)]) for place in places]
    found = columns.in_order(columns.placed(same, ["1.jpg"] * 3, 0))
    assert [row[2:4] for row in columns.rows_of(PlacedRow, found)] == sorted(places)
    assert not len(columns.in_order(columns.columns_of(PlacedRow, ())))


def test_rows_are_placed_by_their_names():
    """Names are bytes of any kind."""
    rows = RowBatch.of([Row("a.csv", 1, None, "odd", None)])
    [row] = columns.rows_of(PlacedRow, columns.placed([rows], ["\udcff"], 3))
    assert (row.sort_key, row.split_hash) == placing(3)("\udcff")


def test_texts_are_joined_as_they_lie_in_memory():
    """Also those of a slice, or none."""
    texts = pa.array(["ab", "", "cde", "f"], pa.binary())
    assert bytes(columns.joined(texts.slice(1, 2))) == b"cde"
    assert bytes(columns.joined(pa.array([], pa.binary()))) == b""
