"""The facts about rows: the same columns however rows are divided into batches."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recordgen.core.facts import ImageNote
from recordgen.core.facts.columns import WITH_ROWS, ExampleNote, FactsBuilder, whole, without_empty
from recordgen.measures.pictures import SmallPicture
from recordgen.measures.texts import SeenText

GRAY = np.random.default_rng(0).integers(0, 256, (32, 40), np.uint8)

NOTES = (
    None,  # a refused row
    ExampleNote(1),
    ExampleNote(2, ImageNote("png", 32, 40)),
    ExampleNote(3, ImageNote("gif", 32, 40, frames=2), SmallPicture(GRAY, 32, 40, 1)),
    ExampleNote(4, seen=SeenText(b"a good text", 11)),
    ExampleNote(5, seen=SeenText(b"", 0)),
)


def built(notes):
    builder = FactsBuilder()
    for note in notes:
        builder.add(note)
    return builder


@given(
    st.lists(
        st.one_of(
            st.lists(st.sampled_from(range(len(NOTES))), max_size=5),
            st.tuples(st.integers(1, 3), st.booleans()),
        ),
        max_size=8,
    )
)
def test_batches_give_the_columns_of_their_rows(parts):
    """Batches of notes and of table rows, in any order, are one table in the order of rows."""
    builder, alone, odd = FactsBuilder(), [], []
    for part in parts:
        if isinstance(part, tuple):
            count, is_refused = part
            contents, refused = np.arange(count, dtype=np.uint64), [0] if is_refused else []
            batch = FactsBuilder.of(contents, refused, odd=np.array([count - 1]))
            odd.append(len(alone) + count - 1)
            alone += [{"content": None if is_refused and not row else row} for row in range(count)]
        else:
            batch = built([NOTES[number] for number in part])
            alone += [built([NOTES[number]]).columns().to_pylist()[0] for number in part]
        builder.extend(batch)
    assert len(builder) == len(alone)
    found = builder.columns().to_pylist()
    expected = [{**dict.fromkeys(row), **one} for row, one in zip(found, alone, strict=True)]
    assert found == expected
    assert builder.kept(0)[0].tolist() == odd


def test_hundreds_of_rows_are_measured_as_one():
    """Rows are measured in chunks, and words of one column stay one dictionary."""
    notes = [NOTES[number % len(NOTES)] for number in range(1000)]
    columns = built(notes).columns()
    assert columns["format"].num_chunks == 1
    assert columns.slice(0, 6).to_pylist() == built(notes[:6]).columns().to_pylist()
    assert columns.slice(996, 4).to_pylist() == built(notes[996:]).columns().to_pylist()


def test_empty_columns_return():
    """A shard's file has no empty columns; read again, they are there."""
    table = pa.Table.from_pylist([{"line": 1, "uri": "a.png"}], schema=WITH_ROWS)
    small = without_empty(table)
    assert small.column_names == ["line", "uri"]
    assert whole(small) == table
