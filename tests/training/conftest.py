import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.conftest import convert_lines, flip_bit

LABELS = ("blue", "green", "red")


@pytest.fixture(scope="session")
def colour_image():
    """An image of one noisy colour, with a size that depends on the seed."""

    def make(label, seed):
        random = np.random.default_rng(seed)
        pixels = random.integers(0, 60, (10 + seed % 7, 12, 3), np.uint8)
        pixels[..., {"red": 0, "green": 1, "blue": 2}[label]] += 180
        return Image.fromarray(pixels)

    return make


@pytest.fixture(scope="session")
def examples(tmp_path_factory, colour_image):
    """60 images of three colours for training, 15 for evaluation."""
    folder = tmp_path_factory.mktemp("colours")
    rows = []
    for number in range(75):
        label = LABELS[number % 3]
        colour_image(label, number).save(folder / f"{number}.png")
        rows.append(f"{'VALIDATION' if number >= 60 else 'TRAIN'},{number}.png,{label}")
    return str(convert_lines(folder, rows))


@pytest.fixture
def damaged_shard(examples, tmp_path):
    """The only shard of train in a copy of the examples, with a flipped bit in a record."""
    [shard] = (shutil.copytree(examples, tmp_path / "damaged") / "Split-train").iterdir()
    flip_bit(shard)
    return shard


@pytest.fixture
def fn_args(examples, tmp_path):
    """The FnArgs of TFX's Trainer, with outputs in a subfolder of the test's folder."""

    def make(name="run", **changes):
        values = {
            "train_files": [f"{examples}/Split-train/*"],
            "eval_files": [f"{examples}/Split-eval/*"],
            "train_steps": None,
            "eval_steps": None,
            "custom_config": {},
            "serving_model_dir": str(tmp_path / name / "model"),
            "model_run_dir": str(tmp_path / name / "logs"),
        }
        return SimpleNamespace(**{**values, **changes})

    return make
