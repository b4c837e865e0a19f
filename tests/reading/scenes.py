"""Datasets of scenes: rectangles of pure colours on black, so that pixels show where boxes are."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from PIL import Image

from recordgen import features
from recordgen.core.dataset.counts import ImageStats, Shard, Split
from recordgen.core.dataset.manifest import write_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from tests.conftest import encoded
from tests.datasets import dataset_of

#: The classes, in the order of the channels that show them.
COLOURS = ("red", "green", "blue")


@dataclass(frozen=True)
class Scene:
    """An image of any size with rectangles: by channel (top, left, bottom, right) in pixels."""

    number: int
    size: tuple[int, int]
    rectangles: dict[int, tuple[int, int, int, int]]
    kind: str = "PNG"

    @classmethod
    def drawn(cls, number, size, kind="PNG", colours=(0, 1, 2)):
        """Return a scene whose rectangles have separate columns and random heights."""
        random = np.random.default_rng(number)
        height, width = size
        column = width // 3
        places = random.permutation(3)
        found = {}
        for channel in colours:
            left = int(places[channel]) * column + int(random.integers(0, column // 4 + 1))
            right = left + int(random.integers(column // 2, column * 3 // 4 + 1))
            top = int(random.integers(0, height // 2))
            bottom = top + int(random.integers(height // 3, height // 2 + 1))
            found[channel] = (top, left, bottom, right)
        return cls(number, size, found, kind)

    @property
    def pixels(self):
        image = np.zeros((*self.size, 3), np.uint8)
        for channel, (top, left, bottom, right) in self.rectangles.items():
            image[top:bottom, left:right, channel] = 255
        return image

    @property
    def features(self):
        """The features of the scene's example."""
        height, width = self.size
        more = {"quality": 100, "subsampling": 0} if self.kind == "JPEG" else {}
        found = {
            features.IMAGE_ENCODED: encoded(Image.fromarray(self.pixels), self.kind, **more),
            features.IMAGE_FORMAT: self.kind.lower().encode(),
            features.IMAGE_HEIGHT: height,
            features.IMAGE_WIDTH: width,
            features.IMAGE_SOURCE_ID: f"scene {self.number}".encode(),
            features.IMAGE_SHA256: b"0" * 64,
        }
        if not self.rectangles:
            return found
        tops, lefts, bottoms, rights = zip(*self.rectangles.values(), strict=True)
        return {
            **found,
            features.IMAGE_OBJECT_YMIN: [top / height for top in tops],
            features.IMAGE_OBJECT_XMIN: [left / width for left in lefts],
            features.IMAGE_OBJECT_YMAX: [bottom / height for bottom in bottoms],
            features.IMAGE_OBJECT_XMAX: [right / width for right in rights],
            features.IMAGE_OBJECT_LABEL: list(self.rectangles),
            features.IMAGE_OBJECT_TEXT: [COLOURS[n].encode() for n in self.rectangles],
        }


def write_split(root, examples, *, split="train", shards=1, labels=COLOURS, images=None, **more):
    """Write examples (dicts of features) as a dataset of one split; return its folder."""
    os.makedirs(f"{root}/Split-{split}", exist_ok=True)
    found = []
    for index in range(shards):
        file = f"Split-{split}/data_tfrecord-{index:05d}-of-{shards:05d}"
        mine = examples[index::shards]
        with open(f"{root}/{file}", "wb") as out, RECORDS.writer(out, "none") as writer:
            writer.write(RECORDS.frame(serialize_example(item)) for item in mine)
        found.append(Shard(file, len(mine), writer.bytes, ""))
    counts = more.pop("counts", dict.fromkeys(labels, len(examples)))
    unlabelled = more.pop("unlabelled", 0)
    size = sum(shard.bytes for shard in found)
    written = Split(len(examples), size, counts, tuple(found), images, unlabelled)
    values = {"task": "object_detection", "options": {"check": "decode"}, **more}
    write_dataset(str(root), dataset_of(labels=tuple(labels), splits={split: written}, **values))
    return str(root)


def write_scenes(root, scenes, *, knows_images=False, **more):
    """Write scenes as a dataset, with or without statistics of the images."""
    kinds = [((scene.kind.lower(), *scene.size), 1) for scene in scenes]
    images = ImageStats.merge([ImageStats.of({kind: count}) for kind, count in kinds])
    examples = [scene.features for scene in scenes]
    return write_split(root, examples, images=images if knows_images else None, **more)


def shown(image, channel):
    """Return the box of a colour in an image (float [height, width, 3] in [0, 1]), or None.

    Left, top, right and bottom in pixels; a row or column counts if half of it has the colour.
    """
    is_there = np.asarray(image)[..., channel] >= 0.5
    if not is_there.any():
        return None
    columns, rows = np.flatnonzero(is_there.any(0)), np.flatnonzero(is_there.any(1))
    return columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
