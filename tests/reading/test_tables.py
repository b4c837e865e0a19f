"""Rows of tables as batches: columns by name, the target, and weights."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen.errors import UsageError
from recordgen.reading import Tuning
from tests.conftest import convert_lines

LINES = """split,age,balance,job,w,y
TRAIN,1,0.5,cook,2,yes
TRAIN,,,,,no
TRAIN,3,1.5,smith,0,no
TEST,4,2.5,cook,1,maybe
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("table")
    (root / "a.csv").write_text(LINES)
    return root


def converted(folder, name, **options):
    output = folder / name
    if not output.exists():
        recordgen.convert(str(folder / "a.csv"), output, task="tabular", **options)
    return str(output)


def batches(dataset):
    return list(dataset.as_numpy_iterator())


def in_order(output, **options):
    """Return one pass over train as one batch, sorted by age; NaN comes last."""
    [batch] = batches(recordgen.eval_dataset(output, split="train", batch_size=8, **options))
    parts = batch if isinstance(batch, tuple) else (batch,)
    order = np.argsort(parts[0]["age"])
    return tf.nest.map_structure(lambda part: part[order].tolist(), batch)


def test_missing_values_are_nan_and_a_missing_weight_is_1(folder):
    """Missing numbers are NaN, missing texts empty, and a missing weight is 1."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    features, target, weights = in_order(output)
    assert np.isnan([features["age"].pop(), features["balance"].pop()]).all()
    assert features == {"age": [1, 3], "balance": [0.5, 1.5], "job": [b"cook", b"smith", b""]}
    assert target == [2, 1, 1]  # maybe, no, yes
    assert weights == [2.0, 0.0, 1.0]
    [(_, target, _)] = batches(recordgen.input_fn(output, split="test"))
    assert target.dtype == np.int64


def test_what_stands_for_missing_values_can_be_said(folder):
    """columns= selects columns, and says what stands for missing values."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    features, _, weights = in_order(output, columns={"age": 2, "balance": 0, "job": None, "w": 5.0})
    assert features == {
        "age": [1, 2, 3],
        "balance": [0.5, 0.0, 1.5],
        "job": [b"cook", b"", b"smith"],
        "w": [2.0, 5.0, 0.0],
    }
    assert weights == [2.0, 5.0, 0.0]
    wrong = [
        ({"columns": ["size"]}, r"columns: there is no column 'size'; there are 'age', 'balance'"),
        ({"columns": "age"}, "columns must be several names"),
        ({"weights": "balanced"}, "weights: the column 'w' has the weight of each row"),
        ({"columns": {"size": "1"}}, "columns: there is no column 'size'"),
        ({"columns": {"age": 0.5}}, r"'age' holds int64 \(got 0.5\)"),
        ({"image_size": (8, 8)}, r"image_size does not apply .* \(tabular\); remove"),
    ]
    for options, message in wrong:
        with pytest.raises(UsageError, match=message):
            recordgen.input_fn(output, batch_size=1, **options)


def test_a_target_of_classes_has_keras_label_modes(folder):
    """A target of classes has Keras's label modes."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    modes = {
        "int": [2, 1, 1],  # maybe, no, yes
        "categorical": [[0, 0, 1], [0, 1, 0], [0, 1, 0]],
    }
    for mode, expected in modes.items():
        _, target, weights = in_order(output, label_mode=mode)
        assert (target, weights) == (expected, [2.0, 0.0, 1.0])
    assert list(in_order(output, label_mode=None)) == ["age", "balance", "job"]
    wrong = [
        (output, "binary", r"needs two classes \(got 3: \['maybe', 'no', 'yes'\]\)"),
        (converted(folder, "none", columns="weight=w"), "int", "table has none; remove"),
    ]
    for source, mode, message in wrong:
        with pytest.raises(UsageError, match=message):
            recordgen.eval_dataset(source, split="train", label_mode=mode)


def test_whole_numbers_are_classes_or_floats_of_a_regression(folder):
    """Whole numbers are classes or numbers, as the conversion was told."""
    numbers = converted(folder, "numbers", columns="target=age")
    assert (Path(numbers) / "labels.txt").read_text().split() == ["0", "1", "2", "3", "4"]
    found = batches(recordgen.eval_dataset(numbers, split="train", batch_size=8))[0][1]
    assert sorted(found.tolist()) == [1, 3]
    regression = converted(folder, "floats", columns="target:number=age", max_reject_fraction=0.5)
    found = batches(recordgen.eval_dataset(regression, split="train", batch_size=8))[0][1]
    assert (found.dtype, sorted(found.tolist())) == (np.float32, [1.0, 3.0])
    # Without a class, a row is an unlabelled example; without the number, it is rejected.
    for output, rows in ((numbers, 3), (regression, 2)):
        assert recordgen.steps_per_epoch(output, 1, split="train") == 2
        [every] = recordgen.eval_dataset(output, split="train", batch_size=8, label_mode=None)
        assert len(every["job"]) == rows
    features = in_order(converted(folder, "none", columns="weight=w"))
    assert list(features) == ["age", "balance", "job", "y", "w"]


def test_steps_plans_predicates_and_caches_work_for_tables(folder):
    """Steps, caches, predicates and patterns work as for images."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    assert recordgen.steps_per_epoch(output, 2, tuning=Tuning(drop_remainder=True)) == 1
    assert recordgen.steps_per_epoch(output, 2) == 2
    splits = recordgen.load(output, batch_size=2, cache="memory")
    assert {name: len(list(found)) for name, found in splits.items()} == {"train": 2, "test": 1}
    known = {"only": lambda row: row["age"] > 0}
    assert recordgen.steps_per_epoch(output, 1, **known) == 2
    [batch] = batches(recordgen.train_dataset(output, **known))
    assert sorted(batch[0]["age"].tolist()) == [1, 3]
    raw = batches(recordgen.read(output, split="test"))[0]
    assert (raw["age"], raw["y"], raw["w"]) == (4, b"maybe", 1.0)
    shards = recordgen.eval_dataset(str(Path(output) / "Split-train" / "*"), batch_size=3)
    assert len(batches(shards)[0][1]) == 3


def test_records_do_not_hold_the_roles_of_columns(folder, tmp_path):
    """Without dataset.json nobody knows the target."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    [shard] = Path(output).glob("Split-test/*")
    (tmp_path / shard.name).write_bytes(shard.read_bytes())
    with pytest.raises(UsageError, match=r"dataset\.json"):
        recordgen.input_fn([str(tmp_path / shard.name)], task="tabular", batch_size=1)


# --- whole numbers that rows lack ---------------------------------------------------------------

GAPS = ["split,age,key,id,part", "TRAIN,-1,,16777217,9007199254740993"]
GAPS += ["TRAIN,,16777217,16777219,", "TRAIN,30,2,3,"]
DECLARED = {"schema": {"split": "split", "age": "int", "key": "int", "id": "int", "part": "int"}}


@pytest.mark.parametrize("options", [{"task": "tabular"}, DECLARED], ids=["inferred", "declared"])
def test_a_missing_whole_number_differs_from_all_others(options, tmp_path):
    """A column with gaps is float32 with NaN; -1 stays -1; columns without gaps stay int64."""
    output = convert_lines(tmp_path, GAPS, **options)
    dataset = recordgen.read_dataset(output)
    lacking = [name for name, spec in dataset.features.items() if spec.has_gaps]
    assert sorted(lacking) == ["age", "key", "part"]
    assert sorted(dataset.inexact) == ["id", "key", "part"]
    assert dataset.rows.adjusted == {}
    splits = recordgen.load(output, batch_size=3, columns=["age", "id"], shuffle=False)
    [found] = splits["train"]
    assert (found["age"].dtype, found["id"].dtype) == (tf.float32, tf.int64)
    ages = dict(zip(found["id"].numpy().tolist(), found["age"].numpy().tolist(), strict=True))
    assert np.isnan(ages.pop(16777219))
    assert ages == {16777217: -1.0, 3: 30.0}
    # With a default, whole numbers stay whole, and are exact.
    chosen = {"age": -5, "key": 0, "part": 0}
    [found] = recordgen.eval_dataset(output, split="train", batch_size=3, columns=chosen)
    assert sorted(found["age"].numpy().tolist()) == [-5, -1, 30]
    assert sorted(found["part"].numpy().tolist()) == [0, 0, 9007199254740993]
    assert found["key"].dtype == tf.int64
    old = {"only": lambda row: tf.math.is_nan(row["age"])}
    with pytest.raises(UsageError, match=r"'key'.*columns"):
        recordgen.eval_dataset(output, split="train", columns=["id"], **old)
    chosen = {"id": None, "key": 0, "part": 0}
    [found] = recordgen.eval_dataset(output, split="train", columns=chosen, **old)
    assert found["id"].numpy().tolist() == [16777219]


def test_keys_that_float32_cannot_hold_need_a_default(tmp_path):
    """Whole numbers that would lose digits as floats need a default."""
    output = convert_lines(tmp_path, GAPS, task="tabular")
    for read in (recordgen.load, recordgen.input_fn):
        with pytest.raises(UsageError, match=r"columns.*'key'"):
            read(output)
    with pytest.raises(UsageError, match="feature_spec"):
        recordgen.read(output)


def test_read_gives_nan_too(folder):
    """read gives NaN for missing numbers, also to a predicate."""
    output = converted(folder, "classes", columns="target=y,weight=w")
    found = batches(recordgen.read(output, batch_size=3))[0]
    assert sorted(np.nan_to_num(found["age"], nan=-9.0).tolist()) == [-9.0, 1.0, 3.0]
    data = recordgen.read(output, batch_size=3, only=lambda row: tf.math.is_nan(row["age"]))
    [found] = batches(data)
    assert found["y"].tolist() == [b"no"]


def test_spans_with_and_without_gaps_are_read_as_one(tmp_path):
    """A column with gaps in one of several datasets is float in all."""
    for name, line in (("1", "TRAIN,1,2"), ("2", "TRAIN,,3")):
        convert_lines(tmp_path, ["split,age,id", line, "TRAIN,5,6"], name, task="tabular")
    for order in (("1", "2"), ("2", "1")):
        spans = [str(tmp_path / name) for name in order]
        [found] = batches(recordgen.eval_dataset(spans, split="train", batch_size=4))
        assert (found["age"].dtype, found["id"].dtype) == (np.float32, np.int64)
