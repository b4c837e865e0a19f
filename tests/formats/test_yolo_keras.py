"""Roboflow's "YOLO Keras": boxes in pixels on a line for each image, and names beside them."""

import pytest

from recordgen.errors import SourceError

BOX = [0.1, 0.25, 0.2, 0.5]


def folder(*lines, place="train", classes="cat\ndog\n"):
    """Return the documents of one folder."""
    files = {f"{place}/_annotations.txt": "\n".join(lines)}
    return {**files, f"{place}/_classes.txt": classes} if classes else files


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
def test_boxes(line, boxes, outcome):
    files = folder(line) | folder("b.png 4,5,8,10,0", place="valid")
    found = outcome(files, "train/a.png", "valid/b.png")
    there = {} if boxes is None else {"train/a.png": boxes}
    assert found.images == {**there, "valid/b.png": [("cat", BOX)]}
    assert found.splits["valid/b.png"] == "eval"
    assert found.classes == ("cat", "dog")


def test_names_with_blanks(outcome):
    found = outcome(folder("a b.png 4,5,8,10,1"), "train/a b.png")
    assert found.images == {"train/a b.png": [("dog", BOX)]}


# the end of a line that rejects its image
REJECTED = ["4,5,8,10,2", "4,5,8,10,-1", "4,5,8,10", "4,5,8,x,1", "4,5,8,nan,1", "4,5,8,10,1.5"]


@pytest.mark.parametrize("bad", REJECTED)
def test_a_bad_box_rejects_its_image(bad, outcome):
    lines = f"a.png 4,5,8,10,1 {bad}", "b.png 4,5,8,10,1", "x.png 4,5,8,10,1"
    found = outcome(folder(*lines), "train/a.png", "train/b.png")
    assert found.rejected == {"train/a.png": "bad_annotation", "x.png": "missing_file"}
    assert [*found.images] == ["train/b.png"]


@pytest.mark.parametrize("classes", ["", "dog\ncat\n"])
def test_classes_that_are_missing_or_differ_stop(classes, outcome):
    files = folder("a.png 4,5,8,10,1") | folder("b.png", place="valid", classes=classes)
    with pytest.raises(SourceError, match=r"_classes\.txt"):
        outcome(files, "train/a.png", "valid/b.png")
