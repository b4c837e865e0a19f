"""The boxes of a dataset, read back from its records."""

from tests.conftest import stored_examples

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def boxes_of(output):
    """Return for each image its split and its boxes: label, number, and rounded corners."""
    found = {}
    for split, example in stored_examples(output):
        uri = example["image/source_id"][0].decode()
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
