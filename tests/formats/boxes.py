"""The boxes and masks of a dataset, read back from its records."""

import io

import numpy as np
from PIL import Image

from tests.conftest import stored_examples

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def examples_of(output):
    """Return for each image its split and the features of its example."""
    return {
        values["image/source_id"][0].decode(): (split, values)
        for split, values in stored_examples(output)
    }


def boxes_of(output):
    """Return for each image its split and its boxes: label, number, and rounded corners."""
    found = {}
    for uri, (split, example) in examples_of(output).items():
        corners = zip(
            *(example.get(f"image/object/bbox/{side}", ()) for side in CORNERS), strict=True
        )
        boxes = zip(
            [text.decode() for text in example.get("image/object/class/text", ())],
            example.get("image/object/class/label", ()),
            [[round(value, 4) for value in each] for each in corners],
            strict=True,
        )
        found[uri] = split, list(boxes)
    return found


def masks_of(output):
    """Return for each image its split, the name of its mask, and its pixels."""
    found = {}
    for uri, (split, example) in examples_of(output).items():
        [name] = example.get("image/segmentation/class/source_id", [b""])
        mask = Image.open(io.BytesIO(example["image/segmentation/class/encoded"][0]))
        found[uri] = split, name.decode(), np.asarray(mask)
    return found
