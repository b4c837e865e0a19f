"""Examples written without TensorFlow equal TensorFlow's bytes."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from pipelines.samples.digits import write_digits
from recordgen import convert, features
from recordgen.core.records import example as examples
from tests.preloaded import WITH_TENSORFLOW

_bytes = st.one_of(
    st.binary(max_size=300), st.sampled_from([bytes(4095), bytes(4096), bytes(70_000)])
)
_ints = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**15))
_floats = st.floats(width=32, allow_nan=False)
_values = st.one_of(
    _bytes,
    _ints,
    _floats,
    *(st.lists(values, min_size=1, max_size=5) for values in (_bytes, _ints, _floats)),
    *(nst.arrays(dtype, nst.array_shapes(max_dims=3, min_side=0)) for dtype in ("i8", "<f4")),
    nst.arrays(np.int64, st.integers(60, 70), elements=st.integers(0, 127)),
    nst.arrays(np.int64, st.integers(60, 70)),
)
# Names of equal length: protobuf's implementations disagree whether "a" or "ab" comes first.
_names = st.text(st.characters(blacklist_categories=("Cs",)), min_size=3, max_size=3)


def kind_and_values(value):
    """Return the list type and the values of the feature that stores ``value``."""
    kinds = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
    if isinstance(value, np.ndarray):
        return kinds[type(value.dtype.type(0).item())], value.reshape(-1).tolist()
    values = value if isinstance(value, list) else [value]
    return kinds[type(values[0])], values


@given(st.dictionaries(_names, _values, max_size=8))
def test_examples_are_tensorflows(values):
    """TensorFlow parses our bytes to the same values and serialises them to the same bytes."""
    data = b"".join(examples.serialize_example(values))
    theirs = tf.train.Example.FromString(data)
    assert theirs.SerializeToString(deterministic=True) == data
    assert set(theirs.features.feature) == set(values)
    parsed = examples.parse_example(data)
    assert list(parsed) == sorted(values)
    for name, value in values.items():
        kind, expected = kind_and_values(value)
        feature = theirs.features.feature[name]
        assert feature.WhichOneof("kind") == kind
        found = [list(getattr(feature, kind).value), parsed[name]]
        np.testing.assert_equal(found, [expected, expected])


# Limits of varints with one, two, three and nine bytes, and a negative number, which takes ten.
LIMITS = [1 << 7, 1 << 14, 1 << 21, 1 << 28, 1 << 63]


def test_numbers_at_the_limits_of_their_bytes():
    """Numbers at which a varint grows give TensorFlow's bytes, one by one and packed."""
    numbers = [
        limit + near for limit in LIMITS for near in (-2, -1, 0, 1) if limit + near < 1 << 63
    ]
    numbers += [-number for number in numbers]
    for number in (0, -(1 << 63), *numbers):
        assert b"".join(examples.serialize_example({"x": number})) == theirs(int64_list=[number])
    for some in (numbers, np.array(numbers), np.array(numbers * 1000)):  # many are packed together
        expected = theirs(int64_list=list(map(int, some)))
        assert b"".join(examples.serialize_example({"x": some})) == expected


def theirs(**values):
    """Return TensorFlow's bytes of an Example with one feature, ``x``."""
    [(kind, items)] = values.items()
    feature = tf.train.Feature()
    getattr(feature, kind).value.extend(items)
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    return example.SerializeToString(deterministic=True)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_heads_before_values(size):
    """The bytes before a value, and before all features, equal TensorFlow's."""
    numbers, lengths = examples.packed_ints(np.array([5, 300, -1]))
    assert lengths.tolist() == [1, 2, 10]
    ends = np.cumsum(lengths).tolist()
    cases = [("bytes", bytes(size), theirs(bytes_list=[bytes(size)]))]
    cases += [("float32", np.float32(size).tobytes(), theirs(float_list=[float(size)]))]
    for number, start, end in zip((5, 300, -1), [0, *ends], ends, strict=False):
        cases.append(("int64", numbers[start:end], theirs(int64_list=[number])))
    for dtype, value, expected in cases:
        features_of_one = examples.feature_head("x", dtype, len(value)) + value
        assert examples.example_head(len(features_of_one)) + features_of_one == expected


@pytest.mark.parametrize("limit", [1 << 7, 1 << 12, 1 << 14, 1 << 21])
def test_lengths_at_the_limits_of_their_bytes(limit):
    """The lengths of a value, its list, its feature and all features grow at a limit.

    At most 20 bytes precede a value, so these lengths reach the limit one after the other.
    At 2^12, values become separate pieces.
    """
    value = bytes(limit + 1)
    for size in range(limit - 24, limit + 2):
        data = value[:size]
        assert b"".join(examples.serialize_example({"x": data})) == theirs(bytes_list=[data])
        if limit < 1 << 21:  # two values, and texts next to them
            both = [data, b"y"]
            assert b"".join(examples.serialize_example({"x": both})) == theirs(bytes_list=both)


def test_a_feature_without_a_list_has_no_values():
    """Other programs write such features."""
    bare = tf.train.Example(features=tf.train.Features(feature={"x": tf.train.Feature()}))
    assert examples.parse_example(bare.SerializeToString()) == {"x": []}


def test_large_values_are_not_copied():
    """The bytes of images are passed on without a copy, also in a list."""
    one, two, three = bytes(4096), bytes(5000), bytes(6000)
    pieces = examples.serialize_example({"a": one, "b": [two, b"small", three]})
    for value in (one, two, three):
        assert any(piece is value for piece in pieces)
    both = examples.serialize_example({"a": one, "b": three, "c": 1})
    assert examples.parse_example(b"".join(both)) == {"a": [one], "b": [three], "c": [1]}


def test_kinds_that_cannot_be():
    """Floats too large for float32 and arrays of other types are errors; [] and None have none."""
    with pytest.raises(OverflowError):
        examples.serialize_example({"x": 1e39})
    with pytest.raises(TypeError, match=r"int64.*float32.*uint8"):
        examples.serialize_example({"x": np.zeros(1, np.uint8)})
    nothing = {"x": [], "y": (), "z": None}
    assert examples.parse_example(b"".join(examples.serialize_example(nothing))) == {}


def test_not_an_example():
    """Other bytes raise ValueError."""
    with pytest.raises(ValueError, match=r"tf\.train.Example"):
        examples.parse_example(b"\xff\xff\xff")


def test_feature_specs_as_json():
    """dataset.json stores a spec, with its default only if it has one."""
    spec = features.FeatureSpec("uint8", shape=(28, 28))
    assert spec.to_json() == {"dtype": "uint8", "shape": [28, 28]}
    varying = features.FeatureSpec("int64", shape=None)
    for one in (spec, varying, *features.IMAGE_CLASSIFICATION.values()):
        assert features.FeatureSpec.from_json(json.loads(json.dumps(one.to_json()))) == one


# --- the programs and samples in examples/ -------------------------------------------------------


ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.mark.slow
def test_train_from_folder(tmp_path):
    """The program learns the digits of the README's quick start, from the folder it is given."""
    convert(write_digits(str(tmp_path), 450), tmp_path / "out")
    done = WITH_TENSORFLOW.run(str(EXAMPLES / "train_from_folder.py"), str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0.6, done.stdout


def test_train_from_folder_is_short():
    """Data, model, training and evaluation in under 20 lines, imports included."""
    lines = (EXAMPLES / "train_from_folder.py").read_text(encoding="utf-8").split("\n")
    assert sum(not line.strip().startswith("#") for line in lines if line.strip()) < 20
