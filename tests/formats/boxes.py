"""The boxes of a dataset, read back from its records."""

import json

import recordgen
from tests.conftest import stored_examples

Boxes = dict[str, tuple[str, list[tuple[str, int, list[float]]]]]


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


CORNERS = ("xmin", "ymin", "xmax", "ymax")


class Outcome:
    """What became of the images of a folder.

    Attributes:
        images: for each image in the dataset its boxes, label and corners, or its labels.
        splits: the split of each image.
        rejects: the code of each image that was rejected.
        adjusted: how often which change was made.
        skipped: the messages about what was skipped.
        classes: the classes in the order of their numbers.
        task: the task of the dataset.
    """

    def __init__(self, source, output):
        result = recordgen.convert(str(source), output, max_reject_fraction=1)
        dataset = result.dataset
        self.task, self.classes = dataset.task, dataset.labels
        self.adjusted = dict(dataset.rows.adjusted)
        self.rejects = {item.uri: item.code for item in result.rejects}
        self.images = labels_of(output)
        self.splits = {uri: split for uri, (split, _) in boxes_of(output).items()}
        lint = (output / "lint.jsonl").read_text().splitlines()
        found = map(json.loads, lint)
        self.skipped = [item["message"] for item in found if item["code"] == "SKIPPED"]


def labels_of(output):
    """Return the labels of each image, with their corners if they have any."""
    boxes = {
        uri: [(label, corners) for label, _, corners in each]
        for uri, (_, each) in boxes_of(output).items()
    }
    if any(boxes.values()):
        return boxes
    return {
        example["image/source_id"][0].decode(): [
            text.decode() for text in example.get("image/class/text", ())
        ]
        for _, example in stored_examples(output)
    }
