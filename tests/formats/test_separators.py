# ruff: noqa: E501 - tables with a case on each line
"""The separator of a CSV file, and errors about the file as a whole."""

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats.separators import read_separator
from recordgen.tables.csv_fields import DELIMITERS
from recordgen.tasks.texts.task import TextContent
from tests.formats.sources import Reading, write_files

TEXTS = ["Good, and cheap; really", "It came late", "Bad; and dear", "Never again", "So, so"]


def written(rows, separator):
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    return out.getvalue()


def separated(data):
    raw = data.encode() if isinstance(data, str) else data
    separator, lines = read_separator(raw.split(b"\n"), "a.csv")
    return separator, list(lines)


# a file whose fields are not separated by commas, its separator
SEPARATED = [
    ("image_uri\tlabel", "tabs"),
    ("\ufeff,,\r\na.JPG;cat\r\n", "semicolons"),
    ("sep=;\r\na,b;cat\r\n", "semicolons"),
    (written([[text, "x"] for text in TEXTS], ";"), "semicolons"),
    (written([["ham", text] for text in TEXTS], "\t"), "tabs"),
    ("sentence\nGood\nBad, and dear\t\t", "tabs"),
    ("Image URI\n0.jpg\n1.jpg;", "semicolons"),
    ("1|24|M,x|other\n2|53|F,y|none", "bars"),
    ("text|label\nGood, and cheap.|praise\nBad|blame", "bars"),
]


@pytest.mark.parametrize(("data", "name"), SEPARATED)
def test_separators_are_detected(data, name):
    """Semicolons and tabs are detected, even if fields contain commas."""
    assert DELIMITERS[separated(data)[0]] == name


# a file that is not a CSV of rows, the option that reads it
OTHERS = [
    ("a.jpg,cat\rb.jpg,dog\r", {}),
    ("sep=#\r\na.jpg#cat", {}),
    ('"TRAIN,a.jpg,cat"\n"TEST,b.jpg,dog"', {}),
    ('{"imageGcsUri": "a.jpg", "classificationAnnotation": {"displayName": "cat"}}', "jsonl"),
    ("Anna B-PER\nflew O\nYork I-LOC\n", "conll"),
]


@pytest.mark.parametrize(("data", "form"), OTHERS)
def test_other_files_stop_as_a_whole(data, form, tmp_path):
    """A file of a spreadsheet or another tool is one error; the option in it reads the file."""
    with pytest.raises(SourceError, match=r"^a\.csv:1: ") as stopped:
        separated(data)
    if form:
        assert isinstance(stopped.value, NotUnderstoodError)
        found = Reading(write_files(tmp_path, {"a.csv": data}) / "a.csv", **stopped.value.options)
        assert (found.options.format, len(found.rows), found.rejects) == (form, 1, [])


# a list of images or videos, its rows
LISTS = {
    "Caffe": ("images/1.jpg 0\nimages/2.jpg 1 \r\n", {"images/1.jpg": "0", "images/2.jpg": "1"}),
    "words": ("a.png cat\nb.PNG the-dog\n", {"a.png": "cat", "b.PNG": "the-dog"}),
    "UCF-101": ("A/v_1.avi 1\nB/v_2.avi 2\n", {"A/v_1.avi": ["1", 0, None], "B/v_2.avi": ["2", 0, None]}),
}  # fmt: skip


@pytest.mark.parametrize(("data", "rows"), LISTS.values(), ids=LISTS.keys())
def test_one_blank_separates_paths_and_labels(data, rows, tmp_path):
    """A path with a suffix, one blank and one label on every line are the rows of a list."""
    found = Reading(write_files(tmp_path, {"a.txt": data}) / "a.txt", format="csv")
    read = {row.uri: row.annotation for row in found.rows}
    if found.options.task == "video_classification":
        read = {uri: json.loads(annotation) for uri, annotation in read.items()}
    assert (found.detection.delimiter, read, found.rejects) == (" ", rows, [])


# a file, options, its annotations: numbers and labels with commas are what the file says
KEPT = {
    "a label": ("image;label\n1.jpg;36,5\n2.jpg;37,5\n", {"task": "image_classification"}, ["36,5", "37,5"]),
    "labels": ("image;labels\n1.jpg;1,3\n2.jpg;5\n3.jpg;3,5\n", {"label_separator": ","}, ['["1", "3"]', '["5"]', '["3", "5"]']),
    "a table": ("a;b\n0,5;x\n1;y\n", {"task": "tabular"}, ['"0,5",x', "1,y"]),
    "points": ("a;b\n1.234;0,5\n1;2\n", {"task": "tabular"}, ['1.234,"0,5"', "1,2"]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "options", "rows"), KEPT.values(), ids=KEPT.keys())
def test_a_comma_in_a_field_stays(data, options, rows, tmp_path):
    """A comma that separates no fields is a character, also between digits."""
    found = Reading(write_files(tmp_path, {"a.csv": data}) / "a.csv", **options)
    assert ([row.annotation for row in found.rows], found.rejects) == (rows, [])


# lines with a backslash before a quote, texts, rejects
BACKSLASHES = {
    "quotes": (r'"He said \"hi\", and left.",a', None),
    "over two lines": ('"He said\n\\"hi\\", and left.",a', None),
    "a path": ('"C:\\dir\\",a', "C:\\dir\\"),
    "no quotes": (r"C:\dir and \n stay,a", r"C:\dir and \n stay"),
}


@pytest.mark.parametrize(("line", "text"), BACKSLASHES.values(), ids=BACKSLASHES.keys())
def test_a_backslash_is_a_character(line, text, tmp_path):
    """Quotes are escaped by quotes only: other lines are rejects, and no text loses a sign."""
    data = f"text,label\nGood and cheap,b\n{line}\nIt is fine,c\n"
    found = Reading(write_files(tmp_path, {"a.csv": data}) / "a.csv", task="text_classification")
    texts = [TextContent.decode(row.annotation).text for row in found.rows]
    expected = ["Good and cheap", text, "It is fine"]
    assert [*filter(None, texts)] == [*filter(None, expected)]
    assert {*found.codes} == (set() if text else {"bad_line"})


# a file whose fields are separated by commas
COMMAS = [
    "Good; and cheap",
    "TRAIN,gs://b/a.jpg;v=1,cat\nTEST,gs://b/b.jpg;v=2,dog",
    'TRAIN,"a;\nb",x\nTEST,"c;\nd",y',
    "{a,b",
    '"Good\rand cheap",praise',
    "Vitamin O\nType O",
    "gs://b/a;v=1.jpg\ngs://b/b;v=2.jpg",
    "".join(f"gs://b/{n}.jpg{',x' * (n % 3)},a;b\n" for n in range(9)),
    "".join(f"Title {n}; text,x{',y' * (n % 3)}\n" for n in range(9)),
    "SELECT a;\nSELECT b;",
    '0.jpg\n"a,b 1.jpg",,,\n2.jpg,',
    "TRAIN,a b.jpg,Vitamin B-12\nTRAIN,c d.jpg,Vitamin B-6",
    "text,label\na;b;c,x\nd;e;f,y",
    "1.jpg,cat|dog|owl\n2.jpg,dog|cat|owl",
    '"sep=; is a hint",excel\n"sep=, is one, too",excel',
]


@pytest.mark.parametrize("data", COMMAS)
def test_other_signs_may_be_in_fields(data):
    """If commas separate fields, all lines are returned unchanged."""
    assert separated(data) == (",", data.encode().split(b"\n"))


FIELDS = st.text(st.sampled_from("ab ;,\t\"'"), max_size=8)


@settings(max_examples=60)
@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8))
def test_what_is_quoted_does_not_separate(rows):
    """Quoted fields are separated by commas, whatever the fields contain."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    assert separated(out.getvalue())[0] == ","
