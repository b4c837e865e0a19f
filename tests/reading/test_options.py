import dataclasses
import inspect
import re
from pathlib import Path
from typing import get_type_hints

import mypy.api
import numpy as np
import pytest

import recordgen
from recordgen.errors import UsageError
from recordgen.reading.keywords import ReadKeywords, RecordKeywords
from recordgen.reading.kinds import kind_for
from recordgen.reading.options import (
    Augmentation,
    BoxForm,
    ReadOptions,
    RecordOptions,
    TableOptions,
    Tuning,
    decode_options,
)
from recordgen.registry import OWN

# option, wrong values
WRONG = {
    "batchsize": (3,),
    "batch_size": (0, 2.0, True),
    "shuffle": (0,),
    "epochs": (0, None, "forever"),
    "tuning": ({"threads": 2},),
    "seed": (1.5, 1 << 64),
    "cache": (True, ""),
    "shard": ((1, 1), "ab", 1, (0,), (-1, 2), (0.0, 1)),
    "only": (3, "cat", [], [1]),
    "image_size": (0, (4, 0), (4, 4, 3), "44max"),
    "scale": ("0..1:int8", "int8", "0-255", "mobilenet_v2", "-1..1:uint8", 3),
    "resize": ("crop",),
    "label_mode": ("onehot",),
    "task": ("detection",),
    "boxes": ("xyxy_rel", "padded", {"form": "xyxy"}, {"format": "yx"}),
    "min_visible": (1.5,),
    "padding": (0, "longest", "dense", [1, 2], 1.5),
    "augment": (True, "drawing", {"flips": True}),
    "flip": (3, "yes"),
    "brightness": (1.1,),
    "contrast": (-0.1,),
    "saturation": ("x", float("nan")),
    "crop": (1,),
    "vocabulary": ("abc", [], ["a", "a"]),
    "columns": ("image/source_id", [1]),
    "weights": ("even", [1, 2], {"a": -1}, {"a": float("inf")}, {"a": "1"}),
}

# task with options of its own, option, wrong values
OF_TASKS = [
    ("text_entities", "padding", ("many", (8, 4), (), 0)),
    ("text_entities", "image_size", ((8, 8),)),
    ("text_classification", "augment", (None,)),
    ("declared", "padding", ("dense",)),
    ("declared", "scale", ("0..1:int8",)),
    ("declared", "image_size", (0,)),
]

# the option whose keys these are
INSIDE = {
    "min_visible": "boxes",
    **dict.fromkeys(("flip", "brightness", "contrast", "saturation", "crop"), "augment"),
}


# task, option, value
WRONG_VALUES = [
    *(("image_classification", name, value) for name in WRONG for value in WRONG[name]),
    *((task, name, value) for task, name, values in OF_TASKS for value in values),
]


@pytest.mark.parametrize(("task", "option", "value"), WRONG_VALUES)
def test_an_error_names_the_option(task, option, value):
    """A value that no reading of the task has is an error that names its option."""
    options = {INSIDE[option]: {option: value}} if option in INSIDE else {option: value}
    with pytest.raises(UsageError, match=option):
        decode_options(kind_for(task).options, options)


def test_values_that_do_not_go_together():
    """Options that contradict each other are a usage error that names one."""
    for values in ({"weights": {"a": 1}, "label_mode": None}, {"tuning": Tuning(cache_bytes=3)}):
        with pytest.raises(UsageError, match=r"weights|cache_bytes.*cache"):
            decode_options(ReadOptions, values)


# option, value
WRONG_TUNING = [
    *(("shuffle_buffer", value) for value in (-1, 0, "all")),
    ("threads", 0),
    ("cycle_length", 0),
    ("num_parallel_calls", -2),
    ("prefetch", "2"),
    ("deterministic", "no"),
    ("autotune", 1),
    ("drop_remainder", "no"),
    ("cache_bytes", 0),
    ("decoder", "quick"),
]


@pytest.mark.parametrize(("option", "value"), WRONG_TUNING)
def test_a_wrong_tuning_is_an_error(option, value):
    """It names the field."""
    with pytest.raises(UsageError, match=option):
        Tuning(**{option: value})


# given values, decoded values
SHORT_FORMS = [
    (dict(batch_size=np.int64(4), seed=np.uint64(1 << 63)), dict(batch_size=4, seed=1 << 63)),
    (dict(image_size=[32]), dict(image_size=(32, 32))),
    (dict(image_size=64), dict(image_size=ReadOptions(image_size="64x64").image_size)),
    (dict(scale="uint8"), dict(pixels=("auto", "uint8"))),
    (dict(scale="-1..1:float16"), dict(pixels=("-1..1", "float16"))),
    (dict(scale="ResNet50"), dict(pixels=("ResNet50", "float32"))),
    (dict(label_mode=None, cache=Path("a")), dict(label_mode=None)),
    (dict(only={"a"}, vocabulary={"a": 0, "b": 1}.keys()), dict(labels={"a"}, predicate=None)),
    (dict(only=len, columns=["x"]), dict(labels=None, predicate=len, extras=("x",))),
    (dict(augment="photo", resize="fit"), dict(resize="random_crop")),
    (dict(augment={"crop": 0.1}), dict(changes=Augmentation(crop=0.1), resize="stretch")),
    (dict(boxes="xywh", padding=np.int64(3)), dict(box_form=BoxForm(format="xywh"), max_boxes=3)),
    (dict(boxes={"min_visible": 1}), dict(box_form=BoxForm(min_visible=1))),
]


@pytest.mark.parametrize(("values", "decoded"), SHORT_FORMS, ids=str)
def test_numpy_numbers_lists_and_short_forms_are_read(values, decoded):
    """They become the values that the options hold."""
    found = decode_options(ReadOptions, values)
    assert {name: getattr(found, name) for name in decoded} == decoded


# options, whether elements come in a fixed order
ORDERS = [
    ({}, True),
    (dict(shuffle=True), False),
    (dict(shuffle=True, seed=0), True),
    (dict(shuffle=True, seed=0, tuning=Tuning(deterministic=False)), False),
    (dict(shuffle=True, tuning=Tuning(deterministic=True)), True),
]


@pytest.mark.parametrize(("values", "expected"), ORDERS)
def test_the_order_is_fixed_with_a_seed_without_shuffling_or_on_request(values, expected):
    """Else batches may overtake each other."""
    assert RecordOptions(**values).is_ordered is expected


def test_keywords_are_the_fields_of_the_options():
    """No field lacks its keyword, and no keyword its field."""
    signature = {"batch_size", "image_size"}
    kinds = {TableOptions, *(kind_for(task).options for task in OWN)}
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert {*ReadKeywords.__annotations__} | signature == fields
    of_records = {field.name for field in dataclasses.fields(RecordOptions)}
    assert {*RecordKeywords.__annotations__, "batch_size"} == of_records


READERS = ["input_fn", "train_dataset", "eval_dataset", "load", "reading_plan", "steps_per_epoch"]


@pytest.mark.parametrize("name", [*READERS, "read"])
def test_signatures_list_every_option_with_its_default(name):
    """Names, annotations, defaults and docstrings agree with the options."""
    function = getattr(recordgen.reading, name)
    found = inspect.signature(function).parameters
    assert not [p for p in found.values() if p.kind is p.VAR_KEYWORD]
    keywords = RecordKeywords if name == "read" else ReadKeywords
    assert list(found)[-len(get_type_hints(keywords)) :] == list(get_type_hints(keywords))
    kinds = [RecordOptions, *(kind_for(task).options for task in OWN), TableOptions]
    for option, hint in get_type_hints(keywords).items():
        parameter = found[option]
        assert parameter.annotation == hint
        assert re.search(rf"^    {option}: \S", function.__doc__, re.MULTILINE)
        if option != "shuffle":
            declared = [f for kind in kinds for f in dataclasses.fields(kind) if f.name == option]
            assert parameter.default in [
                f.default_factory() if f.default is dataclasses.MISSING else f.default
                for f in declared
            ]


def test_training_has_defaults_of_its_own():
    """It is shuffled, evaluation is not."""

    def default(name, option):
        return inspect.signature(getattr(recordgen, name)).parameters[option].default

    assert default("train_dataset", "shuffle") is True
    assert default("eval_dataset", "shuffle") is False
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
    'recordgen.train_dataset("out", epochs="endless", tuning=Tuning(threads=2))': "",
}


def test_a_wrong_keyword_is_an_error_of_the_type_checker(tmp_path):
    """mypy knows the keywords and types of every reading function."""
    program = tmp_path / "program.py"
    header = "import recordgen; from recordgen.reading import Tuning"
    program.write_text("\n".join([header, *CALLS]))
    root = Path(__file__).parents[2]
    flags = [f"--config-file={root}/pyproject.toml", "--no-error-summary"]
    found, errors, _ = mypy.api.run([*flags, str(program)])
    assert not errors
    lines = [line for line in found.splitlines() if ": error: " in line]
    wrong = [(number, said) for number, said in enumerate(CALLS.values(), start=2) if said]
    assert len(lines) == len(wrong), found
    for (number, said), line in zip(wrong, lines, strict=True):
        assert f"program.py:{number}: error: " in line
        assert said in line
