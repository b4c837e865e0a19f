"""Boxes of a detection dataset, as they are handed out with their images."""

from __future__ import annotations

import numpy as np
import pytest

from recordgen import eval_dataset
from tests.reading.scenes import Scene, shown, write_scenes

SIZE = (40, 60)
STILL = dict(brightness=0, contrast=0, saturation=0)
KINDS = ("PNG", "JPEG")

# Of images: the target's own, smaller, odd, and such that JPEGs are decoded at 1/2, 1/4 and 1/8.
SIZES = [(40, 60), (31, 47), (90, 61), (97, 131), (101, 301), (323, 243), (170, 260), (403, 621)]


@pytest.fixture(scope="module")
def scenes():
    return [
        Scene.drawn(number, SIZES[number % len(SIZES)], KINDS[number // len(SIZES) % 2])
        for number in range(32)
    ]


@pytest.fixture(scope="module", params=["decode", "header"])
def mixed(request, scenes, tmp_path_factory):
    """Scenes of many sizes and two formats; checked at conversion, or not."""
    root = tmp_path_factory.mktemp("mixed")
    return write_scenes(root, scenes, options={"check": request.param})


def misses(dataset):
    """Return by how many pixels the edges of the boxes miss those of the colours (float [n])."""
    found = []
    for images, boxes in dataset:
        for image, corners, labels, count in zip(
            images.numpy(),
            *(boxes[key].numpy() for key in ("boxes", "labels", "count")),
            strict=True,
        ):
            by_colour = dict(zip(labels[:count], corners[:count], strict=True))
            for channel in range(3):
                place, box = shown(image, channel), by_colour.get(channel)
                if place is not None and box is not None:
                    found.extend(np.abs(np.array(place) - box))
                elif place is not None:
                    found.append(np.inf)
                elif box is not None:
                    # What is narrower may not make a pixel half of its colour.
                    found.append(min(box[2] - box[0], box[3] - box[1]))
    return np.array(found)


def check(dataset):
    found = misses(dataset)
    assert len(found) > 40
    assert found.max() <= 1.1
    # Half a pixel at most is lost because pixels are counted, a quarter in the mean.
    assert found.mean() < 0.35


OPTIONS = dict(batch_size=8, image_size=SIZE, split="train", box_format="xyxy", min_visible=0)


@pytest.mark.parametrize("decoder", ["fast", "exact"])
@pytest.mark.parametrize("resize", ["stretch", "fit", "center_crop", "random_crop"])
def test_boxes_lie_where_the_colours_are(mixed, resize, decoder):
    """Whatever becomes of an image, each box encloses its colour in what is returned."""
    check(eval_dataset(mixed, resize=resize, decoder=decoder, seed=3, **OPTIONS))
