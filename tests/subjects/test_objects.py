"""Boxes in a record: written boxes are read, and records of other writers are understood."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.subjects.details import Details
from recordgen.subjects.objects import StoredBox, features_of, stored_boxes
from recordgen.tasks.object_detection.annotation import Box, Boxes
from recordgen.tasks.object_detection.stored_boxes import box_features

LABELS = ("cat", "dog", "Straße")
SHARE = st.floats(0, 1, width=32)
BOX = st.tuples(st.sampled_from(LABELS), SHARE, SHARE, SHARE, SHARE)


@given(st.lists(BOX, min_size=1, max_size=9))
def test_what_was_written_is_read(boxes):
    """Boxes that a task writes are read in their order, with sorted corners."""
    values = box_features(Boxes(tuple(Box(*box) for box in boxes)), Vocabulary("text", LABELS))
    record = parse_example(b"".join(serialize_example(values)))
    assert stored_boxes(record) == [
        StoredBox(label, LABELS.index(label), min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
        for label, x1, y1, x2, y2 in boxes
    ]


def record_of(*corners, **more):
    """Return a record with the corners xmin, ymin, xmax, ymax, and optionally text and label."""
    names = {"text": features.IMAGE_OBJECT_TEXT, "label": features.IMAGE_OBJECT_LABEL}
    return {
        **dict(zip(features.BBOX, corners, strict=False)),
        **{names[name]: values for name, values in more.items()},
    }


CORNERS = ([0.1], [0.2], [0.3], [0.4])
DETAILS = [Details(area=2.5), Details(frozenset({"is_crowd"}), 9.0)]

# record, its boxes
OTHERS = [
    ({"image/class/text": [b"cat"]}, []),
    (record_of(*CORNERS, label=[7]), [StoredBox("7", 7, 0.1, 0.2, 0.3, 0.4)]),
    (record_of(*CORNERS, text=[b"\xff"]), [StoredBox("\ufffd", -1, 0.1, 0.2, 0.3, 0.4)]),
    (record_of([-2.0], [0.5], [1], [1.5]), [StoredBox("", -1, 0.0, 0.5, 1, 1.0)]),
    (
        record_of(*(2 * corner for corner in CORNERS)) | dict(features_of(DETAILS)),
        [StoredBox("", -1, 0.1, 0.2, 0.3, 0.4, details) for details in DETAILS],
    ),
]


@pytest.mark.parametrize(("record", "boxes"), OTHERS)
def test_records_of_others(record, boxes):
    """Labels may be missing, and boxes are clipped to the image; each has its details."""
    assert stored_boxes(record) == boxes


def test_pixels_come_back():
    """Corners are stored as float32; in pixels they have the decimals of the import file again."""
    corners = (101.5 / 640, 33.25 / 427, 178.8 / 640, 239.5 / 427)
    box = StoredBox("", -1, *map(float, np.float32(corners)))
    assert box.in_pixels(640, 427) == (101.5, 33.25, 77.3, 206.25)


# record, what the message shows
WRONG = [
    (record_of(*CORNERS, label=[1, 2]), "1 image/object/bbox/ymax.*2 image/object/class/label"),
    (record_of(*CORNERS[:3]), "1 image/object/bbox/xmax, 0 image/object/bbox/ymax"),
    (record_of(text=[b"cat"]), "0 image/object/bbox/xmin.*1 image/object/class/text"),
    (record_of([b"0.1"], *CORNERS[1:]), "b'0.1'"),
    (record_of([float("nan")], *CORNERS[1:]), "nan"),
    (record_of(*CORNERS, text=[3]), r"\b3\b"),
    (record_of(*CORNERS, label=[1.5]), r"1\.5"),
]


@pytest.mark.parametrize(("record", "words"), WRONG)
def test_what_is_no_box(record, words):
    """Features that do not fit together are refused; the message shows them."""
    with pytest.raises(ValueError, match=words):
        stored_boxes(record)
