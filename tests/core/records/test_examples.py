"""The programs and samples in examples/."""

from pathlib import Path

import pytest

from pipelines.samples.digits import write_digits
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
