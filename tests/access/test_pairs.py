"""Pairs of a source are the inputs and labels that ``recordgen.load`` gives, for all tasks."""

import pickle
import re

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen.access.pairs import Pairs
from recordgen.errors import RecordError, UsageError
from recordgen.registry import OWN
from tests.conftest import COMPONENTS, convert_lines, run_python
from tests.reading.test_columns import SCHEMA
from tests.reading.test_columns import frame as frame  # a fixture

MANY = 10_000


def loaded(output, **options):
    """Return the whole split as one batch."""
    [batch] = recordgen.load(output, batch_size=MANY, shuffle=False, **options)["train"]
    return tf.nest.map_structure(lambda part: part.numpy(), batch)


def paired(output, **options):
    source = recordgen.source(output)
    return source.images(**options) if options else source.pairs()


def has_label(item):
    """Return whether ``load`` reads an item: with a class, or with any of several."""
    label = item[1] if isinstance(item, tuple) else None
    if not isinstance(label, np.ndarray | np.generic):
        return True
    if label.dtype == np.float32:
        return not label.ndim or label.any()
    return label.ndim > 0 or label >= 0


def compare(found, expected, levels=0):
    """Compare batches part by part."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            compare(found[name], expected[name], levels)
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other, levels)
    elif expected.dtype == object:
        texts = np.char.decode(expected.astype(bytes), "utf-8")
        assert np.array(found).tolist() == texts.tolist()
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype == np.uint8 and expected.ndim == 4:  # a mask's pixels must be equal
            assert np.abs(found.astype(int) - expected.astype(int)).max() <= levels
        else:
            np.testing.assert_allclose(found, expected, atol=1e-6)


TASKS = {
    **dict.fromkeys(("image_classification", "image_multi_label", "object_detection"), 24),
    "image_segmentation": 24,
    **dict.fromkeys(("text_classification", "text_multi_label", "text_sentiment")),
    **dict.fromkeys(("text_entities", "text_entities_iob", "tabular", "video_classification")),
    "declared": 24,
}


@pytest.mark.parametrize(("name", "size"), TASKS.items())
def test_batches_are_those_of_load(sample, name, size):
    """A batch of all examples that ``load`` reads has the same parts, shapes, types and values."""
    assert OWN.keys() <= TASKS.keys()
    output = sample(name)
    images = {"image_size": size, "scale": "0..255:uint8"} if size else {}
    pairs = paired(output, **({"image_size": size, "method": "area"} if size else {}))
    items = [item for item in pairs if not isinstance(item, tuple) or has_label(item)]
    assert len(items) > 3
    compare(pairs.collate(items), loaded(output, **images), levels=1)


TABLE = """ml_use,age,job,days,weight,paid,rooms
TRAIN,58,management,3,2,yes,1
TRAIN,,technician,12,,no,2
TRAIN,33,,,0.5,no,3
TRAIN,47,admin,3,1,yes,4
TRAIN,35,admin,12,1,yes,5
"""

# the roles of the columns, and the type of the target
ROLES = [
    ("target=paid,weight=weight", np.int64),
    ("target:class=days", np.int64),
    ("target:number=rooms,weight=weight", np.float32),
    ("weight=weight", None),
]


@pytest.mark.parametrize(("columns", "dtype"), ROLES)
def test_tables(tmp_path, columns, dtype):
    """Missing numbers are NaN, targets are numbers, and a missing weight is 1."""
    convert_lines(tmp_path, TABLE.splitlines(), task="tabular", columns=columns)
    pairs = paired(tmp_path / "out")
    found = pairs.collate([item for item in pairs if has_label(item)])
    assert (found[1].dtype if isinstance(found, tuple) else None) == dtype
    compare(found, loaded(tmp_path / "out"))


# what differs from SCHEMA
SCHEMAS = [
    {},
    {"back": "ignored"},  # an image and a label: as image classification
    {"breed": "text", "price": "float_label"},
    {"breed": "text", "back": "ignored", "age": "weight", "price": "float_label"},
    {"breed": "text"},
]


@pytest.mark.parametrize("change", SCHEMAS)
def test_declared_columns(frame, tmp_path, change):
    """All images are decoded, vectors padded with 0; the label or number is the target."""
    with_a_gap = frame.assign(age=frame["age"].where(frame["age"] != 4))
    recordgen.convert(with_a_gap, tmp_path / "out", schema={**SCHEMA, **change})
    pairs = paired(tmp_path / "out", image_size=8, method="area")
    found = pairs.collate([item for item in pairs if has_label(item)])
    compare(found, loaded(tmp_path / "out", image_size=8, scale="0..255:uint8"), levels=1)


def test_masks_are_not_decoded(frame, tmp_path):
    """Pixels of images are refused where one is a mask; its bytes stay readable."""
    frame = frame.rename(columns={"back": "road_mask"})
    schema = {"use": "split", "front": "image", "road_mask": "image", "age": "int"}
    recordgen.convert(frame, tmp_path / "out", schema=schema)
    source = recordgen.source(tmp_path / "out")
    with pytest.raises(UsageError, match="'road_mask'"):
        source.images(8)
    assert source[0]["road_mask/encoded"][1:4].tobytes() == b"PNG"


def test_other_tools_records(sample, tmp_path, monkeypatch):
    """Files without a dataset.json hold images, or what ``task`` says, as in ``load``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("text_sentiment", "text_entities", "object_detection", "image_classification"):
        output = sample(name)
        [shard] = output.glob("Split-train/*")
        (tmp_path / f"{name}.tfrecord").write_bytes(shard.read_bytes())
        source = recordgen.source(str(tmp_path / f"{name}.tfrecord"))
        size = 8 if name.startswith(("object", "image")) else None
        options = {"image_size": size} if size else {}
        found = source.images(8, task=name) if size else source.pairs(task=name)
        indexes = range(len(source))
        compare_exactly(found.batch(indexes), paired(output, **options).batch(indexes))
    with pytest.raises(UsageError, match="image"):
        recordgen.source(str(tmp_path / "text_sentiment.tfrecord")).pairs()
    with pytest.raises(UsageError, match=r"dataset\.json"):
        recordgen.source(str(tmp_path / "text_sentiment.tfrecord")).pairs(task="tabular")


def compare_exactly(found, expected):
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("names", [("text", "class/label"), ("text", "label"), ("says", "is")])
def test_examples_from_python_are_texts_if_task_says_so(names, tmp_path):
    """Their features have the names that other tools' records may have, or those of columns."""
    data = [dict(zip(names, each, strict=True)) for each in (("Gut.", 1), ("Schlecht.", 0))]
    recordgen.write(data, tmp_path / "out")
    columns = "text=says,label=is" if "says" in names else ""
    pairs = recordgen.source(tmp_path / "out").pairs(task="text_classification", columns=columns)
    assert sorted((text, int(label)) for text, label in pairs) == [("Gut.", 1), ("Schlecht.", 0)]
    recordgen.write([{"text": "Gut.", "label": "good"}], tmp_path / "unnumbered")
    source = recordgen.source(tmp_path / "unnumbered")
    assert [*source.pairs(task="text_classification")] == ["Gut."]


def test_another_task_than_the_dataset_has_is_an_error(sample):
    """The error names the dataset's task and what can be read."""
    source = recordgen.source(sample("text_sentiment"))
    assert isinstance(source.pairs(task="text_sentiment"), Pairs)
    with pytest.raises(UsageError, match="'text_sentiment'"):
        source.pairs(task="text_entities")
    with pytest.raises(UsageError, match=re.escape(repr(source))):
        source.images(8)


def test_pairs_are_a_sequence(sample):
    """They are indexed, sliced, pickled and batched by threads as a source is."""
    pairs = paired(sample("text_entities"))
    again = pickle.loads(pickle.dumps(pairs))
    assert len(pickle.dumps(pairs)) < 700
    assert repr(again) == repr(pairs)
    compare_exactly(again[1:4], [pairs[1], pairs[2], pairs[3]])
    for number, batch in enumerate(again.batches(3, threads=2, seed=None)):
        compare_exactly(batch, pairs.collate(pairs[3 * number : 3 * number + 3]))


def test_tokens_without_tags(tmp_path):
    """Lists of different lengths are an error that names the record."""
    recordgen.write([{"tokens": ["a", "b"], "tags/label": [0]}], tmp_path / "out")
    with pytest.raises(RecordError, match="record 0: tags/label"):
        recordgen.source(tmp_path / "out").pairs(task="text_entities")[0]


@pytest.mark.slow
def test_a_type_checker_knows_items(tmp_path):
    """None of them is Any, which would be an int, too; what a function makes of them is known."""
    pytest.importorskip("mypy")
    opened = "import recordgen; source = recordgen.source('out'); images = source.images(8)"
    items = "source[0], images[0], images[:1], source.pairs()[0], images.map(len)[0]"
    program = tmp_path / "a.py"
    program.write_text(f"{opened}; numbers: list[int] = [{items}]")
    done = run_python("-m", "mypy", str(program), cwd=COMPONENTS.parent)
    assert [f"List item {n}" in done.stdout for n in range(5)] == [True] * 4 + [False]


def test_pairs_need_neither_tensorflow_nor_arrow(sample):
    """Pairs of every task are read without them."""
    outputs = [str(sample(name)) for name in TASKS]
    code = (
        "import sys; from recordgen import source\n"
        f"for out in {outputs}: len(source(out).pairs()[0])\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    assert not {"tensorflow", "pyarrow", "apache_beam", "fsspec", "torch"} & {*done.stdout.split()}
