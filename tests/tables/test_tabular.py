"""Inferred tables: their columns, rows and examples, as docs/tasks/tables.md describes them."""

import re
from bisect import bisect_right
from collections import Counter
from decimal import Decimal
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordgen
from recordgen import errors
from recordgen.core.records.example import serialize_example
from recordgen.core.records.numbers import as_float32
from recordgen.core.rows.columns import shares_of
from recordgen.features import FeatureSpec
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.formats.table_roles import in_blocks
from recordgen.options import ConvertOptions
from recordgen.tables.columns import Column, Table
from recordgen.tables.csv_fields import csv_line
from recordgen.tables.examples import label_lists, make_examples, parse_column
from recordgen.tables.types import ColumnType
from tests.conftest import error_of, stored_examples, tree_bytes, write_file
from tests.pages import wrong_rows
from tests.planned import bucket_of

PAGE = (Path(__file__).parents[2] / "docs/tasks/tables.md").read_text(encoding="utf-8")
LINES = re.findall(r"```\n(split,.*?)```", PAGE, re.DOTALL)[0]
TARGETS = {"task": "tabular", "columns": "target=deposit,weight=weight"}


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


@pytest.fixture
def inferred(tmp_path):
    """Return a function that infers the table of files with some texts."""

    def infer(*texts, **options):
        files = [
            ImportFile(write(tmp_path / f"{number}.csv", text)) for number, text in enumerate(texts)
        ]
        found = detect(files, ConvertOptions(task="tabular", **options)).options
        return Table.from_json(found.table)

    return infer


def stored(output):
    """Return the features of all examples."""
    return [values for _, values in stored_examples(output)]


# --- the page ---------------------------------------------------------------------------------


def test_the_lines_of_the_page_give_its_examples(tmp_path):
    """The page's rows are the records of its lines."""
    rows = re.findall(r"\| (\d) \| `(\{.*\})` \|", PAGE)
    expected = [eval(shown) for _, shown in rows]
    recordgen.convert(write(tmp_path / "a.csv", LINES), tmp_path / "out", **TARGETS)
    found = stored(tmp_path / "out")
    assert len(found) == len(expected) == 4
    assert all(item in found for item in expected)


def test_each_wrong_line_says_that(tmp_path):
    """Each wrong line is rejected with its message, and no other line is."""
    wrong = re.findall(r"\| `(.+)` \| (\w+) \| (.+) \|", wrong_rows("Inferred tables"))
    wrong.sort(key=lambda row: row[0].count('"') % 2)  # an open quote takes the rest of the file
    types = {"age": "INT", "job": "BYTES", "balance": "FLOAT", "weight": "FLOAT"}
    given_ = schema(tmp_path, **types, deposit="BYTES")
    source = write(tmp_path / "a.csv", LINES + "".join(f"{line}\n" for line, *_ in wrong))
    result = recordgen.check(source, schema=given_, max_reject_fraction=1, **TARGETS)
    first = LINES.count("\n") + 1
    found = [
        (item.line - first, item.code, item.message[: len(text)])
        for item, (*_, text) in zip(result.rejects, wrong, strict=True)
    ]
    assert found == [(number, *rest) for number, (_, *rest) in enumerate(wrong)]
    assert result.dataset.examples == 4


def schema(folder, **types):
    pytest.importorskip("tensorflow_metadata")
    lines = [f'feature {{ name: "{name}" type: {kind} }}' for name, kind in types.items()]
    return write(folder / "schema.pbtxt", "\n".join(lines))


# --- columns ----------------------------------------------------------------------------------

# values of a column, its type
COLUMNS = [
    (["1", "-7", "", "0"], "int64"),
    ([" 1", "2 "], "int64"),
    (["1", "9223372036854775807"], "int64"),
    (["1", "9223372036854775808"], "bytes"),
    (["1", "9223372036854775808.0"], "float32"),
    (["1", "2.5", ""], "float32"),
    ([".5", "1e-3", "-2."], "float32"),
    (["1", "1e39"], "bytes"),
    (["1", "007"], "bytes"),
    (["1.5", "007"], "bytes"),
    (["1", "+7"], "bytes"),
    (["1", "0x10"], "bytes"),
    (["1", "1_000"], "bytes"),
    (["1.5", "nan"], "float32"),
    (["1.5", "inf"], "bytes"),
    (["1", "NA"], "int64"),
    (["?", "1", "2"], "int64"),
    ([" - ", ".5", "Null", "N/A", "None", "."], "float32"),
    (["NA", "?"], "bytes"),
    (["NA", "x", "1"], "bytes"),
    (["NA", "007"], "bytes"),
    (["1", '"0,5"'], "bytes"),
    (["true", "false"], "bytes"),
    (["", ""], "bytes"),
    (["1.5", "2.5", "100000000000000000000"], "float32"),
    (["1.5", "-0"], "float32"),
    (["1", "-0"], "bytes"),
]


@pytest.mark.parametrize(("values", "dtype"), COLUMNS)
def test_types_are_told_from_values_in_one_file_and_in_several(values, dtype, inferred):
    """The inferred type does not depend on the order of values, nor on their files."""
    for rows in (values, values[::-1]):
        lines = [f"{value},x\n" for value in rows]
        one = inferred("a,b\n" + "".join(lines))
        assert one == inferred(*(f"a,b\n{line}" for line in lines))
        assert one.column("a").dtype == dtype


def test_all_rows_of_all_files_tell(inferred):
    """One word in the last row of the last file makes a column text."""
    many = "".join(f"{number},{number}\n" for number in range(25_000))
    table = inferred(f"a,b\n{many}", f"a,b\n{many}x,1.5\n")
    assert [column.dtype for column in table.columns] == ["bytes", "float32"]


def test_lost_digits_are_said(inferred):
    """A note names the first whole number that float32 cannot hold."""
    for text, lost in [
        ("16777217,1\n0.5,1\n", "16777217"),
        ("0.5,1\n,2\n-16777219.0,1\n", "-16777219.0"),
        ("16777217,1\n", ""),
        ("16777216,1\n0.5,1\n16777217.25,1\n1e20,1\n", ""),
    ]:
        notes = inferred("a,b\n" + text).notes
        assert len(notes) == bool(lost)
        assert all(f" {lost}:" in note for note in notes)
    assert len(inferred("a,b\n16777217,1\n", "a,b\n0.5,1\n").notes) == 1


def test_further_files_begin_with_the_header(tmp_path, inferred):
    """A later file repeats the header; another one, or a row, stops the run."""
    first = "id,job\n1,cook\n"
    sources = [write(tmp_path / "a.csv", first), write(tmp_path / "b.csv", "id,job\n2,smith\n")]
    dataset = recordgen.convert(sources, tmp_path / "out", task="tabular").dataset
    assert dataset.rows.read == dataset.examples == 2
    assert dataset.features["id"] == FeatureSpec("int64")
    for other in ("job,id\nsmith,2\n", "number,trade\n2,smith\n", "a,b,c\n1,2,3\n", "2,smith\n"):
        with pytest.raises(errors.SourceError, match=r"1\.csv:1: .* header"):
            inferred(first, other)


def test_only_the_first_line_is_a_header(tmp_path):
    """A broken first line stops; the same line elsewhere is a rejected row."""
    bad = write_file(tmp_path / "bad.csv", b"a\xff,b\nx,y\n")
    options = ConvertOptions(task="tabular")
    with pytest.raises(errors.SourceError, match=r"bad\.csv:1: .*byte 2 "):
        detect([ImportFile(str(bad))], options)
    bad.write_bytes(b"\xff,b\na,b\nx,y\n")
    sources = [write(tmp_path / "a.csv", "a,b\n1,2\n"), str(bad)]
    result = recordgen.check(sources, task="tabular", max_reject_fraction=1)
    assert (result.dataset.examples, len(result.rejects)) == (2, 1)
    assert result.dataset.features["a"].dtype == "bytes"


@pytest.mark.parametrize("quoted", ["", '"5\n6",7\n'])
def test_empty_lines_and_repeated_headers_are_no_rows(quoted, tmp_path):
    """Neither is read, rejected or counted."""
    text = f',\n\na,b\n1,2\na,b\n,\n \n, ,\n{quoted}3,4\n"a","b"\n\ta,b\nc,d\nx\n,,,,\n'
    result = recordgen.check(
        write(tmp_path / "a.csv", text), task="tabular", max_reject_fraction=0.5
    )
    more = text[: text.index("\nx")].count("\n")
    assert [item.line for item in result.rejects] == [more + 2]
    assert result.dataset.rows.read == 4 + bool(quoted)
    assert result.dataset.features["b"].dtype == "bytes"
    clean = text.replace("c,d\nx\n", "")
    dataset = recordgen.check(write(tmp_path / "b.csv", clean), task="tabular").dataset
    assert (dataset.rows.read, dataset.features["b"].dtype) == (2 + bool(quoted), "int64")


@pytest.mark.parametrize("frame", [False, True])
def test_a_header_alone_is_nothing_to_convert(frame, tmp_path):
    """A file or frame without rows is an error, unless another file has rows."""
    headed = write(tmp_path / "a.csv", "a,b\n")
    source = pd.DataFrame({"a,b": [], "{": []}) if frame else headed
    with pytest.raises(errors.NothingToConvertError, match=r"\b0 rows"):
        recordgen.convert(source, tmp_path / "out", task="tabular")
    row = write(tmp_path / "b.csv", "a,b\n1,2\n")
    assert recordgen.check([headed, row], task="tabular").dataset.examples == 1


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_of_pandas_is_left_out(name, inferred):
    """It numbers the rows, so no model learns it; a column of words stays."""
    table = inferred(f"{name},a\n0,7\n1,8\n")
    assert [column.name for column in table.stored] == ["a"]
    assert len(table.notes) == 1
    assert len(inferred(f"{name},a\nx,7\ny,8\n").stored) == 2


# header, what the error names
HEADERS = [
    ("a,b,a\n", "'a'"),
    ("1,2.5\n3,4\n", "'1' .*--columns header=yes(?s:.*)target=2,header=no"),
    ("5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n", "'5.1'"),
    ("M,0.455,15\nF,0.53,7\n", "'0.455'"),
    ("id,2019,2020\na,1,2\n", "'2019'"),
    ("p,x,s\ne,x,s\np,x,y\n", "'p'"),
    ("x,y,x\nx,y,z\n", "'x'"),
    ("2026-01-01,EUR\n2026-01-02,USD\n", "'2026-01-01'"),
    ("a1,b1,Rome\na2,b7,Paris\n", "'a1'"),
    ("ann@x.org,Ann\nbob@x.org,Bob\n", "'ann@x.org'"),
    ("a;b\n1;2;3\n", "commas"),
    ("\n,,\n", r"1\.csv|0\.csv"),
    ('{"a": 1, "b": 2}\n', "1: .*JSON.* CSV"),
    ("sep=#\na#b\n1#2\n", "1: .*sep="),
    ('"a,b"\n"1,2"\n', "quotes"),
    ("PK\x03\x04\x14\x00", "ZIP"),
    ("<!DOCTYPE html>\n<html>\n", "page"),
    (f"{','.join(f'c{at}' for at in range(10_001))}\n", "1: at most 10,000 columns"),
]


@pytest.mark.parametrize(("text", "message"), HEADERS)
def test_a_header_names_features(text, message, inferred):
    """A first line that may be a row is an error that names the reason."""
    with pytest.raises(errors.SourceError, match=message):
        inferred(text)


# a first line that is a header, and its rows
REAL_HEADERS = [
    "x1,x2,y\n1,2,3\n",
    "day,2026-01-01x\nMon,5\n",
    "Na,Mg,type\n1.5,2.5,a\n",
    "name,city\nAnn,Rome\nBob,Rome\n",
    "text,label\nGood and cheap.,pos\nBad.,neg\n",
    "1/22/20,1/23/20\n5,7\n",
    "V1,V2\n",
]


@pytest.mark.parametrize("text", REAL_HEADERS)
def test_names_are_no_row(text, inferred):
    """A first line of words is the header."""
    assert inferred(text).names == text.splitlines()[0].split(",")


IRIS = "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n"


def test_a_table_without_a_header(tmp_path):
    """``header=no`` numbers the columns from 1, in all files alike."""
    source = write(tmp_path / "iris.data.csv", IRIS)
    options = {"task": "tabular", "columns": "target=3,header=no"}
    result = recordgen.convert(source, tmp_path / "out", **options)
    assert (result.dataset.examples, result.dataset.labels) == (3, ("setosa", "versicolor"))
    assert [sorted(item) for item in stored(tmp_path / "out")] == [["1", "2", "3"]] * 3
    assert sorted(item["1"][0] for item in stored(tmp_path / "out")) == pytest.approx([4.9, 5.1, 7])
    found = detect([ImportFile(source)], ConvertOptions(**options))
    assert found.header is False
    assert Table.from_json(found.options.table).is_bare
    more = write(tmp_path / "more.csv", "1,2,3\n1,2,3\n\n6.3,3.3,setosa\n")
    assert recordgen.check([source, more], **options).dataset.examples == 6
    other = write(tmp_path / "other.csv", "6.3,3.3\n")
    with pytest.raises(errors.SourceError, match=r"other\.csv:1: .* 3 fields"):
        recordgen.check([source, other], **options)
    with pytest.raises(errors.UsageError, match=r"'4', .* 1, 2, 3"):
        recordgen.check(source, **{**options, "columns": "target=4,header=no"})


def test_a_line_of_numbers_may_be_the_header(inferred):
    """``header=yes``, or an option that names a column, decides."""
    years = "id,2019,2020\na,1,2\nb,3,4\n"
    table = inferred(years, columns="target=2020,header=yes")
    assert (table.names, table.target) == (["id", "2019", "2020"], "2020")
    assert inferred("1,2\n1,2\n", columns="header=yes").names == ["1", "2"]
    # An option that names a column knows the header.
    assert inferred(years, columns="target=id").target == "id"
    with pytest.raises(errors.SourceError, match="--columns header=yes"):
        inferred(years, columns="target=2020")


WORDS = "train\nVALIDATE\n\nTest\nUNASSIGNED\n" * 20

# lines of files behind the header, whose first column has this name; whether it is the split
SPLIT_COLUMNS = [
    ("split", [f"{WORDS}TRIAN\n"], True),
    ("split", ["TRAIN\n" * 100, "TRIAN\n"], True),  # misspelt in a later file
    ("by", ["train\nbus\n" * 20], False),
    # Without a word that Vertex AI publishes, a column of another name may well be a feature.
    ("state", ["valid\n" * 20], False),
    ("split", ["valid\n" * 20], True),
    ("note", ["\ntest\n\n"], False),  # a stray word
    ("ML use", ["\ntest\n\n"], True),
    ("note", ["test\n" * 9 + "best\n"], False),
]


@pytest.mark.parametrize(("name", "files", "is_split"), SPLIT_COLUMNS)
def test_the_split_is_told_by_its_words(name, files, is_split, inferred):
    """A column of Vertex AI's words is the split, and a single word among notes makes none."""
    table = inferred(*(f"{name},a\n" + text.replace("\n", ",1\n") for text in files))
    assert table.split == (name if is_split else None)


def test_other_words_of_splits_need_the_option(inferred):
    """The refusal has it; of two columns of words, it names one."""
    for text in ("fold,a\n" + "train,1\nval,2\n" * 20, "fold,age\n,1\ntest,2\ntrain,3\n"):
        refused = error_of(errors.NotUnderstoodError, inferred, text)
        assert refused.options == {"columns": "split=fold"}
    with pytest.raises(errors.UsageError, match="'a' and 'b' "):
        inferred("a,b\nTRAIN,TEST\n")
    chosen = inferred("a,b\nTRAIN,TEST\n", columns="split=b")
    assert [column.name for column in chosen.stored] == ["a"]
    assert inferred("age,note\n" + "1,test\n" * 9 + "2,best\n", columns="split=note").notes == ()


def test_a_column_named_like_a_target_is_no_input_in_silence(inferred):
    """A warning has the option that makes it the target, unless labels=none says there is none."""
    text = "label,a\n1,2\n0,3\n"
    [note] = inferred(text).notes
    assert "--columns target=label" in note
    assert inferred(text, columns="target=label").notes == ()
    assert inferred(text, labels="none").notes == ()


# options, target's values, prediction or what the error names
PREDICTIONS = [
    ({}, ["yes", "no"], "classification"),
    ({}, ["0", "1", "2"], "classification"),
    ({}, [str(number) for number in range(20)], "classification"),
    ({}, [str(number) for number in range(21)], "regression"),
    ({}, ["0.5", "1"], "regression"),
    ({"columns": "target:class=y"}, [str(number) for number in range(21)], "classification"),
    ({"columns": "target:number=y"}, ["0", "1"], "regression"),
    ({}, ["0.0", "1.0", "1", ""], "regression"),
    ({"columns": "target:class=y"}, ["0.0", "1.0"], "classification"),
    ({"columns": "target:class=y"}, ["0.5"], "column 'y' .*fractions"),
    ({"columns": "target:number=y"}, ["yes"], "column 'y' .*text"),
    ({"columns": "target=z"}, ["1"], "target=z: .*'z'"),
    ({"columns": "target=y,weight=a"}, ["1"], "weight 'a' "),
    ({"columns": "target=y,weight=y"}, ["1"], r"\(got y, y\)"),
]


@pytest.mark.parametrize(("options", "values", "result"), PREDICTIONS)
def test_what_a_target_asks_for(options, values, result, inferred):
    """Its values decide between classes and numbers; near the border the doubt is kept."""
    text = "a,y\n" + "".join(f"x,{value}\n" for value in values)
    options = {"columns": "target=y", **options}
    if result in ("classification", "regression"):
        table = inferred(text, **options)
        assert table.prediction == result
        # In case of doubt, the note has the choice and the option that settles it.
        is_doubtful = options["columns"] == "target=y" and (
            11 <= len(values) <= 40 or "1.0" in values
        )
        assert bool(table.target_kind) == is_doubtful
        if is_doubtful:
            kind, other = ("number", "class")[:: 1 if result == "regression" else -1]
            facts = rf" \d+ .*--columns target:{kind}=y .*target:{other}=y "
            assert re.search(facts, table.target_kind)
        assert Table.from_json(table.to_json()) == table
    else:
        with pytest.raises(errors.UsageError, match=result):
            inferred(text, **options)


def test_a_schema_gives_the_types(tmp_path, inferred):
    """Columns that the schema lacks or the file lacks are named."""
    text = "ml_use,zip,n\nTRAIN,12345,1\nTEST,54321,2\n"
    table = inferred(text, schema=schema(tmp_path, zip="BYTES", n="FLOAT"))
    assert [column.dtype for column in table.stored] == ["bytes", "float32"]
    with pytest.raises(errors.UsageError, match="'ml_use', 'n', 'x'"):
        inferred(text, schema=schema(tmp_path, zip="INT", x="INT"))
    with pytest.raises(errors.SourceError, match=r"'n' .*INT, FLOAT or BYTES"):
        inferred(text, schema=schema(tmp_path, n="STRUCT"))
    with pytest.raises(errors.SourceError, match=r"s\.pbtxt"):
        inferred(text, schema=write(tmp_path / "s.pbtxt", "no schema"))
    (tmp_path / "s.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.SourceError, match=r"s.pbtxt: .*UTF-8 \(byte 1\)"):
        inferred(text, schema=str(tmp_path / "s.pbtxt"))


# --- records ----------------------------------------------------------------------------------


def test_one_limit_for_all_rows(tmp_path):
    """A row of a file or a frame beyond 262,144 bytes is a reject."""
    kept = ["x" * 200_000, f'"{"x" * 140_000}"', f'"{"x" * 140_000}\n{"y" * 100_000}"', '"q"']
    long = ["x" * 300_000, f'"{"x" * 300_000}"', f'"{"x" * 200_000}\n,{"y" * 200_000}"']
    source = write(tmp_path / "a.csv", "a,b\n" + "".join(f"{a},1\n" for a in kept + long))
    frame = pd.DataFrame({"a": [field.strip('"') for field in kept + long], "b": 1})
    for data in (source, frame):
        result = recordgen.check(data, task="tabular", max_reject_fraction=1)
        assert result.dataset.examples == len(kept)
        limited = [item.line for item in result.rejects if "at most 262144 by" in item.message]
        assert limited == ([7, 8, 9] if data is source else [5, 6, 7])


# --- examples ---------------------------------------------------------------------------------

NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
FLOAT = st.floats(width=32, allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=300)
ROW = st.tuples(
    st.none() | NUMBER, st.none() | FLOAT, st.none() | TEXT.filter(bool), NUMBER, FLOAT, TEXT
)
NAMES = ("n", "float", "ä text", "m", "b", "a" * 200)
TABLE = Table(
    tuple(
        Column.of(name, dtype)
        for name, dtype in zip(NAMES, ["int64", "float32", "bytes"] * 2, strict=True)
    )
)


@settings(max_examples=20)
@given(st.lists(ROW, min_size=1, max_size=8))
@example([(None, None, None, 0, -0.0, "x" * 5000)])
def test_examples_are_what_each_row_by_itself_would_be(rows):
    """Columns of rows give the bytes that single rows give."""
    lines = [csv_line(["" if value is None else str(value) for value in row]) for row in rows]
    features = [[(v.encode() or None) if isinstance(v, str) else v for v in row] for row in rows]
    examples = (dict(zip(NAMES, row, strict=True)) for row in features)
    expected = [b"".join(serialize_example(each)) for each in examples]
    made = make_examples(pa.array(lines), TABLE)
    assert (made.records.to_pylist(), made.errors) == (expected, {})


FIELD_TEXT = st.text(st.sampled_from(" +-.0123456789eExinfa_٣"), max_size=24) | st.one_of(
    st.integers(-(1 << 64), 1 << 64).map(str),
    st.floats().map(repr),
    st.sampled_from(["3.4028235e38", "3.4028235677973366e38", "-3.5e38", "1e-50", "0" * 30]),
)


@given(st.lists(FIELD_TEXT, min_size=1, max_size=4), st.sampled_from(["int", "float", "weight"]))
@example(["3.4028235677973366e38"], "float")
@example(["3.4028235e38"], "float")
@example(["0" * 30 + "7"], "int")
@example(["1", " ? ", "NA", " +7 "], "int")
@example(["1.5", "-", "1_0", "+1.5"], "float")
@example(["10000.00001", "-0", "10001", "-1"], "weight")
def test_columns_and_single_values_follow_one_rule(texts, kind):
    """A column is parsed like each of its values."""
    column = Column("a", ColumnType(kind))
    errors = {}
    given = pa.array([text or None for text in texts], pa.string())
    found = parse_column(given, column, errors).to_pylist()
    expected, wrong = [], {}
    for row, text in enumerate(texts):
        try:
            expected.append(column.type.parse(text))
        except ValueError as exc:
            expected.append(None)
            wrong[row] = f"column 'a' {exc}"
    assert errors == wrong
    stored = found if kind == "int" else [v if v is None else as_float32(v) for v in found]
    assert stored == expected


def test_labels_are_those_of_the_examples():
    """Planned and written labels are counted alike."""
    for dtype, values in (("int64", ["1", "1", " 2", ""]), ("bytes", ["a", '"b\nc"', "", "a"])):
        columns = Column.of("y", dtype), Column.of("x", "bytes")
        table = Table(columns, target="y", prediction="classification", has_gaps=True)
        lines = pa.array([f"{value},x" for value in values])
        made = make_examples(lines, table)
        assert Counter(label_lists(lines, table).flatten().to_pylist()) == made.labels
        # The row without a target is an example; the row whose target has two lines is refused.
        assert len(made.records) == sum(made.labels.values()) + 1
        assert len(made.errors) == (dtype == "bytes")


def test_blocks_are_bounded_in_lines_and_in_characters():
    """Long and short lines both make bounded blocks."""
    long = ["x" * 200_000] * 100
    assert [len(block) for block in in_blocks([text] for text in long)] == [84, 16]
    assert [len(block) for block in in_blocks([["1"] * 900] * 23)] == [20_700]


SHARES = st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any)


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=20), SHARES, st.integers(1, 4096))
@example([0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], [0, 1, 0, 1], 2)
@example([(1 << 64) // 3, (1 << 64) // 3 + 1], [1, 2], 2)
def test_lines_are_placed_as_rows_are(numbers, weights, buckets):
    """A share begins at its part of 2^64, rounded up; a share without weight has no numbers."""
    many = np.array(numbers, np.uint64)
    ends = list(accumulate(weights))
    expected = [bisect_right(ends, number * ends[-1] >> 64) for number in numbers]
    assert shares_of(many, weights).tolist() == expected
    found = shares_of(many, [1] * buckets).tolist()
    assert found == [bucket_of(number, buckets) for number in numbers]


# --- conversions ------------------------------------------------------------------------------

PLAIN = "ml_use,n,x,y\n" + "".join(
    f"{('TRAIN', 'TEST', '')[number % 3]},{number % 7},{number / 8},{'ab'[number % 2]}\n"
    for number in range(300)
)


def test_equal_rows_are_examples_of_their_own(tmp_path):
    """Equal rows are no duplicates, and share a split."""
    source = write(tmp_path / "a.csv", "x,y\n" + "1,a\n" * 50 + "2,b\n")
    dataset = recordgen.convert(source, tmp_path / "out", task="tabular").dataset
    assert dataset.examples == dataset.rows.read == 51
    assert dataset.rows.duplicates == 0
    assert sum(1 for split in dataset.splits.values() if split.examples >= 50) == 1


def test_a_finished_table_is_known_again(tmp_path):
    """Resume leaves it alone; append and a second run are refused."""
    source, output = write(tmp_path / "a.csv", PLAIN), tmp_path / "out"
    options = {"task": "tabular", "columns": "target=y"}
    recordgen.convert(source, output, **options)
    before = tree_bytes(output)
    assert recordgen.convert(source, output, resume=True, **options).unchanged
    assert tree_bytes(output) == before
    with pytest.raises(errors.UsageError, match="overwrite=True"):
        recordgen.convert(source, output, append=True, **options)
    with pytest.raises(errors.UsageError, match="overwrite=True"):
        recordgen.convert(source, output, **options)
    with pytest.raises(errors.UsageError, match="'table'"):
        recordgen.convert(source, output, overwrite=True, table="", **options)


# column: its values in pandas, the type of its feature, the values of the first example
FRAME = {
    "zip": (["00123", "12", None], "bytes", [b"00123"]),
    "digits": (["1", "2", "3"], "bytes", [b"1"]),
    "n": ([1, 2, 3], "int64", [1]),
    "gaps": ([1.0, None, 3.0], "float32", [1.0]),
    "nullable": (pd.array([1, None, 3], dtype="Int64"), "int64", [1]),
    "price": ([Decimal("0.5"), None, Decimal("1E+2")], "float32", [0.5]),
    "decimals": ([Decimal(1), None, Decimal("3")], "int64", [1]),
    "marked": ([1, "?", 3], "int64", [1]),
    "rare": (pd.arrays.SparseArray([0, 0, 7]), "int64", [0]),
    "whole": ([1.0, 2.0, 3.0], "float32", [1.0]),
    "x": ([0.1, None, 1e-7], "float32", [pytest.approx(0.1)]),
    "flag": ([True, False, True], "bytes", [b"True"]),
    "kind": (pd.Categorical(["a", 'b "c"\nd', "a"]), "bytes", [b"a"]),
    "y": ([1, 0, 1], "int64", [1]),
}


def test_a_frame_has_the_types_of_its_columns(tmp_path):
    """Types come from pandas, and gaps are missing values."""
    columns = {"split": ["TRAIN", "TEST", None], **{name: it[0] for name, it in FRAME.items()}}
    frame = pd.DataFrame(columns)
    result = recordgen.convert(frame, tmp_path / "out", task="tabular", columns="target=y")
    dtypes = {name: spec.dtype for name, spec in result.dataset.features.items()}
    assert dtypes == {name: dtype for name, (_, dtype, _) in FRAME.items()}
    found = {item["n"][0]: item for item in stored(tmp_path / "out")}
    assert found[1] == {name: first for name, (*_, first) in FRAME.items()}
    assert found[2].keys() == {"zip", "digits", "n", "rare", "whole", "flag", "kind", "y"}
    assert found[2]["kind"] == [b'b "c"\nd']
    with pytest.raises(errors.UsageError, match="column 'a'"):
        recordgen.convert(pd.DataFrame({"a": [[1, 2]]}), tmp_path / "no", task="tabular")


def test_classes_that_gaps_made_floats():
    """Floats of whole numbers need ``target:class`` or ``target:number``."""
    frame = pd.DataFrame({"a": range(6), "y": [0.0, None, 1.0, 1.0, 0.0, 1.0]})
    options = {"task": "tabular", "columns": "target=y"}
    with pytest.raises(errors.UsageError, match=r"target:class="):
        recordgen.check(frame, **options)
    dataset = recordgen.check(frame, **{**options, "columns": "target:class=y"}).dataset
    assert (dataset.labels, dataset.features["y"].dtype) == (("0", "1"), "int64")
    amounts = recordgen.check(
        frame, **{**options, "columns": "target:number=y"}, max_reject_fraction=0.5
    )
    assert (amounts.dataset.features["y"].dtype, len(amounts.rejects)) == ("float32", 1)


def test_a_frame_may_hold_any_text(tmp_path):
    """Line breaks and quotes are kept; surrogates and NUL reject their row."""
    texts = ["x\ny", 'q"r', "\r", "a\r\n,b", "\ud800", "n\0l", "\n", '"']
    # pandas 3 accepts surrogates only as objects.
    frame = pd.DataFrame({"a": pd.Series(texts, dtype=object), "b": range(len(texts))})
    result = recordgen.convert(frame, tmp_path / "out", task="tabular", max_reject_fraction=0.5)
    assert [(item.line, item.code) for item in result.rejects] == [
        (5, "bad_encoding"),
        (6, "bad_line"),
    ]
    found = {item["b"][0]: item["a"][0].decode() for item in stored(tmp_path / "out")}
    assert found == {n: text for n, text in enumerate(texts) if n not in (4, 5)}
    alone = pd.DataFrame({"a": ["x\ny", 'q"r']})
    assert recordgen.convert(alone, tmp_path / "one", task="tabular").dataset.examples == 2
