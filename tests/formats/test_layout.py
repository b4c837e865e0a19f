"""The separator of a CSV file, and errors about the file as a whole."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.errors import SourceError
from recordgen.formats.layout import read_layout
from recordgen.tables.csv_fields import DELIMITERS

TEXTS = ["Good, and cheap; really", "It came late", "Bad; and dear", "Never again", "So, so"]


def written(rows, separator):
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    return out.getvalue()


def layout(data):
    raw = data.encode() if isinstance(data, str) else data
    dialect, lines = read_layout(raw.split(b"\n"), "a.csv")
    return dialect.delimiter, list(lines)


# a file whose fields are not separated by commas, its separator
SEPARATED = [
    ("TRAIN;a.jpg;cat", "semicolons"),
    ("image_uri\tlabel", "tabs"),
    ("validation;a.jpg", "semicolons"),
    ("a.m4v;run", "semicolons"),
    ("\ufeff,,\r\na.JPG;cat\r\n", "semicolons"),
    ("a.jpg;cat\nb.jpg;dog", "semicolons"),
    ("Good and cheap;praise\nBad and dear;complaint", "semicolons"),
    ("age;job\n31,5;nurse\n40;clerk", "semicolons"),
    ("text;label_1;label_2\nSo, so;x;y\nGood;x", "semicolons"),
    ("sep=;\r\na,b;cat\r\n", "semicolons"),
    ("sep=\t\r\na b\tcat\r\n", "tabs"),
    ("TRAIN;a.jpg;cat;0,1;0,2;;;0,5;0,6;;\nTEST;b.jpg;dog;0,1;0,2;;;0,5;0,6;;", "semicolons"),
    (written([[text, "x"] for text in TEXTS], ";"), "semicolons"),
    (written([["ham", text] for text in TEXTS], "\t"), "tabs"),
]


@pytest.mark.parametrize(("data", "name"), SEPARATED)
def test_separators_are_detected(data, name):
    """Semicolons and tabs are detected, even if fields contain commas."""
    assert DELIMITERS[layout(data)[0]] == name


# a file that is not a CSV of rows, what the error names
OTHERS = [
    ("a.jpg,cat\rb.jpg,dog\r", "a.csv:1: .*LF"),
    ("sep=#\r\na.jpg#cat", r"a.csv:1: .* \(got '#' .* sep="),
    ('"TRAIN,a.jpg,cat"\n"TEST,b.jpg,dog"', "a.csv:1: .*quoted"),
    ('{"imageGcsUri": "a.jpg"}', "a.csv:1: .*JSON.* CSV"),
    ("Anna B-PER\nflew O\n\nYork\tNNP I-LOC", "a.csv:1: "),
]


@pytest.mark.parametrize(("data", "message"), OTHERS)
def test_other_files_are_named(data, message):
    """A file of a spreadsheet or another tool is one error, not a reject per line."""
    with pytest.raises(SourceError, match=message):
        layout(data)


# a file whose fields are separated by commas
COMMAS = [
    "Good; and cheap",
    "TRAIN,gs://b/a.jpg;v=1,cat\nTEST,gs://b/b.jpg;v=2,dog",
    "Good; cheap,praise\nBad; dear,complaint",
    'TRAIN,"a;\nb",x\nTEST,"c;\nd",y',
    '"a;b"\n"c;d"',
    '"Good, and cheap"\n"TEST, and how"',
    "{a,b",
    '"Good\rand cheap",praise',
    "Vitamin O\nType O",
    "gs://b/a;v=1.jpg\ngs://b/b;v=2.jpg",
    "".join(f"gs://b/{n}.jpg{',x' * (n % 3)},a;b\n" for n in range(9)),
    "".join(f"TRAIN,gs://b/{n};v=1.jpg{',x' * (n % 3)}\n" for n in range(9)),
    "".join(f"Title {n}; text,x{',y' * (n % 3)}\n" for n in range(9)),
    "SELECT a;\nSELECT b;",
    "You sent an E-mail,spam\nI sent an E-mail,ham",
    "TRAIN,a b.jpg,Vitamin B-12\nTRAIN,c d.jpg,Vitamin B-6",
    '"sep=; is a hint",excel\n"sep=, is one, too",excel',
]


@pytest.mark.parametrize("data", COMMAS)
def test_other_signs_may_be_in_fields(data):
    """If commas separate fields, all lines are returned unchanged."""
    assert layout(data) == (",", data.encode().split(b"\n"))


FIELDS = st.text(st.sampled_from("ab ;,\t\"'"), max_size=8)


@settings(max_examples=60)
@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8))
def test_what_is_quoted_does_not_separate(rows):
    """Quoted fields are separated by commas, whatever the fields contain."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    assert layout(out.getvalue())[0] == ","
