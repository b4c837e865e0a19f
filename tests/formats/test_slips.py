"""Mistakes in labels and paths: the message names the cause, and nothing is changed."""

import json

import pandas as pd
import pytest

import recordgen
from recordgen.core.dataset.vocabulary import look_alikes
from recordgen.core.rows.row import Adjustments, Row
from recordgen.formats import automl_jsonl
from recordgen.formats.automl_csv import LineParser, TextParser
from recordgen.formats.class_folders import ImageFolder
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.import_file import ImportFile
from recordgen.rejects import Reject
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    TextClassification,
    TextSentiment,
    VideoClassification,
)
from tests.formats.sources import frame_rows, parsed, write_files


def read(line, task):
    parse = LineParser.parse_lines
    if line.startswith("{"):
        parse = automl_jsonl.parse_lines
    elif task.kind == "text":
        parse = TextParser.parse_lines
    [row] = parsed(parse, [line.encode()], "f", task)
    return row


OBJECT = '{"imageGcsUri": "a", "classificationAnnotation": {"displayName": "nan"}}'
MISSING = [
    (ImageClassification(), "TRAIN,a.jpg,nan"),
    (ImageClassification(), "a.jpg,NaN"),
    (ImageClassification(), "a.jpg,<NA>"),
    (ImageClassification(), r"a.jpg,\N"),
    (ImageMultiLabel(), "a.jpg,cat,nan"),
    (ObjectDetection(), "a.jpg,nan,.1,.2,,,.3,.4,,"),
    (VideoClassification(), "a.mp4,nan,0,1"),
    (TextClassification(), "So good,nan"),
    (TextSentiment(), "So good,nan"),
    (ImageClassification(), OBJECT),
]


@pytest.mark.parametrize(("task", "line"), MISSING)
def test_a_missing_label_is_no_class(task, line):
    """A label that pandas writes for a missing value is rejected, and the message names pandas."""
    row = read(line, task)
    assert isinstance(row, Reject)
    assert row.code == "bad_annotation"
    assert "pandas" in row.message


# labels that only look like missing values
@pytest.mark.parametrize("label", ["none", "null", "N/A", "naan", "nan bread", "None"])
def test_words_that_may_be_classes_are(label):
    """Other words for nothing are labels, because real datasets have such classes."""
    assert read(f"a.jpg,{label}", ImageClassification()) == Row("f", 1, None, "a.jpg", label)


def test_missing_labels_of_frames_and_folders(tmp_path):
    """A missing value is no label; its text, and a folder with this name, are rejected."""
    frame = pd.DataFrame({"image_uri": ["a.jpg", "b.jpg"], "label": ["cat", None]})
    rows = frame_rows(frame, ImageClassification())
    assert [row.annotation for row in rows] == ["cat", None]
    frame["label"] = [str(value) for value in frame["label"].astype(object).fillna(float("nan"))]
    _, row = frame_rows(frame, ImageClassification())
    assert isinstance(row, Reject)
    path = f"{write_files(tmp_path, {'cat/a.jpg': '', 'nan/a.jpg': ''})}/"
    file, task = ImportFile(path), ImageClassification()
    good, bad = ImageFolder().rows(file, task, Adjustments(), NOTHING_GIVEN)
    assert (good.uri, type(bad)) == ("cat/a.jpg", Reject)


ALIKE = [
    (["Cat", "cat", "dog"], [("Cat", "cat")]),
    (["hot dog", "hotdog", "hot\u00a0 Dog"], [("hot dog", "hotdog", "hot\u00a0 Dog")]),
    (["caf\u00e9", "cafe\u0301", "cafe"], [("caf\u00e9", "cafe\u0301")]),
    (["\uff21", "a", "STRASSE", "Stra\u00dfe"], [("\uff21", "a"), ("STRASSE", "Stra\u00dfe")]),
    (["cat", "cats", "c_at", "1", "01"], []),
]


@pytest.mark.parametrize(("labels", "groups"), ALIKE)
def test_look_alikes(labels, groups):
    """Labels look alike if they differ only in capitals, blanks or Unicode forms."""
    assert look_alikes(labels) == groups


@pytest.mark.parametrize("path", [r"clips\a.mp4", r"C:\clips\a.mp4"])
def test_nobody_would_miss_a_video(path):
    """Videos are never opened, so a Windows path is refused when its row is read."""
    task = VideoClassification()
    for line in (f"TRAIN,{path},car,0,1", json.dumps({"videoGcsUri": path})):
        row = read(line, task)
        assert isinstance(row, Reject)
        assert " / " in row.message
    url = "gs://bucket/a\\b.mp4"  # a valid name in an object store
    assert isinstance(read(f"{url},car,0,1", task), Row)


def test_slips_are_said_of_a_conversion(make_images, make_csv, tmp_path):
    """Labels that look alike are two classes with a warning; a backslash is part of a file name."""
    images = make_images(6)
    odd = images[0].parent / "odd\\name.jpg"
    images[5].rename(odd)
    rows = [f"TRAIN,{path},{'Cat' if n < 2 else 'cat'}" for n, path in enumerate(images[:5])]
    windows = str(images[0]).replace("/", "\\")
    source = make_csv([*rows, f"TRAIN,{odd},dog", f"TRAIN,{windows},dog"])
    result = recordgen.convert(source, tmp_path / "out", max_reject_fraction=0.5)
    assert result.dataset.labels == ("Cat", "cat", "dog")
    assert any("'Cat' (2) and 'cat' (3)" in text for text in result.dataset.warnings)
    [reject] = result.rejects
    assert reject.code == "missing_file"
