"""Images and text files of other tools' datasets."""

import numpy as np
import pytest
from PIL import Image

from tests.formats.sources import Outcome, write_files


@pytest.fixture
def make_pictures(tmp_path):
    """Return a function that writes images, each with its own pixels, below ``in``."""
    rng = np.random.default_rng(0)

    def make(*names, size=(40, 20)):
        for name in names:
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
            Image.fromarray(pixels).save(path)

    return make


@pytest.fixture
def outcome(tmp_path, make_pictures):
    """Return a function that writes files and images below ``in``, and reads the folder."""

    def read(files, *images, document="", **options):
        make_pictures(*images)
        root = write_files(tmp_path / "in", files)
        return Outcome(f"{root}/{document}", **options)

    return read


@pytest.fixture
def folder(tmp_path):
    """Return a folder in which ``in`` is an empty folder."""
    (tmp_path / "in").mkdir()
    return tmp_path
