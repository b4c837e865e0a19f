"""What the documentation shows: examples run, code compiles, tables name the options there are."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipelines.digits import write_digit_groups, write_digits
from recordgen import convert, train_dataset
from recordgen.reading.options import Augmentation, ReadOptions, RecordOptions
from tests.conftest import run_python

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
READING = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
# One row of a table, and its first cell if that is a name in code.
ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.MULTILINE)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The folder that `recordgen convert` of the README's quick start makes, of fewer digits."""
    folder = tmp_path_factory.mktemp("digits")
    out = str(folder / "out")
    convert(write_digits(str(folder), 900), out)
    return out


def code_lines(text):
    """Return the lines that are code: neither blank nor only a comment."""
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def accuracy(stdout):
    return float(stdout.strip().splitlines()[-1].split()[-1])


@pytest.mark.slow
def test_train_from_folder(digits):
    """It learns the digits from the folder that is its argument."""
    done = run_python(str(EXAMPLES / "train_from_folder.py"), digits)
    assert done.returncode == 0, done.stderr
    assert accuracy(done.stdout) > 0.85, done.stdout


def test_train_from_folder_is_short():
    """Data, model, training and evaluation in under 20 lines, imports included."""
    assert len(code_lines((EXAMPLES / "train_from_folder.py").read_text(encoding="utf-8"))) < 20


@pytest.mark.slow
def test_torch_loop(digits):
    """It learns, too, and PyTorch sees the memory that TensorFlow has filled."""
    pytest.importorskip("torch")
    done = run_python(str(EXAMPLES / "torch_loop.py"), digits)
    assert done.returncode == 0, done.stderr
    assert "zero-copy  yes" in done.stdout
    assert accuracy(done.stdout) > 0.85, done.stdout


def test_sample_of_several_labels(tmp_path):
    """It is what its command writes, and converts as it is, its task found out."""
    sample = EXAMPLES / "image_multi_label"
    made = Path(write_digit_groups(str(tmp_path / "data"), 12))
    assert (sample / made.name).read_text() == made.read_text()
    for path in made.parent.glob("images/*"):
        with Image.open(path) as expected, Image.open(sample / "images" / path.name) as found:
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert len(list((sample / "images").iterdir())) == 12
    result = convert(str(sample / made.name), str(tmp_path / "out"))
    assert (result.dataset.task, result.dataset.examples) == ("image_multi_label", 12)


class DLPack:
    """A TensorFlow tensor as any library sees it that takes tensors through DLPack."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **_):
        return tf.experimental.dlpack.to_dlpack(self._tensor)

    def __dlpack_device__(self):
        return 1, 0  # the CPU's memory


def test_batches_are_handed_on_without_a_copy(digits):
    """What PyTorch and JAX are given is the memory that TensorFlow has filled."""
    dataset = train_dataset(digits, epochs=1, batch_size=8, image_size=(16, 16))
    for tensor in next(iter(dataset)):
        handed_on = np.from_dlpack(DLPack(tensor))
        assert handed_on.ctypes.data == np.asarray(memoryview(tensor)).ctypes.data
        np.testing.assert_array_equal(handed_on, tensor.numpy())


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_torch_loop_without_torch():
    """Where PyTorch is missing, the message says how to get it, and there is no traceback."""
    done = run_python(str(EXAMPLES / "torch_loop.py"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("pip install torch")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/reading.md"])
def test_code_of_the_documents_compiles(document):
    """Every Python block is Python."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, document, "exec")


def tables(head):
    """Return name → the other cells, of all rows below a ``head`` as their first cell."""
    found = {}
    for table in re.findall(rf"^\| {head} \|.*\n(?:\|.*\n)+", READING, re.MULTILINE):
        for name, rest in ROW.findall(table):
            assert name not in found, name
            found[name] = [cell.strip() for cell in rest.split(" | ")]
    return found


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        # first cell of the tables, what they describe
        ("option", ReadOptions),
        ("change", Augmentation),
    ],
)
def test_tables_name_every_field_with_its_default(head, kind):
    """No field is missing, none is invented; where one default holds for all, it is the field's."""
    rows = tables(head)
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    assert set(rows) == set(defaults)
    for name, (default, *_) in rows.items():
        if default.count("`") == 2:  # two values: training and evaluation differ
            assert ast.literal_eval(default.strip("`")) == defaults[name], name


def test_tables_mark_what_read_takes():
    """A tick stands where the field is one of every record, not of images alone."""
    ticked = {name for name, cells in tables("option").items() if cells[1] == "✓"}
    assert ticked == {field.name for field in dataclasses.fields(RecordOptions)}
