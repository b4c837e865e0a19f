"""Whole trainings: the examples, Keras with two backends, and the documentation's page."""

import os
import re
import subprocess
import sys

import pytest

import recordgen
from tests.pages import ROOT, blocks

KERAS = """
import sys, keras, numpy as np, recordgen
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((24, 24, 3)), keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(8, 5, strides=3, activation="relu"), keras.layers.Flatten(),
    keras.layers.Dense(2, "softmax")])
model.compile(keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", metrics=["accuracy"])
train = recordgen.source(sys.argv[1], "train").images(24)
evaluation = recordgen.source(sys.argv[1], "eval").images(24)
if keras.backend.backend() == "torch":
    from torch.utils.data import DataLoader
    model.fit(DataLoader(train, 16, shuffle=True), epochs=5, verbose=0)
else:
    for epoch in range(5):
        model.fit(train.batches(16, seed=epoch), verbose=0)
assert "tensorflow" not in sys.modules
right = [
    model.predict(pixels, verbose=0).argmax(1) == labels
    for pixels, labels in evaluation.batches(8)
]
print(f"accuracy {np.concatenate(right).mean():.4f}")
"""

UNET = """
import sys, torch, recordgen
from torch import nn
torch.manual_seed(0)
images = recordgen.source(sys.argv[1], "train").images(32, layout="CHW", dtype=torch.float32)
first, second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 4, 2, 1)
up, last = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, len(images.class_names), 1)
model = nn.ModuleList([first, second, up, last])
def scores(pixels):
    fine = first(pixels).relu()
    return last(torch.cat([fine, up(second(fine).relu()).relu()], 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for pixels, masks in torch.utils.data.DataLoader(images, 4, sampler=[*range(len(images))] * 10):
    optimizer.zero_grad()
    nn.functional.cross_entropy(scores(pixels), masks.long(), ignore_index=255).backward()
    optimizer.step()
right = (scores(pixels).argmax(1) == masks)[masks < 255]
print(f"accuracy {right.float().mean():.4f}")
"""


def run(*command, **variables):
    """Run Python to a good end, without a traceback; return its output."""
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "components"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


def accuracy(*command, **variables):
    return float(re.findall(r"accuracy (\S+)", run(*command, **variables))[-1])


@pytest.mark.parametrize("example", ["torch_source.py", "grain_source.py", "flax_source.py"])
def test_examples(photos, example):
    """The program learns to distinguish the flowers."""
    assert accuracy(str(ROOT / "examples" / example), photos) > 0.85


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras(photos, backend):
    """``model.fit`` takes a DataLoader, or batches of NumPy arrays."""
    assert accuracy("-c", KERAS, photos, KERAS_BACKEND=backend) > 0.85


def test_a_u_net(tmp_path):
    """Images and masks become tensors of one batch, and a U-Net learns the masks."""
    recordgen.convert(f"{ROOT}/examples/image_segmentation/shapes.csv", tmp_path / "out")
    assert accuracy("-c", UNET, str(tmp_path / "out")) > 0.85


def test_the_page(photos, tmp_path, monkeypatch):
    """All blocks are one program; other environments skip some of them."""
    (tmp_path / "out").symlink_to(photos)
    reviews = ROOT / "examples/text_classification/reviews.csv"
    recordgen.convert(str(reviews), tmp_path / "reviews")
    monkeypatch.chdir(tmp_path)
    page = [each.text for each in blocks("docs/pytorch-and-jax.md") if each.language == "python"]
    assert len(page) > 7
    assert (
        run("-c", "\n".join((*page, "import sys; print('tensorflow' in sys.modules)"))) == "False\n"
    )
