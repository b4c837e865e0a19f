"""Roboflow's "YOLO Keras": boxes in pixels on a line for each image, and names beside them."""

import pytest

import recordgen
from recordgen.errors import SourceError
from tests.formats.boxes import Outcome

pytestmark = pytest.mark.once

BOX = [0.1, 0.25, 0.2, 0.5]


def write(folder, *lines, place="train", classes="cat\ndog\n"):
    """Write the documents of one folder."""
    root = folder / "in" / place
    root.mkdir(parents=True, exist_ok=True)
    (root / "_annotations.txt").write_text("\n".join(lines))
    if classes:
        (root / "_classes.txt").write_text(classes)


# the line of a.png, its boxes
READ = [
    ("a.png 4,5,8,10,1", [("dog", BOX)]),
    ("a.png 4,5,8,10,1 4.0,5,8,10,0", [("cat", BOX), ("dog", BOX)]),
    ("./a.png 8,10,4,5,1\r", [("dog", BOX)]),
    ("\ufeffa.png\t4,5,8,10,1", [("dog", BOX)]),
    ("C:\\x\\train\\a.png 4,5,8,10,1", [("dog", BOX)]),
    ("a.png", []),
    ("", None),  # not in the document: not used
]


@pytest.mark.parametrize(("line", "boxes"), READ)
def test_boxes(line, boxes, tmp_path, make_pictures):
    make_pictures("train/a.png", "valid/b.png")
    write(tmp_path, line)
    write(tmp_path, "b.png 4,5,8,10,0", place="valid")
    found = Outcome(tmp_path / "in", tmp_path / "out")
    there = {} if boxes is None else {"train/a.png": boxes}
    assert found.images == {**there, "valid/b.png": [("cat", BOX)]}
    assert found.splits["valid/b.png"] == "eval"
    assert found.classes == ("cat", "dog")


def test_names_with_blanks(tmp_path, make_pictures):
    make_pictures("train/a b.png")
    write(tmp_path, "a b.png 4,5,8,10,1")
    assert Outcome(tmp_path / "in", tmp_path / "out").images == {"train/a b.png": [("dog", BOX)]}


# the end of a line that rejects its image
REJECTED = ["4,5,8,10,2", "4,5,8,10,-1", "4,5,8,10", "4,5,8,x,1", "4,5,8,nan,1", "4,5,8,10,1.5"]


@pytest.mark.parametrize("bad", REJECTED)
def test_a_bad_box_rejects_its_image(bad, tmp_path, make_pictures):
    make_pictures("train/a.png", "train/b.png")
    write(tmp_path, f"a.png 4,5,8,10,1 {bad}", "b.png 4,5,8,10,1", "x.png 4,5,8,10,1")
    found = Outcome(tmp_path / "in", tmp_path / "out")
    assert found.rejects == {"train/a.png": "bad_annotation", "x.png": "missing_file"}
    assert list(found.images) == ["train/b.png"]


@pytest.mark.parametrize("classes", ["", "dog\ncat\n"])
def test_classes_that_are_missing_or_differ_stop(classes, tmp_path, make_pictures):
    make_pictures("train/a.png", "valid/b.png")
    write(tmp_path, "a.png 4,5,8,10,1")
    write(tmp_path, "b.png 4,5,8,10,1", place="valid", classes=classes)
    with pytest.raises(SourceError, match=r"_classes\.txt"):
        recordgen.plan(str(tmp_path / "in"))
