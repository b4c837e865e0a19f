"""The programs and samples in examples/."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.samples.digits import write_digit_groups, write_digits
from recordgen import convert
from tests.preloaded import WITH_TENSORFLOW

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The folder of the README's quick start, with fewer digits."""
    folder = tmp_path_factory.mktemp("digits")
    out = str(folder / "out")
    convert(write_digits(str(folder), 450), out)
    return out


def code_lines(text):
    """Return the lines that are neither blank nor only a comment."""
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def accuracy(stdout):
    return float(stdout.strip().splitlines()[-1].split()[-1])


@pytest.mark.slow
def test_train_from_folder(digits):
    """The program learns the digits from the folder given as its argument."""
    done = WITH_TENSORFLOW.run(str(EXAMPLES / "train_from_folder.py"), digits)
    assert done.returncode == 0, done.stderr
    assert accuracy(done.stdout) > 0.6, done.stdout


def test_train_from_folder_is_short():
    """Data, model, training and evaluation in under 20 lines, imports included."""
    assert len(code_lines((EXAMPLES / "train_from_folder.py").read_text(encoding="utf-8"))) < 20


def test_sample_of_several_labels(tmp_path):
    """The sample equals the output of its command, and converts with its task detected."""
    sample = EXAMPLES / "image_multi_label"
    made = Path(write_digit_groups(str(tmp_path / "data"), 12))
    assert (sample / made.name).read_text() == made.read_text()
    for path in made.parent.glob("images/*"):
        with Image.open(path) as expected, Image.open(sample / "images" / path.name) as found:
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert len(list((sample / "images").iterdir())) == 12
    result = convert(str(sample / made.name), str(tmp_path / "out"))
    assert (result.dataset.task, result.dataset.examples) == ("image_multi_label", 12)
