"""Open Images: boxes and labels in CSV, codes of classes, negatives, groups, and subsets."""

import pytest

BOXES = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf"
LABELS = "ImageID,Source,LabelName,Confidence"
NAMES = "/m/cat,Cat\n/m/dog,Dog\n/m/owl,Owl\n"
BOX = [0.1, 0.25, 0.2, 0.5]


def line(image, label="/m/cat", confidence="1", corners="0.1,0.2,0.25,0.5", group="0"):
    """Return a line; the columns are x, x, y, y."""
    return f"{image},xclick,{label},{confidence},{corners},0,{group}"


def document(*lines, header=BOXES, name="train-annotations-bbox.csv"):
    """Return lines about images, and the names of their classes."""
    text = "\n".join([header, *lines]) + "\n"
    return {name: text, "class-descriptions-boxable.csv": NAMES}


# the lines about a.jpg beside those of b.jpg, its boxes, the changes that are counted
READ = [
    ([line("a")], [("Cat", BOX)], {}),
    ([line("a"), line("a", "/m/dog", group="1")], [("Cat", BOX), ("Dog", BOX)], {}),
    ([line("a"), line("a", "/m/dog", confidence="0")], [("Cat", BOX)], {}),
    ([line("a", confidence="")], [("Cat", BOX)], {}),
    ([line("a", corners="0.1,1.1,0.25,0.5")], [("Cat", [0.1, 0.25, 1, 0.5])], {"boxes_clipped": 1}),
    ([""], None, {}),  # not in the document: not used
]


@pytest.mark.parametrize(("lines", "boxes", "adjusted"), READ)
def test_boxes(lines, boxes, adjusted, outcome):
    """Lines become the boxes of their images."""
    found = outcome(document(*lines, line("b")), "train/a.jpg", "train/b.jpg")
    there = {} if boxes is None else {"train/a.jpg": boxes}
    assert found.task == "object_detection"
    assert found.images == {**there, "train/b.jpg": [("Cat", BOX)]}
    assert set(found.splits.values()) == {"train"}
    assert (found.adjusted, found.rejects) == (adjusted, [])


def test_a_group_is_a_crowd(outcome):
    """A box around a group has both flags."""
    found = outcome(document(line("a"), line("a", "/m/dog", group="1")), "a.jpg")
    flags = [sorted(each.flags) for each in found.details["a.jpg"]]
    assert flags == [[], ["group_of", "is_crowd"]]


def test_lines_of_one_image_that_are_apart(outcome):
    """Parts of the files are often shuffled."""
    found = outcome(document(line("a"), line("b"), line("a", "/m/dog")), "a.jpg", "b.jpg")
    assert found.images == {"a.jpg": [("Cat", BOX), ("Dog", BOX)], "b.jpg": [("Cat", BOX)]}


@pytest.mark.parametrize("place", ["train/data", "images/train", "images", "data", ".", "x/y"])
def test_where_images_are(place, outcome):
    """Images are found in each usual place."""
    image = f"{place}/a.jpg".removeprefix("./")
    assert [*outcome(document(line("a")), image).images] == [image]


def test_labels_of_images(outcome):
    """Confidence 0 is a negative: somebody checked that the class is not in the image."""
    name = "validation-annotations-human-imagelabels.csv"
    lines = [
        *("a,verification,/m/cat,1", "a,verification,/m/owl,0", "a,machine,/m/dog,0.8"),
        *("b,verification,/m/owl,0.0", "c,verification,/m/dog,1"),
    ]
    found = outcome(document(*lines, header=LABELS, name=name), "a.jpg", "b.jpg", "c.jpg")
    assert found.task == "image_multi_label"
    assert found.images == {"a.jpg": ["Cat", "Dog"], "b.jpg": [], "c.jpg": ["Dog"]}
    assert set(found.splits.values()) == {"eval"}
    assert not found.classes  # those of images count


def test_boxes_and_labels_in_one_folder(outcome):
    """The boxes count; the document of labels can be passed itself. Masks are neither."""
    files = {
        "train-labels.csv": f"{LABELS}\na,verification,/m/dog,1\n",
        "train-masks.csv": "MaskPath,ImageID,LabelName,BoxID\na_m_1.png,a,/m/dog,1\n",
    }
    assert outcome(files | document(line("a")), "train/a.jpg").task == "object_detection"
    assert outcome({}, document="train-labels.csv").images == {"train/a.jpg": ["Dog"]}


def test_images_that_are_not_there_are_counted(outcome):
    """Nobody has all of the 1.9 million."""
    found = outcome(document(line("a"), line("x"), line("y")), "a.jpg")
    assert ([*found.images], found.rejects) == (["a.jpg"], [])
    assert len(found.skipped) == 1
    assert "2 images" in found.skipped[0]


def test_names_that_are_missing(outcome):
    """Codes are labels, too, and the remedy is named."""
    found = outcome(document(line("a", "/m/0xyz")), "a.jpg")
    assert found.images == {"a.jpg": [("/m/0xyz", BOX)]}
    assert "/m/0xyz" in found.skipped[0]


# the second line of an image, code of the reject
REJECTED = [
    (line("a", corners="0.1,x,0.2,0.5"), "bad_annotation"),
    (line("a", corners="0.1,nan,0.2,0.5"), "bad_annotation"),
    (line("a", corners="10,200,20,50"), "bad_annotation"),
    (line("a", confidence="yes"), "bad_annotation"),
    (line("a", ""), "bad_annotation"),
    (line("a") + "\0", "bad_line"),
    (line("a")[:-2], "too_many_fields"),
    ('a,"' + line("a"), "bad_line"),
]


@pytest.mark.parametrize(("bad", "code"), REJECTED)
def test_a_bad_line_rejects_its_image(bad, code, outcome):
    """A bad line costs its image and no other."""
    found = outcome(document(line("a"), bad, line("b")), "a.jpg", "b.jpg")
    assert found.rejected == {"a.jpg": code}
    assert [*found.images] == ["b.jpg"]


def test_two_images_of_one_id(outcome):
    """An id that two files have is ambiguous."""
    found = outcome(document(line("a"), line("b")), "x/a.jpg", "y/a.jpg", "b.jpg")
    assert found.rejected == {"a.jpg": "ambiguous_path"}
