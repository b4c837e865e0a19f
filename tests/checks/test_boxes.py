"""Checks of boxes."""

import pytest
from PIL import Image

import recordgen
from recordgen.errors import LintError
from tests.checks.facts import findings
from tests.conftest import write_noise

BOXES = """TRAIN,a.png,dog,0.1,0.1,,,0.5,0.5,,
TRAIN,a.png,dog,0.1,0.1,,,0.51,0.5,,
TRAIN,a.png,cat,0.1,0.1,,,0.5,0.5,,
TRAIN,b.png,dog,0.2,0.2,,,0.205,0.21,,
TRAIN,b.png,dog,0.7,0.2,,,0.705,0.21,,
TRAIN,c.png,dog,0,0,,,1,1,,
TRAIN,d.png,dog,0.1,0.1,,,0.3,0.4,,
"""


def about_rows(source, **options):
    found = findings(source, **options)
    return [(item.code, item.line, item.message) for item in found if item.source]


@pytest.fixture
def boxes(tmp_path):
    write_noise(tmp_path, "abcd", 60, 40)
    (tmp_path / "boxes.csv").write_text(BOXES)
    return tmp_path / "boxes.csv"


def test_boxes(boxes):
    """Each image has one finding per code, with its first odd box."""
    found = about_rows(boxes, lint="ALL")
    assert [(code, line, message.split()[2]) for code, line, message in found] == [
        ("TINY_BOX", 4, "0.2,0.2,0.205,0.21"),
        ("WHOLE_IMAGE_BOX", 6, "0,0,1,1"),
        ("DOUBLE_BOX", 1, "0.1,0.1,0.51,0.5"),
    ]


BAD = """TRAIN,a.png,dog,0.5,0.1,,,0.1,0.5,,,60,40
TRAIN,b.png,dog,-0.1,0.1,,,0.3,1.2,,
TRAIN,c.png,dog,0.2,0.2,,,0.2,0.4,,
TRAIN,d.png,dog,0.1,0.1,,,0.3,0.4,,
"""


@pytest.mark.parametrize(("bad_boxes", "stored"), [("clip", 3), ("drop", 1)])
def test_a_box_that_is_changed_or_dropped_is_a_finding(boxes, bad_boxes, stored):
    """Swapped, clipped and empty boxes have one code, whatever happens to them."""
    boxes.write_text(BAD)
    result = recordgen.check(boxes, lint="BAD_BOX", bad_boxes=bad_boxes)
    assert result.lint.counts == {"BAD_BOX": 3}
    assert [item.line for item in result.lint.findings()] == [1, 2, 3]
    assert sum(result.dataset.splits["train"].labels.values()) == stored
    with pytest.raises(LintError):
        recordgen.convert(boxes, boxes.parent / "out", fail_on="BAD_BOX", bad_boxes=bad_boxes)


ONE, OTHER = "cat,.1,.1,,,.5,.5", "cat,.6,.6,,,.8,.8"

# boxes of an image and of its copy, with a label each; whether they contradict
COPIES = [
    ([ONE, OTHER], [OTHER, "cat,.101,.1,,,.5,.499"], False),
    ([ONE], ["cat,.1,.1,,,.5,.52"], False),  # intersection over union: 0.95
    (["cat,.1,.1,,,.11,.11"], ["cat,.104,.1,,,.114,.11"], False),  # small, moved by a pixel
    ([ONE], ["cat,.15,.1,,,.55,.5"], True),
    ([ONE], ["dog,.1,.1,,,.5,.5"], True),
    ([ONE], [ONE, OTHER], True),
    ([ONE, "cat,.1,.1,,,.501,.5"], [ONE, OTHER], True),
]


@pytest.mark.parametrize(("boxes", "others", "is_conflict"), COPIES)
def test_boxes_that_nearly_coincide_do_not_conflict(boxes, others, is_conflict, tmp_path):
    """Two people never draw the same box to the last digit; another box or label contradicts."""
    rows = [("a", boxes), ("b", others)]
    for name, _ in rows:
        Image.new("RGB", (32, 32), (9, 90, 9)).save(tmp_path / f"{name}.png")
    lines = [f"TRAIN,{name}.png,{box},,\n" for name, found in rows for box in found]
    (tmp_path / "a.csv").write_text("".join(lines))
    found = about_rows(tmp_path / "a.csv", lint="CONFLICT")
    assert [code for code, *_ in found] == ["CONFLICT"] * is_conflict
