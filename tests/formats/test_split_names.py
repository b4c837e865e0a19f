# ruff: noqa: E501 - tables with a case on each line
"""Splits in the names of files and folders hold for rows that name none."""

import json
from collections import Counter

import pytest

import recordgen
from recordgen.conversion.api import convert_files
from recordgen.conversion.summaries import summary
from recordgen.core.flow.runner import LocalRunner
from recordgen.errors import UsageError
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import open_source
from recordgen.formats.split_names import split_in_path, with_names
from recordgen.options import ConvertOptions
from tests.conftest import encoded, noise, write_file
from tests.formats.sources import Reading, write_files

CSV = "image,label\na.jpg,x\nb.jpg,y\n"
BARE = "a.jpg,x\nb.jpg,y\n"
TSV = "text\tlabel\nGood, and cheap.\tx\nBad, and dear.\ty\n"
JSON = '{"file_name": "a.jpg", "label": "x"}\n{"file_name": "b.jpg", "label": "y"}\n'
OBJECT = {"imageGcsUri": "a.jpg", "classificationAnnotation": {"displayName": "x"}}
TABLE = "age,job\n31,a\n42,b\n"
TAGGED = {f"{split}_sentences.txt": "Anna flew\n" for split in ("train", "test")}
TAGGED |= {f"{split}_labels.txt": "B-P O\n" for split in ("train", "test")}
NAMED = {"columns": "path=file_name,label=label"}


# path, split
WORDS = [
    ("data/train_labels.csv", "train"),
    ("val2017.jsonl", "eval"),
    ("TrainLabels.csv", "train"),
    ("x.DEV.tsv", "eval"),
    ("devel.tsv", "eval"),
    ("test/metadata.jsonl", "test"),
    ("Split-train/labels.csv", "train"),
    ("test/train.csv", "train"),  # the nearer name
    ("https://a.example/test.csv?name=train.csv", "test"),
    ("photos_train/", "train"),
    ("train/photos/", None),
    ("train_test.csv", None),
    ("latest.csv", None),
    ("my_test_dir/labels.csv", None),
    ("unassigned.csv", None),
]


@pytest.mark.parametrize(("path", "split"), WORDS)
def test_words_in_names(path, split):
    """One word of ML_USE in the name decides, else the whole name of the folder."""
    assert split_in_path(path) == split


# texts, options
SPLIT_FILES = [
    ({"train_labels.csv": CSV, "test_labels.csv": CSV}, {}),
    ({"train.csv": BARE, "test.csv": BARE}, {}),
    ({"train/metadata.jsonl": JSON, "test/metadata.jsonl": JSON}, NAMED),
    ({"train.jsonl": json.dumps(OBJECT), "test.jsonl": json.dumps(OBJECT)}, {}),
    ({"train.tsv": TSV, "test.tsv": TSV}, {}),
    ({"train.csv": TABLE, "test.csv": TABLE}, {"task": "tabular"}),
    ({"train.csv": TABLE, "test.csv": TABLE}, {"schema": '{"age": "int", "job": "label"}'}),
    (TAGGED, {}),
    ({f"{at}/1.jpg": "" for at in ("train/x", "train/y", "test/x", "test/y")}, {}),
]


@pytest.mark.parametrize(("texts", "options"), SPLIT_FILES)
def test_the_split_in_a_name_holds(texts, options, tmp_path):
    """Every format: rows get the split in the name, the preview says so, and an option ends it."""
    write_files(tmp_path, texts)
    files = [tmp_path / name for name in texts if not name.endswith(("_labels.txt", ".jpg"))]
    files = files or [tmp_path / "train", tmp_path / "test"]

    def splits_of(**more):
        reading = Reading(files, **options, **more)
        found = Counter(row.split for row in reading.rows)
        shown = {row.split for row in reading.detection.rows}
        assert shown <= {split or "(assigned)" for split in found}
        assert ("by the name of" in summary(reading.detection)) is (None not in found)
        return found

    found = splits_of()
    assert set(found) == {"train", "test"}
    assert found["train"] == found["test"]
    assert set(splits_of(split="names=no")) == {None}


# names, auto, yes
NEIGHBOURS = [
    (["train.csv"], ["train"], ["train"]),
    (["train_stations.csv"], [None], ["train"]),  # by chance
    (["test/labels.csv"], [None], ["test"]),
    (["ab-test.csv", "labels.csv"], [None, None], ["test", None]),
    (["birds_train.csv", "birds_test.csv"], ["train", "test"], ["train", "test"]),
    (["train/labels.csv", "test/labels.csv"], ["train", "test"], ["train", "test"]),
    (["train.csv", "more.csv"], ["train", None], ["train", None]),
]


@pytest.mark.parametrize(("names", "auto", "yes"), NEIGHBOURS)
def test_names_count_beside_each_other(names, auto, yes):
    """A single name counts only if it says little else, or if the option says that it counts."""
    files = list(map(ImportFile, names))
    for option, expected in (("auto", auto), ("yes", yes), ("no", [None] * len(names))):
        options = ConvertOptions(split=f"names={option}")
        assert [file.split for file in with_names(files, [], options)] == expected


@pytest.mark.parametrize("name", ["test.csv", "val_labels.csv"])
def test_a_name_must_not_empty_train(name, tmp_path):
    """A single file of test rows stops the run, unless it is meant or its rows name splits.

    The proposed option assigns splits.
    """
    path = write_file(tmp_path / name, BARE)
    with pytest.raises(UsageError, match=name) as caught:
        open_source(path, ConvertOptions())
    source, _ = open_source(path, ConvertOptions(**caught.value.options))
    assert source.files[0].split is None
    for option, is_named in (("yes", True), ("no", False)):
        source, _ = open_source(path, ConvertOptions(split=f"names={option}"))
        assert (source.files[0].split is not None) is is_named
    path.write_text(f"TRAIN,{BARE}")
    open_source(path, ConvertOptions())


YAML = "train:\nval: val/images\ntest: test/images\nnames: [x]\n"
LINE = "0 0.5 0.5 0.2 0.2\n"

# Folders, lists and documents without train, and the splits that they have
WITHOUT_TRAIN = [
    ({"val/x/1.png": "", "test/y/2.png": ""}, {"eval", "test"}),
    ({"data.yaml": YAML, "val/images/1.png": "", "test/images/2.png": "", "val/labels/1.txt": LINE, "test/labels/2.txt": LINE}, {"eval", "test"}),
    ({"test/1.png": "", "test/1.json": '{"shapes": [], "imagePath": "1.png", "flags": {"x": true}}'}, {"test"}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "splits"), WITHOUT_TRAIN)
def test_folders_must_not_empty_train(files, splits, tmp_path):
    """The run stops, unless it is meant, or a step of a pipeline names the splits of its inputs."""
    picture = encoded(noise(8, 8), "PNG")
    files = {name: picture if name.endswith(".png") else text for name, text in files.items()}
    source, out = write_files(tmp_path / "in", files), tmp_path / "out"
    with pytest.raises(UsageError, match="train"):
        recordgen.convert(source, out)
    assert not list(out.glob("*"))
    assert set(recordgen.plan(source, split="names=yes").splits) == splits
    assert set(recordgen.check(source).dataset.splits) == splits
    inputs = [ImportFile(f"{source}/", "test")]
    given = convert_files(inputs, str(out), ConvertOptions(), new_runner=LocalRunner)
    assert "train" not in given.dataset.splits


def test_what_rows_say_is_stronger(tmp_path):
    """A row's own split stays, and a file whose rows ask for assigned splits gets them."""
    for text, name, splits in (
        ("TEST,a.jpg,x\n,b.jpg,y\n", "train.csv", ["test", "train"]),
        ("UNASSIGNED,a.jpg,x\n,b.jpg,y\n", "test.csv", [None, None]),
        ("TRAIN,a.jpg,unassigned\n,b.jpg,y\n", "val.csv", ["train", "eval"]),
    ):
        found = Reading(write_files(tmp_path, {name: text}) / name)
        assert [row.split for row in found.rows] == splits
