"""Open Images: boxes and labels in CSV, codes of classes, negatives, groups, and subsets."""

import pytest

import recordgen
from recordgen.errors import SourceError
from tests.conftest import stored_examples
from tests.formats.boxes import Outcome

pytestmark = pytest.mark.once

BOXES = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf"
LABELS = "ImageID,Source,LabelName,Confidence"
NAMES = "/m/cat,Cat\n/m/dog,Dog\n/m/owl,Owl\n"
BOX = [0.1, 0.25, 0.2, 0.5]


def line(image, label="/m/cat", confidence="1", corners="0.1,0.2,0.25,0.5", group="0"):
    """Return a line; the columns are x, x, y, y."""
    return f"{image},xclick,{label},{confidence},{corners},0,{group}"


def write(folder, files):
    """Write text files below ``in``."""
    for name, lines in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines if isinstance(lines, str) else "\n".join(lines) + "\n")


def outcome(folder, *lines, header=BOXES, names=NAMES, document="train-annotations-bbox.csv"):
    """Convert lines about images."""
    write(folder, {document: [header, *lines], "class-descriptions-boxable.csv": names})
    return Outcome(folder / "in", folder / "out")


# the lines about a.jpg beside those of b.jpg, its boxes, the changes that are counted
READ = [
    ([line("a")], [("Cat", BOX)], {}),
    ([line("a"), line("a", "/m/dog")], [("Cat", BOX), ("Dog", BOX)], {}),
    ([line("a", "Zebra")], [("Zebra", BOX)], {}),
    ([line("a"), line("a", "/m/dog", group="1")], [("Cat", BOX), ("Dog", BOX)], {}),
    ([line("a"), line("a", "/m/dog", confidence="0")], [("Cat", BOX)], {}),
    ([line("a", confidence="")], [("Cat", BOX)], {}),
    ([line("a", corners="0.1,1.1,0.25,0.5")], [("Cat", [0.1, 0.25, 1, 0.5])], {"boxes_clipped": 1}),
    ([""], None, {}),  # not in the document: not used
]


@pytest.mark.parametrize(("lines", "boxes", "adjusted"), READ)
def test_boxes(lines, boxes, adjusted, tmp_path, make_pictures):
    make_pictures("train/a.jpg", "train/b.jpg")
    found = outcome(tmp_path, *lines, line("b"))
    there = {} if boxes is None else {"train/a.jpg": boxes}
    assert found.task == "object_detection"
    assert found.images == {**there, "train/b.jpg": [("Cat", BOX)]}
    assert set(found.splits.values()) == {"train"}
    assert (found.adjusted, found.rejects) == (adjusted, {})


def test_a_group_is_a_crowd(tmp_path, make_pictures):
    make_pictures("a.jpg")
    outcome(tmp_path, line("a"), line("a", "/m/dog", group="1"))
    [(_, example)] = stored_examples(tmp_path / "out")
    assert example["image/object/group_of"] == example["image/object/is_crowd"] == [0, 1]
    assert "image/object/occluded" not in example


def test_lines_of_one_image_that_are_apart(tmp_path, make_pictures):
    """Parts of the files are often shuffled."""
    make_pictures("a.jpg", "b.jpg")
    found = outcome(tmp_path, line("a"), line("b"), line("a", "/m/dog"))
    assert found.images == {"a.jpg": [("Cat", BOX), ("Dog", BOX)], "b.jpg": [("Cat", BOX)]}


@pytest.mark.parametrize("place", ["train/data", "images/train", "images", "data", "", "x/y"])
def test_where_images_are(place, tmp_path, make_pictures):
    make_pictures(f"{place}/a.jpg".lstrip("/"))
    found = outcome(tmp_path, line("a"))
    assert list(found.images) == [f"{place}/a.jpg".lstrip("/")]


def test_labels_of_images(tmp_path, make_pictures):
    """Confidence 0 is a negative: somebody checked that the class is not in the image."""
    make_pictures("a.jpg", "b.jpg", "c.jpg")
    found = outcome(
        tmp_path,
        *("a,verification,/m/cat,1", "a,verification,/m/owl,0", "a,machine,/m/dog,0.8"),
        *("b,verification,/m/owl,0.0", "c,verification,/m/dog,1"),
        header=LABELS,
        document="train-annotations-human-imagelabels.csv",
    )
    assert found.task == "image_multi_label"
    assert found.images == {"a.jpg": ["Cat", "Dog"], "b.jpg": [], "c.jpg": ["Dog"]}
    assert set(found.splits.values()) == {"train"}
    assert found.classes == ("Cat", "Dog")


def test_boxes_and_labels_in_one_folder(tmp_path, make_pictures):
    """The boxes count; the document of labels can be passed itself. Masks are neither."""
    make_pictures("train/a.jpg")
    write(
        tmp_path,
        {
            "train-labels.csv": [LABELS, "a,verification,/m/dog,1"],
            "train-masks.csv": ["MaskPath,ImageID,LabelName,BoxID", "a_m_1.png,a,/m/dog,1"],
        },
    )
    assert outcome(tmp_path, line("a")).task == "object_detection"
    labels = Outcome(tmp_path / "in/train-labels.csv", tmp_path / "labels")
    assert labels.images == {"train/a.jpg": ["Dog"]}


def test_images_that_are_not_there_are_counted(tmp_path, make_pictures):
    """Nobody has all of the 1.9 million."""
    make_pictures("a.jpg")
    found = outcome(tmp_path, line("a"), line("x"), line("y"))
    assert (list(found.images), found.rejects) == (["a.jpg"], {})
    assert len(found.skipped) == 1
    assert "2 images" in found.skipped[0]


def test_names_that_are_missing(tmp_path, make_pictures):
    """Codes are labels, too, and the remedy is named."""
    make_pictures("a.jpg")
    found = outcome(tmp_path, line("a", "/m/0xyz"))
    assert found.images == {"a.jpg": [("/m/0xyz", BOX)]}
    assert "/m/0xyz" in found.skipped[0]


# the second line of an image, code of the reject
REJECTED = [
    (line("a", corners="0.1,x,0.2,0.5"), "bad_annotation"),
    (line("a", corners="0.1,nan,0.2,0.5"), "bad_annotation"),
    (line("a", corners="10,200,20,50"), "bad_annotation"),
    (line("a", confidence="yes"), "bad_annotation"),
    (line("a", ""), "bad_annotation"),
]


@pytest.mark.parametrize(("bad", "code"), REJECTED)
def test_a_bad_line_rejects_its_image(bad, code, tmp_path, make_pictures):
    make_pictures("a.jpg", "b.jpg")
    found = outcome(tmp_path, line("a"), bad, line("b"))
    assert found.rejects == {"a.jpg": code}
    assert list(found.images) == ["b.jpg"]


def test_two_images_of_one_id(tmp_path, make_pictures):
    make_pictures("x/a.jpg", "y/a.jpg", "b.jpg")
    found = outcome(tmp_path, line("a"), line("b"))
    assert found.rejects == {"a.jpg": "ambiguous_path"}


@pytest.mark.parametrize("lines", [[line("x")], [], [line("a")[:-2]]])
def test_what_stops_a_run(lines, tmp_path, make_pictures):
    """None of the images is there, or a line is cut off."""
    make_pictures("a.jpg")
    write(tmp_path, {"train-annotations-bbox.csv": [BOXES, *lines]})
    with pytest.raises(SourceError, match="bbox"):
        recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
