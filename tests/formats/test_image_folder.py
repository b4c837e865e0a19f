# ruff: noqa: E501 - tables with a case on each line
"""Folders of images and of texts: which folders are splits or classes, and what is neither."""

import re

import pytest
from PIL import Image

import recordgen
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.rows.row import Adjustments, Row
from recordgen.errors import DataError, NotUnderstoodError, SourceError, UsageError
from recordgen.formats.class_folders import ImageFolder
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.import_file import ImportFile, find_import_files
from recordgen.rejects import OddLine
from recordgen.storage import is_inside
from recordgen.tasks import ImageClassification
from tests.conftest import encoded, stored_examples
from tests.formats.sources import Reading, refusal, write_files
from tests.opened import opened


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
    (["TRAIN/cat/1.jpg", "val/dog/1.jpg", "Test/2.jpg", "unassigned/cat/3.jpg"], [("train", "cat"), ("test", None), (None, "cat"), ("eval", "dog")], {"TRAIN": TRAIN, "val": EVAL, "Test": TEST, "unassigned": "no split"}),
    (["2.jpg", ".DS_Store", ".cache/1.jpg"], [(None, None)], {}),
    (["train_images/1.jpg", "test_images/1.jpg"], [("test", None), ("train", None)], {"train_images": TRAIN, "test_images": TEST}),
    (["train/images/1.jpg"], [("train", None)], {"train": TRAIN, "train/images": BARE}),
    (["images/cat/1.jpg", "images/dog/1.jpg"], [(None, "cat"), (None, "dog")], {"images": BARE}),
    (["images/train/cat/1.jpg", "images/val/dog/1.jpg"], [("train", "cat"), ("eval", "dog")], {"images": BARE, "images/train": TRAIN, "images/val": EVAL}),
    (["train2017/1.jpg", "Validation-Images/a/1.jpg", "Validation-Images/b/1.jpg"], [("eval", "a"), ("eval", "b"), ("train", None)], {"train2017": TRAIN, "Validation-Images": EVAL}),
    (["images_001/1.jpg", "images_002/1.jpg"], [(None, None)] * 2, {"images_001": BARE, "images_002": BARE}),
    (["train/n01/images/1.jpg", "train/n02/images/1.jpg"], [("train", "n01"), ("train", "n02")], {"train": TRAIN}),
    (["Split-train/1.jpg"], [("train", None)], {"Split-train": TRAIN}),
    # Packed files often unpack into a folder of their own name.
    (["seg_train/seg_train/a/1.jpg", "seg_test/seg_test/b/1.jpg"], [("test", "b"), ("train", "a")], {"seg_train": TRAIN, "seg_test": TEST}),
    ([f"{at}/{n}.png" for at in "ab" for n in range(12)], [(None, at) for at in "ab" for n in range(12)], {}),
    # Numbered files of classes have the same names, but not as many in each class.
    (["a/i1.jpg", "a/i2.jpg", "b/i1.jpg", "b/i2.jpg", "b/i3.jpg", "b/i4.jpg", "c/i1.jpg", "c/i2.jpg", "c/i3.jpg", "c/i4.jpg"], [(None, label) for label in "aabbbbcccc"], {}),
    # So have those under several words.
    ([f"{at}/{word}{n}.jpg" for at in ("a12", "b1", "c2") for n in at[1:] for word in ("in", "up")], [(None, at) for at in ("a12",) * 4 + ("b1",) * 2 + ("c2",) * 2], {}),
    # Two of several classes may be numbered alike.
    ([f"{at}/{at[-1]}{n}.jpg" for at in ("wp", "xq", "yr", "zr") for n in "123"], [(None, at) for at in ("wp", "xq", "yr", "zr") for n in "123"], {}),
    (["19991231/b.jpg", "20010101/a.jpg"], [(None, "19991231"), (None, "20010101")], {}),
    (["2019-05-01/a.jpg", "2019-05-02/b.jpg"], [(None, None)] * 2, {"2019-05-01": BARE, "2019-05-02": BARE}),
    (["with_GT/a/x1.jpg", "with_GT/b/y2.jpg", "with_GT/README.txt"], [(None, "a"), (None, "b")], {"with_GT": BARE}),
    # These name classes.
    (["class_1/1.jpg", "class_2/1.jpg"], [(None, "class_1"), (None, "class_2")], {}),
    (["cat/1.jpg", "dog/2_masked.jpg"], [(None, "cat"), (None, "dog")], {}),
    (["photos/1.jpg", "drawings/1.jpg"], [(None, "drawings"), (None, "photos")], {}),
    (["cat/1.jpg", "dog/2.jpg", "Unlabeled/3.jpg"], [(None, None), (None, "cat"), (None, "dog")], {"Unlabeled": "no label"}),
    (["mask/1.jpg", "no_mask/1.jpg"], [(None, "mask"), (None, "no_mask")], {}),
    (["4x4/1.jpg", "4x4/README", "6x4/1.jpg", "6x4/README"], [(None, "4x4"), (None, "6x4")], {}),
    # The t of test and train is no name that an image and its mask share.
    (["test-volume.tif", "train-labels.tif", "train-volume.tif"], [(None, None)] * 3, {}),
    # Classes may number their files alike.
    *(([name.format(c, n) for c in ("cat", "dog") for n in "123"], [(None, label.format(c)) for c in ("cat", "dog") for n in "123"], {}) for name, label in (("{0}s/{0}.{1}.jpg", "{}s"), ("{0}/{1}.jpg", "{}"), ("{0}/IMG_{1}{0}.jpg", "{}"))),
    ([f"{at}/{at}1_{side}.jpg" for at in "012" for side in ("left", "right")], [(None, at) for at in "001122"], {}),
    ([f"00{at}/00{at + 1}.jpg" for at in range(4)], [(None, f"00{at}") for at in range(4)], {}),
    ([f"{at}/{at}000{n}.jpg" for at in ("cafe", "dead") for n in "12"], [(None, at) for at in ("cafe", "cafe", "dead", "dead")], {}),
    ([f"{at}/{at}{end}" for at in ("cat", "dog") for end in ("_0.jpg", ".json")], [(None, "cat"), (None, "dog")], {}),
    (["train_station/1.jpg", "1/1.jpg"], [(None, "1"), (None, "train_station")], {}),
    (["old/dataset.json", "old/Split-train/1.jpg", "a/1.jpg", "b/1.jpg"], [(None, "a"), (None, "b")], {"old/": "skipped, a converted dataset"}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "rows", "roles"), UNDERSTOOD)
def test_splits_and_containers_are_no_classes(names, rows, roles, tmp_path):
    """Folders that name a split or images in general give no class, and are named as such."""
    root = folder(tmp_path, *names)
    assert [row[1:] for row in read(root)] == rows
    assert dict(ImageFolder().roles([ImportFile(root)])) == roles


# Folders that stop: files, a part of the message, whether a layout is proposed
STOPS = {
    "images and masks": (["images/1.jpg", "masks/1.png"], "masks", True),
    "masks below a split": (["train/img/1.jpg", "train/ground_truth/1.png"], "ground_truth", True),
    "masks of one split": (["train_images/1.jpg", "train_masks/1.jpg"], "train_masks", False),
    "masks of other names": (["dataset.json", "imagesTr/c1_0000.png", "labelsTr/c1.png"], "masks", True),
    "masks of splits": (["train/1.png", "val/2.png", "trainannot/1.png", "valannot/2.png"], "trainannot", True),
    "a mask beside its image": (["b/a (1).png", "b/a (1)_mask.png"], "_mask.png", True),
    "images beside a class": (["images/1.jpg", "cat/1.jpg"], "'images' and 'cat'", False),
    "two stages": (["raw/1.jpg", "processed/1.jpg"], "'processed' and 'raw'", False),
    "no split beside splits": (["seg_train/a/1.jpg", "seg_test/a/1.jpg", "seg_pred/1.jpg"], "'seg_test' .*'seg_pred'", False),
    "splits of two parts": (["a_train/1.jpg", "a_test/1.jpg", "b_train/1.jpg", "b_test/1.jpg"], "'a_test' .*b_", False),
    "a split in a split": (["train/test/1.jpg"], "train/test ", False),
    "a split beside a class": (["train_images/1.jpg", "cat/1.jpg"], "train_images", False),
    "the same class twice": (["train/cat/1.jpg", "cat/1.jpg"], "'train' .*'cat'", False),
    "a slip": (["train/cat/1.jpg", "valdation/cat/1.jpg"], "'valdation' .*validation", False),
    "one class": (["cat/1.jpg", "cat/2.jpg"], "'cat'", False),
    "one class in splits": (["train/cat/1.jpg", "test/cat/2.jpg"], "'cat'", False),
    "one folder beside lists": (["basic/images/1.jpg", "basic/images/2.jpg", "a.txt"], "", False),
    "same names": ([f"{at}/{n}.jpg" for at in "ab" for n in ("i1", "i2")], "a and b", False),
    "two parts and a third of the same names": ([f"{at}/{n}.jpg" for at in ("HR", "LR", "scaled") for n in "12"], "pairs", False),
    "same numbers": ([f"{at}/00{n}.png" for at in ("HR", "LR") for n in range(4)], "HR", False),
    "same names in splits": ([f"{s}/{at}/{s}{n}.png" for s in ("train", "val") for at in "abc" for n in "xy"], "", False),
    "pairs of names with numbers": ([f"{at}/{n}_{at[0]}.png" for at in ("pan", "ms") for n in "123"], "", False),
    "pairs of times": ([f"{at}/{n}_{at}.tif" for at in ("pre", "post") for n in ("a1", "b2")], "", False),
    "copies": ([f"{at}/{c}{n}.jpg" for c in "ab" for at in (c, "all") for n in "12"], "all", False),
    "images of MMSegmentation": (["img_dir/val/1.jpg", "ann_dir/val/1.png"], "", True),
    "labels beside dates": (["x/a/1.tif", "x/b/2.tif", "x/c/3.tif", "labels/4.tif"], "", False),
    "files in more folders": (["cat/red/1.jpg", "dog/blue/1.jpg"], "cat/red ", True),
    "numbered folders in a class": (["cat/images/1.jpg", "cat/7/1.jpg", "dog/images/1.jpg"], "cat/7 ", False),
    "splits in classes": ([f"{at}/{s}/{at}{s}.jpg" for at in ("cat", "dog") for s in ("train", "test")], "", True),
    "folders beside those of splits": ([f"seg_{s}/{at}/{s}{n}.jpg" for s in ("train", "test") for at in "ab" for n in "12"] + ["seg_pred/1.jpg"], "'seg_pred'", True),
    "names of splits": (["trainA/1.jpg", "trainB/2.jpg"], "trainA and trainB", False),
    "pairs in two formats": ([f"{at}.{suffix}" for n in "123" for at, suffix in ((f"a/{n}", "jpg"), (f"b/{n}", "png"))], "a and b", False),
    "annotations without a suffix": ([f"{at}/c/{n}" for n in ("i1", "i2") for at in ("Annotation", "Images")] + ["Images/c/i1.jpg", "Images/c/i2.jpg", "Images/d/i3.jpg"], "Annotation/c/i1", False),
    "the same names in many folders": ([f"{at}/i{n}.jpg" for at in "abcd" for n in range(3)], "a and b and c and d", True),
    "masks of some folders of images": ([f"test/{at}/{n}.png" for at in ("good", "bad", "old") for n in range(4)] + [f"train/good/{n}.png" for n in range(6)] + [f"ground_truth/{at}/{n}_mask.png" for at in ("bad", "old") for n in range(4)], "", False),
    "a deeper file": (["cat/1.jpg", "cat/more/2.jpg", "dog/3.jpg"], "cat/more ", False),
    "texts of several kinds": (["a/1", "a/2.md", "b/2", "b/3.rst"], ".md", True),
    "documents of several kinds": (["docs/a.cfg", "docs/b.rst", "docs/c.txt", "utils/d.py"], ".cfg", False),
    "videos": (["train/run/1.mp4", "test/walk/2.mp4"], ".mp4", True),
    "texts one folder too deep": (["in/a/1.txt", "in/b/1.txt", "in/readme.txt"], "", True),
    "texts side by side": (["a.good", "a.bad"], ".bad", False),
    "only texts": (["pos/1.txt"], "pos/1.txt", False),
    "documents by folder": ([f"{at}/poses/{at}{n}.json" for at in ("band1", "band2") for n in "12"], "no image", False),
    "folds of classes": ([f"fold_{at}/{c}/{c}{at}{n}.jpg" for at in "01" for c in ("cat", "dog") for n in "12"], "too deep", True),
    "parts of texts": ([f"all/part{at}/{at}{n}.txt" for at in "123" for n in "78"], "part1/17", False),
    "labels of the same names": (["i/ab1.jpg", "i/ab2.jpg", "l/ab1.txt", "l/ab2.txt"], "", False),
    "annotations": (["train/v1/img/1.jpg", "train/v2/img/1.jpg", "gt/x.txt"], "gt/x.txt", False),
    "an import file": (["1.jpg", "a.csv"], "a.csv", False),
    "one in each split": (["train/1.jpg", "test/1.jpg", "train/_a.csv", "test/_a.csv"], r"/\*/_a.csv", False),
    "masks as JPEG": (["images/a.jpg", "masks/a.jpg"], "", False),
    "labels in names beside a sample of predictions": ([f"train/{c}.{n}.jpg" for c in ("cat", "dog") for n in "123"] + ["test1/7.jpg", "sampleSubmission.csv"], "", True),
    "numbered parts": ([f"{at}/person{c}/{at}{c}{n}.jpg" for at in ("run", "walk") for c in "12" for n in "12"], "", True),
    "a folder for each file": ([f"patient{n}/study1/view.jpg" for n in range(6)], "", False),
    "masks of two splits": ([f"{s}_images/{s}{n}.jpg" for s in ("train", "val") for n in "12"] + [f"TrainVal_parsing/{s}_segmentations/{s}{n}.png" for s in ("train", "val") for n in "12"], "", True),
    "masks of two sides": ([f"{at}/{n}.png" for at in ("CXR", "Hand/leftMask", "Hand/rightMask") for n in ("i1", "i2")], "", False),
    "numbered folders that begin with their files": ([f"all/{at}000/{at}{n}23.png" for at in "012" for n in "01"], "", False),
    "numbered folders that end their files": ([f"all/000{at}/{n}00{at}.png" for at in "012" for n in "12"], "", False),
    "two parts beside each other": ([f"s{at}/{at}{n}_{part}.png" for at in "12" for n in "78" for part in ("clean", "noisy")], "pairs", False),
    "sentences and tags in capitals": (["Sentences.txt", "Labels.txt"], "sentences.txt and labels.txt", False),
    "two parts in each of many folders": ([f"{at}/{at}{n}_{part}.png" for at in "abcd" for n in "78" for part in ("before", "after")], "pairs", True),
    "classes with the same gaps": ([f"{at}/{n}.jpg" for at in ("cats", "dogs") for n in (1, 2, 5, 8)], "pairs", False),
    "pairs with the same gaps": ([f"{at}/{n}.png" for at in ("high", "low") for n in (2, 5, 6, 9)], "pairs", False),
    "folders of classes in one whose name holds images": ([f"{at}_image_sets/{at}_{c}/{at}{c}{n}.jpg" for at in ("lung", "colon") for c in "xy" for n in "12"], "", True),
    "one folder too high": (["in/a/1.jpg", "in/a/3.jpg", "in/b/2.jpg", "in/c.jpg"], "pass in/ if", True),
    "hashes by their first letter": ([f"train/{at}/{at}{n}7c4d9a{n}.png" for at in "03ae" for n in "125"], "parts", True),
    "bands of a place": ([f"{at}/{at}_{it}" for at in ("S2_10", "S2_77") for it in ("B1.tif", "B2.tif", "meta.json")], "parts", False),
    "recordings": ([f"{at}/color/{n}.jpg" for at in ("ants", "balls") for n in ("0001", "0002")], "", False),
    "pairs whose names have the name of their folder": ([f"{at}/{at.lower()}{n}.png" for at in ("Low", "Normal") for n in "123"], "pairs", False),
    "several files of each number": ([f"{at}/0{n}_{end}.png" for n in "123" for at, end in (("long", "10s"), ("short", "1s"), ("short", "3s"))], "pairs", False),
    "sizes": (["256x256/1.png", "512x512/1.png"], "256x256", False),
    "sequences and their documents": ([f"{at}/{name}" for at in ("boat", "wall") for name in ("1.png", "2.png", "H_1_2", "H_1_3")], "boat", False),
    "masks of two images each": ([f"{s}/{at}/{s}{n}.png" for s in ("train", "val") for at in ("A", "B", "label") for n in "12"], "", False),
    "clips of videos": ([f"v_{at}_g0{g}/frame{n}.jpg" for at in ("Run", "Walk") for g in "12" for n in range(1, 4 if g == "1" else 9)], "v_Run_g01 and v_Run_g02", False),
    "two files of each name in rooms and a list": ([f"{at}/{n}.{end}" for at in ("hall", "shop") for n in (1, 2, 8) for end in ("jpg", "png")] + ["list.csv"], "list.csv", False),
    "sizes in several classes": ([f"{at}/{size}X/{at}{size}{n}.png" for at in ("benign", "malignant") for size in (40, 100) for n in "12"], "too deep", False),
    "classes of several depths": ([f"{at}/{n}.jpg" for at in ("a/abbey", "a/apse/in", "b/bakery/shop", "b/base/out", "b/base/in") for n in ("1x", "2x")], "too deep", False),
    "classes that are numbered in each folder": ([f"{at}/character0{c}/{at}{c}{n}.png" for at in ("Greek", "Latin") for c in "12" for n in "78"], "too deep", False),
    "classes with numbers of their own": ([f"train_val2018/{at}/{c}/{c}{n}.jpg" for at, c in (("Aves", "2001"), ("Aves", "2002"), ("Fungi", "2007")) for n in "ab"], "too deep", False),
    "bands of many places": ([f"{at}/{at}_{it}" for at in ("S2_10", "S2_77", "S2_78", "S2_79") for it in ("B1.tif", "B2.tif", "meta.json")], "parts", False),
    "pictures and what their folder's word says is their input": ([f"{at}/{n}.png" for at in ("expert", "input") for n in range(1, 6)], "pairs", False),
    "persons in scenes": ([f"s{at}/o{c}/{at}{c}{n}.png" for at in "123" for c in "12" for n in "12"], "too deep", False),
    "arrays of annotations": ([f"train/images/{n}.jpg" for n in "12"] + [f"train/annotations/{n}_exp.npy" for n in "12"], "1_exp.npy", False),
    "parts of texts by words": ([f"web/urls_subset0{at}/{at}{n}.txt" for at in "123" for n in "78"], "no image", False),
    "two files of each name": ([f"{at}/{at}{n}.{end}" for at in ("oak", "elm") for n in "12" for end in ("jpg", "png")], "pairs", False),
}  # fmt: skip


@pytest.mark.parametrize(("names", "words", "is_proposed"), STOPS.values(), ids=STOPS)
def test_folders_that_may_be_no_classes_stop(names, words, is_proposed, tmp_path):
    """The folder is shown; a proposed layout reads every file of one kind that is there."""
    root = folder(tmp_path / "in", *names)
    with pytest.raises(NotUnderstoodError, match=words or None) as caught:
        read(root)
    assert caught.value.shown
    assert bool(caught.value.options) == is_proposed
    if is_proposed:
        found = Reading(root, **caught.value.options)
        assert found.rows
        assert not found.rejects


@pytest.mark.parametrize("suffix", [".AAE", ".jpg.json", ".HEIC"])
def test_a_refusal_of_files_beside_images_names_a_way_on(suffix, tmp_path):
    """Phones and Google Takeout write files beside images: the layout in the error reads those."""
    stems = [f"{at}/IMG_{at}{number}" for at in ("cat", "dog") for number in range(3)]
    root = folder(tmp_path, *(f"{stem}{end}" for stem in stems for end in (".jpg", suffix)))
    [layout] = re.findall("layout[ =]'(.+?)'", str(refusal(read, root)))
    assert len(Reading(root, layout=layout).rows) == len(stems)


def test_pictures_of_the_same_numbers_and_sizes_are_no_classes(tmp_path):
    """They are versions of each other, whatever their folders are named; two sizes are formats."""
    for many in (2, 4):
        sizes = {f"{at}/{n}.png": (8 + n % many, 8) for at in "xy" for n in range(4)}
        files = {name: encoded(Image.new("L", size, 200), "PNG") for name, size in sizes.items()}
        root = write_files(tmp_path / str(many), files)
        assert many == 4 or len(Reading(root).rows) == 8
    assert "pairs" in refusal(read, f"{root}/").reason


def test_pages_of_a_tiff_are_no_rows(tmp_path):
    """A stack of pages stops: only its first page would be a row."""
    pages = [Image.new("L", (8, 8), value) for value in (1, 2, 3)]
    pages[0].save(tmp_path / "train-volume.tif", save_all=True, append_images=pages[1:])
    assert "3 pages" in str(refusal(Reading, f"{tmp_path}/"))


@pytest.mark.parametrize(
    "names", [[".x"], ["dataset.json"], ["old/dataset.json", "old/Split-test/1.jpg"]]
)
def test_a_folder_without_images_stops(names, tmp_path):
    """Nothing but hidden files, and a converted dataset, are no folder of images."""
    with pytest.raises(SourceError, match=str(tmp_path)):
        read(folder(tmp_path, *names))


def test_a_link_to_a_folder_above_stops(tmp_path):
    """Its files would have no end."""
    root = folder(tmp_path / "looped", "cat/1.jpg")
    (tmp_path / "looped/cat/all").symlink_to("..")
    with pytest.raises(SourceError, match=r"cat/all: .*looped"):
        read(root)


def test_an_empty_folder_is_no_source(tmp_path):
    """The folder is named."""
    with pytest.raises(SourceError, match=str(tmp_path)):
        find_import_files(str(tmp_path))


def test_a_folder_moves_with_its_splits(tmp_path):
    """The location of a folder does not matter: its rows have relative paths."""
    names = [f"{number % 2}/{number}.jpg" for number in range(50)]
    places = [folder(tmp_path / name, *names) for name in ("a [1]*?", "b/c")]
    one, other = (recordgen.plan(place, max_reject_fraction=1).splits for place in places)
    assert one == other


# a file beside folders of classes, its text, whether it may hold labels, boxes or splits
BESIDE_CLASSES = [
    ("history.csv", "epoch,loss\n1,0.5\n2,0.4\n", False),
    ("classes.csv", "name,label\ncat,0\ndog,1\n", False),
    ("videos.csv", "video;label\ncat;run\ndog;run\n", True),
    ("taxa.csv", "taxon_id,rank\ncat,species\ndog,species\n", False),
    ("labels.csv", "image,label\ntrain/cat/a001.jpg,dog\n", True),
    ("train/labels.csv", "a001.jpg;dog\n", True),
    ("labels.csv", "train\\cat\\a001.jpg,dog\n", True),
    ("labels.jsonl", '{"path": "a001.jpg", "label": "dog"}\n', True),
    ("lists.txt", "cat/a001\ndog/b002\n", True),
    ("paths.txt", "cat/a001.jpg\ndog/b002.jpg\n", True),
    ("index.tsv", "train/cat/a001.jpg\tred\n", False),
    ("boxes.tsv", "a001.jpg\t1\nb002.jpg\t2\n", True),
    ("ids.csv", "id,age\na001,3\nb002,4\n", True),
    ("all.json", '{"a001.jpg": 1, "b002.jpg": 2}', True),
]


@pytest.mark.parametrize(("name", "text", "is_source"), BESIDE_CLASSES)
def test_a_file_beside_classes_stops_if_it_names_images(name, text, is_source, tmp_path):
    """Training history beside folders of classes is skipped; another source of labels is not."""
    root = folder(tmp_path, "train/cat/a001.jpg", "test/dog/b002.jpg", name)
    (tmp_path / name).write_text(text)
    if is_source:
        refused = refusal(read, root)
        assert name in refused.reason
        assert refused.options or not name.endswith(".txt")  # a list of splits
    else:
        adjusted = Adjustments()
        assert len(read(root, adjusted)) == 2
        [skipped] = adjusted.taken_lines()
        assert name in skipped.message


def test_a_table_of_other_labels_leaves_folders_unsaid(tmp_path):
    """Cameras with a table of what their pictures show are not proposed as classes."""
    names = [f"cam{at}/{at}{n}a.jpg" for at in "12" for n in range(4)]
    root = folder(tmp_path, *names, "labels.csv")
    rows = (f"{name[5:]},{('lynx', 'deer')[n % 2]}\n" for n, name in enumerate(names))
    (tmp_path / "labels.csv").write_text("filename,species\n" + "".join(rows))
    assert "layout" not in refusal(read, root).options


def test_tables_of_splits_that_share_a_folder_of_images_are_proposed_together(tmp_path):
    """No split is lost because the paths of all tables lack the folder."""
    root = folder(tmp_path, *(f"images/img00{n}.jpg" for n in range(6)), "train.csv", "test.csv")
    for name, numbers in (("train.csv", range(4)), ("test.csv", range(4, 6))):
        rows = "".join(f"img00{n},{'ab'[n % 2]},seen\n" for n in numbers)
        (tmp_path / name).write_text(f"image_id,dx,note\n{rows}")
    refused = refusal(recordgen.plan, root)
    assert refused.source == f"{root}*.csv"
    assert recordgen.plan(refused.source, **refused.options).read == 6


def test_files_that_are_no_images_are_skipped_and_named_once(tmp_path):
    """Files without the suffix of an image are one finding."""
    junk = ["README.md", "LICENSE", "cat/Thumbs.db", "cat/desktop.ini", "cat/1.txt", "dog/2.json"]
    junk += ["__MACOSX/cat/3.jpg", "checkpoints/4.jpg", "cat/no_suffix", "dog/b.xyz"]
    kept = ["cat/1.JPG", "dog/1.webp"]
    adjusted = Adjustments()
    assert [uri for uri, *_ in read(folder(tmp_path, *junk, *kept), adjusted)] == kept
    [found] = adjusted.taken_lines()
    assert isinstance(found, OddLine)
    assert (found.source, found.line, found.code) == (f"{tmp_path}/", 0, "SKIPPED")
    assert ": 10 (" in found.message


def photos(root, *names):
    images = (Image.new("RGB", (32, 32), (at * 9, 90, 200)) for at in range(len(names)))
    return write_files(root, {name: encoded(next(images), "JPEG") for name in names})


def test_an_output_is_never_among_its_sources(tmp_path):
    """An output in a source folder, and a source in the output, are refused before any write."""
    root = photos(tmp_path / "photos", "cat/1.jpg", "dog/2.jpg")
    (tmp_path / "link").symlink_to(root)
    write_files(tmp_path, {"all/labels.csv": "../photos/cat/1.jpg,cat\n"})
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
    """Findings, errors and rejects of a folder name the file itself."""
    root = photos(tmp_path / "photos", "cat/1.jpg", "cat/2.jpg")
    copy = (root / "cat/1.jpg").read_bytes()
    write_files(root, {"dog/copy.jpg": copy, "dog/empty.jpg": b""})
    found = recordgen.check(root, split="100", lint="CONFLICT")
    [conflict] = found.lint.findings()
    assert str(conflict).startswith(f"{root}/dog/copy.jpg: CONFLICT ")
    assert f"{root}/cat/1.jpg " in conflict.message
    with pytest.raises(DataError, match=f"{root}/dog/copy.jpg .* {root}/cat/1.jpg"):
        recordgen.plan(root, duplicates="fail", max_reject_fraction=1)
    [reject] = found.rejects
    assert (reject.source, reject.line, reject.uri) == (f"{root}/", 4, "dog/empty.jpg")
    assert f"\n{root}/dog/empty.jpg: " in str(found)
    with pytest.raises(DataError, match=f"{root}/dog/empty.jpg: "):
        recordgen.convert(root, tmp_path / "out")
    whole = LintFinding("SKIPPED", "warning", "photos/", 0, "", "", "text")
    assert str(whole) == "photos/: SKIPPED text"


def test_images_without_folders_of_classes_name_the_remedy(tmp_path):
    """The labels of a folder are its folders, so the message speaks of these."""
    source = photos(tmp_path, "train/cat.0.jpg", "train/dog.0.jpg")
    with pytest.raises(DataError, match="labels=none"):
        recordgen.check(source)


@pytest.mark.parametrize("options", [{}, {"layout": "{label}/{name}.jpg"}])
def test_a_large_folder_is_listed_once(options, tmp_path):
    """Its files are known from its detection when all rows are read."""
    source = folder(tmp_path, *(f"{at % 2}s/{at}.jpg" for at in range(500)))
    with opened("os.scandir") as listed:
        recordgen.plan(source, max_reject_fraction=1, **options)
    assert sum(path.startswith(source) for path in listed) == 3  # it, and the folder of each class


# --- texts by label -------------------------------------------------------------------------------

IMDB = {
    "train/pos/1_7.txt": "Good, and cheap.",
    "train/pos/2_9.txt": "A film that I would see again.",
    "train/neg/1_2.txt": "Bad, and dear.",
    "train/unsup/1_0.txt": "Nobody has rated this one.",
    "test/pos/1_8.txt": "Very good.",
    "test/neg/1_1.txt": "Very bad.",
    "train/urls_pos.txt": "http://www.imdb.com/title/tt0453418/usercomments",
    "train/labeledBow.feat": "9 0:9 1:1",
    "imdb.vocab": "the",
    "imdbEr.txt": "0.0490972013402",
    "README": "Large Movie Review Dataset v1.0",
}


def said(label):
    return f'{{"said": ["{label}"]}}'


def test_aclimdb_needs_no_option(tmp_path):
    """Splits and labels are the folders; other files are counted; unsup has no labels."""
    found = Reading(write_files(tmp_path, IMDB))
    assert (found.options.task, found.options.format) == ("text_classification", "text_folder")
    folders = [name.split("/") for name in IMDB if name.count("/") == 2]
    assert {row.uri: (row.split, row.annotation) for row in found.rows} == {
        "/".join((split, label, name)): (split, None if label == "unsup" else said(label))
        for split, label, name in folders
    }
    assert not found.rejects
    roles = {"train": "split train", "test": "split test", "train/unsup": "no label"}
    assert dict(found.detection.columns) == roles


def test_the_option_is_the_encoding_of_the_texts(tmp_path):
    """A text of another encoding is a reject that names the option, and no character is lost."""
    words = {"sport": ["Voilà", "été"], "tech": ["où", "Ω"]}
    files = {
        f"{kind}/{at}.txt": word.encode("utf-8" if word == "Ω" else "cp1252")
        for kind, texts in words.items()
        for at, word in enumerate(texts)
    }
    source = write_files(tmp_path / "in", files)
    options = {"max_reject_fraction": 1, "split": "100,0,0", "lint": "-ALL"}
    plain = recordgen.convert(source, tmp_path / "plain", **options)
    assert {item.code for item in plain.rejects} == {"bad_encoding"}
    assert all("--encoding" in item.message for item in plain.rejects)
    recordgen.convert(source, tmp_path / "out", encoding="cp1252", **options)
    texts = {values["text"][0].decode() for _, values in stored_examples(tmp_path / "out")}
    assert texts == {"Voilà", "été", "où", "Î©"}


# files, labels
TEXT_FOLDERS = [
    ({"sport/x_jones.txt": "Goal!", "tech/y_smith.txt": "A chip."}, {"sport", "tech"}),
    ({"bbc/sport/1.txt": "Goal!", "bbc/tech/1.txt": "A chip."}, {"sport", "tech"}),
    (
        {f"{at}/00{n}.txt": f"{at} {n}" for at in ("sport", "tech") for n in "123"},
        {"sport", "tech"},
    ),
    ({"README.TXT": "x", "sport/1.TXT": "Goal!", "tech/1.txt": "A chip."}, {"sport", "tech"}),
]


@pytest.mark.parametrize(("files", "labels"), TEXT_FOLDERS)
def test_folders_without_splits(files, labels, tmp_path):
    """BBC News has a folder for each class, and its splits are assigned."""
    rows = Reading(write_files(tmp_path, files)).rows
    assert {row.split for row in rows} == {None}
    assert {row.annotation for row in rows} == set(map(said, labels))
