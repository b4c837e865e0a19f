"""Whole trainings: the examples, Keras with two backends, and the documentation's page."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

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

# PyPI's torchvision for Linux is for CUDA: its operators (_C.so) are linked to libtorch_cuda.so,
# which the CPU build of PyTorch lacks, so its import fails ("operator torchvision::nms does not
# exist"). Only then, these stand in: detectors need no other operators to learn on a CPU.
OPERATORS = """
import torch
try:
    import torchvision
except RuntimeError:
    import sys
    def nms(boxes, scores, most):
        from torchvision.ops import box_iou
        left, kept = scores.argsort(descending=True), []
        while len(left):
            kept.append(left[:1])
            left = left[1:][box_iou(boxes[left[:1]], boxes[left[1:]])[0] <= most]
        return torch.cat(kept) if kept else left
    for name in ("nms", "qnms"):
        kinds = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        torch.library.define(f"torchvision::{name}", kinds)
    torch.library.impl("torchvision::nms", "cpu", nms)
    for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torchvision
    torchvision.extension._has_ops = lambda: True
"""

DETECTOR = """
import sys, torch, torchvision, recordgen
from torch.utils.data import DataLoader, default_convert
images = recordgen.source(sys.argv[1]).images(
    64, layout="CHW", dtype=torch.float32, boxes="xyxy", fields=["masks"])
model = getattr(torchvision.models.detection, sys.argv[2])(
    weights=None, weights_backbone=None, num_classes=1 + len(images.class_names), min_size=64,
    max_size=64, rpn_pre_nms_top_n_train=32, rpn_post_nms_top_n_train=16)
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for items in DataLoader(images, 4, sampler=[*range(len(images))] * 4, collate_fn=default_convert):
    pixels, targets = zip(*items)
    targets = [{**target, "labels": 1 + target["labels"]} for target in targets]
    optimizer.zero_grad()
    (loss := sum(model(pixels, targets).values())).backward()
    optimizer.step()
    print(f"loss {loss:.4f}")
"""


def run(*command, **variables):
    """Run Python to a good end, without a traceback; return its output."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "components"), **variables}
    how = {"env": env, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, *command], **how)
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
    """``model.fit`` takes a DataLoader, or batches of NumPy arrays, which JAX takes, too."""
    assert accuracy("-c", KERAS, photos, KERAS_BACKEND=backend) > 0.85


def test_a_u_net(tmp_path):
    """Images and masks become tensors of one batch, and a U-Net learns the masks."""
    recordgen.convert(f"{ROOT}/examples/image_segmentation/shapes.csv", tmp_path / "out")
    assert accuracy("-c", UNET, str(tmp_path / "out")) > 0.85


@pytest.mark.parametrize("name", ["fasterrcnn_mobilenet_v3_large_320_fpn", "maskrcnn_resnet50_fpn"])
def test_detectors_of_torchvision(tmp_path, name):
    """Boxes, labels and masks are the targets that they take, and their loss falls."""
    categories = [{"id": number, "name": name} for number, name in enumerate(("red", "green"))]
    images, annotations = [], []
    for number in range(8):
        pixels = np.zeros((64, 64, 3), np.uint8)
        for kind in range(number % 3):  # some images have no object
            x, y = 5 + 25 * kind, 3 * number
            pixels[y : y + 20, x : x + 20, kind] = 250
            corners = [x, y, x + 20, y, x + 20, y + 20, x, y + 20]
            annotations.append({"id": len(annotations), "image_id": number, "category_id": kind})
            annotations[-1] |= {"bbox": [x, y, 20, 20], "segmentation": [corners]}
        images.append({"id": number, "file_name": f"{number}.png", "width": 64, "height": 64})
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    document = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "instances_train.json").write_text(json.dumps(document))
    recordgen.convert(tmp_path, tmp_path / "out", lint="-ALL", split="1")
    # Dynamo would compile what stands in for operators, which takes a minute.
    alone = {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    said = run("-c", OPERATORS + DETECTOR, str(tmp_path / "out"), name, **alone)
    losses = [float(each) for each in re.findall(r"loss (\S+)", said)]
    assert len(losses) == 8
    assert sum(losses[6:]) < sum(losses[:2])


def test_the_page(photos, tmp_path, monkeypatch):
    """All blocks are one program; other environments skip some of them."""
    (tmp_path / "out").symlink_to(photos)
    reviews = ROOT / "examples/text_classification/reviews.csv"
    recordgen.convert(str(reviews), tmp_path / "reviews")
    monkeypatch.chdir(tmp_path)
    page = [each.text for each in blocks("docs/pytorch-and-jax.md") if each.language == "python"]
    assert len(page) > 7
    page.append("import sys; print('tensorflow' in sys.modules)")
    assert run("-c", "\n".join(page)) == "False\n"
