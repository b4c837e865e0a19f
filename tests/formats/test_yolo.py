"""YOLO: data.yaml as people write it, labels of all shapes, and what stops a run."""

import pytest

from recordgen.errors import SourceError

NAMES = "names: [cat, dog]\nnc: 2\n"
YAML = f"train: images\n{NAMES}"
WHOLE = "0 0.5 0.5 1 1\n"


def test_images_without_labels_have_no_objects(outcome):
    """Neither has one whose file of labels is empty."""
    labels = {"labels/a.txt": f"1 0.5 0.5 0.2 0.4\n{WHOLE}", "labels/b.txt": ""}
    found = outcome({"data.yaml": YAML, **labels}, *(f"images/{name}.jpg" for name in "abc"))
    whole = [("cat", [0, 0, 1, 1]), ("dog", [0.4, 0.3, 0.6, 0.7])]
    assert [*found.images.values()] == [whole, [], []]


WINDOWS = "train: C:\\Users\\x\\set\\train\\images\nval: C:\\Users\\x\\set\\valid\\images\n"

# how paths are written in data.yaml; the images are in train/images and valid/images
PATHS = [
    ("train: ../train/images\nval: ../valid/images\n", "data.yaml"),
    ("", "data.yaml"),
    (WINDOWS, "data.yml"),
    ("path: /path/to/set\ntrain: train/images\nvalid: valid/images\n", "set.yaml"),
    ("train: [train/images]\nvalidation:\n  - valid/images\n", "data.yaml"),
    ("train: train.txt\nval: valid/images\n", "data.yaml"),
]


@pytest.mark.parametrize(("splits", "name"), PATHS)
def test_paths_as_people_write_them(splits, name, outcome):
    """Roboflow's, Windows' and another machine's paths, lists, and lists in files."""
    files = {
        name: splits + "names:\n  0: cat\n  1: dog\n",
        "train.txt": "./train/images/a.jpg\n",
        "train/labels/a.txt": "1 0.5 0.5 1 1\n",
        "valid/labels/b.txt": "0.0 0.5 0.5 1 1\n",
    }
    found = outcome(files, "train/images/a.jpg", "valid/images/b.jpg", document=name)
    assert found.images == {
        "train/images/a.jpg": [("dog", [0, 0, 1, 1])],
        "valid/images/b.jpg": [("cat", [0, 0, 1, 1])],
    }
    assert [*found.splits.values()] == ["train", "eval"]


# data.yaml, what the message names
STOPS = [
    # a lost split, one folder for two splits, and names that do not add up
    ("train: images\nval: nowhere/images\n" + NAMES, "val .*'nowhere/images'"),
    ("train: images\nval: images\n" + NAMES, "train.*val|val.*train"),
    ("train: images\nnc: 3\nnames: [cat, dog]\n", "nc .*3"),
    ("train: images\nnames: 7\n", "names"),
    ("train: images\nkpt_shape: 3\n" + NAMES, "kpt_shape"),
    ("train: images\nkpt_shape: [a, 3]\n" + NAMES, "kpt_shape"),
    ("train: images\nkpt_shape: [1001, 3]\n" + NAMES, "1,000 keypoints"),
    ("train: " + "a/" * 200 + "labels/a.txt\n" + NAMES, "no such images"),
    ("train: images\nnames: [cat, dog]\nnc: 0x" + "f" * 9000, "YAML"),
    ("train: 3\n" + NAMES, "train .*3"),
    # what cannot be read, instead of a missing data.yaml; and it comes at once
    ("x: " + "[" * 400, "nesting"),
    ("x: &a [1]\ny: *a\n" + NAMES, "aliases"),  # a small file may stand for a huge one
    ("x: !!python/object/apply:os.getcwd []\n" + NAMES, "python"),
    (f"train: images\n{NAMES}---\nx: 1\n", "document"),
    (f"train: images\n{NAMES}#" + "x" * 70_000, "KiB"),
]


@pytest.mark.parametrize(("text", "words"), STOPS)
def test_what_stops_a_run(text, words, outcome):
    """A wrong data.yaml stops the run and says why."""
    with pytest.raises(SourceError, match=words):
        outcome({"data.yaml": text, "labels/a.txt": WHOLE}, "images/a.jpg")


def test_labels_without_images_are_reported(outcome):
    """They are counted, and named."""
    files = {"data.yaml": YAML, "labels/a.txt": WHOLE, "labels/lost.txt": WHOLE}
    assert "labels/lost.txt" in "".join(outcome(files, "images/a.jpg").skipped)


# names, expected
CLASS_NAMES = [
    ("[yes, no]", ("yes", "no")),
    ("[010, 1.10]", ("010", "1.10")),
    ("{0: on, 1: off}", ("on", "off")),
    ("['', dog]", ("0", "dog")),
]


@pytest.mark.parametrize(("names", "expected"), CLASS_NAMES)
def test_names_are_texts(names, expected, outcome):
    """To YAML, they are truth values, octal and other numbers."""
    files = {"data.yaml": f"train: images\nnames: {names}\n", "labels/a.txt": "1 0.5 0.5 1 1\n"}
    assert outcome(files, "images/a.jpg").classes == expected


def test_classes_of_one_name_are_reported(outcome):
    """The numbers of later classes differ from those in the labels."""
    yaml = "train: images\nnames: [cat, cat, dog]\n"
    found = outcome({"data.yaml": yaml, "labels/a.txt": "2 0.5 0.5 1 1\n"}, "images/a.jpg")
    assert found.classes == ("cat", "dog")
    assert found.images == {"images/a.jpg": [("dog", [0, 0, 1, 1])]}
    assert "named 'cat'" in "".join(found.skipped)
