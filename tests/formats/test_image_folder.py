"""Folders of images: which folders are splits or classes, and which files are no images."""

import re

import pytest
from PIL import Image

import recordgen
from recordgen.conversion.texts.summaries import check_summary
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.rows.row import Adjustments, Row
from recordgen.errors import DataError, NotUnderstoodError, SourceError, UsageError
from recordgen.formats.class_folders import ImageFolder
from recordgen.formats.folder_names import is_no_image
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.import_file import ImportFile
from recordgen.rejects import OddLine
from recordgen.storage import is_inside
from recordgen.tasks import ImageClassification
from tests.conftest import encoded
from tests.formats.sources import Reading, write_files


def folder(root, *names):
    return f"{write_files(root, dict.fromkeys(names, b''))}/"


def read(root, adjusted=None):
    file, task = ImportFile(root), ImageClassification()
    rows = list(ImageFolder().rows(file, task, adjusted or Adjustments(), NOTHING_GIVEN))
    assert [row.line for row in rows] == list(range(1, len(rows) + 1))
    return [(row.uri, row.split, row.annotation) for row in rows if isinstance(row, Row)]


# files; rows as (split, label) in order; the meaning of folders that are no classes
TRAIN, EVAL, TEST, BARE = "split train", "split eval", "split test", "no label"
UNDERSTOOD = [
    (["train_images/1.jpg", "test_images/1.jpg"], [("test", None), ("train", None)],
     {"train_images": TRAIN, "test_images": TEST}),
    (["train/images/1.jpg"], [("train", None)], {"train": TRAIN, "train/images": BARE}),
    (["images/cat/1.jpg", "images/dog/1.jpg"], [(None, "cat"), (None, "dog")], {"images": BARE}),
    (["images/train/cat/1.jpg", "images/val/dog/1.jpg"], [("train", "cat"), ("eval", "dog")],
     {"images": BARE, "images/train": TRAIN, "images/val": EVAL}),
    (["train2017/1.jpg", "Validation-Images/a/1.jpg", "Validation-Images/b/1.jpg"],
     [("eval", "a"), ("eval", "b"), ("train", None)],
     {"train2017": TRAIN, "Validation-Images": EVAL}),
    # Packed files often unpack into a folder of their own name.
    (["train/train/1.jpg"], [("train", None)], {"train": TRAIN}),
    (["images_001/1.jpg", "images_002/1.jpg"], [(None, None)] * 2,
     {"images_001": BARE, "images_002": BARE}),
    (["train/n01/images/1.jpg", "train/n02/images/1.jpg"], [("train", "n01"), ("train", "n02")],
     {"train": TRAIN}),
    (["Split-train/1.jpg"], [("train", None)], {"Split-train": TRAIN}),
    (["seg_train/seg_train/a/1.jpg", "seg_test/seg_test/b/1.jpg"], [("test", "b"), ("train", "a")],
     {"seg_train": TRAIN, "seg_test": TEST}),
    (["arch/flowers/daisy/1.jpg", "arch/flowers/rose/1.jpg"], [(None, "daisy"), (None, "rose")],
     {"arch": BARE, "arch/flowers": BARE}),
    (["chest/train/a/1.jpg", "chest/test/b/1.jpg"], [("test", "b"), ("train", "a")],
     {"chest": BARE, "chest/train": TRAIN, "chest/test": TEST}),
    (["HAM_images_part_1/1.jpg", "HAM_images_part_2/1.jpg"], [(None, None)] * 2,
     {"HAM_images_part_1": BARE, "HAM_images_part_2": BARE}),
    # Numbered files of classes have the same names, but not as many in each class.
    (["a/i1.jpg", "a/i2.jpg", "b/i1.jpg", "b/i2.jpg", "b/i3.jpg", "b/i4.jpg", "c/i1.jpg",
      "c/i2.jpg", "c/i3.jpg", "c/i4.jpg"],
     [(None, label) for label in "aabbbbcccc"], {}),
    # These name classes.
    (["class_1/1.jpg", "class_2/1.jpg"], [(None, "class_1"), (None, "class_2")], {}),
    (["cat/1.jpg", "dog/2_masked.jpg"], [(None, "cat"), (None, "dog")], {}),
    (["photos/1.jpg", "drawings/1.jpg"], [(None, "drawings"), (None, "photos")], {}),
    (["mask/1.jpg", "no_mask/1.jpg"], [(None, "mask"), (None, "no_mask")], {}),
    (["train_station/1.jpg", "1/1.jpg"], [(None, "1"), (None, "train_station")], {}),
    (["old/dataset.json", "old/1.jpg", "a/1.jpg", "b/1.jpg"], [(None, "a"), (None, "b")],
     {"old/": "skipped, a converted dataset"}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "rows", "roles"), UNDERSTOOD)
def test_splits_and_containers_are_no_classes(names, rows, roles, tmp_path):
    """Folders that name a split or images in general give no class, and are named as such."""
    root = folder(tmp_path, *names)
    assert [row[1:] for row in read(root)] == rows
    assert dict(ImageFolder().roles([ImportFile(root)])) == roles


# files, the folders that the message names
REFUSED = [
    (["images/1.jpg", "masks/1.png"], ["masks", "images"]),
    (["train/img/1.jpg", "train/ground_truth/1.png"], ["ground_truth", "img"]),
    (["train_images/1.jpg", "train_masks/1.jpg"], ["train_masks", "train_images"]),
    (["train/1.jpg", "masks/1.jpg"], ["masks", "train"]),
    (["photos/1.jpg", "masks/1.jpg"], ["masks", "photos"]),
    (["images/1.jpg", "cat/1.jpg"], ["images", "cat"]),
    (["seg_train/a/1.jpg", "seg_test/a/1.jpg", "seg_pred/1.jpg"], ["seg_test", "seg_pred"]),
    (["a_train/1.jpg", "a_test/1.jpg", "b_train/1.jpg", "b_test/1.jpg"], ["a_test", "b_train"]),
    (["raw/1.jpg", "processed/1.jpg"], ["raw", "processed"]),
    (["train/test/1.jpg"], ["test", "train"]),
    (["train_images/1.jpg", "cat/1.jpg"], ["train_images", "cat"]),
]

# files, the import file that the message names
WITH_IMPORT_FILES = [
    (["1.jpg", "a.csv"], "a.csv"),
    (["train/1.jpg", "train/_annotations.csv"], "train/_annotations.csv"),
    (
        ["train/1.jpg", "test/1.jpg", "train/_a.csv", "test/_a.csv"],
        "/\\*/_a.csv",
    ),
    (["images/1.jpg", "images/a.jsonl"], "images/a.jsonl"),
]


@pytest.mark.parametrize(("names", "named"), WITH_IMPORT_FILES)
def test_an_import_file_beside_images_stops(names, named, tmp_path):
    """A file that may hold the labels is never skipped, except in the folder of a class."""
    with pytest.raises(NotUnderstoodError, match=named):
        read(folder(tmp_path / "one", *names))
    found = read(folder(tmp_path / "two", "cat/1.jpg", "cat/notes.csv", "dog/1.jpg"))
    assert found == [("cat/1.jpg", None, "cat"), ("dog/1.jpg", None, "dog")]


# an import file, its text, whether it names an image below it
BESIDE_CLASSES = [
    ("history.csv", "epoch,loss\n1,0.5\n2,0.4\n", False),
    ("classes.csv", "id,name\n0,cat\n1,dog\n", False),
    ("train/results.csv", "epoch,accuracy\n1,0.9\n", False),
    ("scores.jsonl", '{"epoch": 1, "loss": 0.5}\n', False),
    ("labels.csv", "image,label\ntrain/cat/1.jpg,dog\n", True),
    ("train/labels.csv", "1.jpg;dog\n", True),
    ("labels.csv", "train\\cat\\1.jpg,dog\n", True),
    ("labels.jsonl", '{"path": "1.jpg", "label": "dog"}\n', True),
]


@pytest.mark.parametrize(("name", "text", "is_import_file"), BESIDE_CLASSES)
def test_a_csv_beside_classes_stops_only_if_it_names_their_images(
    name, text, is_import_file, tmp_path
):
    """Training history beside folders of classes is skipped; another source of labels is not."""
    root = folder(tmp_path, "train/cat/1.jpg", "test/dog/2.jpg", name)
    (tmp_path / name).write_text(text)
    if is_import_file:
        with pytest.raises(SourceError, match=name):
            read(root)
    else:
        adjusted = Adjustments()
        assert len(read(root, adjusted)) == 2
        [skipped] = adjusted.taken_lines()
        assert name in skipped.message


@pytest.mark.parametrize("mask", ["a (1)_mask.png", "a (1)_mask_1.png", "a (1)-segmentation.png"])
def test_masks_beside_their_images_stop(mask, tmp_path):
    """A mask in the folder of its image is no image of that class."""
    with pytest.raises(SourceError, match=re.escape(mask)):
        read(folder(tmp_path, "b/a (1).png", f"b/{mask}"))
    assert len(read(folder(tmp_path / "alone", f"b/{mask}", "c/1.png"))) == 2


@pytest.mark.parametrize(("names", "named"), REFUSED)
def test_masks_and_mixed_folders_stop(names, named, tmp_path):
    """Masks, and images beside classes, are no classes: the run stops and names both."""
    with pytest.raises(NotUnderstoodError) as caught:
        read(folder(tmp_path, *names))
    for name in named:
        assert name in str(caught.value)


def test_files_that_are_no_images_are_skipped_and_named_once(tmp_path):
    """Well-known files of other kinds are one finding; files that may be images stay rows."""
    junk = ["README.md", "LICENSE", "cat/Thumbs.db", "cat/desktop.ini", "cat/1.txt", "dog/2.json"]
    junk += ["__MACOSX/cat/3.jpg", "checkpoints/4.jpg"]
    kept = ["cat/1.jpg", "cat/no_suffix", "dog/1.xyz"]
    adjusted = Adjustments()
    assert [uri for uri, *_ in read(folder(tmp_path, *junk, *kept), adjusted)] == kept
    [found] = adjusted.taken_lines()
    assert isinstance(found, OddLine)
    assert (found.source, found.line, found.code) == (f"{tmp_path}/", 0, "SKIPPED")
    assert found.message.startswith("8 ")
    assert is_no_image("a/THUMBS.DB")
    assert not is_no_image("a/license.jpg")


@pytest.mark.parametrize("name", ["pos/1.txt", "old/dataset.json"])
def test_a_folder_without_images_says_what_is_there(name, tmp_path):
    """A folder of texts, or one that holds only an output, is an error that names a file."""
    with pytest.raises(SourceError, match=name[:3]):
        read(folder(tmp_path, name))


def photos(root, *names):
    images = (Image.new("RGB", (32, 32), (at * 9, 90, 200)) for at in range(len(names)))
    return write_files(root, {name: encoded(next(images), "JPEG") for name in names})


def test_an_output_is_never_among_its_sources(tmp_path):
    """An output in a source folder, and a source in the output, are refused before any write."""
    root = photos(tmp_path / "photos", "cat/1.jpg", "dog/2.jpg")
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "all").mkdir()
    (tmp_path / "all/labels.csv").write_text("../photos/cat/1.jpg,cat\n")
    before = sorted(tmp_path.rglob("*"))
    for source, output in [
        (root, root),
        (root, root / "out"),
        (root, tmp_path / "link" / "out"),
        (f"{tmp_path}/link/", f"file://{root}/a/b"),
        (root, tmp_path),
        (tmp_path / "all" / "labels.csv", tmp_path / "all"),
    ]:
        with pytest.raises(UsageError, match=str(tmp_path)):
            recordgen.convert(source, output)
    assert sorted(tmp_path.rglob("*")) == before
    recordgen.convert(tmp_path / "all" / "labels.csv", tmp_path / "all" / "out")
    recordgen.convert(root, tmp_path / "photos2")
    # An output of an earlier version, or one that was moved here.
    (tmp_path / "photos2").rename(root / "out")
    result = recordgen.convert(root, tmp_path / "again")
    assert (result.dataset.labels, result.dataset.rows.read) == (("cat", "dog"), 2)
    assert result.dataset.lint["SKIPPED"] == 1


def test_urls_of_outputs_are_compared(tmp_path):
    """A prefix of a bucket is a folder; a longer name beside it is not inside it."""
    assert is_inside("GS://b/photos/out", "gs://b/photos/")
    assert is_inside("gs://b/photos", "gs://b/photos/")
    assert not is_inside("gs://b/photos2", "gs://b/photos/")
    assert not is_inside("gs://b/photos", str(tmp_path))
    assert is_inside(str(tmp_path), "/")


def test_findings_of_a_folder_name_files(tmp_path):
    root = photos(tmp_path / "photos", "cat/1.jpg", "cat/2.jpg")
    (root / "dog").mkdir()
    (root / "dog/copy.jpg").write_bytes((root / "cat/1.jpg").read_bytes())
    (root / "dog/empty.jpg").write_bytes(b"")
    found = recordgen.check(root, split="100", lint="CONFLICT")
    [conflict] = found.lint.findings()
    assert str(conflict).startswith(f"{root}/dog/copy.jpg: CONFLICT ")
    assert f"{root}/cat/1.jpg " in conflict.message
    with pytest.raises(DataError, match=f"{root}/dog/copy.jpg .* {root}/cat/1.jpg"):
        recordgen.plan(root, duplicates="fail", max_reject_fraction=1)
    [reject] = found.rejects
    assert (reject.source, reject.line, reject.uri) == (f"{root}/", 4, "dog/empty.jpg")
    assert f"\n{root}/dog/empty.jpg: " in check_summary(found, limit=9)
    with pytest.raises(DataError, match=f"{root}/dog/empty.jpg: "):
        recordgen.convert(root, tmp_path / "out")
    whole = LintFinding("SKIPPED", "warning", "photos/", 0, "", "", "text")
    assert str(whole) == "photos/: SKIPPED text"


def test_images_without_folders_of_classes_name_the_remedy(tmp_path):
    """The labels of a folder are its folders, so the message speaks of these."""
    source = photos(tmp_path, "train/cat.0.jpg", "train/dog.0.jpg")
    with pytest.raises(DataError, match="labels=none"):
        recordgen.check(source)


# Class folders, and what is none: files that stop, whether a layout is proposed
NO_CLASSES = {
    "one class": (["cat/1.jpg", "cat/2.jpg"], False),
    "one class in splits": (["train/cat/1.jpg", "test/cat/2.jpg"], False),
    "one class with inner folders": (["train/cat/images/1.jpg"], False),
    "one folder of images beside lists": (
        ["basic/images/1.jpg", "basic/images/2.jpg", "train.txt"],
        False,
    ),
    "images and masks": (["imagesTr/c1_0000.png", "labelsTr/c1.png"], True),
    "names with one more word": (["A_Data/I_1.jpg", "A_GroundTruth/I_1_segmentation.png"], True),
    "masks of splits": (["train/1.png", "val/2.png", "trainannot/1.png", "valannot/2.png"], True),
    "two folders of the same names": (
        [f"{at}/{n}.jpg" for at in "ab" for n in ("i1", "i2")],
        False,
    ),
    "three folders of the same names": (
        [f"{at}/{n}.png" for at in ("HR", "LR", "up") for n in ("i1", "i2", "i3")],
        False,
    ),
    "folders of the same names in splits": (
        [f"{s}/{at}/{s}{n}.png" for s in ("train", "val") for at in "abc" for n in "xy"],
        False,
    ),
    "files in more folders": (["cat/red/1.jpg", "dog/blue/1.jpg"], True),
    "pairs": ([f"{at}/{n}_{at[0]}.png" for at in ("noisy", "clean") for n in "123"], False),
    "pairs of numbers": ([f"{at}/{n}.png" for at in ("rgb", "depth") for n in "123"], False),
    "two sizes": ([f"{at}/0{n}{at}.png" for at in ("HR", "LR") for n in "123"], False),
    "texts": (["a/1", "b/2"], True),
    "videos": (["train/run/1.mp4", "test/walk/2.mp4"], True),
    "texts one folder too deep": (["in/a/1.txt", "in/b/1.txt", "in/readme.txt"], True),
    "labels of the same names": (["i/ab1.jpg", "i/ab2.jpg", "l/ab1.txt", "l/ab2.txt"], False),
    "a folder of annotations": (["train/v1/img/1.jpg", "train/v2/img/1.jpg", "gt/x.txt"], False),
}


@pytest.mark.parametrize(("names", "is_proposed"), NO_CLASSES.values(), ids=NO_CLASSES)
def test_folders_that_may_be_no_classes_stop(names, is_proposed, tmp_path):
    """The folder is shown; a proposed layout reads every file of one kind that is there."""
    root = folder(tmp_path, *names)
    with pytest.raises(NotUnderstoodError) as caught:
        read(root)
    assert caught.value.shown
    assert bool(caught.value.options) == is_proposed
    if is_proposed:
        found = Reading(root, **caught.value.options)
        assert found.rows
        assert not found.rejects


@pytest.mark.parametrize("name", ["{0}s/{0}.{1}.jpg", "{0}/{1}.jpg", "train/{0}/IMG_{1}{0}.jpg"])
def test_numbers_in_names_of_classes(name, tmp_path):
    """Classes may number their files alike."""
    names = [name.format(kind, number) for kind in ("cat", "dog") for number in (1, 2, 3)]
    labels = {label for _, _, label in read(folder(tmp_path, *names))}
    assert {label[:3] for label in labels} == {"cat", "dog"}


LISTS = {
    "lists.txt": "cat/a001\ndog/b002\n",
    "paths.txt": "cat/a001.jpg\ndog/b002.jpg\n",
    "boxes.tsv": "a001.jpg\t1\nb002.jpg\t2\n",
    "ids.csv": "id,age\na001,3\nb002,4\n",
    "all.json": '{"a001.jpg": 1, "b002.jpg": 2}',
}


@pytest.mark.parametrize("name", LISTS)
def test_a_file_that_names_the_images_stops(name, tmp_path):
    """Lists of splits, boxes or ids beside folders of classes are not skipped."""
    files = {"cat/a001.jpg": b"", "dog/b002.jpg": b"", name: LISTS[name]}
    with pytest.raises(NotUnderstoodError, match=name):
        read(f"{write_files(tmp_path, files)}/")
