"""Boxes and segments of videos that are worth a look."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordgen
from tests.conftest import encoded, noise

BOXES = """TRAIN,a.png,dog,0.1,0.1,,,0.5,0.5,,
TRAIN,a.png,dog,0.1,0.1,,,0.51,0.5,,
TRAIN,a.png,cat,0.1,0.1,,,0.5,0.5,,
TRAIN,b.png,dog,0.2,0.2,,,0.205,0.21,,
TRAIN,b.png,dog,0.7,0.2,,,0.705,0.21,,
TRAIN,c.png,dog,0,0,,,1,1,,
TRAIN,d.png,dog,0.1,0.1,,,0.3,0.4,,
"""

VIDEOS = """TRAIN,a.mp4,run,0,10
TRAIN,a.mp4,walk,10,20
TRAIN,a.mp4,jump,15,30
TRAIN,a.mp4,sit,15,30
TRAIN,a.mp4,walk,25,28
TRAIN,b.mp4,run,0,10
TRAIN,b.mp4,run,5,15
"""


def findings(source: Path, **options: object) -> list[tuple[str, int, str]]:
    lint = recordgen.check(source, **options).lint  # type: ignore[arg-type]
    assert lint is not None
    return [(item.code, item.line, item.message) for item in lint.findings() if item.source]


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    for seed, name in enumerate("abcd"):
        (tmp_path / f"{name}.png").write_bytes(encoded(noise(60, 40, seed), "PNG"))
    (tmp_path / "boxes.csv").write_text(BOXES)
    return tmp_path / "boxes.csv"


def test_boxes(boxes: Path) -> None:
    """Each image is named once for a code, with its first odd box."""
    assert findings(boxes) == [
        (
            "TINY_BOX",
            4,
            "the box 0.2,0.2,0.205,0.21 of 'dog' covers 0.005 % of the image, and 1 more",
        ),
        ("WHOLE_IMAGE_BOX", 6, "the box 0,0,1,1 of 'dog' covers 100 % of the image"),
        (
            "DOUBLE_BOX",
            1,
            "the box 0.1,0.1,0.51,0.5 of 'dog' is nearly the same as another one of its label",
        ),
    ]


def test_counts_of_boxes(boxes: Path) -> None:
    """Many boxes in an image and few sizes of a class have thresholds, too."""
    source = boxes.with_name("one_size.csv")
    rows = "".join(f"TRAIN,c.png,cat,0.{n},0.1,,,0.{n}5,0.2,,\n" for n in range(1, 7))
    source.write_text(BOXES.replace("TRAIN,a.png,cat,0.1,0.1,,,0.5,0.5,,\n", "") + rows)
    found = findings(
        source, threshold="MANY_BOXES=6,ONE_BOX_SIZE=6", select="MANY_BOXES,ONE_BOX_SIZE"
    )
    assert found == [
        ("MANY_BOXES", 5, "the image has 7 boxes"),
        (
            "ONE_BOX_SIZE",
            5,
            "all 6 boxes of 'cat' have the size of this one, 0.05×0.1 of the image",
        ),
    ]


def test_segments(tmp_path: Path) -> None:
    """Segments that overlap contradict each other, but not those with the same times or label."""
    source = tmp_path / "videos.csv"
    source.write_text(VIDEOS)
    walk = f"overlaps 10 to 20 s, 'walk', in {source}:2 (a.mp4, split train)"
    jump = f"overlaps 15 to 30 s, 'jump', in {source}:3 (a.mp4, split train)"
    assert findings(source, task="video_classification") == [
        ("OVERLAP", 3, walk),
        ("OVERLAP", 5, jump),
    ]
