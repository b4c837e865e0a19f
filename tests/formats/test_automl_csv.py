"""The readers of AutoML's CSV of images and of texts, and slips in labels and paths."""

import io
import json

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recordgen.core.dataset.vocabulary import look_alikes
from recordgen.core.rows.row import Adjustments, Row, content_uri
from recordgen.errors import SourceError, UsageError
from recordgen.formats import automl_jsonl
from recordgen.formats.automl_csv import LineParser, TextParser
from recordgen.formats.class_folders import ImageFolder
from recordgen.formats.csv_records import Record, Records, each_record, read_blocks
from recordgen.formats.foreign_formats import of_file
from recordgen.formats.header import NOTHING_GIVEN, Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import bounded_lines, mark_of
from recordgen.rejects import Reject
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    TextClassification,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)
from recordgen.tasks.texts.task import TextContent
from tests.formats.sources import frame_rows, parsed, write_files
from tests.rows import row_by_row


def parse(text):
    data = text.encode() if isinstance(text, str) else text
    return parse_all(bounded_lines(io.BytesIO(data), "f.csv"))


class OneByOne(LineParser):
    """Reads no lines together."""

    def parse_batch(self, *_):
        return None


def parse_all(lines, task=None, parser=LineParser):
    return row_by_row(parsed(parser.parse_lines, lines, "f.csv", task or ImageClassification()))


# line, split, uri, label
ROWS = [
    ("TRAIN,gs://b/1.jpg,cat", "train", "gs://b/1.jpg", "cat"),
    ("UNASSIGNED,gs://b/1.jpg,cat", None, "gs://b/1.jpg", "cat"),
    (",gs://b/1.jpg,cat", None, "gs://b/1.jpg", "cat"),
    ("gs://b/1.jpg,cat", None, "gs://b/1.jpg", "cat"),
    ("gs://b/1.jpg", None, "gs://b/1.jpg", None),
    ("gs://b/1.jpg,", None, "gs://b/1.jpg", None),
    ("TRAIN,gs://b/1.jpg,cat,,,", "train", "gs://b/1.jpg", "cat"),
    (' TRAIN , "gs://b/a,b.jpg", Baked goods ', "train", "gs://b/a,b.jpg", "Baked goods"),
    ("test/one", None, "test/one", None),
    ("gs://b/1.jpg,train", None, "gs://b/1.jpg", "train"),
    ("TRAIN,gs://b/größe.jpg,猫", "train", "gs://b/größe.jpg", "猫"),
    # two spellings of a path are one image if every file system treats them as one
    ("././b//.//a.jpg,cat", None, "b/a.jpg", "cat"),
    ("../a./.b/c../a.jpg,cat", None, "../a./.b/c../a.jpg", "cat"),
    ("b/../a.jpg,cat", None, "b/../a.jpg", "cat"),
    ("gs://b//./a.jpg,cat", None, "gs://b//./a.jpg", "cat"),
    ("TEST,./,cat", "test", "./", "cat"),
]


@pytest.mark.parametrize(("line", "split", "uri", "label"), ROWS)
def test_each_published_form_of_a_line_gives_its_row(line, split, uri, label):
    """Each form of a line gives the row of the format's documentation."""
    assert parse(line) == [Row("f.csv", 1, split, uri, label)]


# line, reject code, words of the message
REJECTS = [
    ("TRIAN,gs://b/1.jpg,cat", "unknown_ml_use", "got 'TRIAN'"),
    ("TRAIN,,cat", "no_path", "[ML_USE],PATH,[LABEL]"),
    ("TRAIN", "no_path", ""),
    ('"",""', "no_path", ""),
    ("TRAIN,a.jpg,cat,dog", "too_many_fields", "(got 2 "),
    ("a.jpg,cat,dog", "too_many_fields", "(got 2 "),
    ('TRAIN,"a.jpg,cat', "bad_line", "quotes"),
    ('TRAIN,"a"b.jpg,cat', "bad_line", "quotes"),
]


@pytest.mark.parametrize(("line", "code", "words"), REJECTS, ids=[r[0] for r in REJECTS])
def test_wrong_lines_are_rejects(line, code, words):
    """A wrong line gives one reject with a reason, and does not affect other lines."""
    first, wrong, last = parse(f"TRAIN,a.jpg,x\n{line}\nTEST,b.jpg,y\n")
    assert isinstance(wrong, Reject)
    assert (wrong.line, wrong.code) == (2, code)
    assert words in wrong.message
    assert first == Row("f.csv", 1, "train", "a.jpg", "x")
    assert last == Row("f.csv", 3, "test", "b.jpg", "y")


@pytest.mark.parametrize("first", ["a.jpg,cat\n", "My photos\n\n", "path,label\na.jpg,cat\n"])
def test_a_later_header_of_other_columns_stops(first):
    """The rows below it would be read with the wrong columns."""
    with pytest.raises(SourceError, match=r"f.csv:\d: "):
        parse(f"{first}label,path\ncat,b.jpg\n")


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=500))
@example(b"image")
def test_any_bytes_give_one_item_per_record(data):
    """Each record of arbitrary bytes, except a header, gives one row or reject: nothing is lost."""
    try:
        found = parse(data)
    except (SourceError, UsageError):  # another file, or an unknown header
        is_other = b"\0" in data or mark_of(data)[0] or of_file(data) is not None
        assert is_other or set(data) & set(b',;\t\r{"')
        return
    records = list(each_record(read_blocks(bounded_lines(io.BytesIO(data), "f.csv"), "f.csv")))
    names = records[0].fields if records and isinstance(records[0], Record) else []
    if LineParser(ImageClassification(), Adjustments()).is_header(names):
        records = [item for item in records if isinstance(item, Reject) or item.fields != names]
    assert [item.line for item in found] == [item.line for item in records]


# Parts of lines that may or may not be alike in a file: the first field, paths, labels.
ML_USES = ["TRAIN", "test", "", "UNASSIGNED", "TRIAN", "val", "dog"]
PATHS = ["a.jpg", "b/c", "gs://b/1.jpg", "./d.jpg", "e//f.jpg", "x", "", " g.jpg", "größe.png"]
PATHS += ["a\u2028b.jpg", "\x1fc.jpg\t", "a b/c"]
SAID = ["cat", "dog", "", "nan", "[1]", "10", " cat", "a b", "TEST", "h.jpg"]
FORMS = [
    st.tuples(st.sampled_from(ML_USES), st.sampled_from(PATHS), st.sampled_from(SAID)),
    st.tuples(st.sampled_from(PATHS), st.sampled_from(SAID)),
    st.tuples(st.sampled_from(ML_USES), st.sampled_from(PATHS)),
]


@pytest.mark.parametrize("header", [None, "ml_use,path,label", "label,path", "path,x,label"])
@pytest.mark.parametrize("task", [ImageClassification(), ImageMultiLabel(), ObjectDetection()])
def test_lines_that_look_alike_say_what_each_says(header, task):
    """Lines read together give the same rows and rejects as lines read one by one."""

    @settings(deadline=None, max_examples=25)
    @given(st.one_of(*(st.lists(form, min_size=1, max_size=5) for form in FORMS)))
    def check(rows):
        # The first line is read alone, because it may be a header.
        first = [header or "TRAIN,a.jpg,cat"] + ([] if header is None else ["TRAIN,a.jpg,cat"])
        lines = [*first, *map(",".join, rows), *([header] if header else [])]
        expected = parse_all(map(str.encode, lines), task, OneByOne)
        assert in_blocks(first, lines, task) == expected

    check()


@pytest.mark.parametrize("count", [1, 150, 2500])
@pytest.mark.parametrize("other", [b"image_uri,class", b'"image_uri","class"'])
def test_the_header_of_another_file_is_no_row(count, other):
    """Also not in a block of lines that are read together."""
    lines = [b"path,label", *(b"%d.jpg,cat" % n for n in range(count)), other, b"z.jpg,dog"]
    with pytest.raises(SourceError, match=f"f.csv:{count + 2}: "):
        parse_all(lines, ImageClassification())


def in_blocks(first, lines, task):
    """Read the first lines one by one, and all later lines together."""
    rest = {n: lines[n - 1] for n in range(len(first) + 1, len(lines) + 1)}
    filled = {n: line for n, line in rest.items() if line.strip(" ,")}
    items = [
        *(Records([at], [line]) for at, line in enumerate(first, start=1)),
        Records([*filled], [*filled.values()]),
    ]
    parser = LineParser(task, Adjustments())
    return row_by_row(parser.parse_records(items, "f.csv", Given()))


# --- files of texts -------------------------------------------------------------------------------


def text_rows(data, task=None):
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
TEXT_ROWS = [
    ('TRAIN,"Good, and cheap.",praise', ("train", "Good, and cheap.", ["praise"])),
    ("TRAIN, Good and cheap. ,praise", ("train", "Good and cheap. ", ["praise"])),
    ('Validation, "  a ""b""  ", praise ', ("eval", '  a "b"  ', ["praise"])),
    (",test,praise", (None, "test", ["praise"])),
    (",,\nGood,praise,,\n , ,", (None, "Good", ["praise"])),
    ("test", (None, "test", None)),
    ("TEST,Good", ("test", "Good", None)),
    ("TEST,gs://b/1.md,praise", ("test", "gs://b/1.md", ["praise"])),
    ("texts/My first.TXT,praise", (None, "texts/My first.TXT", ["praise"])),
    ("TEST,https://x.org is down,praise", ("test", "https://x.org is down", ["praise"])),
    ("TEST,odd://x.org,praise", ("test", "odd://x.org", ["praise"])),
    ("UNASSIGNED,text,great", (None, "text", ["great"])),
    ("TRAIN,Please open readme.txt,spam", ("train", "Please open readme.txt", ["spam"])),
]


ONE, MANY, SENTIMENT = TextClassification(), TextMultiLabel(), TextSentiment()
# task, line, (split, text, labels) or the code of its reject
LABELS = [
    (MANY, "TRAIN,x,b,a,,b", ("train", "x", ["a", "b"])),
    (MANY, "x," + ",".join(map(str, range(101))), ("too_many_fields",)),
    (SENTIMENT, "TRAIN,x,2.0", ("train", "x", ["2"])),
    (SENTIMENT, "TRAIN,x,02", ("train", "x", ["2"])),
    (SENTIMENT, "x,10", (None, "x", ["10"])),
    (SENTIMENT, "x,11", ("bad_annotation",)),
    (SENTIMENT, "x,-1", ("bad_annotation",)),
    (SENTIMENT, "x", (None, "x", None)),
]


@pytest.mark.parametrize(("task", "line", "expected"), [*((ONE, *it) for it in TEXT_ROWS), *LABELS])
def test_rows(task, line, expected):
    """ML_USE and label are optional; the text is kept unchanged, or is the path of its file.

    Several labels are sorted without repeats; sentiments are numbers.
    """
    [item] = text_rows(line, task)
    assert said(item)[1:] == expected


@pytest.mark.parametrize("text", ["1.txt", "a/1.txt", "gs://b/1 2.txt"])
def test_a_column_of_texts_names_no_paths(text):
    """Below a header, only a URL in a text is one; so it is in a frame."""
    frame = pd.DataFrame({"text": [text], "label": ["a"]})
    [item], [of_frame] = text_rows(f"text,label\n{text},a"), frame_rows(frame, ONE)
    assert of_frame.annotation == item.annotation
    assert (TextContent.decode(item.annotation).text == text) == ("://" not in text)


def test_names_of_images_are_no_texts():
    """In a file of texts, the name of an image is a reject unless a header makes it a text."""
    names = ["a.jpg", "TRAIN,gs://b/1.PNG,cat", ",my photos/1.webp,cat", "v/1.mp4,car"]
    found = text_rows("\n".join(names))
    assert [said(item) for item in found] == [(line, "bad_line") for line in range(1, 5)]
    assert [item.uri for item in found][1:3] == ["gs://b/1.PNG", "my photos/1.webp"]
    texts = ["See a.jpg", "TEST,on and/or off: see a.jpg,x", "a.jpg!", "See https://h/a.jpg"]
    assert all(isinstance(item, Row) for item in text_rows("\n".join(texts)))
    [item] = text_rows("text,label\na.jpg,x")
    assert said(item) == (2, None, "a.jpg", ["x"])


# --- slips: the message names the cause, and nothing is changed -----------------------------------


def row_of(line, task):
    """Return the row or reject of the only line of a file, in CSV or JSON."""
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
    row = row_of(line, task)
    assert isinstance(row, Reject)
    assert row.code == "bad_annotation"
    assert "pandas" in row.message


# labels that only look like missing values
@pytest.mark.parametrize("label", ["none", "null", "N/A", "naan", "nan bread", "None"])
def test_words_that_may_be_classes_are(label):
    """Other words for nothing are labels, because real datasets have such classes."""
    assert row_of(f"a.jpg,{label}", ImageClassification()) == Row("f", 1, None, "a.jpg", label)


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
        row = row_of(line, task)
        assert isinstance(row, Reject)
        assert " / " in row.message
    url = "gs://bucket/a\\b.mp4"  # a valid name in an object store
    assert isinstance(row_of(f"{url},car,0,1", task), Row)
