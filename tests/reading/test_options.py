from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import get_type_hints

import mypy.api
import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen.errors import UsageError
from recordgen.reading.keywords import ReadKeywords, RecordKeywords
from recordgen.reading.kinds import kind_for
from recordgen.reading.options import ReadOptions, RecordOptions, decode_options
from recordgen.reading.tables import TableOptions
from recordgen.reading.tuning import Tuning
from recordgen.registry import OWN


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # a wrong value, message
        (dict(batchsize=3), "unknown option 'batchsize'; did you mean 'batch_size'?"),
        (dict(xyz=3), "unknown option 'xyz'; known: batch_size, "),
        (dict(batch_size=0), r"batch_size must be at least 1 \(got 0\)"),
        (dict(batch_size=2.0), r"batch_size must be a whole number \(got 2.0\)"),
        (dict(batch_size=True), r"batch_size must be a whole number \(got True\)"),
        (dict(shuffle=0), r"shuffle must be True or False \(got 0\)"),
        (dict(epochs=0), r"epochs must be at least 1 \(got 0\)"),
        (dict(epochs=None), r"a whole number, or 'endless' to repeat without end \(got None\)"),
        (dict(epochs="forever"), r"'endless' to repeat without end \(got 'forever'\)"),
        (dict(threads=2), r"threads is a field of Tuning; write tuning=Tuning\(threads=…\)"),
        (dict(tuning={"threads": 2}), r"tuning must be a Tuning\(…\) \(got {'threads': 2}\)"),
        (dict(seed=1.5), r"seed must be a whole number or None \(got 1.5\)"),
        (dict(drop_remainder="no"), r"drop_remainder must be True or False \(got 'no'\)"),
        (dict(cache=True), r"cache must be 'memory', the path of a file, or None \(got True\)"),
        (dict(cache=""), r"cache must be 'memory', the path of a file, or None \(got ''\)"),
        (dict(shard=(1, 1)), r"shard must be \(index, count\) with 0 ≤ index < count"),
        (dict(shard="ab"), r"shard must be \(index, count\) .* \(got 'ab'\)"),
        (dict(shard=1), r"0 ≤ index < count \(got 1\)"),
        (dict(shard=(0,)), r"0 ≤ index < count \(got \(0,\)\)"),
        (dict(shard=(-1, 2)), r"0 ≤ index < count \(got \(-1, 2\)\)"),
        (dict(shard=(0.0, 1)), r"0 ≤ index < count \(got \(0.0, 1\)\)"),
        (dict(predicate=3), r"predicate must be a function \(got 3\)"),
        (dict(map_example="f"), r"map_example must be a function \(got 'f'\)"),
        (dict(map_batch=()), r"map_batch must be a function \(got \(\)\)"),
        (dict(image_size=0), r"image_size must be height and width, .* \(got \(0, 0\)\)"),
        (dict(image_size=(4, 0)), r"image_size must be .*, each at least 1 \(got \(4, 0\)\)"),
        (dict(image_size=(4, 4, 3)), "image_size must be height and width"),
        (dict(image_size="44"), "image_size must be height and width"),
        (dict(dtype="int8"), "dtype must be one of float32, float16, bfloat16, uint8 .got 'int8'"),
        (dict(dtype=np.int8), r"dtype must be one of .* \(got 'int8'\)"),
        (dict(resize="crop"), "resize must be one of stretch, fit, center_crop, random_crop"),
        (
            dict(label_mode="onehot"),
            "label_mode must be one of auto, int, binary, categorical, multi_hot, None",
        ),
        (dict(task="detection"), "task must be one of auto, image_classification, image_multi_lab"),
        (dict(box_format="xyxy_rel"), "box_format must be one of rel_xyxy, rel_yxyx, rel_xywh"),
        (dict(boxes="dense"), r"boxes must be one of padded, ragged \(got 'dense'\)"),
        (dict(max_boxes=0), r"max_boxes must be at least 1 \(got 0\)"),
        (dict(min_visible=1.5), r"min_visible must be from 0 to 1 \(got 1.5\)"),
        (dict(on_error="ignore"), r"on_error must be one of fail, skip \(got 'ignore'\)"),
        (dict(on_error=3), "on_error must be one of fail, skip"),
        (dict(augment=True), r"augment must be 'photo', an Augmentation\(…\) or None \(got True\)"),
        (dict(augment={"flip": True}), "augment must be 'photo', an Augmentation"),
        (dict(labels="cat"), r"labels must be several names, .* write \['cat'\]"),
        (dict(labels=[]), "labels must name at least one class; None reads all classes"),
        (dict(labels=[1]), r"labels must be a list of names, each a text \(got \[1\]\)"),
        (dict(labels=3), "labels must be a list of names"),
        (dict(vocabulary="abc"), "vocabulary must be several names"),
        (dict(vocabulary=[]), r"vocabulary must name classes, each once \(got \[\]\)"),
        (dict(vocabulary=["a", "a"]), r"vocabulary must name classes, each once"),
        (dict(extras="image/source_id"), r"extras must be several .* \['image/source_id'\]"),
        (dict(extras=None), "extras must be a list of names"),
        (dict(weights="even"), r"weights must be one of balanced \(got 'even'\)"),
        (dict(weights=[1, 2]), r"weights must be 'balanced' or a dict by class \(got \[1, 2\]\)"),
        (dict(weights={"a": -1}), r"finite and at least 0 \(got -1 for 'a'\)"),
        (dict(weights={"a": float("inf")}), r"finite and at least 0 \(got inf for 'a'\)"),
        (dict(weights={"a": "1"}), r"finite and at least 0 \(got '1' for 'a'\)"),
        (dict(label_mode=None, weights={"a": 1}), "weights need labels"),
    ],
    ids=str,
)
def test_wrong_values(values, message):
    """An error names the option, the expected and the given value."""
    with pytest.raises(UsageError, match=message):
        decode_options(ReadOptions, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # a wrong value, message
        (dict(shuffle_buffer=-1), r"shuffle_buffer must be at least 1 \(got -1\)"),
        (dict(shuffle_buffer=0), r"at least 1 \(got 0\); shuffle=False keeps order"),
        (dict(shuffle_buffer="all"), r"shuffle_buffer must be a whole number \(got 'all'\)"),
        (dict(threads=0), r"threads must be at least 1 \(got 0\)"),
        (dict(cycle_length=0), r"cycle_length must be at least 1 \(got 0\)"),
        (dict(num_parallel_calls=-2), r"num_parallel_calls must be at least 1 \(got -2\)"),
        (dict(prefetch="2"), r"prefetch must be a whole number \(got '2'\)"),
        (dict(deterministic="no"), r"deterministic must be True, False or None \(got 'no'\)"),
        (dict(autotune=1), r"autotune must be True or False \(got 1\)"),
        (dict(decoder="quick"), r"decoder must be one of fast, exact \(got 'quick'\)"),
    ],
    ids=str,
)
def test_wrong_tuning(values, message):
    """A Tuning checks itself."""
    with pytest.raises(UsageError, match=message):
        Tuning(**values)


@pytest.mark.parametrize(
    ("values", "decoded"),
    [
        # given values, decoded values
        (dict(batch_size=np.int64(4), seed=np.int32(1)), dict(batch_size=4, seed=1)),
        (dict(image_size=[4, 6]), {}),
        (dict(image_size=32), dict(image_size=(32, 32))),
        (dict(image_size=np.int64(32)), dict(image_size=(32, 32))),
        (dict(dtype=tf.float16), dict(dtype="float16")),
        (dict(dtype=np.float16), dict(dtype="float16")),
        (dict(dtype=np.dtype("uint8")), dict(dtype="uint8")),
        (dict(label_mode=None), dict(label_mode=None)),
        (dict(cache=Path("a")), {}),
        (dict(labels={"a"}, vocabulary=("a", "b"), extras=["x"], weights={"a": np.float32(1)}), {}),
        (dict(on_error=print), {}),
    ],
    ids=str,
)
def test_values_of_other_types(values, decoded):
    """NumPy's numbers, TensorFlow's types, and lists instead of tuples are accepted."""
    found = decode_options(ReadOptions, values)
    assert {name: getattr(found, name) for name in decoded} == decoded


def test_records_have_no_images():
    """Options of images are unknown for records of any kind."""
    with pytest.raises(UsageError, match="unknown option 'image_size'"):
        decode_options(RecordOptions, dict(image_size=(4, 4)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # options, whether elements come in a fixed order
        ({}, True),
        (dict(shuffle=True), False),
        (dict(shuffle=True, seed=0), True),
        (dict(shuffle=True, seed=0, tuning=Tuning(deterministic=False)), False),
        (dict(shuffle=True, tuning=Tuning(deterministic=True)), True),
    ],
)
def test_is_ordered(values, expected):
    """The order is fixed with a seed, without shuffling, or on request."""
    assert RecordOptions(**values).is_ordered is expected


def test_keywords_are_the_fields_of_the_options():
    """Type checkers know exactly the options of all tasks."""
    signature = {"batch_size", "image_size"}
    kinds = {TableOptions, *(kind_for(task).options for task in OWN)}
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert {*ReadKeywords.__annotations__} | signature == fields
    of_records = {field.name for field in dataclasses.fields(RecordOptions)}
    assert {*RecordKeywords.__annotations__, "batch_size"} == of_records


READERS = [
    *("input_fn", "train_dataset", "eval_dataset", "load", "reading_plan", "steps_per_epoch"),
    "read",
]


@pytest.mark.once
@pytest.mark.parametrize("name", READERS)
def test_signatures_list_every_option(name):
    """Notebooks complete the options of all tasks, each with the default of its class."""
    function = getattr(recordgen, name)
    found = inspect.signature(function).parameters
    assert not [p for p in found.values() if p.kind is p.VAR_KEYWORD]
    keywords = RecordKeywords if name == "read" else ReadKeywords
    assert list(found)[-len(get_type_hints(keywords)) :] == list(get_type_hints(keywords))
    kinds = [RecordOptions, *(kind_for(task).options for task in OWN), TableOptions]
    for option, hint in get_type_hints(keywords).items():
        parameter = found[option]
        assert parameter.annotation == hint
        assert re.search(rf"^    {option}: \S", function.__doc__, re.MULTILINE)
        if option not in ("shuffle", "buckets"):
            declared = [f for kind in kinds for f in dataclasses.fields(kind) if f.name == option]
            assert parameter.default in [
                f.default_factory() if f.default is dataclasses.MISSING else f.default
                for f in declared
            ]


def test_defaults_that_depend_on_the_split():
    """Training has defaults of its own."""

    def default(name, option):
        return inspect.signature(getattr(recordgen, name)).parameters[option].default

    assert (default("train_dataset", "shuffle"), default("train_dataset", "buckets")) == (
        True,
        "auto",
    )
    assert (default("eval_dataset", "shuffle"), default("eval_dataset", "buckets")) == (False, None)
    assert repr(default("load", "shuffle")) == "<True for train, else False>"


# Line → mypy's message.
CALLS = {
    'recordgen.train_dataset("out", batch_siez=3)': 'Unexpected keyword argument "batch_siez"',
    'recordgen.eval_dataset("out", epochs=None)': "expected \"int | Literal['endless']\"",
    'recordgen.input_fn("out", label_mode="one_hot")': 'Argument "label_mode"',
    'recordgen.load("out", shuffle_buffer=3)': 'Unexpected keyword argument "shuffle_buffer"',
    'recordgen.read("out", image_size=32)': 'Unexpected keyword argument "image_size"',
    'recordgen.steps_per_epoch("out", 32, seed="a")': 'Argument "seed"',
    'recordgen.load("out", image_size=32, label_mode=None, seed=1, shuffle=False)': "",
    'recordgen.train_dataset("out", epochs="endless", tuning=recordgen.Tuning(threads=2))': "",
}


def test_type_checkers_know_the_keywords(tmp_path):
    """A wrong keyword is an error of the type checker, and a right one is not."""
    program = tmp_path / "program.py"
    program.write_text("\n".join(["import recordgen", *CALLS]))
    root = Path(__file__).parents[2]
    found, errors, _ = mypy.api.run(
        [f"--config-file={root}/pyproject.toml", "--no-error-summary", str(program)]
    )
    assert not errors
    lines = [line for line in found.splitlines() if ": error: " in line]
    wrong = [(number, said) for number, said in enumerate(CALLS.values(), start=2) if said]
    assert len(lines) == len(wrong), found
    for (number, said), line in zip(wrong, lines, strict=True):
        assert f"program.py:{number}: error: " in line
        assert said in line
