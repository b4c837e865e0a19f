"""``read``: records of any kind, written by recordgen.write or by other tools."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen import read, write
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.reading import Tuning, named_errors
from tests.reading.conftest import example, write_records


def rows(dataset):
    """Return examples as dicts of arrays."""
    return [{name: np.asarray(value) for name, value in row.items()} for row in dataset]


@pytest.fixture(params=["a.rec", "a.rec.gz", "packed.rec"], ids=["plain", "gzip", "unnamed gzip"])
def path(request, tmp_path):
    """Ten records: a vector, a key of 32 bytes, raw pixels, a text and a list of words."""
    records = [
        example(
            {
                "vector": [n / 2, n / 4, 1.0],
                "key": hashlib.sha256(b"%d" % n).digest(),
                "pixels": bytes([n, 1, 2, 3, 4, 5]),
                "text": f"números {n}".encode(),
                "words": [b"w"] * (n % 3),
                "number": n,
            }
        )
        for n in range(10)
    ]
    if request.param != "packed.rec":
        return write_records(tmp_path / request.param, records)
    packed = Path(write_records(tmp_path / "a.gz", records))
    return str(packed.rename(tmp_path / request.param))


SPEC = {
    "vector": tf.TensorSpec((3,), tf.float32),
    "key": tf.TensorSpec((), tf.string),
    "pixels": tf.TensorSpec((2, 3), tf.uint8),
    "text": tf.io.FixedLenFeature((), tf.string),
    "words": tf.io.RaggedFeature(tf.string),
    "number": tf.io.FixedLenFeature((), tf.int64),
}


def test_each_feature_has_its_type_and_shape_in_order(path):
    """Each feature has the type and shape of its spec, in the order of the records."""
    found = rows(read(path, feature_spec=SPEC))
    assert [int(row["number"]) for row in found] == list(range(10))
    seventh = found[7]
    np.testing.assert_array_equal(seventh["vector"], np.float32([3.5, 1.75, 1]))
    assert seventh["key"].item() == hashlib.sha256(b"7").digest()
    np.testing.assert_array_equal(seventh["pixels"], np.uint8([[7, 1, 2], [3, 4, 5]]))
    assert seventh["text"].item().decode() == "números 7"
    assert [row["words"].tolist() for row in found[:3]] == [[], [b"w"], [b"w", b"w"]]


def test_batches_are_dense_or_ragged_and_the_last_short_or_dropped(path):
    """Batches are dense or ragged as the specs say; the last is short, or dropped."""
    dataset = read(path, feature_spec=SPEC, batch_size=4)
    assert dataset.element_spec["pixels"] == tf.TensorSpec((None, 2, 3), tf.uint8)
    assert dataset.element_spec["words"] == tf.RaggedTensorSpec(
        (None, None), tf.string, 1, tf.int32
    )
    assert [len(batch["key"]) for batch in dataset] == [4, 4, 2]
    assert next(iter(dataset))["words"].to_list() == [[], [b"w"], [b"w", b"w"], []]
    whole = read(path, feature_spec=SPEC, batch_size=4, tuning=Tuning(drop_remainder=True))
    assert whole.element_spec["key"] == tf.TensorSpec((4,), tf.string)
    assert len(list(whole)) == 2


def test_only_gets_one_record(path):
    """A predicate gets the features of one record, also as sparse tensors."""

    def only(row):
        return (tf.size(row["words"].values) > 0) & (row["pixels"][0, 0] > 1)

    spec = {**SPEC, "words": tf.io.VarLenFeature(tf.string)}
    dataset = read(path, feature_spec=spec, batch_size=2, only=only)
    assert [batch["number"].numpy().tolist() for batch in dataset] == [[2, 4], [5, 7], [8]]


def test_reading_is_one_ordered_pass_unless_asked(path):
    """One pass in order is the default; shuffled and endless passes hold every record."""
    spec = {"number": SPEC["number"]}
    shuffled = read(path, feature_spec=spec, shuffle=True, seed=1, epochs=2)
    numbers = [int(row["number"]) for row in shuffled]
    assert sorted(numbers[:10]) == sorted(numbers[10:]) == list(range(10))
    assert numbers[:10] != numbers[10:]
    assert len(list(read(path, feature_spec=spec, epochs="endless", batch_size=4).take(9))) == 9


def test_length_is_known(path):
    """The number of examples is known for files that can be counted."""
    known = 10 if path.endswith("a.rec") else -2
    assert read(path, feature_spec=SPEC).cardinality().numpy() == known


# feature_spec, other options, message
WRONG = [
    ({}, {}, "feature_spec"),
    ({"vectr": tf.TensorSpec((3,), tf.float32)}, {}, "'vectr'"),
    ({"vector": tf.float32}, {}, "'vector'"),
    ({"pixels": tf.TensorSpec((None, 3), tf.uint8)}, {}, "'pixels'"),
    (SPEC, dict(tuning=Tuning(drop_remainder=True)), r"drop_remainder.*batch_size"),
    (SPEC, dict(image_size=(4, 4)), "'image_size'"),
    (SPEC, dict(batch_size=0), "batch_size"),
    (SPEC, dict(only=["a"]), "only"),
]


@pytest.mark.parametrize(("spec", "options", "message"), WRONG)
def test_what_is_wrong_is_named_before_reading(path, spec, options, message):
    """A feature that is not there, options of images, and options without their batch_size."""
    with pytest.raises(DataError if "vectr" in spec else UsageError, match=message):
        read(path, feature_spec=spec, **options)


STEPS = [range(n % 4) for n in range(40)]


WORDS = [[[b"w"] * (step + 1) for step in steps] for steps in STEPS]


@pytest.fixture
def sequences(tmp_path):
    """SequenceExamples with an id, and lists of one number and of several words in each step."""

    def features(**values):
        return tf.train.Example.FromString(example(values)).features

    def listed(values):
        return tf.train.FeatureList(feature=[features(x=each).feature["x"] for each in values])

    def sequence(n):
        lists = {"number": listed(STEPS[n]), "words": listed(WORDS[n])}
        feature_lists = tf.train.FeatureLists(feature_list=lists)
        message = tf.train.SequenceExample(context=features(id=n), feature_lists=feature_lists)
        return message.SerializeToString()

    return write_records(tmp_path / "a.rec", map(sequence, range(len(STEPS))))


def test_feature_lists_are_read_beside_the_context(sequences):
    """``read`` gives lists as their specs say; a source gives the values of each step."""
    for n, found in enumerate(recordgen.source(sequences)):
        assert found["id"].tolist() == [n]
        assert [each.tolist() for each in found["number"]] == [[step] for step in STEPS[n]]
        assert [each.tolist() for each in found["words"]] == WORDS[n]
    spec = {
        "id": tf.io.FixedLenFeature((), tf.int64),
        "number": tf.io.FixedLenSequenceFeature((), tf.int64),
        "words": tf.io.RaggedFeature(tf.string),
    }
    for data in (
        read(sequences, feature_spec=spec).batch(1),
        read(sequences, feature_spec=spec, batch_size=3),
    ):
        assert [words for batch in data for words in batch["words"].to_list()] == WORDS
        for batch in data:
            steps = [STEPS[n] for n in batch["id"]]
            padded = [[*each, *[0] * (max(map(len, steps)) - len(each))] for each in steps]
            assert batch["number"].numpy().tolist() == padded
    chosen = read(sequences, feature_spec=spec, only=lambda it: tf.size(it["number"]) == 2)
    assert [int(row["id"]) for row in chosen] == list(range(2, 40, 4))


def test_a_feature_list_is_read_as_a_list_only(sequences):
    """It is not one value; a name that no first record has and a list of images are errors."""
    for name, spec in {
        "words": tf.io.FixedLenFeature((), tf.string),
        "number": tf.TensorSpec((2,), tf.int64),
        "later": tf.io.RaggedFeature(tf.string),
    }.items():
        with pytest.raises(UsageError, match=name):
            read(sequences, feature_spec={name: spec})
    with pytest.raises(RecordError, match="number, words"):
        recordgen.load(sequences, columns="image=words")
    with pytest.raises(RecordError, match="'words'"):
        recordgen.source(sequences).images(columns="image=words")[1]


@pytest.mark.parametrize("name", ["id", "words"])
def test_a_feature_list_that_begins_later_is_named(sequences, tmp_path, name):
    """What the first records are decides how features are read; another record is an error."""
    text = {"id": 1, "number": 1, "words": [b"w"]}
    plain = write_records(tmp_path / "0.rec", [example(text)] * 20)
    order = [plain, sequences] if name == "words" else [sequences, plain]
    spec = {"id": tf.io.VarLenFeature(tf.int64), "words": tf.io.RaggedFeature(tf.string)}
    data = read(order, feature_spec=spec)
    with pytest.raises(RecordError, match=f"{order[1]}: record [01]:"), named_errors(data):
        list(data)
    options = dict(task="text_classification", columns="text=words,label=number")
    with pytest.raises((RecordError, tf.errors.InvalidArgumentError), match="number"):
        list(recordgen.load(order, **options)["train"])


def test_a_missing_feature_has_its_default(tmp_path):
    """A feature that a record lacks has the default of its spec."""
    path = write_records(tmp_path / "a.rec", [example({"x": 1}), example({"x": 2, "y": 3})])
    spec = {"y": tf.io.FixedLenFeature((), tf.int64, 9)}
    assert [int(row["y"]) for row in read(path, feature_spec=spec)] == [9, 3]


def test_dataset_json_describes_the_features_of_images(pets):
    """Without feature_spec, an output has all features of its task."""
    (row,) = read(pets, split="eval").take(1)
    assert set(row) >= {"image/encoded", "image/class/label", "image/class/text"}
    sides = [row["image/height"], row["image/width"]]
    assert [*tf.io.decode_jpeg(row["image/encoded"]).shape[:2]] == sides


RAW = ["bool", "float16", "float64", "int8", "int16", "int32"]
RAW += ["uint8", "uint16", "uint32", "uint64", "int64", "float32"]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_scalars_lists_and_arrays_are_read_as_written(out, compression):
    """Examples come back as written, from several shards; test_writing has values of all kinds."""
    examples = [
        {
            **{"int": n - 2**63, "float": n / 4, "bytes": b"\xff\0"[:n], "text": f"größe {n}"},
            **{"ints": np.int64([-1, 2**62][:n]), "words": ["ä", "b"][: n + 1]},
            **{dtype: np.array([[n], [1]], dtype) for dtype in RAW},
        }
        for n in range(3)
    ]
    write(examples, out, shards=2, compression=compression)
    for n, row in zip((0, 2, 1), rows(read(out)), strict=True):
        assert row.keys() == examples[n].keys()
        assert (row["bytes"].item(), row["text"].item().decode()) == (b"\xff\0"[:n], f"größe {n}")
        assert [word.decode() for word in row["words"]] == examples[n]["words"]
        for name in ("int", "float", "ints", *RAW):
            np.testing.assert_array_equal(row[name], examples[n][name], name)
            assert row[name].dtype == np.asarray(examples[n][name]).dtype or name == "float"


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.bool_])
def test_arrays_without_elements_are_read_one_by_one_and_in_batches(out, shape, dtype):
    """Arrays of size 0 keep their shape and type."""
    write(({"x": np.zeros(shape, dtype), "y": n} for n in range(3)), out)
    for row in rows(read(out)):
        assert (row["x"].shape, row["x"].size) == (shape, 0)
    [batch] = read(out, batch_size=4)
    assert (batch["x"].shape[0], batch["y"].shape) == (3, (3,))
    found = rows(read(out, only=lambda row: row["y"] > 1))
    assert [row["y"].tolist() for row in found] == [2]
    if len(shape) > 1 or dtype != np.float32:  # a list of numbers that may have any length
        for row in rows(read(out, feature_spec={"x": tf.TensorSpec(shape, dtype)})):
            assert (row["x"].dtype, row["x"].shape) == (dtype, shape)
