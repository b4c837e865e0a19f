"""One-hot columns, and several labels in one field."""

import json

import numpy as np
import pandas as pd
import pytest

from recordgen.errors import NotUnderstoodError, UsageError
from tests.formats.sources import Reading, write_files

ONE, SEVERAL = "image_classification", "image_multi_label"


def read(source, **options):
    """Return the task, the rows' labels by path, the rejects' codes and the declared classes."""
    found = Reading(source, **options)
    labels = dict(sorted((row.uri, row.annotation) for row in found.rows))
    return found.options.task, labels, found.codes, found.classes


def write(folder, text, name="a.csv"):
    return str(write_files(folder, {name: text}) / name)


# lines of a CSV; task; labels of the rows
READ = {
    "one 1 in each row": ("filename,cat,dog\n1.jpg,0,1\n2.jpg,1,0\n", ONE, ["dog", "cat"]),
    "several": ("filename,cat,dog\n1.jpg,1,1\n2.jpg,1,0\n", SEVERAL, ['["cat", "dog"]', '["cat"]']),
    "none": ("filename,cat,dog\n1.jpg,0,0\n2.jpg,1,0\n", SEVERAL, [None, '["cat"]']),
    "Roboflow's blanks": ("filename, cat, dog\n1.jpg, 0, 1\n2.jpg, 1, 0\n", ONE, ["dog", "cat"]),
    "fractions": ("image,cat,dog\n1.jpg,0.0,1.0\n2.jpg,1.0,0.0\n", ONE, ["dog", "cat"]),
    "pandas": ("image,cat,dog\n1.jpg,False,True\n2.jpg,True,False\n", ONE, ["dog", "cat"]),
    "a split": ("split,image,cat,dog\ntrain,1.jpg,0,1\ntest,2.jpg,1,0\n", ONE, ["dog", "cat"]),
    "semicolons": ("image;cat;dog\n1.jpg;0;1\n2.jpg;1;0\n", ONE, ["dog", "cat"]),
    "a row without labels": ("image,cat,dog\n1.jpg,0,1\n2.jpg,,\n", ONE, ["dog", None]),
}


@pytest.mark.parametrize(("text", "task", "labels"), READ.values(), ids=READ.keys())
def test_columns_of_flags_are_classes(text, task, labels, tmp_path):
    """Columns of 0 and 1 below a header are one-hot labels; their order numbers the classes."""
    found, rows, codes, classes = read(write(tmp_path, text))
    assert (found, [*rows.values()], codes) == (task, labels, [])
    assert classes == ("cat", "dog")


def test_the_preview_names_the_columns(tmp_path):
    """What was inferred can be seen before a row is converted."""
    path = write(tmp_path, "filename,cat,dog\n1.jpg,0,1\n2.jpg,1,0\n")
    found = Reading(path)
    assert ("cat|dog", "one-hot labels") in found.detection.columns
    assert found.options.columns.roles["label"] == ("cat|dog",)


AGES = "image,age,cat,dog\n1.jpg,7,0,1\n2.jpg,8,1,0\n"
GAPS = "image,cat,dog\n1.jpg,0,2\n2.jpg,1,0\n3.jpg,,1\n"
RUDE = "id,comment,rude,harsh\na,Go away!,1,1\nb,Thank you.,0,0\n"

# lines of a CSV, options, the option that the message gives
STOPPED = {
    "another column": (AGES, {}, "label=cat|dog"),
    "columns named label": ("image,label_1,label_2\n1.jpg,0,1\n2.jpg,1,0\n", {}, "label_1|label_2"),
    "a fold": ("image,fold,cat,dog\n1.jpg,0,0,1\n2.jpg,1,1,0\n", {}, "fold"),
    "a bar in a name": ("image,a|b,c\n1.jpg,0,1\n2.jpg,1,0\n", {}, "a|b"),
    "no such column": ("image,cat,dog\n1.jpg,0,1\n", {"columns": "label=cat|owl"}, "'owl'"),
    "no header": ("1.jpg,0,1\n", {"columns": "header=no,path=1,label=2|3"}, "header"),
}


@pytest.mark.parametrize(("text", "options", "words"), STOPPED.values(), ids=STOPPED.keys())
def test_what_is_unsure_stops_with_the_option(text, options, words, tmp_path):
    """Nothing is guessed if a column of 0 and 1 may be something else."""
    with pytest.raises(UsageError) as caught:
        read(write(tmp_path, text), **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "options", "labels", "codes"),
    [
        (AGES, {"columns": "path=image,label=cat|dog"}, ["dog", "cat"], []),
        (GAPS, {"columns": "label=cat|dog"}, ["cat"], ["bad_annotation"] * 2),
        ("image,cat|dog\n1.jpg,owl\n", {"columns": "label=cat|dog"}, ["owl"], []),
        ("image,cat,dog\n1.jpg,1,1\n2.jpg,1,0\n", {"task": ONE}, ["cat"], ["too_many_fields"]),
        ("image,cat,dog\n1.jpg,0,1\n", {"task": SEVERAL}, ['["dog"]'], []),
    ],
)
def test_given_columns_are_obeyed(text, options, labels, codes, tmp_path):
    """Named columns are one-hot; what is neither 0 nor 1 rejects its row."""
    _, rows, found, _ = read(write(tmp_path, text), **options)
    assert ([*rows.values()], found) == (labels, codes)


def test_texts_have_one_hot_columns(tmp_path):
    """Columns of 0 and 1 beside texts are classes."""
    text = "text,toxic,threat\nGo away,1,0\nThanks,0,0\nGone,1,1\n"
    task, _, _, classes = read(write(tmp_path, text))
    assert (task, classes) == ("text_multi_label", ("toxic", "threat"))


def test_objects_and_frames_have_one_hot_columns(tmp_path):
    """JSON Lines need the names of the keys; a DataFrame is like a CSV."""
    lines = ['{"f": "1.jpg", "cat": true, "dog": 0}', '{"f": "2.jpg", "cat": 0, "dog": 1.0}']
    path = write(tmp_path, "\n".join(lines), "a.jsonl")
    expected = ONE, {"1.jpg": "cat", "2.jpg": "dog"}, [], ("cat", "dog")
    assert read(path, columns="path=f,label=cat|dog") == expected
    frame = pd.DataFrame({"image": ["1.jpg", "2.jpg"], "cat": [True, False], "dog": [0, 1]})
    assert read(frame) == expected


LISTS = [
    'image,label\n1.jpg,"[0, 1, 1]"\n2.jpg,"[0,0,0]"\n',
    "image,label\n1.jpg,[0. 1. 1.]\n2.jpg,[0. 0. 0.]\n",
    'split,image,label\n,1.jpg,"(False, True, True)"\n,2.jpg,"(False, False, False)"\n',
]
NAMED = SEVERAL, {"1.jpg": '["cow", "dog"]', "2.jpg": None}, [], ("cat", "cow", "dog")


@pytest.mark.parametrize("text", LISTS)
def test_lists_are_one_hot_with_names(text, tmp_path):
    """The names are given with the column; without them, the run stops."""
    path = write(tmp_path, text)
    assert read(path, columns="label=label[cat|cow|dog]") == NAMED
    with pytest.raises(NotUnderstoodError) as caught:
        read(path)
    assert caught.value.options["columns"].endswith("label=label[0|1|2]")


def test_objects_frames_and_texts_have_one_hot_lists(tmp_path):
    """Lists of JSON, of a DataFrame and of texts; another length rejects its row."""
    lines = [{"f": "1.jpg", "y": [0, 1, 1]}, {"f": "2.jpg", "y": [0, 0.0, False]}, {"f": "3.jpg"}]
    expected = (*NAMED[:1], {**NAMED[1], "3.jpg": None}, *NAMED[2:])
    path = write(tmp_path, "\n".join(map(json.dumps, lines)), "a.jsonl")
    assert read(path, columns="path=f,label=y[cat|cow|dog]") == expected
    for wrap in (list, np.array):
        frame = pd.DataFrame({"image": ["1.jpg", "2.jpg"], "y": [wrap([0, 1, 1]), wrap([0] * 3)]})
        assert read(frame, columns="label=y[cat|cow|dog]") == NAMED
    texts = "text,label\nGood and cheap.,[0 1 1]\nToo dear.,[1 0 0]\nBad.,[1 0]\nOdd.,[2 0 0]\n"
    path = write(tmp_path, texts, "b.csv")
    task, _, codes, classes = read(path, columns="label=label[cat|cow|dog]")
    assert (task, codes, classes) == ("text_multi_label", ["bad_annotation"] * 2, NAMED[3])


def test_a_folder_of_roboflow_needs_no_option(tmp_path):
    """The table in the folder of each split is found, and the folder names the split."""
    for split in ("train", "valid", "test"):
        text = f"filename, cat, dog\n{split}.jpg, 1, 1\n"
        write(tmp_path, text, f"{split}/_classes.csv")
        write(tmp_path, "", f"{split}/{split}.jpg")
    found = Reading(tmp_path)
    assert found.options.task == SEVERAL
    assert [(row.uri, row.split) for row in found.rows] == [
        ("test.jpg", "test"),
        ("train.jpg", "train"),
        ("valid.jpg", "eval"),
    ]


# lines, options; task; labels of the rows
TWO_AND_ONE = [["cat", "dog"], ["owl"]]
HAZE = "image,label\n1.jpg,haze  primary\n2.jpg,clear\n"
SEPARATED = {
    "a bar": ("1.jpg,cat|dog\n2.jpg,owl\n", "|", SEVERAL, TWO_AND_ONE),
    "below a header": ("image,label\n1.jpg,cat; dog\n2.jpg,owl\n", ";", SEVERAL, TWO_AND_ONE),
    "in quotes": ('1.jpg,"cat,dog"\n2.jpg,owl\n', ",", SEVERAL, TWO_AND_ONE),
    "blanks": (HAZE, " ", SEVERAL, [["haze", "primary"], ["clear"]]),
    "empty parts": ("1.jpg,cat||dog|\n2.jpg,|\n", "|", SEVERAL, [["cat", "dog"], None]),
    "several characters": ("1.jpg,cat::dog\n2.jpg,owl\n", "::", SEVERAL, TWO_AND_ONE),
    "in no field": ("1.jpg,cat\n2.jpg,owl\n", "|", ONE, ["cat", "owl"]),
}


@pytest.mark.parametrize(
    ("text", "sign", "task", "labels"), SEPARATED.values(), ids=SEPARATED.keys()
)
def test_a_separator_divides_labels(text, sign, task, labels, tmp_path):
    """Each part of a field is a label."""
    found, rows, codes, _ = read(write(tmp_path, text), label_separator=sign)
    decoded = [row and json.loads(row) if task == SEVERAL else row for row in rows.values()]
    assert (found, decoded, codes) == (task, labels, [])


def test_texts_objects_and_frames_have_separated_labels(tmp_path):
    """The option is for every source with fields."""
    path = write(tmp_path, "text,label\nGood and cheap.,a|b\nToo dear.,c\n")
    assert Reading(path, label_separator="|").options.task == "text_multi_label"
    objects = write(tmp_path, '{"f": "1.jpg", "y": "a|b"}\n', "a.jsonl")
    expected = SEVERAL, {"1.jpg": '["a", "b"]'}, [], ()
    assert read(objects, columns="path=f,label=y", label_separator="|") == expected
    assert (
        read(pd.DataFrame({"image": ["1.jpg"], "label": ["a|b"]}), label_separator="|") == expected
    )


CLASSIFIED = '{"imageGcsUri": "1.jpg", "classificationAnnotation": {"displayName": "a"}}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1.jpg,cat,.1,.1,,,.2,.2,,\n"),
        ("a.jsonl", CLASSIFIED),
        ("a/cat/1.jpg", ""),
    ],
)
def test_a_separator_without_fields_of_labels_is_refused(name, text, tmp_path):
    """An option that would do nothing is a mistake."""
    source = write(tmp_path, text, name).removesuffix("cat/1.jpg")
    with pytest.raises(UsageError, match="label_separator"):
        read(source, label_separator="|")
