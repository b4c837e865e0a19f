"""Rows as columns: their places, their order, their shares and their bytes."""

import numpy as np
import pyarrow as pa
import pytest

from recordgen.core.rows import columns
from recordgen.core.rows.row import PlacedRow, PlannedRow, Row, RowBatch, placing


def test_mixed_hashes_never_change():
    """They are SplitMix64's of the same numbers: buckets of an output depend on them."""
    mixed = columns.mixed(np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64))
    assert [f"{number:x}" for number in mixed.tolist()] == [
        "0", "5692161d100b05e5", "25c26ea579cea98a", "b4d055fcf2cbbd7b",
    ]  # fmt: skip


def test_rows_are_placed_by_name_and_split_by_group():
    """Names are bytes of any kind; a row without a group is its own; addresses stay beside."""
    rows = [Row("b.csv", 7, None, "1.jpg", "cat"), Row("b.csv", 8, "test", "odd", None)]
    others = RowBatch.of([Row("a.csv", 1, None, "2.jpg", "dog", addresses='["x"]')])
    names = ["1.jpg", "\udcff", "2.jpg"]
    found = columns.placed([RowBatch.of(rows), others], names, 3, ["g", None, "g"])
    one, odd, two = columns.rows_of(PlacedRow, found)
    place = placing(3)
    assert [row.sort_key for row in (one, odd, two)] == [place(name).sort_key for name in names]
    assert one.split_hash == two.split_hash == place("g").split_hash != odd.split_hash
    assert odd.split_hash == place("\udcff").split_hash
    assert [(row.source, row.line, row.split, row.addresses) for row in (one, odd, two)] == [
        ("b.csv", 7, None, None), ("b.csv", 8, "test", None), ("a.csv", 1, None, '["x"]'),
    ]  # fmt: skip


def test_rows_in_one_place_are_in_the_order_of_their_files_and_lines():
    """The order does not depend on which file was read first."""
    same = [RowBatch.of([Row(name, line, None, "1.jpg", None)]) for name, line in
            [("b.csv", 1), ("a.csv", 9), ("a.csv", 2)]]  # fmt: skip
    found = columns.in_order(columns.placed(same, ["1.jpg"] * 3, 0))
    assert [(row.source, row.line) for row in columns.rows_of(PlacedRow, found)] == [
        ("a.csv", 2), ("a.csv", 9), ("b.csv", 1),
    ]  # fmt: skip
    assert not len(columns.in_order(columns.columns_of(PlacedRow, ())))


@pytest.mark.parametrize(
    ("rows", "text_bytes", "expected"),
    [
        (3, 10_000, [[0, 1, 2, 3], [4, 5, 6]]),
        (100, 1250, [[0, 1], [2, 3], [4, 5, 6]]),
        (100, 10_000, [[0, 1, 2, 3, 4, 5, 6]]),
    ],
)
def test_parts_are_gathered(rows, text_bytes, expected):
    """A part ends as soon as it has enough rows, or annotations of enough bytes."""
    made = [
        PlannedRow(n, "a.csv", n, f"{n}", "x" * 100 * (9 - n), 1, "", assigned=False)
        for n in range(7)
    ]
    parts = [
        columns.columns_of(PlannedRow, some) for some in (made[:2], made[2:4], made[4:6], made[6:])
    ]
    found = columns.gathered(parts, rows, text_bytes)
    assert [[row.line for row in columns.rows_of(PlannedRow, it)] for it in found] == expected
    assert [*columns.gathered([], rows, text_bytes)] == []


def test_bytes_of_columns():
    """Texts are joined as they lie in memory, also of a slice; rows part by part."""
    texts = pa.array(["ab", "", "cde", "f"], pa.binary())
    assert bytes(columns.joined(texts.slice(1, 2))) == b"cde"
    assert bytes(columns.joined(pa.array([], pa.binary()))) == b""
    heads = columns.heads_by_size(texts, lambda size: b"%d" % size)
    assert heads.to_pylist() == [b"2", b"0", b"3", b"1"]
    assert columns.joined_by_row([heads, texts]).to_pylist() == [b"2ab", b"0", b"3cde", b"1f"]
