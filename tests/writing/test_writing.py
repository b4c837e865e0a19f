"""write: any examples are read as they were written, whatever the workers, or there is an error."""

import datetime
import itertools
import signal
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

import recordgen
from recordgen import errors, storage
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.core.runs.staging import Staging
from recordgen.features import RAW_DTYPES, FeatureSpec
from recordgen.writing.api import ShardedWriter
from tests.conftest import error_of, run_python, tree_bytes

BESIDE = ["croissant.json", "dataset.json", "records.npy"]  # files of a dataset beside its shards
TF_DTYPES = {"bytes": tf.string, "int64": tf.int64, "float32": tf.float32}


def records_of(output, split="train"):
    """Return the records in their original order: record i is in shard i % n."""
    found = recordgen.read_dataset(str(output)).splits[split]
    shards = [list(RECORDS.read(f"{output}/{shard.file}")) for shard in found.shards]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*shards))
    return [record for record in turns if record is not None]


def read_back(output, split="train"):
    """Read with tf.io.parse_example by the specs in dataset.json, as NumPy arrays."""
    specs = recordgen.read_dataset(str(output)).features
    wanted = {}
    for name, spec in specs.items():
        if spec.dtype in RAW_DTYPES:
            wanted[name] = tf.io.FixedLenFeature((), tf.string)
        elif spec.shape is None:
            wanted[name] = tf.io.RaggedFeature(TF_DTYPES[spec.dtype])
        else:
            wanted[name] = tf.io.FixedLenFeature(spec.shape, TF_DTYPES[spec.dtype])
    parsed = tf.io.parse_example(records_of(output, split), wanted)
    count = recordgen.read_dataset(str(output)).splits[split].examples
    found = [{name: parsed[name][n].numpy() for name in wanted} for n in range(count)]
    for values in found:
        for name, spec in specs.items():
            if spec.dtype in RAW_DTYPES:
                little = np.dtype(spec.dtype).newbyteorder("<")
                values[name] = np.frombuffer(values[name], little).reshape(spec.shape)
    return found


# given value, dtype and shape, read value
VALUES = [
    (True, "int64", (), 1),
    (np.uint8(200), "int64", (), 200),
    (np.bool_(False), "int64", (), 0),
    (np.array(7, np.int16), "int64", (), 7),
    (0.1, "float32", (), np.float32(0.1)),
    (np.float16(0.5), "float32", (), 0.5),
    (bytearray(b"ab"), "bytes", (), b"ab"),
    (np.str_("a"), "bytes", (), b"a"),
    (np.array("text"), "bytes", (), b"text"),
    ([1, True, np.int8(-1)], "int64", (3,), [1, 1, -1]),
    ((1, 2), "int64", (2,), [1, 2]),
    ([2**63 - 1, -(2**63)], "int64", (2,), [2**63 - 1, -(2**63)]),
    ([[1, 2], [3, 4]], "int64", (2, 2), [[1, 2], [3, 4]]),
    ([0.5, 1], "float32", (2,), [0.5, 1.0]),
    ([[0, 1], [0.5, 2]], "float32", (2, 2), [[0.0, 1.0], [0.5, 2.0]]),
    (["a", b"b"], "bytes", (2,), [b"a", b"b"]),
    ([["a", "b"], ["c", "d"]], "bytes", (2, 2), [[b"a", b"b"], [b"c", b"d"]]),
    (np.array(["a", "bc"]), "bytes", (2,), [b"a", b"bc"]),
    (np.array([[1, -1]]), "int64", (1, 2), [[1, -1]]),
    (np.array([1, -1], ">i8"), "int64", (2,), [1, -1]),
    (np.arange(200).reshape(2, 100), "int64", (2, 100), np.arange(200).reshape(2, 100)),
    (np.array([[1.5]], ">f4"), "float32", (1, 1), [[1.5]]),
    (np.array([1, 300], ">u2"), "uint16", (2,), [1, 300]),
    (np.array([2**64 - 1], np.uint64), "uint64", (1,), [2**64 - 1]),
    (np.arange(6, dtype=np.uint8).reshape(2, 3).T, "uint8", (3, 2), [[0, 3], [1, 4], [2, 5]]),
    (np.zeros((0, 3), np.uint8), "uint8", (0, 3), np.zeros((0, 3))),
    (np.array([[1, 2]]).view(np.matrix), "int64", (1, 2), [[1, 2]]),
    ([np.zeros(2, np.uint8), np.ones(2, np.uint8)], "uint8", (2, 2), [[0, 0], [1, 1]]),
    ([np.zeros(2, np.float32)], "float32", (1, 2), [[0.0, 0.0]]),
]


def test_values_come_back(tmp_path):
    """Of every type, with the dtype and shape that dataset.json has."""
    given_ = {f"f{number:02d}": value for number, (value, *_) in enumerate(VALUES)}
    result = recordgen.write([given_] * 2, tmp_path / "out")
    specs = [FeatureSpec(dtype, shape=shape) for _, dtype, shape, _ in VALUES]
    assert result.dataset.features == dict(zip(given_, specs, strict=True))
    for values in read_back(tmp_path / "out"):
        for name, (*_, expected) in zip(given_, VALUES, strict=True):
            assert_same(values[name], expected)


_numbers = st.integers(-(2**63), 2**63 - 1)
_floats = st.floats(width=32)
_columns = st.one_of(
    [
        st.lists(values, min_size=4, max_size=4)
        for values in (
            _numbers,
            _floats,
            st.binary(max_size=9),
            st.text(st.characters(blacklist_categories=("Cs",)), max_size=9),
            st.lists(_numbers, max_size=3),
            st.lists(_floats, max_size=3),
            st.lists(st.binary(max_size=9), max_size=3),
            st.one_of(st.none(), _numbers),
            *(nst.arrays(dtype, (2, 3)) for dtype in (*RAW_DTYPES, "int64", "float32", ">i4")),
        )
    ]
)


@settings(max_examples=20)
@given(st.lists(_columns, min_size=1, max_size=4), st.integers(1, 5))
def test_tensorflow_reads_what_was_written(columns, shards):
    """Any columns in any number of shards."""
    for column in columns:
        assume(any(isinstance(value, np.ndarray) or value not in (None, []) for value in column))
    rows = [{f"f{n}": value for n, value in enumerate(row)} for row in zip(*columns, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        recordgen.write(rows, f"{folder}/out", shards=shards)
        found = read_back(f"{folder}/out")
    assert len(found) == len(rows)
    for given_, values in zip(rows, found, strict=True):
        assert sorted(values) == sorted(given_)
        for name, value in given_.items():
            expected = value.encode() if isinstance(value, str) else value
            if isinstance(values[name], np.ndarray) and np.ndim(expected) == 0:
                # A scalar that is missing in other records is read as a list.
                expected = [] if value is None else [expected]
            assert_same(values[name], expected)


def assert_same(found, expected):
    if isinstance(expected, bytes):
        assert found == expected
    elif isinstance(expected, list) and expected and isinstance(expected[0], bytes):
        assert found.tolist() == expected  # NumPy's bytes lose NULs at their end
    else:
        np.testing.assert_array_equal(found, expected)


INTS, FLOATS, TEXTS = (FeatureSpec(dtype, shape=None) for dtype in ("int64", "float32", "bytes"))

# name, values of the feature x, its spec
SPECS = {
    "lists of several lengths": ([[1], [2, 3], []], INTS),
    "arrays of several lengths": ([np.zeros(n, "f4") for n in (1, 2)], FLOATS),
    "texts of several lengths": ([["a"], ["b", "c"]], TEXTS),
    "scalars, not always": ([1, None], INTS),
    "None first": ([None, b"a"], TEXTS),
    "a list, not always": ([[0.5], None], FLOATS),
    "an empty list first": ([[], ["a"]], TEXTS),
    "empty arrays": ([np.zeros(0, "i8")], INTS),
    "one length": ([[1, 2], [3, 4]], FeatureSpec("int64", shape=(2,))),
    "text and bytes": (["a", b"b"], FeatureSpec("bytes", shape=())),
}


@pytest.mark.parametrize(("values", "spec"), SPECS.values(), ids=SPECS)
def test_the_spec_describes_all_records(tmp_path, values, spec):
    """Lists of several lengths, and values that may be missing."""
    result = recordgen.write([{"x": value} for value in values], tmp_path / "out")
    assert result.dataset.features == {"x": spec}
    assert recordgen.read_dataset(str(tmp_path / "out")) == result.dataset
    read_back(tmp_path / "out")


def test_what_is_left_out_is_not_there(tmp_path):
    """Zeros and empty texts are there."""
    given_ = [{"a": None, "b": b""}, {"a": 0, "b": b"", "l": ["x"]}]
    result = recordgen.write(given_, tmp_path / "out")
    found = [parse_example(record) for record in records_of(tmp_path / "out")]
    assert found == [{"b": [b""]}, {"a": [0], "b": [b""], "l": [b"x"]}]
    assert result.dataset.features["l"] == TEXTS  # a later record gives it its type


class Tensor:
    """An object that looks like a tensor."""

    def numpy(self): ...


class Series:
    """An object that looks like a Series."""

    def __array__(self): ...


# examples, part of the message
ERRORS = [
    ([{"x": {"a": 1}}], "value of type dict"),
    ([{"x": 1j}], "record 0: feature 'x': cannot store a value of type complex"),
    ([{"x": 1}, {"x": object()}], "record 1: feature 'x': cannot store a value of type object"),
    ([{"x": Tensor()}], "of type Tensor"),
    ([{"x": Series()}], "of type Series"),
    ([{"x": datetime.date(2026, 1, 1)}], "of type date"),
    ([{"x": np.datetime64("2026-01-01")}], "of type datetime64"),
    ([{"x": np.array([1, "a"], object)}], "array of object"),
    ([{"x": np.array(["2026"], "M8[D]")}], "array of datetime64[D]"),
    ([{"x": np.zeros(1, "c8")}], "array of complex64"),
    ([{"x": np.ma.masked_array([1])}], "masked array"),
    ([{"x": [1, "a"]}], "list of int, str"),
    ([{"x": [1, None]}], "list of NoneType, int"),
    ([{"x": [np.zeros(1, "u1"), np.zeros(1, "i1")]}], "of ndarray of int8, ndarray of uint8;"),
    ([{"x": [[1], [2, 3]]}], "(got rows of the shapes (1,), (2,))"),
    ([{"x": [[], []]}], "of one length"),
    ([{"x": [[1], ["a"]]}], "(got bytes, int64)"),
    ([{"x": 2**63}], "9223372036854775808 does not fit in int64"),
    ([{"x": np.uint64(2**63)}], "does not fit in int64"),
    ([{"x": [-(2**63) - 1]}], "-9223372036854775809 in a list does not fit in int64"),
    ([{"x": 1e39}], "1e+39 does not fit in float32; give np.array([value])"),
    ([{"x": [0.5, 10**400]}], "float32"),
    ([{"x": "\ud800"}], "UTF-8"),
    ([{"\ud800": 1}], "record 0: the feature name '\\ud800'"),
    ([{"x": 1, 7: 1}], "record 0: a feature's name must be text (got 7)"),
    ([{"": 1}], "record 0: a feature's name must be text (got '')"),
    ([{"x": 1}, [1]], "record 1: an example must be a dict of values by feature name (got a list)"),
    ([{"x": None}], "record 0: feature 'x' is None"),
    ([{"y": 1, "x": []}, {"y": 1, "x": None}], "record 0: feature 'x' is []"),
    ([{}, {}], "features"),
]  # fmt: skip


U1_2x2, U1_2x3 = np.zeros((2, 2), "u1"), np.zeros((2, 3), "u1")
F4_2x2 = np.zeros((2, 2), "f4")
F8_2, F8_3 = np.zeros(2), np.zeros(3)
NO_KEY = object()

# values of the feature x, the record, expected, got
MISFITS = [
    ([1, 0.5], 1, "int64 scalar as in record 0", "float32 scalar"),
    ([None, 0.5, 1], 2, "float32 scalar as in record 1", "int64 scalar"),
    (["a", 1], 1, "bytes scalar as in record 0", "int64 scalar"),
    ([[0.5], F8_2], 1, "float32 list of 1 as in record 0", "float64 array of shape (2,)"),
    ([U1_2x2, U1_2x3], 1, "uint8 array of shape (2, 2) as in record 0",
     "uint8 array of shape (2, 3)"),
    ([F8_2, F8_3], 1, "float64 array of shape (2,) as in record 0",
     "float64 array of shape (3,)"),
    ([1, [1, 2]], 1, "int64 scalar as in record 0", "int64 list of 2"),
    ([1, []], 1, "int64 scalar as in record 0", "[]"),
    ([1, NO_KEY], 1, "int64 scalar as in record 0", "no such key"),
    ([NO_KEY, 1], 0, "int64 scalar as in record 1", "no such key"),
    ([F8_2, None], 1, "float64 array of shape (2,) as in record 0", "None"),
    ([None, F4_2x2], 0, "float32 array of shape (2, 2) as in record 1", "None"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "record", "expected", "got"), MISFITS)
def test_a_record_that_differs_is_an_error(tmp_path, values, record, expected, got):
    """It names the records that differ, and nothing is left."""
    given_ = [{"y": 0} | ({} if value is NO_KEY else {"x": value}) for value in values]
    error = error_of(errors.DataError, recordgen.write, given_, tmp_path / "out")
    start = f"record {record}: feature 'x' must be {expected} (got {got}); "
    assert str(error).startswith(start)
    assert tree_bytes(tmp_path) == {}


@pytest.mark.parametrize(("examples", "words"), [*ERRORS, (iter(()), "examples")])
def test_a_value_that_cannot_be_stored_is_named(tmp_path, examples, words):
    """So is the lack of any example; nothing is left."""
    error = error_of(errors.DataError, recordgen.write, examples, tmp_path / "out")
    assert words in str(error)
    assert isinstance(error, errors.NothingToConvertError) == (words == "examples")
    assert tree_bytes(tmp_path) == {}


# arguments, what the message names
WRONG = [
    ({"examples": {"x": [1]}}, "(got a dict)"),
    ({"examples": 7}, "(got a int)"),
    ({"examples": "text"}, "(got a str)"),
    ({"shards": 0}, "shards must be at least 1 (got 0)"),
    ({"shards": 1.5}, "(got 1.5)"),
    ({"workers": -1}, "workers must be at least 1 (got -1)"),
    ({"workers": True}, "(got True)"),
    ({"split": "a/b"}, "split"),
    ({"split": ""}, "(got '')"),
    ({"compression": "zip"}, "(got 'zip')"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_a_wrong_argument_is_an_error_before_anything_is_written(tmp_path, arguments, words):
    """It is named."""
    given_ = {"examples": [{"x": 1}], "output": tmp_path / "out", **arguments}
    assert words in str(error_of(errors.UsageError, recordgen.write, **given_))
    assert not (tmp_path / "out").exists()


def examples(count, start=0):
    """Return small and large values of every kind, all different."""
    for n in range(start, start + count):
        random = np.random.default_rng(n)
        yield {
            "image": random.integers(0, 256, (40, 40, 3), dtype=np.uint8),
            "label": n,
            "name": f"example {n}",
            "tokens": list(range(n % 7)),
            "weights": random.random(2000, dtype=np.float32),
        }


@pytest.mark.parametrize(
    ("shards", "compression"), [(None, "none"), (1, "none"), (3, "none"), (3, "gzip")]
)
def test_same_bytes_whatever_the_workers(tmp_path, shards, compression):
    """And whatever the shards and their compression."""
    for workers in (1, 4):
        how = {"shards": shards, "workers": workers, "compression": compression}
        recordgen.write(examples(300), tmp_path / str(workers), **how)
    assert tree_bytes(tmp_path / "1") == tree_bytes(tmp_path / "4")


def test_names_counts_sizes_and_digests_match_the_files(tmp_path):
    """Those of dataset.json."""
    result = recordgen.write(examples(100), tmp_path / "out", shards=3)
    names = [f"Split-train/data_tfrecord-0000{n}-of-00003" for n in range(3)]
    assert sorted(tree_bytes(tmp_path / "out")) == [*names, *BESIDE]
    dataset = result.dataset
    assert (dataset.task, dataset.label_kind, dataset.labels) == ("examples", "none", ())
    assert (dataset.rows.read, dataset.examples, result.output) == (100, 100, str(tmp_path / "out"))
    split = dataset.splits["train"]
    assert [shard.examples for shard in split.shards] == [34, 33, 33]
    assert [shard.file for shard in split.shards] == names
    for shard in split.shards:
        assert shard.bytes == (tmp_path / "out" / shard.file).stat().st_size
    found = [parse_example(record)["label"] for record in records_of(tmp_path / "out")]
    assert found == [[n] for n in range(100)]
    assert dataset.features["image"] == FeatureSpec("uint8", shape=(40, 40, 3))
    few = recordgen.write(examples(2), tmp_path / "few", shards=8).dataset.splits["train"]
    assert [shard.examples for shard in few.shards] == [1, 1]  # none is empty
    assert few.shards[1].file == "Split-train/data_tfrecord-00001-of-00002"


def test_gzip_has_the_same_digests(tmp_path):
    """They are those of the records."""
    plain = recordgen.write(examples(20), tmp_path / "plain").dataset
    packed = recordgen.write(examples(20), tmp_path / "gzip", compression="gzip").dataset
    digests = [[s.digest for s in d.splits["train"].shards] for d in (plain, packed)]
    assert digests[0] == digests[1]
    assert all(s.file.endswith(".gz") for s in packed.splits["train"].shards)
    assert records_of(tmp_path / "plain") == records_of(tmp_path / "gzip")


def test_more_shards_when_these_are_full(tmp_path):
    """Eight more each time; the last ones may be small."""
    record, options = serialize_example({"x": bytes(1000)}), {"workers": 2, "compression": "none"}
    with ShardedWriter(Staging(str(tmp_path)), shards=None, shard_bytes=2500, **options) as writer:
        for _ in range(8 * 3 + 10):
            writer.write(record)
        written = writer.finish()
    assert [shard.examples for shard in written] == [3] * 8 + [2, 2] + [1] * 6


def test_arrays_may_be_reused(tmp_path):
    """Each is stored as it was when it was given."""

    def reusing():
        raw, floats = np.zeros(5000, np.uint8), np.zeros(5000, np.float32)
        for n in range(50):
            raw[:] = floats[:] = n
            yield {"raw": raw, "floats": floats}

    recordgen.write(reusing(), tmp_path / "out", shards=2)
    for n, values in enumerate(read_back(tmp_path / "out")):
        assert set(values["raw"]) == set(values["floats"]) == {n}


def test_splits_are_added_and_replaced(out):
    """One at a time, without changes of the others."""
    recordgen.write(examples(20), out)
    train = tree_bytes(out / "Split-train")
    recordgen.write(examples(5), out, split="zoo")
    added = recordgen.write(examples(10, 100), out, split="eval").dataset
    assert list(added.splits) == ["train", "eval", "zoo"]
    assert (added.examples, added.rows.examples) == (35, 35)
    assert tree_bytes(out / "Split-train") == train
    assert parse_example(records_of(out, "eval")[3])["label"] == [103]

    before = tree_bytes(out)
    with pytest.raises(errors.OutputExistsError, match=r"'eval' .*overwrite=True"):
        recordgen.write(examples(3), out, split="eval")
    assert tree_bytes(out) == before

    replaced = recordgen.write(examples(3), out, split="eval", overwrite=True).dataset
    counts = {name: split.examples for name, split in replaced.splits.items()}
    assert counts == {"train": 20, "eval": 3, "zoo": 5}
    assert tree_bytes(out / "Split-train") == train
    assert len(tree_bytes(out / "Split-eval")) == 3
    assert recordgen.read_dataset(str(out)) == replaced


@pytest.mark.parametrize("splits", [["train"], ["eval", "train"]], ids=["alone", "beside"])
def test_other_files_stay(splits, out):
    """Only shards and files of the old dataset go."""
    for split in splits:
        recordgen.write(examples(9), out, split=split)
    for name in ("Split-train/notes.txt", "report.html"):
        (out / name).write_text("mine")
    recordgen.write(examples(2), out, shards=1, overwrite=True)
    assert (out / "Split-train" / "notes.txt").read_text() == "mine"
    assert not (out / "report.html").exists()
    assert len(list((out / "Split-train").glob("data_tfrecord-*"))) == 1


# examples of the first and the second split, what the message names
UNLIKE = [
    ([{"x": 1}], [{"x": 1, "y": 2}], "record 0: there is no feature 'y'"),
    ([{"x": 1, "y": 2}], [{"x": 1}], "record 0: feature 'y' must be int64 scalar"),
    ([{"x": 1}], [{"x": 0.5}], "int64 scalar"),
    ([{"x": 1}], [{"x": 1}, {"x": None}], "record 1: feature 'x' must be int64 scalar"),
    ([{"x": [1, 2]}], [{"x": [1, 2]}, {"x": [1]}], "record 1: feature 'x' must be int64 list of 2"),
    ([{"x": [1]}, {"x": []}], [{"x": ["a"]}], "int64 list of any length"),
    ([{"x": [1]}, {"x": []}], [{"x": [[1]]}], "(got int64 array of shape (1, 1))"),
    ([{"x": np.zeros(2)}], [{"x": np.zeros(3)}], "float64 array of shape (2,)"),
]


@pytest.mark.parametrize(("first", "second", "words"), UNLIKE)
def test_splits_have_the_same_features(out, first, second, words):
    """A split of others is refused, and changes nothing."""
    recordgen.write(first, out)
    before = tree_bytes(out)
    error = error_of(errors.DataError, recordgen.write, second, out, split="eval")
    assert words in str(error)
    assert f"{out}, split 'train'" in str(error)
    assert tree_bytes(out) == before


def test_a_split_may_be_less_varied(out):
    """The features of the dataset stay those of both."""
    recordgen.write([{"x": [1], "y": 1, "z": [b""]}, {"x": [1, 2], "y": None, "z": []}], out)
    found = recordgen.write([{"x": [3], "y": 2}], out, split="eval").dataset.features
    assert found == {"x": INTS, "y": INTS, "z": TEXTS}
    read_back(out, "eval")


def test_other_outputs_are_not_touched(tmp_path, out):
    """Nor are folders that are no split of ours."""
    recordgen.write([{"x": 1}], out)
    with pytest.raises(errors.UsageError, match=r"compression .*none"):
        recordgen.write([{"x": 1}], out, split="eval", compression="gzip")
    (out / "Split-eval").mkdir()
    with pytest.raises(errors.OutputExistsError, match="Split-eval"):
        recordgen.write([{"x": 1}], out, split="eval")
    text = (out / "dataset.json").read_text().replace('"examples",', '"image_classification",', 1)
    (out / "dataset.json").write_text(text)
    before = tree_bytes(out)
    for overwrite in (False, True):
        with pytest.raises(errors.OutputExistsError, match="image_classification"):
            recordgen.write([{"x": 1}], out, overwrite=overwrite)
    (tmp_path / "foreign" / "Split-train").mkdir(parents=True)
    with pytest.raises(errors.OutputExistsError, match="Split-train"):
        recordgen.write([{"x": 1}], tmp_path / "foreign")
    assert tree_bytes(out) == before


# error, compression
INTERRUPTS = [
    (KeyboardInterrupt(), "none"),
    (ValueError("mine"), "gzip"),
    (errors.DataError("theirs"), "none"),
]


@pytest.mark.parametrize(("error", "compression"), INTERRUPTS)
def test_an_interrupted_run_leaves_what_was_there(tmp_path, out, error, compression):
    """The caller gets its own error."""

    def failing():
        yield from examples(200)
        raise error

    assert error_of(type(error), recordgen.write, failing(), out, compression=compression) is error
    assert tree_bytes(tmp_path) == {}

    recordgen.write(examples(10), out, compression=compression)
    before = tree_bytes(out)
    for split in ("train", "eval"):
        with pytest.raises(type(error)):
            recordgen.write(failing(), out, split=split, compression=compression, overwrite=True)
        assert tree_bytes(out) == before


def test_a_killed_run_is_not_finished(tmp_path):
    """The next run removes what it left."""
    code = (
        "import os, recordgen\n"
        "def dying():\n"
        "    for n in range(2000):\n"
        "        yield {'x': bytes(10_000), 'n': n}\n"
        f"    os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        f"recordgen.write(dying(), {str(tmp_path / 'out')!r})\n"
    )
    assert run_python("-W", "ignore", "-c", code).returncode == -signal.SIGKILL
    left = tree_bytes(tmp_path / "out")
    assert left
    assert all(name.startswith(".recordgen-staging/") for name in left)
    recordgen.write(examples(3), tmp_path / "out", shards=1)
    shard = "Split-train/data_tfrecord-00000-of-00001"
    assert sorted(tree_bytes(tmp_path / "out")) == [shard, *BESIDE]


def test_from_standard_input(tmp_path):
    """A script without a file needs no main module."""
    code = f"import recordgen; recordgen.write([{{'x': 1}}] * 100, {str(tmp_path / 'out')!r})"
    done = run_python("-W", "ignore", "-", input=code)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(records_of(tmp_path / "out")) == 100


def test_every_file_system_gets_the_same_bytes(tmp_path):
    """Also after a split was replaced; a failure leaves none."""
    url = "memory://write-test/out"
    try:
        recordgen.write(examples(50), url)
        recordgen.write(examples(7), url, split="eval")
        recordgen.write(examples(9), url, split="eval", overwrite=True)
        with pytest.raises(errors.DataError):
            recordgen.write([{"x": None}], "memory://write-test/failed")
        assert not storage.list_files("memory://write-test/failed/**")
        recordgen.write(examples(50), tmp_path / "out")
        recordgen.write(examples(9), tmp_path / "out", split="eval")
        local = tree_bytes(tmp_path / "out")
        assert {name: storage.read_bytes(f"{url}/{name}") for name in local} == local
        assert len(storage.list_files(f"{url}/**")) == len(local)
    finally:
        storage.remove("memory://write-test")


def test_an_output_that_cannot_be_written_fails_before_the_first_example(tmp_path):
    """No example is taken."""
    (tmp_path / "file").write_text("")
    taken = examples(1)
    with pytest.raises(errors.UsageError, match=str(tmp_path / "file")):
        recordgen.write(taken, tmp_path / "file" / "out")
    assert next(taken)["label"] == 0
