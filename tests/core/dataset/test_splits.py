"""One table of words names splits in every format; near misses are suggested."""

import json

import pandas as pd
import pytest

from recordgen.core.dataset.splits import find_split, parse_ml_use, word_in_folders
from recordgen.core.rows.row import Adjustments, Row
from recordgen.errors import SplitNotFoundError
from recordgen.formats import automl_jsonl
from recordgen.formats import declared_rows as declared
from recordgen.formats.automl_csv import LineParser, TextParser
from recordgen.formats.detect import detect
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tasks import ImageClassification, TextClassification, task_for
from tests.formats.sources import frame_rows
from tests.rows import read_rows

IMAGE, TEXT = ImageClassification(), TextClassification()
OPTIONS = {"adjusted": Adjustments(), "source": "f", "given": NOTHING_GIVEN}


def of_csv(word, folder):
    [row] = LineParser.parse_lines([f"{word},a.jpg,cat".encode()], task=IMAGE, **OPTIONS)
    return row


def of_header(word, folder):
    lines = [b"image,split,label", f"a.jpg,{word},cat".encode()]
    [row] = LineParser.parse_lines(lines, task=IMAGE, **OPTIONS)
    return row


def of_text(word, folder):
    [row] = TextParser.parse_lines([f"{word},So good,praise".encode()], task=TEXT, **OPTIONS)
    return row


def of_jsonl(word, folder):
    labels = {"aiplatform.googleapis.com/ml_use": word}
    line = json.dumps({"imageGcsUri": "a.jpg", "dataItemResourceLabels": labels})
    [row] = automl_jsonl.parse_lines([line.encode()], task=IMAGE, **OPTIONS)
    return row


def of_dataframe(word, folder):
    frame = pd.DataFrame({"split": [word], "image_uri": ["a.jpg"], "label": ["cat"]})
    [row] = frame_rows(frame, IMAGE)
    return row


def of_schema(word, folder):
    task = task_for(ConvertOptions(schema='{"set": "split", "n": "int"}'))
    [row] = declared.DeclaredParser.parse_lines([f"{word},1".encode()], task=task, **OPTIONS)
    return row


def of_table(word, folder):
    path = folder / "a.csv"
    path.write_text(f"fold,n\ntrain,1\n{word},2\n")
    options = ConvertOptions(task="tabular", columns="split=fold")
    file = ImportFile(str(path))
    rows = read_rows(detect([file], options).options, file)
    [row] = [row for row in rows if row.line == 3]
    return row


def of_folder(word, folder):
    for label in ("cat", "dog"):
        (folder / word / label).mkdir(parents=True)
        (folder / word / label / f"{label}.jpg").touch()
    options = ConvertOptions(task="image_classification", format="folder")
    row, _ = read_rows(options, ImportFile(f"{folder}/"))
    return row


DOORS = [of_csv, of_header, of_text, of_jsonl, of_dataframe, of_schema, of_table, of_folder]

WORDS = {
    "train": ["train", "Training"],
    "eval": ["VALIDATION", "Validate", "val", "VALID", "Dev", "eval", "Evaluation"],
    "test": ["TEST", "testing"],
    None: ["Unassigned"],
}


@pytest.mark.parametrize("door", DOORS)
def test_words_name_splits_at_every_door(door, tmp_path):
    for split, words in WORDS.items():
        for word in words:
            (tmp_path / word).mkdir()
            row = door(word, tmp_path / word)
            assert isinstance(row, Row), (word, row)
            assert row.split == split, word


@pytest.mark.parametrize("door", [door for door in DOORS if door is not of_folder])
def test_a_near_miss_is_named(door, tmp_path):
    row = door("TRIAN", tmp_path)
    assert isinstance(row, Reject)
    assert row.code == "unknown_ml_use"
    assert "TRAIN" in row.message


# word, the suggested word
NEAR = [("validaton", "VALIDATION"), ("TSET", "TEST"), ("cat", None), ("trees", None)]


@pytest.mark.parametrize(("word", "meant"), NEAR)
def test_only_words_close_to_a_published_one_get_a_suggestion(word, meant):
    hint = f"; .*{meant}" if meant else ""
    with pytest.raises(ValueError, match=rf"TRAIN, VALIDATION, TEST, .*\(got {word!r}{hint}.?\)"):
        parse_ml_use(word)


def test_the_innermost_folder_names_the_split():
    words = {"images/val2017/1.jpg": "val", "data/test/train/1.jpg": "train"}
    words |= {"2017/1.jpg": None, "trainX/1.jpg": None, "train": None}
    assert {path: word_in_folders(path) for path in words} == words


def test_a_split_is_found_under_its_own_name_first():
    assert find_split("out", "validation", ["train", "eval"]) == "eval"
    assert find_split("out", "val", ["eval", "val"]) == "val"
    with pytest.raises(SplitNotFoundError, match=r"out: .*'test'.*train, eval"):
        find_split("out", "test", ["train", "eval"])
