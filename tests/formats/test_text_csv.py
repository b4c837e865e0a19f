"""CSV files of texts: records over several lines, and the meaning of their fields."""

import pandas as pd
import pytest

from recordgen.core.rows.row import Row, content_uri
from recordgen.errors import NotUnderstoodError
from recordgen.formats.automl_csv import TextParser
from recordgen.formats.field_kinds import is_file
from recordgen.rejects import Reject
from recordgen.tasks import TextClassification, TextMultiLabel, TextSentiment
from recordgen.tasks.texts.task import TextContent
from tests.formats.sources import frame_rows, parsed


def rows(data, task=None):
    raw = data.encode() if isinstance(data, str) else data
    return parsed(TextParser.parse_lines, raw.split(b"\n"), "a.csv", task or TextClassification())


def said(item):
    """Return (line, split, text or file, labels) for a row, (line, code) for a reject."""
    if isinstance(item, Reject):
        return item.line, item.code
    text, labels = TextContent.decode(item.annotation)
    assert text is None or item.uri == content_uri(text)
    return item.line, item.split, item.uri if text is None else text, labels


# line, (split, text or file, labels)
ROWS = [
    ('TRAIN,"Good, and cheap.",praise', ("train", "Good, and cheap.", ["praise"])),
    ("TRAIN, Good and cheap. ,praise", ("train", "Good and cheap. ", ["praise"])),
    ('Validation, "  a ""b""  ", praise ', ("eval", '  a "b"  ', ["praise"])),
    ("Good,praise", (None, "Good", ["praise"])),
    (",Good,praise", (None, "Good", ["praise"])),
    (",test,praise", (None, "test", ["praise"])),
    (",,\nGood,praise,,\n , ,", (None, "Good", ["praise"])),
    ("test", (None, "test", None)),
    ("TEST,Good", ("test", "Good", None)),
    ("TEST,Good,,", ("test", "Good", None)),
    ("GREAT,praise", (None, "GREAT", ["praise"])),
    ("TEST,gs://b/1.md,praise", ("test", "gs://b/1.md", ["praise"])),
    ("texts/My first.TXT,praise", (None, "texts/My first.TXT", ["praise"])),
    ("TEST,https://x.org is down,praise", ("test", "https://x.org is down", ["praise"])),
    ("TEST,odd://x.org,praise", ("test", "odd://x.org", ["praise"])),
    ("UNASSIGNED,text,great", (None, "text", ["great"])),
    ("TRAIN,Please open readme.txt,spam", ("train", "Please open readme.txt", ["spam"])),
]


@pytest.mark.parametrize(("line", "expected"), ROWS)
def test_rows(line, expected):
    """ML_USE and label are optional; the text is kept unchanged, or is the path of its file."""
    [item] = rows(line)
    assert said(item)[1:] == expected


def test_labels_of_the_other_tasks():
    """Several labels are sorted without repeats; sentiments are numbers."""
    [item] = rows("TRAIN,x,b,a,,b", TextMultiLabel())
    assert said(item) == (1, "train", "x", ["a", "b"])
    [item] = rows("x," + ",".join(map(str, range(101))), TextMultiLabel())
    assert said(item) == (1, "too_many_fields")
    [item] = rows("TRAIN,x,2.0", TextSentiment())
    assert said(item) == (1, "train", "x", ["2"])
    found = rows("TRAIN,x,02\nx,10\nx,11\nx,-1\nx", TextSentiment())
    assert list(map(said, found)) == [
        (1, "train", "x", ["2"]),
        (2, None, "x", ["10"]),
        (3, "bad_annotation"),
        (4, "bad_annotation"),
        (5, None, "x", None),
    ]


@pytest.mark.parametrize("text", ["1.txt", "a/1.txt", "gs://b/1 2.txt"])
def test_a_column_of_texts_names_no_paths(text):
    """Below a header, only a URL in a text is one."""
    [item] = rows(f"text,label\n{text},a")
    assert (TextContent.decode(item.annotation).text == text) == ("://" not in text)


def test_names_of_images_are_no_texts():
    """In a file of texts, the name of an image is a reject unless a header makes it a text."""
    names = ["a.jpg", "TRAIN,gs://b/1.PNG,cat", ",my photos/1.webp,cat", "v/1.mp4,car"]
    found = rows("\n".join(names))
    assert [said(item) for item in found] == [(line, "bad_line") for line in range(1, 5)]
    assert [item.uri for item in found][1:3] == ["gs://b/1.PNG", "my photos/1.webp"]
    texts = ["See a.jpg", "TEST,on and/or off: see a.jpg,x", "a.jpg!", "See https://h/a.jpg"]
    assert all(isinstance(item, Row) for item in rows("\n".join(texts)))
    [item] = rows("text,label\na.jpg,x")
    assert said(item) == (2, None, "a.jpg", ["x"])


def test_files_are_told_from_texts():
    """A file is a URL of a known storage or ends with .txt; a text with a URL in it is not one."""
    assert all(map(is_file, ["gs://b/a b.txt", "s3://b/x", "a.TXT", "/a/b.txt", "https://a.org/x"]))
    assert is_file("my texts/My first.txt")
    texts = ["Please open readme.txt", "a", "s3://b/x y", "see\na.txt", "a.txt!"]
    assert not any(map(is_file, [*texts, "foo://b/x", "a.md"]))


def test_dataframes():
    """DataFrames have the columns of a header; texts keep blanks, lists hold several labels."""
    frame = pd.DataFrame({"label": [1.0, None], "text": [" a ", "b"], "split": ["TEST", None]})
    found = frame_rows(frame, TextSentiment())
    assert list(map(said, found)) == [(1, "test", " a ", ["1"]), (2, None, "b", None)]
    frame = pd.DataFrame({"text": ["a", "b"], "label": [["y", "x"], []]})
    found = frame_rows(frame, TextMultiLabel())
    assert list(map(said, found)) == [(1, None, "a", ["x", "y"]), (2, None, "b", None)]
    frame = pd.DataFrame({"text": ["readme.txt"], "label": ["a"]})
    [item] = frame_rows(frame, TextClassification())
    assert isinstance(item, Row)
    assert TextContent.decode(item.annotation) == ("readme.txt", ["a"])
    with pytest.raises(NotUnderstoodError, match="words"):
        frame_rows(pd.DataFrame({"words": ["a"]}), TextSentiment())


def test_a_repeated_header_may_have_other_blanks():
    """Texts keep their blanks, but a header with other blanks is not a text."""
    assert rows("text ,label\ntext,label\nGood,praise\n") == rows("\n\nGood,praise\n")
