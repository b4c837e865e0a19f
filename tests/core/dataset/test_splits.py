"""One table of words names splits in every format; rows without a word get one by shares."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from recordgen.core.dataset import splits
from recordgen.core.rows.row import Group, PlacedRow, Row
from recordgen.errors import SplitNotFoundError, UsageError
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions, make_options
from recordgen.rejects import Reject
from recordgen.tasks import ImageClassification
from tests.formats.sources import frame_rows, write_files
from tests.planned import chosen, resolved
from tests.rows import read_rows

CLASSES = {"cat/cat.jpg": "", "dog/dog.jpg": ""}


def of_file(name, text, **options):
    """Return a function that reads the row of a file's last line, with a word for its split."""

    def row_of(word, folder):
        file = ImportFile(str(folder / name))
        (folder / name).write_text(text.replace("WORD", word))
        *_, row = read_rows(detect([file], ConvertOptions(**options)).options, file)
        return row

    return row_of


def of_dataframe(word, folder):
    frame = pd.DataFrame({"split": [word], "image_uri": ["a.jpg"], "label": ["cat"]})
    [row] = frame_rows(frame, ImageClassification())
    return row


def of_folder(word, folder):
    write_files(folder / word, CLASSES)
    options = ConvertOptions(task="image_classification", format="folder")
    row, _ = read_rows(options, ImportFile(f"{folder}/"))
    return row


IMAGES, TEXTS = {"task": "image_classification"}, {"task": "text_classification"}
ML_USE = {"dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "WORD"}}
DOORS = {
    "csv": of_file("a.csv", "WORD,a.jpg,cat\n", **IMAGES),
    "header": of_file("a.csv", "image,split,label\nb.jpg,TRAIN,dog\na.jpg,WORD,cat\n", **IMAGES),
    "text": of_file("a.csv", "WORD,So good,praise\n", **TEXTS),
    "jsonl": of_file("a.jsonl", json.dumps({"imageGcsUri": "a.jpg", **ML_USE}), **IMAGES),
    "schema": of_file("a.csv", "set,n\nWORD,1\n", schema='{"set": "split", "n": "int"}'),
    "table": of_file("a.csv", "fold,n\ntrain,1\nWORD,2\n", task="tabular", columns="split=fold"),
    "frame": of_dataframe,
    "folder": of_folder,
}

WORDS = {
    "train": ["train", "Training"],
    "eval": ["VALIDATION", "Validate", "val", "VALID", "Dev", "eval", "Evaluation"],
    "test": ["TEST", "testing"],
    None: ["Unassigned"],
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_words_name_splits_at_every_door(door, tmp_path):
    """Files, folders and fields know the same words."""
    for split, words in WORDS.items():
        for word in words:
            (tmp_path / word).mkdir()
            row = door(word, tmp_path / word)
            assert isinstance(row, Row), (word, row)
            assert row.split == split, word


@pytest.mark.parametrize("name", [name for name in DOORS if name != "folder"])
def test_a_near_miss_is_named(name, tmp_path):
    """A misspelt word is a reject with the word that it is close to."""
    row = DOORS[name]("TRIAN", tmp_path)
    assert isinstance(row, Reject)
    assert row.code == "unknown_ml_use"
    assert "TRAIN" in row.message


# word, the suggested word
NEAR = [("validaton", "VALIDATION"), ("TSET", "TEST"), ("cat", None), ("trees", None)]


@pytest.mark.parametrize(("word", "meant"), NEAR)
def test_only_words_close_to_a_published_one_get_a_suggestion(word, meant):
    """Other words are only quoted."""
    hint = f"; .*{meant}" if meant else ""
    with pytest.raises(ValueError, match=rf"TRAIN, VALIDATION, TEST, .*\(got {word!r}{hint}.?\)"):
        splits.parse_ml_use(word)


def test_the_innermost_folder_names_the_split():
    """A name that only contains a word does not count."""
    words = {"images/val2017/1.jpg": "val", "data/test/train/1.jpg": "train"}
    words |= {"2017/1.jpg": None, "trainX/1.jpg": None, "train": None}
    assert {path: splits.word_in_folders(path) for path in words} == words


def test_a_split_is_found_under_its_own_name_first():
    """Other words for it count after its own name."""
    assert splits.find_split("out", "validation", ["train", "eval"]) == "eval"
    assert splits.find_split("out", "val", ["eval", "val"]) == "val"
    with pytest.raises(SplitNotFoundError, match=r"out: .*'test'.*train, eval"):
        splits.find_split("out", "test", ["train", "eval"])


# --- split fractions: the hashes of each split; names of splits ---------------------------------


# weights, the split of each of several equal ranges of hashes
SHARES = [
    ((80, 10, 10), ["train"] * 80 + ["eval"] * 10 + ["test"] * 10),
    ((1, 0, 1), ["train", "test"]),
    ((0, 1), ["eval"]),
    ((2, 1, 0), ["train", "train", "eval"]),
    ((7,), ["train"] * 7),
]


@pytest.mark.parametrize(("weights", "owners"), SHARES)
def test_each_split_owns_its_share(weights, owners):
    """Each split owns the keys from its start up to the start of the next."""
    fractions = splits.SplitFractions(splits.SPLITS[: len(weights)], weights)
    starts = [-(-(number << 64) // len(owners)) for number in range(len(owners) + 1)]
    assert starts[-1] == 1 << 64
    assert [chosen(fractions, start) for start in starts[:-1]] == owners
    assert [chosen(fractions, end - 1) for end in starts[1:]] == owners


@pytest.mark.parametrize(("names", "weights"), [(("train",), (1, 2)), ((), ())])
def test_each_split_needs_one_weight(names, weights):
    """As many names as weights, and at least one."""
    with pytest.raises(UsageError, match=f"{len(names)} names and {len(weights)} weights"):
        splits.SplitFractions(names, weights)


def test_train_eval_and_test_come_first():
    """Other names follow in their order."""
    names = ["test", "a", "zebra", "eval", "b", "train"]
    assert sorted(names, key=splits.split_order) == ["train", "eval", "test", "a", "b", "zebra"]


def test_a_label_is_no_split(tmp_path):
    """Whether a folder holds a split depends on where the tree of folders begins."""
    write_files(tmp_path / "DEV", CLASSES)
    options = ConvertOptions(task="image_classification", format="folder")
    for root, split in ((tmp_path, "eval"), (tmp_path / "DEV", None)):
        row, _ = read_rows(options, ImportFile(f"{root}/"))
        assert isinstance(row, Row)
        assert (row.split, row.annotation) == (split, "cat")


def test_words_of_ml_use_name_their_split():
    """Other names stay as they are."""
    words = {"val": "eval", "TRAIN": "train", "mine": "mine", "unassigned": "unassigned", "": ""}
    assert {word: splits.split_named(word) for word in words} == words


# eval_from, the recorded text
EVAL_FROM = [
    ("train:10", "train:10"),
    ("TRAIN:10.0", "train:10"),
    ("training:2.5", "train:2.5"),
    ("all:99.5", "all:99.5"),
    ("a:b:0.5", "a:b:0.5"),
]


@pytest.mark.parametrize(("text", "option"), EVAL_FROM)
def test_every_spelling_of_eval_from_is_recorded_alike(text, option):
    """dataset.json has one spelling."""
    assert ConvertOptions(eval_from=text).recorded()["eval_from"] == option


NO_SHARES = ("train", "10", "train:", ":10", "train:0", "train:100", "train:nan")


@pytest.mark.parametrize("text", [*NO_SHARES, "val:5", "eval:5", "unassigned:5"])
def test_a_wrong_eval_from_is_an_error_with_its_value(text):
    """The message shows a right one."""
    with pytest.raises(UsageError, match=re.escape(f"train:10 (got {text!r})")):
        ConvertOptions(eval_from=text)


def test_shares_grow_and_go_by_the_lower_bits():
    """A larger share holds the smaller one, and is independent of the splits."""
    hashes = [n << 54 | n << 22 for n in range(1024)]  # both halves from 0 to their ends
    few, many = moved("a:10", "a", hashes), moved("a:50", "a", hashes)
    assert (len(few), len(many)) == (103, 512)
    assert few < many
    edge = 7 << 32 | 1 << 31
    assert moved("a:50", "a", [edge - 1, edge]) == {edge - 1}
    assert moved("a:50", "test", [0]) == set()


def moved(share, split, hashes):
    """Return the split hashes of the rows of a split that ``share`` moves to ``eval``."""
    rows = [
        PlacedRow(n, split_hash, "a.csv", n, split, f"{n}", "x")
        for n, split_hash in enumerate(hashes)
    ]
    options, task = ConvertOptions(eval_from=share), ImageClassification()
    planned, _ = resolved(rows, options=options, task=task, drop_unnamed=False)
    return {hashes[row.line] for row in planned.get(Group("eval", None), [])}


# what a user gives, its text, what dataset.json has
RULES = [
    ("90,10", "90,10", "train:90,eval:10"),
    ("1", "1", "train:1"),
    ("80, 10,10", "80,10,10", "train:80,eval:10,test:10"),
    ("", "80,10,10", "train:80,eval:10,test:10"),
    ("eval:1, train:3", "eval:1,train:3", "eval:1,train:3"),
    ("train:3,test:1,names=no", "train:3,test:1,names=no", "train:3,test:1,names=no"),
    ("names=yes", "80,10,10,names=yes", "train:80,eval:10,test:10,names=yes"),
    ([8, 2], "8,2", "train:8,eval:2"),
    ((np.int64(1),), "1", "train:1"),
    ({"train": 80, "validation": 20}, "80,20", "train:80,eval:20"),
    ({"train": 3, "TEST": 1, "names": "no"}, "train:3,test:1,names=no", "train:3,test:1,names=no"),
    ({"names": "yes"}, "80,10,10,names=yes", "train:80,eval:10,test:10,names=yes"),
]


@pytest.mark.parametrize(("given", "text", "recorded"), RULES, ids=str)
def test_a_rule_has_one_text(given, text, recorded):
    """Texts, sequences and mappings of shares are one rule at every door."""
    rule = splits.SplitRule.of(given)
    assert (str(rule), rule.recorded) == (text, recorded)
    assert splits.SplitRule.of(text) == rule == splits.SplitRule.of(rule)
    assert make_options({"split": given}).split == rule == ConvertOptions(split=given).split


NO_RULES = [
    *({"train": 0.8, "eval": 0.2}, {"train": "80"}, {"training": 1, "train": 1}, {"holdout": 1}),
    *({1: 1}, {}, {80, 20}, 80, None, b"80", [True], [[80]], {"names": "maybe"}, [1, 2, 3, 4]),
    *("eighty", "holdout:80", "80,names=perhaps", "names=maybe", "train:x,eval:1", "1,x"),
    *("80;10;10", "1,2,3,4", "-1,2", "0,0,0", "train:80,20"),
]


@pytest.mark.parametrize("given", NO_RULES, ids=str)
def test_other_rules_are_refused(given):
    """The error names the option."""
    for make in (ConvertOptions, lambda split: make_options({"split": split})):
        with pytest.raises(UsageError, match=r"^split[ :]"):
            make(split=given)
