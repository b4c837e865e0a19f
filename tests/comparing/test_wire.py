"""Features found in a serialised example equal the features that protobuf parses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.records.example import parse_example, serialize_example
from recordgen.records.wire import canonical, feature_spans, feature_values, first_bytes

pytestmark = pytest.mark.once

_VALUES = (
    st.lists(st.binary(max_size=200), min_size=1, max_size=4)
    | st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=4)
    | st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40)
)
EXAMPLES = st.dictionaries(st.text(max_size=12) | st.text("ab", min_size=130), _VALUES, max_size=4)


def found(record: bytes) -> dict[str, list[Any]]:
    spans = feature_spans(record)
    return {name: list(feature_values(record, spans[name])) for name in sorted(spans)}


@given(EXAMPLES)
def test_as_protobuf_parses(values: dict[str, Any]) -> None:
    """All features of an example are found, with short and long values of each kind."""
    record = b"".join(serialize_example(values))
    assert found(record) == parse_example(record)
    assert canonical(record) is record


@given(EXAMPLES, st.integers(0, 1 << 16), st.integers(1, 255))
def test_damaged_examples(values: dict[str, Any], place: int, flip: int) -> None:
    """Damaged bytes give the features that protobuf parses, or a ValueError."""
    data = bytearray(b"".join(serialize_example(values)))
    if data:
        data[place % len(data)] ^= flip
    try:
        expected = parse_example(bytes(data))
    except ValueError:
        with pytest.raises(ValueError, match="Example"):
            canonical(bytes(data))
        return
    got = found(canonical(bytes(data)))
    # A feature of no kind is None; NaN does not equal itself.
    assert repr(got) == repr({name: value for name, value in expected.items() if name in got})
    assert not any(value for name, value in expected.items() if name not in got)


# { features { feature { key: "a" value { int64_list { value: 1 value: 2 } } } } }, written as
# protobuf allows, but no common writer does.
UNUSUAL = {
    "numbers that are not packed": "0a0d 0a0b 0a0161 1206 1a04 0801 0802",
    "the value before its name": "0a0d 0a0b 1206 1a04 0a02 0102 0a0161",
    "features in two messages": "0a02 0a00 0a0d 0a0b 0a0161 1206 1a04 0a02 0102",
    "one name twice": "0a1a 0a0b 0a0161 1206 1a04 0a02 0707 0a0b 0a0161 1206 1a04 0a02 0102",
    "a list in two pieces": "0a11 0a0f 0a0161 120a 1a03 0a01 01 1a03 0a01 02",
}


@pytest.mark.parametrize("layout", UNUSUAL)
def test_unusual_layouts_are_rewritten(layout: str) -> None:
    """Encodings that protobuf reads but no common writer produces are rewritten."""
    record = bytes.fromhex(UNUSUAL[layout])
    assert parse_example(record)["a"] == [1, 2]
    assert found(canonical(record))["a"] == [1, 2]


@pytest.mark.parametrize(
    "record",
    [
        "0a16 0a14 0a0161 120f 1a0d 0a0b 9fffffffffffffffffff01",
        "0a8080808080808080808000",
        "0a14 0a08 0a0161 1203 1a01 80 0a08 0a0162 1203 1a01 07",
        "0a18 0a0a 0a0161 1205 1a03 0a01 80 0a0a 0a0162 1205 1a03 0a01 07",
    ],
    ids=["number", "length", "list", "number beyond its list"],
)
def test_digits_without_end(record: str) -> None:
    """A number has at most ten bytes, and ends where its list does."""
    data = bytes.fromhex(record)
    with pytest.raises(ValueError, match=r"not a tf\.train\.Example"):
        canonical(data)


def test_the_first_bytes() -> None:
    """The first value of a list of bytes is found without a copy; other lists are errors."""
    record = b"".join(serialize_example({"a": [b"one", b"two"], "b": 7}))
    spans = feature_spans(record)
    start, end = first_bytes(record, spans["a"])
    assert record[start:end] == b"one"
    with pytest.raises(ValueError, match="is not the tag"):
        first_bytes(record, spans["b"])
