"""The columns of facts, and ``examples.parquet``."""

import io
import weakref
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.checks.check import ExampleFacts
from recordgen.core.facts import columns
from recordgen.core.rows.columns import count_groups


def facts_of(*uris):
    """Return the facts of one shard."""
    count = len(uris)
    found = {field.name: pa.nulls(count, field.type) for field in columns.WITH_ROWS}
    found |= {
        "source": pa.array(["a.csv"] * count, pa.string()).dictionary_encode(),
        "line": pa.array(range(1, count + 1), pa.int64()),
        "uri": pa.array(uris, pa.string()),
        "content": pa.array(range(count), pa.uint64()),
    }
    [facts] = columns.of_shard("train", "f", [pa.table(found, schema=columns.WITH_ROWS)])
    return facts


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 7), st.integers(1, 60))
def test_row_groups_are_all_rows_in_order_within_the_limits(sizes, rows, text_bytes):
    """No group has more rows or text than allowed, unless one row has."""
    whole = facts_of(*("x" * size for size in sizes))
    groups = list(columns.row_groups(whole, rows, text_bytes))
    assert pa.concat_tables(groups)["line"].to_pylist() == whole["line"].to_pylist()
    for group in groups:
        assert len(group) <= rows
        assert len(group) <= 1 or group["uri"].nbytes <= text_bytes


def test_facts_of_a_shard_come_in_parts(monkeypatch):
    """Each has the facts of some rows, and the records of a shard are numbered through."""
    monkeypatch.setattr(columns, "_PARTS_AT_ONCE", 2)
    rows = pa.table({"source": ["a"] * 5, "line": pa.array(range(5)), "uri": list("abcde")})
    rows = rows.set_column(0, "source", rows["source"].dictionary_encode())
    builder = columns.FactsBuilder.of(np.arange(5, dtype=np.uint64), [1])
    parts = list(columns.with_facts(rows, builder, [["v", "w"], ["x"], ["y", "z"]], (), 0))
    assert [part["annotation"].to_pylist() for part in parts] == [["v", "w", "x"], ["y", "z"]]
    found = pa.concat_tables(columns.of_shard("train", "f", parts))
    assert found["record"].to_pylist() == [0, 1, 2, 3]
    assert found["uri"].to_pylist() == list("acde")


def test_texts_of_all_examples_have_64_bit_offsets():
    """Some 20 million uris have more than 2 GiB, where 32-bit offsets end."""
    facts = ExampleFacts([facts_of("b.jpg", "c.jpg")]).columns
    assert [facts[name].type for name in ("uri", "annotation")] == [pa.large_string()] * 2


@pytest.mark.parametrize("rows", [columns.GROUP_ROWS, 2])
def test_written_facts_are_read_back(rows):
    """In any number of row groups; slices hold their own text only."""
    parts = [facts_of("a.jpg", "b.jpg", "c.jpg"), facts_of("d.jpg")]
    file = io.BytesIO(b"".join(columns.to_parquet(parts, rows)))
    groups = [columns.read_examples(file, group=number) for number in range(count_groups(file))]
    again = columns.with_kept(pa.concat_tables(groups))
    assert again.to_pylist() == pa.concat_tables(parts).to_pylist()
    assert all(len(group) <= rows for group in groups)


def test_how_parts_were_read_does_not_change_the_file():
    """A bucket may come from several processes, so its dictionaries have any order."""
    part = facts_of("a.jpg", "b.jpg")
    texts = ["b.csv", "a.csv"], ["a.csv", "unused.csv", "b.csv"]
    sources = [
        pa.DictionaryArray.from_arrays(
            pa.array([order.index("b.csv"), order.index("a.csv")], pa.int32()), pa.array(order)
        )
        for order in texts
    ]
    written = [b"".join(columns.to_parquet([part.set_column(3, "source", it)])) for it in sources]
    assert written[0] == written[1]


def test_the_text_of_each_part_is_measured_once(monkeypatch):
    """However many parts share a row group, whose text is measured, too."""
    names = MagicMock()
    names.__iter__.side_effect = ["uri", "annotation"].__iter__
    monkeypatch.setattr(columns, "_OF_ALL", names)
    list(columns.to_parquet([facts_of("a.jpg")] * 40))
    assert names.__iter__.call_count == 41


def test_one_large_part_at_a_time_is_in_memory():
    """A part is freed before the next one is made."""
    known = []

    def parts():
        for _ in range(4):
            part = facts_of(*"abcde")
            known.append(weakref.ref(part))
            yield part
            del part
            assert not any(each() for each in known)

    assert len(list(columns.to_parquet(parts(), group_rows=2))) > len(known)
