"""YOLO: data.yaml as people write it, labels of all shapes, and what stops a run."""

import json

import pytest

import recordgen
from recordgen import cli
from recordgen.errors import SourceError
from tests.formats.boxes import boxes_of

pytestmark = pytest.mark.once

NAMES = "names: [cat, dog]\nnc: 2\n"


def write(folder, files):
    """Write text files below ``in``, and return that folder."""
    for name, text in files.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "in"


def test_ultralytics(tmp_path, make_pictures, capsys):
    """Folders of images and labels; a polygon becomes its box; no labels are no objects."""
    make_pictures(
        "images/train/a.jpg", "images/train/b.jpg", "images/train/c.jpg", "images/val/d.jpg"
    )
    root = write(
        tmp_path,
        {
            "data.yaml": f"path: .\ntrain: images/train\nval: images/val\ntest:\n{NAMES}",
            "labels/train/a.txt": "1 0.5 0.5 0.2 0.4\n0 0.1 0.1 0.2 0.2\n",
            "labels/train/b.txt": "0 0.1 0.2 0.3 0.2 0.2 0.6\n",
            "labels/val/d.txt": "",
        },
    )
    assert cli.main(["convert", str(root), str(tmp_path / "out")]) == 0
    assert "data.yaml names 2 classes" in capsys.readouterr().out
    assert boxes_of(tmp_path / "out") == {
        "images/train/a.jpg": (
            "train",
            [("cat", 0, [0, 0, 0.2, 0.2]), ("dog", 1, [0.4, 0.3, 0.6, 0.7])],
        ),
        "images/train/b.jpg": ("train", [("cat", 0, [0.1, 0.2, 0.3, 0.6])]),
        "images/train/c.jpg": ("train", []),
        "images/val/d.jpg": ("eval", []),
    }


# how paths are written in data.yaml; the images are in train/images and valid/images
PATHS = [
    ("train: ../train/images\nval: ../valid/images\n", "data.yaml"),
    (
        "train: C:\\Users\\x\\set\\train\\images\nval: C:\\Users\\x\\set\\valid\\images\n",
        "data.yml",
    ),
    ("path: /path/to/set\ntrain: train/images\nvalid: valid/images\n", "set.yaml"),
    ("train: [train/images]\nvalidation:\n  - valid/images\n", "data.yaml"),
    ("train: train.txt\nval: valid/images\n", "data.yaml"),
]


@pytest.mark.parametrize(("splits", "name"), PATHS)
def test_paths_as_people_write_them(splits, name, tmp_path, make_pictures):
    """Roboflow's, Windows' and another machine's paths, lists, and lists in files."""
    make_pictures("train/images/a.jpg", "valid/images/b.jpg")
    root = write(
        tmp_path,
        {
            name: splits + "names:\n  0: cat\n  1: dog\n",
            "train.txt": "./train/images/a.jpg\n",
            "train/labels/a.txt": "1 0.5 0.5 1 1\n",
            "valid/labels/b.txt": "0.0 0.5 0.5 1 1\n",
        },
    )
    recordgen.convert(str(root / name), tmp_path / "out")
    assert boxes_of(tmp_path / "out") == {
        "train/images/a.jpg": ("train", [("dog", 1, [0, 0, 1, 1])]),
        "valid/images/b.jpg": ("eval", [("cat", 0, [0, 0, 1, 1])]),
    }


@pytest.mark.parametrize(
    ("names", "image", "labels"),
    [
        ("classes.txt", "images/a.jpg", "labels/a.txt"),  # Label Studio
        ("train/_darknet.labels", "train/a.jpg", "train/a.txt"),
        ("obj.names", "obj_train_data/a.jpg", "obj_train_data/a.txt"),
    ],
)
def test_folders_without_yaml(names, image, labels, tmp_path, make_pictures):
    """Darknet's and Label Studio's folders."""
    make_pictures(image)
    root = write(tmp_path, {names: "cat\ndog\n", labels: "1 0.5 0.5 1 1\n"})
    recordgen.convert(str(root), tmp_path / "out")
    [(_, boxes)] = boxes_of(tmp_path / "out").values()
    assert boxes == [("dog", 1, [0, 0, 1, 1])]


# a line of labels, what the message names
BAD_LINES = [
    ("2 0.5 0.5 1 1", " 2, but there are 2 "),
    ("-1 0.5 0.5 1 1", " -1"),
    ("0.5 0.5 0.5 1 1", " 0.5"),
    ("1 0.5 0.5 1 1 0.9", "confidence"),
    ("1 0.5 0.5 1", "3 numbers"),
    ("1 0,5 0,5 1 1", "0,5"),
    ("1 0.5 nan 1 1", "coordinate"),
    ("1 320 240 100 100", "pixels"),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
def test_a_bad_line_rejects_its_image(line, words, tmp_path, make_pictures):
    """Without the object, the image would teach a false background."""
    make_pictures("images/a.jpg", "images/b.jpg")
    root = write(
        tmp_path,
        {
            "data.yaml": f"train: images\n{NAMES}",
            "labels/a.txt": f"0 0.5 0.5 1 1\n{line}\n",
            "labels/b.txt": "0 0.5 0.5 1 1\n",
        },
    )
    result = recordgen.convert(str(root), tmp_path / "out", max_reject_fraction=1)
    [reject] = result.rejects
    assert (reject.uri, reject.code) == ("images/a.jpg", "bad_annotation")
    assert words in reject.message
    assert list(boxes_of(tmp_path / "out")) == ["images/b.jpg"]


def test_keypoints_follow_the_box(tmp_path, make_pictures):
    """With kpt_shape, numbers behind the box are no polygon."""
    make_pictures("images/a.jpg")
    root = write(
        tmp_path,
        {
            "data.yaml": f"train: images\nkpt_shape: [2, 3]\n{NAMES}",
            "labels/a.txt": "1 0.5 0.5 0.2 0.4 0.1 0.1 2 0.9 0.9 1\n",
        },
    )
    recordgen.convert(str(root), tmp_path / "out")
    assert boxes_of(tmp_path / "out")["images/a.jpg"][1] == [("dog", 1, [0.4, 0.3, 0.6, 0.7])]


# data.yaml, what the message names
STOPS = [
    ("train: images\nval: nowhere/images\n" + NAMES, "val .*'nowhere/images'"),
    ("train: images\nval: images\n" + NAMES, "train.*val|val.*train"),
    ("train: images\nnc: 3\nnames: [cat, dog]\n", "nc .*3"),
    ("train: images\nnames: 7\n", "names"),
    ("nc: 2\nnames: [cat, dog]\n", "train"),
    ("train: images\nkpt_shape: 3\n" + NAMES, "kpt_shape"),
    ("train: images\nkpt_shape: [a, 3]\n" + NAMES, "kpt_shape"),
    ("train: images\nkpt_shape: [-3, 1]\n" + NAMES, "kpt_shape"),
    ("train: 3\n" + NAMES, "train .*3"),
    # what cannot be read, instead of a missing data.yaml; and it comes at once
    ("x: " + "[" * 60_000, "nested"),
    ("x: &a [1]\ny: *a\n" + NAMES, "aliases"),
    ("x: !!python/object/apply:os.getcwd []\n" + NAMES, "python"),
    (f"train: images\n{NAMES}---\nx: 1\n", "document"),
    (f"train: images\n{NAMES}#" + "x" * 70_000, "KiB"),
]


@pytest.mark.parametrize(("text", "words"), STOPS)
def test_what_stops_a_run(text, words, tmp_path, make_pictures):
    """A lost split, one folder for two splits, and names that do not add up."""
    make_pictures("images/a.jpg")
    root = write(tmp_path, {"data.yaml": text, "labels/a.txt": "0 0.5 0.5 1 1\n"})
    with pytest.raises(SourceError, match=words):
        recordgen.convert(str(root), tmp_path / "out")


def test_most_images_without_labels_stop_the_run(tmp_path, make_pictures):
    """Labels that lie elsewhere must not become images without objects."""
    make_pictures("images/a.jpg", "images/b.jpg", "images/c.jpg")
    root = write(
        tmp_path, {"data.yaml": f"train: images\n{NAMES}", "labels/a.txt": "0 0.5 0.5 1 1\n"}
    )
    with pytest.raises(SourceError, match=r"2 of 3 images .*labels/b\.txt"):
        recordgen.convert(str(root), tmp_path / "out")


def test_labels_without_names_of_classes(tmp_path, make_pictures):
    """The folder is no folder of classes, and the message says what is missing."""
    make_pictures("images/a.jpg")
    root = write(tmp_path, {"labels/a.txt": "0 0.5 0.5 1 1\n"})
    with pytest.raises(SourceError, match=r"data\.yaml|classes\.txt"):
        recordgen.plan(str(root))


def test_labels_without_images_are_reported(tmp_path, make_pictures):
    """They are counted, and named."""
    make_pictures("images/a.jpg")
    root = write(
        tmp_path,
        {
            "data.yaml": f"train: images\n{NAMES}",
            "labels/a.txt": "0 0.5 0.5 1 1\n",
            "labels/lost.txt": "0 0.5 0.5 1 1\n",
        },
    )
    recordgen.convert(str(root), tmp_path / "out")
    found = [json.loads(line) for line in (tmp_path / "out/lint.jsonl").read_text().splitlines()]
    assert any(item["code"] == "SKIPPED" and "labels/lost.txt" in item["message"] for item in found)


def test_aliases_are_refused(tmp_path):
    """A small YAML file with aliases can stand for a huge one."""
    root = write(tmp_path, {"data.yaml": "a: &a [1]\nb: [*a, *a]\ntrain: x\nnames: [c]\n"})
    with pytest.raises(SourceError):
        recordgen.plan(str(root / "data.yaml"), format="yolo")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("[yes, no]", ("yes", "no")),
        ("[010, 1.10]", ("010", "1.10")),
        ("{0: on, 1: off}", ("on", "off")),
        ("['', dog]", ("0", "dog")),
    ],
)
def test_names_are_texts(names, expected, tmp_path, make_pictures):
    """To YAML, they are truth values, octal and other numbers."""
    make_pictures("images/a.jpg")
    root = write(
        tmp_path,
        {"data.yaml": f"train: images\nnames: {names}\n", "labels/a.txt": "1 0.5 0.5 1 1\n"},
    )
    recordgen.convert(str(root), tmp_path / "out")
    assert recordgen.read_dataset(str(tmp_path / "out")).labels == expected


def test_classes_of_one_name_are_reported(tmp_path, make_pictures):
    """The numbers of later classes differ from those in the labels."""
    make_pictures("images/a.jpg")
    root = write(
        tmp_path,
        {
            "data.yaml": "train: images\nnames: [cat, cat, dog]\n",
            "labels/a.txt": "2 0.5 0.5 1 1\n",
        },
    )
    recordgen.convert(str(root), tmp_path / "out")
    assert boxes_of(tmp_path / "out")["images/a.jpg"][1] == [("dog", 1, [0, 0, 1, 1])]
    assert "named 'cat'" in (tmp_path / "out/lint.jsonl").read_text()
