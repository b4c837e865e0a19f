"""Images for documents of other tools."""

import numpy as np
import pytest
from PIL import Image


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
