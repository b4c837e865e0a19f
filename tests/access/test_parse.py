"""The parser gives what protobuf gives, for any bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.access import parse as module
from recordgen.access.parse import parse
from recordgen.core.records.example import parse_example, serialize_example

NUMBERS = st.integers(-(2**63), 2**63 - 1)
LISTS = st.one_of(
    st.lists(st.binary(max_size=300), min_size=1),
    st.lists(NUMBERS, min_size=1),
    st.lists(st.floats(width=32), min_size=1),
    st.just(np.zeros(0, np.int64)),
    st.just(np.zeros(0, np.float32)),
)
EXAMPLES = st.dictionaries(st.text(max_size=200), LISTS)


def plain(values):
    """Return values as protobuf gives them; NaN as text, because it differs from itself."""
    if not len(values):
        return []
    if isinstance(values[0], memoryview):
        return [bytes(value) for value in values]
    return [repr(value) for value in np.asarray(values).tolist()]


def expected(data):
    try:
        found = parse_example(data)
    except ValueError:
        return "no Example"
    return {
        name: values if values and isinstance(values[0], bytes) else list(map(repr, values))
        for name, values in found.items()
    }


def parsed(data):
    try:
        found = parse(b"before" + data + b"after", None, 6, 6 + len(data))
    except ValueError:
        return "no Example"
    return {name: plain(values) for name, values in sorted(found.items())}


@settings(max_examples=50)
@given(EXAMPLES)
def test_examples_of_our_writer(values):
    """No Example of our own needs protobuf."""
    data = b"".join(serialize_example(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(module, "_by_protobuf")
        found = parsed(data)
    assert found == expected(data)


@settings(max_examples=50)
@given(EXAMPLES, st.data())
def test_damage_has_the_effect_that_it_has_on_protobuf(values, data):
    """Our parser accepts and refuses what TensorFlow's does."""
    record = bytearray(b"".join(serialize_example(values)))
    at = data.draw(st.integers(0, len(record)))
    record[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert parsed(bytes(record)) == expected(bytes(record))


@given(st.binary(max_size=60))
def test_any_bytes(data):
    """Our parser agrees with TensorFlow's on any bytes."""
    assert parsed(data) == expected(data)


def field(tag, content):
    return bytes([tag, len(content)]) + content


def feature(name, value):
    return field(0x0A, field(0x0A, name) + field(0x12, value))


OTHER_LAYOUTS = [
    field(0x0A, feature(b"a", field(0x1A, b"\x08\x05\x08\x06"))),  # numbers that are not packed
    field(0x0A, feature(b"a", field(0x1A, field(0x0A, b"\x05") + field(0x0A, b"\x06")))),
    field(0x0A, feature(b"a", field(0x0A, b"")) + feature(b"a", field(0x1A, b"\x0a\x01\x07"))),
    field(0x0A, feature(b"a", field(0x0A, b""))) + field(0x0A, feature(b"b", b"")),
    field(0x0A, feature(b"a", field(0x1A, field(0x0A, b"\x80" * 10 + b"\x01")))),
    field(0x0A, feature(b"a", field(0x1A, field(0x0A, b"\xff" * 9 + b"\x7f")))),
    field(0x0A, field(0x0A, field(0x12, field(0x0A, b"")) + field(0x0A, b"a"))),  # value first
]


@pytest.mark.parametrize("data", OTHER_LAYOUTS)
def test_layouts_of_other_writers(data):
    """Records that other writers lay out differently are read alike."""
    assert parsed(data) == expected(data)


def test_only_wanted_features():
    """Others are not parsed."""
    record = b"".join(serialize_example({"a": b"x", "b": 300, "c": [1.5, 2.0]}))
    found = parse(record, {"b", "d"})
    assert list(found) == ["b"]
    assert found["b"].tolist() == [300]


def test_bytes_are_not_copied():
    """A feature is a view of the record."""
    data = b"".join(serialize_example({"a": b"value"}))
    [view] = parse(data)["a"]
    assert (view.obj is data, view) == (True, b"value")
