"""Rows whose boxes moved with a crop or bars: which rows may belong to a record."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordgen.core.records.float32 import as_float32
from recordgen.payloads.resizing import place
from recordgen.tasks.object_detection.annotation import Box, Boxes, ImageSize
from recordgen.tasks.object_detection.box_geometry import seen_through, turned
from tests.settings import conversion

_share = st.floats(0, 1).map(as_float32)
_boxes = st.lists(
    st.tuples(st.sampled_from("ab"), _share, _share, _share, _share)
    .map(lambda box: Box(box[0], *map(min, box[1:3], box[3:]), *map(max, box[1:3], box[3:])))
    .filter(lambda box: box.xmin < box.xmax and box.ymin < box.ymax),
    min_size=1,
    max_size=4,
)
_side = st.integers(1, 300)


@given(
    _boxes,
    st.tuples(_side, _side),
    st.tuples(_side, _side),
    st.integers(1, 8),
    st.sampled_from(("fit", "center_crop")),
)
def test_what_was_stored_is_no_contradiction(boxes, size, target, way, resize):
    made = conversion(task="object_detection", image_size=target, resize=resize)
    placed = place(size, made.payloads)
    stored = [found for box in boxes if (found := seen_through(turned(box, way), placed.view))]
    said = Boxes(tuple(stored), ImageSize(*placed.canvas)).to_json()
    task = made.task
    assert not task.contradicts(json.dumps(boxes), said)
    assert not task.contradicts(json.dumps(boxes[:1]), said)


LOW, MIDDLE = Box("cat", 0.125, 0.25, 0.375, 0.5), Box("dog", 0.375, 0.5, 0.75, 0.75)

# A box instead of LOW in a row; whether a record of LOW and MIDDLE, in bars or cropped, denies it.
OTHERS = [
    (LOW._replace(label="dog"), True, True),
    (LOW._replace(ymax=0.55), True, True),
    (LOW._replace(xmax=0.44), True, True),
    (LOW._replace(xmin=0.0), True, False),  # the crop cut it off
    (LOW._replace(label="dog", xmin=0.0, xmax=0.2), True, False),
    (LOW._replace(ymax=0.505), False, True),  # less than a pixel along the scaled axis
    (LOW._replace(xmax=0.3755), True, False),
]


@pytest.mark.parametrize(("box", "in_bars", "in_crop"), OTHERS, ids=range(len(OTHERS)))
def test_a_record_denies_other_labels_and_places(box, *, in_bars, in_crop):
    for target, resize, denies in (("160x160", "fit", in_bars), ("80x80", "center_crop", in_crop)):
        given = {"task": "object_detection", "image_size": target, "box_orientation": "upright"}
        made = conversion(**{**given, "resize": resize})
        placed = place((160, 80), made.payloads)
        stored = [seen_through(each, placed.view) for each in (LOW, MIDDLE)]
        said = Boxes(tuple(stored), ImageSize(*placed.canvas)).to_json()
        assert made.task.contradicts(json.dumps([box, MIDDLE]), said) is denies
