"""How often the annotation of an image is decoded on its way to an example."""

import inspect
from collections import Counter

import recordgen
from recordgen.tasks.object_detection.annotation import Boxes


def test_boxes_are_decoded_once_where_their_example_is_made(make_images, make_csv, tmp_path):
    """Rows of one image are decoded to be merged.

    The plan and the fingerprint need only labels; checks and the page need only boxes.
    """
    images = make_images(6)
    rows = [
        f"TRAIN,{path},{label},0.{number + 1},0.1,,,0.9,0.9,,"
        for number, path in enumerate(images)
        for label in (("cat", "dog") if number < 2 else ("cat",))
    ]
    source, count = make_csv(rows), len(images)
    assert decoded(lambda: recordgen.convert(source, tmp_path / "out")) == {
        "merge": 4,
        "described": count,
    }


def decoded(run):
    """Return how often ``run`` decodes an annotation, by the function that asks the task for it."""
    found = Counter()
    decode = Boxes.from_json.__func__

    def counting(cls, annotation):
        frame = inspect.currentframe().f_back
        while frame.f_code.co_name in ("boxes", "labels", "<listcomp>", "<genexpr>"):
            frame = frame.f_back
        found[frame.f_code.co_name] += 1
        return decode(cls, annotation)

    Boxes.from_json = classmethod(counting)
    try:
        run()
    finally:
        Boxes.from_json = classmethod(decode)
    return found
