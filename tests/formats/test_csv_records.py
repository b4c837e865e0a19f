"""The grammar of CSV for all readers: dialects, line numbers, limits, broken quotes."""

import csv
import io
import json
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recordgen import Schema
from recordgen.formats import csv_records
from recordgen.formats import lines as physical
from recordgen.formats.automl_csv import LineParser, TextParser, VideoParser
from recordgen.formats.csv_records import Record, each_record, read_blocks
from recordgen.formats.declared_rows import DeclaredParser
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.formats.separators import BLANKS
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.tables.csv_fields import DELIMITERS, MAX_RECORD_BYTES, csv_line, read_fields
from recordgen.tables.examples import parse
from recordgen.tasks import TASKS, Declared, ImageClassification, TextClassification
from tests.formats.sources import Reading, parsed, write_files

HEADER = ["split", "text", "label"]


def read(data):
    return list(each_record(read_blocks(data.split(b"\n"), "a.csv")))


def in_blocks(lines, count):
    """Return the items of lines, of which at most ``count`` are read together."""
    with mock.patch.object(csv_records, "BLOCK_LINES", count):
        return list(read_blocks(lines, "a.csv"))


def shown(found):
    return [(i.line, i.fields if isinstance(i, Record) else i.code) for i in found]


def written(rows, **dialect):
    out = io.StringIO(newline="")
    csv.writer(out, **dialect).writerows(rows)
    return out.getvalue().encode()


# --- what is written is read ------------------------------------------------------------------

# A byte order mark at the start of a line would be removed.
FIELDS = st.text(st.sampled_from("ab ,;\t\"'\n\v\u2028äß"), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"), max_size=12
)
ROWS = st.lists(st.lists(FIELDS, min_size=2, max_size=5), max_size=12)


# Blanks separate only paths and labels, or numbers.
SEPARATORS = [(sign, name) for sign, name in DELIMITERS.items() if sign != " "]


@settings(deadline=None, max_examples=80)
@given(
    ROWS,
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
    st.integers(1, 50),
)
def test_what_is_written_is_read(rows, delimiter, end, quote_all, mark, block_lines, chunk_bytes):
    """Every dialect of Python's writer is read with the right line numbers, for any number of
    lines in a block and any chunks of the file."""
    if not quote_all:  # leading blanks are kept only inside quotes
        rows = [[field.lstrip(" ") for field in row] for row in rows]
    if end == "\r\n":
        rows = [[field.replace("\n", "\r\n") for field in row] for row in rows]
    dialect = {
        "delimiter": delimiter,
        "lineterminator": end,
        "quoting": csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
    }
    data = written([HEADER, *rows], **dialect)
    # Nobody knows whether a quote holds three lines with as many tabs as the header together.
    lines = [written([row], **dialect).split(b"\n")[:-1] for row in rows]
    tabs = [[line.count(b"\t") for line in each] for each in lines]
    assume(not any(len(each) > 2 and set(each) == {2} for each in tabs))
    expected = [(1, HEADER)]
    line = 2
    for row in rows:
        is_quoted = quote_all or any(sign in field for field in row for sign in f'"\n{delimiter}')
        if is_quoted or "".join(row).strip(BLANKS):
            expected.append((line, row))
        line += 1 + sum(field.count("\n") for field in row)
    file = io.BytesIO(b"\xef\xbb\xbf" * mark + data)
    with mock.patch.object(physical, "CHUNK_BYTES", chunk_bytes):
        found = list(each_record(in_blocks(physical.bounded_lines(file, "a.csv"), block_lines)))
    assert shown(found) == expected
    for item in found:
        assert isinstance(item, Record)
        assert next(read_fields(io.StringIO(item.text, newline="\n"))) == item.fields


@settings(deadline=None, max_examples=120)
@given(st.lists(st.text('ab ,"\n', max_size=10), max_size=6), st.integers(1, 4))
def test_all_readers_agree(parts, block_lines):
    """Python's reader, read_blocks and Arrow's columns of tables return the same fields.

    This holds up to the first broken record, where Python's reader stops.
    """
    data = "split,text,label\n" + "\n".join(parts)
    reader = csv.reader(io.StringIO(data, newline="\n"), strict=True, skipinitialspace=True)
    expected = []
    lines, line, is_broken = data.split("\n"), 1, False
    try:
        for fields in reader:
            if "".join(lines[line - 1 : reader.line_num]).strip(f"{BLANKS},"):
                expected.append((line, fields))
            line = reader.line_num + 1
    except csv.Error:
        is_broken = True
    blocks = in_blocks(data.encode().split(b"\n"), block_lines)
    found = list(each_record(blocks))
    assert shown(found)[: len(expected)] == expected
    assert is_broken == (len(found) > len(expected))
    texts = [text for item in blocks if not isinstance(item, Reject) for text in item.texts]
    records = [item for item in found if isinstance(item, Record)]
    assert texts == [record.text for record in records]
    for width in {len(record.fields) for record in records}:
        same = [record for record in records if len(record.fields) == width]
        columns = parse(pa.array([record.text for record in same]), width, range(width))
        by_row = zip(*(column.to_pylist() for column in columns), strict=True)
        assert [[field or "" for field in row] for row in by_row] == [r.fields for r in same]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from([b'"', b'"a', b'b"', b"TRAIN,x", b"", b"\xff", b'"","']), max_size=9),
    st.integers(1, 4),
)
def test_every_line_is_accounted_for(lines, block_lines):
    """With any quotes, no line is read twice, and none is lost."""
    found = list(each_record(in_blocks(lines, block_lines)))
    spans = []
    for item in found:
        inside = sum(field.count("\n") for field in item.fields) if isinstance(item, Record) else 0
        spans += range(item.line, item.line + inside + 1)
    assert spans == sorted(set(spans))
    assert {number for number, line in enumerate(lines, start=1) if line} <= set(spans)


# --- what spreadsheets write ------------------------------------------------------------------


# a file, its records
FILES = [
    (b"\xef\xbb\xbf,,\r\nb.jpg,cat\r\n\r\n , ,\r\n", [(2, ["b.jpg", "cat"])]),
    (b"split;text\nx;a,b\nx;,\n;\n", [(1, HEADER[:2]), (2, ["x", "a,b"]), (3, ["x", ","])]),
    (b'split\ttext\n\t "a\tb" \n', [(1, HEADER[:2]), (2, "bad_line")]),
    (b'split\ttext\nTEST\t "a\tb"\n', [(1, HEADER[:2]), (2, ["TEST", "a\tb"])]),
    (b'sep=;\r\nTEST;"a;b"\r\n', [(2, ["TEST", "a;b"])]),
    (b"sep=\t\nTEST\tb\n", [(2, ["TEST", "b"])]),
    (b' a, b ,"  c"\n', [(1, ["a", "b ", "  c"])]),
    (b'a,b\r\r\n"c",d\r\r\ne,f\r', [(1, ["a", "b"]), (2, ["c", "d"]), (3, ["e", "f"])]),
    (b'a,"x\r\n y",1\r\n', [(1, ["a", "x\r\n y", "1"])]),
    (b'a,b\nc\rd,e\n"f\rg",h\n', [(1, ["a", "b"]), (2, "bad_line"), (3, ["f\rg", "h"])]),
    (b"c\0,d\n\xff,e\nf,g\n", [(1, "bad_line"), (2, "bad_encoding"), (3, ["f", "g"])])
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), FILES, ids=range(len(FILES)))
def test_files(data, expected):
    """Byte order marks, ends of lines, empty lines, blanks before fields, other separators."""
    assert shown(read(data)) == expected


def test_a_quoted_line_break_behind_the_lines_that_are_looked_at():
    """The separator is detected even if a field continues after the first lines."""
    rows = [["n", "s"], *[["1", f"a,{n}"] for n in range(98)], ["1", "b\nc"], ["1", "d"]]
    data = written(rows, delimiter=";")
    assert [item.fields for item in read(data) if isinstance(item, Record)] == rows


# --- broken records ---------------------------------------------------------------------------

BAD = "bad_line"
LOST = [(1, BAD), (2, BAD), (3, BAD), (4, ["b", "c"])]
OPEN = [(1, ["TRAIN", "open\nmore\nend", "a"]), (4, ["TRAIN", "x", "y"])]

# lines, records and rejects
BROKEN = [
    ('"open,a\n"b",c\nd,e', [(1, BAD), (2, ["b", "c"]), (3, ["d", "e"])]),
    ('TRAIN,"open\nmore\nend",a\nTRAIN,x,y', OPEN),
    ('TRAIN,"one "two" three\nmore\nend",a\nb,c', LOST),
    ('TRAIN,"open\nmore\ntrain,b,c', [(1, BAD), (2, BAD), (3, ["train", "b", "c"])]),
    ('"open.jpg,a\nsee b.jpg,c\nb.jpg,c', [(1, BAD), (2, BAD), (3, ["b.jpg", "c"])]),
    ('n,m,s\n1,2,"a\n3,b\n4,5,c', [(1, [*"nms"]), (2, BAD), (3, BAD), (4, [*"45c"])]),
    ('text,label\n"a,x\nb,y\n"c",z', [(1, HEADER[1:]), (2, BAD), (3, BAD), (4, ["c", "z"])]),
]


@pytest.mark.parametrize(("lines", "expected"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_row_spoils_no_other(lines, expected):
    """Reading continues where a row must begin; lines before that may belong to the broken row."""
    assert shown(read(lines.encode())) == expected


def test_an_open_quote_takes_in_a_bounded_part_of_the_file():
    """A quote that is never closed is detected after a bounded number of bytes, with its line."""
    count = 3 * MAX_RECORD_BYTES // 100
    lines = [b"TRAIN,a,b", b'TRAIN,"a,b', *[b"TRAIN," + b"x" * 92 + b",b"] * count]
    taken = iter(lines)
    found = each_record(read_blocks(taken, "a.csv"))
    assert next(found) == Record(1, "TRAIN,a,b", ["TRAIN", "a", "b"])
    broken = next(found)
    assert isinstance(broken, Reject)
    assert (broken.line, broken.code) == (2, "bad_line")
    assert broken.message.startswith("a row must be at most 262144 bytes long: close its quotes")
    assert len(list(taken)) > count / 3
    assert all(isinstance(item, Record) for item in found)


# first, rest, rejected
BROKEN_ROWS = [
    (b'"open text,pos', [b"plain text,neg"] * 3000, 101),
    (b'"open text,pos', [b"x" * 9_999] * 40, 27),  # 256 KiB
    (b'"a "word" in it', [b"more"] * 149 + [b'end",pos'], 151),
    (b'"a "word" in it', [b"x" * 9_999] * 40, 27),
]


@pytest.mark.parametrize(("first", "rest", "rejected"), BROKEN_ROWS, ids=range(4))
def test_a_broken_row_spoils_a_bounded_part_of_the_file(first, rest, rejected):
    """Plain lines are rows again after the longest possible extent of the broken row."""
    found = list(each_record(read_blocks([first, *rest, b"last,pos"], "a.csv")))
    assert [item.line for item in found] == list(range(1, len(rest) + 3))
    assert sum(isinstance(item, Reject) for item in found) == rejected
    assert all(isinstance(item, Reject) for item in found[:rejected])


# --- one limit --------------------------------------------------------------------------------

KEPT = [
    b"x" * (MAX_RECORD_BYTES - 2) + b",a",
    b'"' + b"x" * (MAX_RECORD_BYTES - 4) + b'",a',
    b'"' + b"x" * 140_000 + b"\n" + b"y" * (MAX_RECORD_BYTES - 140_005) + b'",a',
]


@pytest.mark.parametrize("kept", KEPT, ids=["plain", "quoted", "in two lines"])
def test_one_limit_for_all_records(kept):
    """A record may have MAX_RECORD_BYTES, on any number of lines, and not a byte more."""
    [item, after] = read(kept + b"\nb,c")
    assert isinstance(item, Record)
    assert len(item.text) == MAX_RECORD_BYTES
    assert after.line == 2 + kept.count(b"\n")
    [item, *rest] = read(kept.replace(b"x,", b"xx,").replace(b'",', b'x",') + b"\nTEST,c")
    assert isinstance(item, Reject)
    assert item.message == csv_records.TOO_LONG
    assert isinstance(rest[-1], Record)


@pytest.mark.parametrize("task", ["text_classification", "tabular", "declared"])
def test_a_long_text_is_taken_by_every_task(task, tmp_path):
    """Python's own limit of 131,072 characters for a field does not apply."""
    text = "Good. " * 25_000
    line = {"textContent": text, "classificationAnnotation": {"displayName": "x"}}
    files = {"a.csv": f'text,label\n"{text}",x\nb,y\n', "a.jsonl": json.dumps(line)}
    write_files(tmp_path, files)
    found = Reading(tmp_path / "a.csv", **given_of(task))
    assert (len(found.rows), found.rejects) == (2, [])
    if task == "text_classification":
        assert len(Reading(tmp_path / "a.jsonl", task=task).rows) == 1


# --- every format goes through it -------------------------------------------------------------

SIDES = (".1", ".2", "", "", ".5", ".6", "", "")
# by task: the rows of a file
FORMATS = {
    "image_classification": [["image_uri", "label"], ["a, b.jpg", "cat"], ["c;d.jpg", 'a "dog"']],
    "object_detection": [["TRAIN", "a,b.jpg", "cat", *SIDES], ["TEST", "c.jpg", "dog", *SIDES]],
    "text_classification": [["split", "text", "label"], ["TEST", "So,\nso; \tit", "x"]],
    "video_classification": [
        ["TRAIN", "a,b.mp4", "run", "0", "1.5"],
        ["TEST", "c.mp4", "x", "0", "inf"]
    ],
    "tabular": [["split", "n", "s"], ["TEST", "1", "So,\nso;\tit"], ["TRAIN", "2", ' "a"']],
    "declared": [["n", "s"], ["1", "So,\nso;\tit"], ["x", "a"], ["2", 'a "b"']],
}  # fmt: skip

DIALECTS = {
    "semicolons": {"delimiter": ";"},
    "tabs": {"delimiter": "\t"},
    "all quoted": {"quoting": csv.QUOTE_ALL},
}


def given_of(task, **schema):
    """Return the options that say a task; the columns of declared rows are text and a label."""
    declared = {"schema": schema or {"text": "text", "label": "label"}}
    return declared if task == "declared" else {"task": task}


def rows_of(path, task):
    found = Reading(path, **given_of(task, n="int", s="text"))
    return [item._replace(source="") for item in found.items]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("task", FORMATS)
def test_every_format_reads_every_dialect(task, dialect, tmp_path):
    """The rows and their line numbers are the same as from a file with commas."""
    plain, other = tmp_path / "a.csv", tmp_path / "b.csv"
    rows, dialect_ = FORMATS[task], {"lineterminator": "\n", **DIALECTS[dialect]}
    plain.write_bytes(written(rows, lineterminator="\n"))
    other.write_bytes(b"\xef\xbb\xbf" + written(rows, **dialect_))
    expected = rows_of(plain, task)
    assert len(expected) > 0
    found = rows_of(other, task)
    if task == "tabular" and dialect == "all quoted":  # a line's text is kept unchanged
        assert [row[:4] for row in found] == [row[:4] for row in expected]
    else:
        assert found == expected


@pytest.mark.parametrize(("delimiter", "name"), SEPARATORS, ids=[name for _, name in SEPARATORS])
@pytest.mark.parametrize("task", ["text_classification", "tabular", "declared"])
def test_the_separator_is_shown(delimiter, name, task, tmp_path):
    """The detected separator is in the summary, in words, and in its JSON."""
    path = tmp_path / "a.csv"
    path.write_bytes(written([["text", "label"], ["a b", "x"], ["c", "y"]], delimiter=delimiter))
    found = Reading(path, **given_of(task)).detection
    assert found.to_json()["delimiter"] == delimiter
    assert found.form.startswith(f"csv, separated by {name}")


PARSERS = {
    "images": (LineParser, ImageClassification()),
    "texts": (TextParser, TextClassification()),
    "videos": (VideoParser, TASKS["video_classification"]()),
    "declared": (DeclaredParser, Declared(Schema({"a": "text", "b": "label"}))),
}


@pytest.mark.parametrize("name", PARSERS)
def test_one_set_of_messages(name):
    """All readers have the same messages for a broken line."""
    parser, task = PARSERS[name]
    lines = [b"a,b", b"TEST,\xff", b"TEST,\0", b"TEST," + b"x" * MAX_RECORD_BYTES]
    lines += [b"TEST,x\ry", b'TEST,"x"y', b'TEST,"x']
    found = parsed(parser.parse_lines, lines, "a.csv", task)
    rejects = [i for i in found if isinstance(i, Reject) and i.line > 1]
    assert [item.line for item in rejects] == [2, 3, 4, 5, 6, 7]
    others = [item for item in read_blocks(lines, "a.csv") if isinstance(item, Reject)]
    assert [item.message for item in rejects] == [item.message for item in others]


def test_blanks_before_the_fields_of_a_table(tmp_path):
    """Names and values have no leading blanks, even in a repeated header; quotes keep them."""
    path = tmp_path / "a.csv"
    path.write_text('age, job,kind\n39, nurse,a\nage,  job, kind\n40, "a, b",b\n41," c",a\n')
    found = Reading(path, task="tabular")
    assert dict(found.detection.columns) == {"age": "int", "job": "text", "kind": "text"}
    assert [row.line for row in found.rows] == [2, 4, 5]
    jobs, kinds = parse(pa.array([row.annotation for row in found.rows]), 3, [1, 2])
    assert (jobs.to_pylist(), kinds.to_pylist()) == (["nurse", "a, b", " c"], ["a", "b", "a"])


@settings(deadline=None, max_examples=50)
@given(st.lists(FIELDS, min_size=2, max_size=4))
def test_a_written_record_is_read_as_it_was(fields):
    """The record of a DataFrame's row keeps the blanks of its values."""
    line = csv_line(fields)
    assert next(read_fields(io.StringIO(line, newline="\n"))) == fields
    columns = parse(pa.array([line]), len(fields), range(len(fields)))
    assert [column[0].as_py() or "" for column in columns] == fields


def test_a_line_inside_quotes_names_no_list(tmp_path):
    """A quoted line that looks like a list is part of its row."""
    (tmp_path / "list.csv").write_text("a.mp4,run,0,1\n")
    path = tmp_path / "all.csv"
    path.write_text('TRAIN,b.mp4,run,0,1\nTEST,"c\nlist.csv\n.mp4",run,0,1\n')
    options = ConvertOptions(task="video_classification", format="csv")
    found = RowReader(options).with_lists([ImportFile(str(path))])
    assert [file.path for file in found] == [str(path)]


def test_quotes_in_tabs_do_not_join_rows(tmp_path):
    """In a .tsv without quoting, a quote that another row closes rejects these rows: no text."""
    path = tmp_path / "train.tsv"
    rows = [f"A good film, number {number}.\tpos" for number in range(9)]
    path.write_text("\n".join([*rows, '"He said\tpos', "so\tneg", 'then he left"\tneg', *rows]))
    found = Reading(path)
    assert len(found.rows) == 18
    assert {item.line for item in found.rejects} == {10, 11, 12}


def test_padded_lines_of_a_table(tmp_path):
    """Empty fields behind the last column are no column, in the header and in rows."""
    padded = ("a,b,", "1,x,"), ("a,b", "2,y,,"), ("a,b,,", "3,z"), ("a,b,", '4,"z",')
    for header, row in (*padded, ("a,b", '5,"w",""')):
        (tmp_path / "a.csv").write_text(f"{header}\n" + f"{row}\n" * 3)
        found = Reading(tmp_path / "a.csv", task="tabular")
        assert dict(found.detection.columns) == {"a": "int", "b": "text"}
        rows = found.rows
        assert [row.annotation for row in rows] == [row.annotation for row in rows[:1]] * 3
        assert str(rows[0].annotation).count(",") == 1
