# ruff: noqa: E501 - tables with a case on each line
"""Columns become rows by one rule: of CSV, JSON Lines, JSON, Parquet, Feather, Arrow and frames."""

import csv
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import recordgen
from recordgen.core.limits import DOCUMENT, Limit
from recordgen.errors import RecordgenError, SourceError, UsageError
from recordgen.formats import parquet as parquet_files
from recordgen.rejects import OddLine
from recordgen.tasks import task_for
from tests.conftest import error_of, write_file
from tests.formats.cases import cases
from tests.formats.sources import Reading, refusal, write_files

# --- records in containers ------------------------------------------------------------------------


def value_of(text):
    """Return a field as JSON would hold it: a number, a list, or a text; null if it is empty."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


STREAM_WRITERS = {"arrow": pa.ipc.new_file, "arrow stream": pa.ipc.new_stream}
TABLE_WRITERS = {"parquet": parquet.write_table, "feather": feather.write_feather}


def write(folder, kind, lines):
    """Write the lines of a CSV as a file of a kind, or as a frame, and return it."""
    path = write_file(folder / f"a.{kind.partition(' ')[0]}", lines)
    if kind == "csv":
        return path
    with path.open(newline="") as file:
        records = [{k: value_of(v) for k, v in each.items()} for each in csv.DictReader(file)]
    if kind == "frame":
        return pd.DataFrame(records)
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, records)))
    elif kind == "json":
        path.write_text(json.dumps(records))
    elif kind == "json columns":
        names = records[0].keys()
        path.write_text(json.dumps({n: {i: r[n] for i, r in enumerate(records)} for n in names}))
    elif kind in TABLE_WRITERS:
        TABLE_WRITERS[kind](pa.Table.from_pylist(records), path)
    else:
        table = pa.Table.from_pylist(records)
        with STREAM_WRITERS[kind](str(path), table.schema) as writer:
            writer.write_table(table)
    return path


# Of these, all but JSON Lines and frames are one document.
DOCUMENTS = ["json", "json columns", "parquet", "feather", "arrow", "arrow stream"]
KINDS = ["jsonl", "frame", *DOCUMENTS]


def read(source, **options):
    """Return the subject and the annotation of each row, and the code of each rejected line."""
    found = Reading(source, **options)
    preview = task_for(found.options).preview
    said = {
        (row.source, row.line): f"{f'{row.split}: ' if row.split else ''}"
        f"{' '.join(map(str, preview(row.uri, row.annotation))).rstrip()}"
        for row in found.rows
    }
    said |= {(item.source, item.line): item.code for item in found.rejects}
    return [said[place] for place in sorted(said)]


# --- one rule for all -----------------------------------------------------------------------------

SIZED = "image,label,width,height,bbox\na.jpg,cat,40,20,{}\n"


# The others of Arrow are read as this one once they are open, see the tests below.
@pytest.mark.parametrize(
    "kind", ["csv", "jsonl", "frame", "json", "json columns", "parquet", "arrow"]
)
@cases("columns.txt", "Of every kind")
def test_given_columns(name, lines, options, rows, kind, tmp_path):
    """Every kind of record takes the roles of ``--columns``, and gives the same rows."""
    assert read(write(tmp_path, kind, f"{lines}\n"), **options) == rows


@pytest.mark.parametrize("kind", KINDS)
def test_each_box_of_a_list_is_a_row(kind, tmp_path):
    """A list of boxes is a row for each, with its label, as a line for each in a CSV."""
    lines = 'f,b,k\na.jpg,"[[0.25, 0.5, 0.5, 0.25], [0, 0, 0.5, 1]]","[""cat"", ""dog""]"\nb.jpg,[],[]\n'
    found = Reading(write(tmp_path, kind, lines), columns="image=f,xywh=b,label=k")
    boxes = ['[["cat",0.25,0.5,0.75,0.75]]', '[["dog",0.0,0.0,0.5,1.0]]', None]
    assert [row.annotation for row in found.rows] == boxes
    short = lines.replace(', ""dog""', "")
    found = Reading(write(tmp_path, kind, short), columns="image=f,xywh=b,label=k")
    assert found.codes == ["bad_annotation"]


@pytest.mark.parametrize("kind", ["csv", *KINDS])
def test_columns_that_are_not_read_are_named(kind, tmp_path):
    """Whoever names the payload's column is told which others are not in the dataset."""
    source = write(tmp_path, kind, "image,label,box,note,id\n1.jpg,x,7,a,9\n2.jpg,y,8,b,9\n")
    unread = {
        "image=image,label=label": "box, note, id",
        "path={id}.jpg,label=note": "image, label, box",
    }
    for columns, names in unread.items():
        items = Reading(source, columns=columns).items
        said = [(item.code, item.message) for item in items if isinstance(item, OddLine)]
        assert said == [("SKIPPED", f"columns without a role are not read: {names}")]


@pytest.mark.parametrize("kind", ["csv", *KINDS])
def test_groups_and_separators(kind, tmp_path):
    """A column of groups is one, and a separator divides labels, whatever holds them."""
    source = write(tmp_path, kind, "a,b,who\n1.jpg,x|y,7\n2.jpg,y,8\n")
    found = Reading(source, columns="path=a,label=b", group_by="who", label_separator="|")
    rows = [(row.annotation, row.group) for row in found.rows]
    assert rows == [('["x", "y"]', "7"), ('["y"]', "8")]


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet"])
def test_an_image_root(kind, tmp_path):
    """It holds the images of records, though it is not in their folder."""
    write_files(tmp_path, dict.fromkeys(("in/img/1.jpg", "in/img/2.jpg"), ""))
    source = write(tmp_path, kind, "image,label\n1.jpg,a\n2.jpg,b\n")
    rows = read(source, columns="path=image,label=label", image_root=tmp_path / "in/img")
    assert rows == ["in/img/1.jpg 'a'", "in/img/2.jpg 'b'"]


TEXTS = 'split,text,label\nTRAIN,"Good, and cheap",praise\nTEST,Bad,blame\n,So so,praise\n,Oh,\n'


@pytest.mark.parametrize("kind", ["csv", "frame", *DOCUMENTS])
def test_known_columns(kind, tmp_path):
    """Columns that all have a known name need no option."""
    rows = ["train: Good, and cheap 'praise'", "test: Bad 'blame'", "So so 'praise'", "Oh"]
    assert read(write(tmp_path, kind, TEXTS)) == rows


# --- lines of a CSV -------------------------------------------------------------------------------


@cases("columns.txt", "Lines of a CSV")
def test_lines(name, lines, options, rows, tmp_path):
    """Headers in any order and repeated, padded and quoted lines, columns of 0 and 1, divided labels."""
    assert read(write(tmp_path, "csv", f"{lines}\n"), **options) == rows


def test_lines_of_a_large_file_are_read_like_those_of_a_small_one(tmp_path):
    """One odd line among many is made as the others are; commas of a mapping divide no name."""
    rows = [f"{n},{n % 3}" for n in range(6_000)]
    rows[4_000] = "4000"
    source = write(tmp_path, "csv", "\n".join(["id,label", *rows]))
    found = Reading(source, columns={"path": "x,{id}.jpg", "label": "label"})
    assert {row.line: row.uri for row in found.rows} == {n + 2: f"x,{n}.jpg" for n in range(6_000)}


AGES = "image,age,cat,dog\n1.jpg,7,0,1\n2.jpg,8,1,0\n"
UNSURE = "image,age,cat,dog\n1.jpg,7,-1.0,1.0\n2.jpg,8,,1.0\n3.jpg,8,1.0,0.0\n4.jpg,9,,\n"

# kind, lines, options, what the message has
STOPPED = [
    ("csv", SIZED.format('"[10, 5, 20, 15]"'), {}, "taken: xywh"),
    ("csv", SIZED.format('"[.5, .1, .8, .3]"'), {}, "xyxy=bbox"),
    ("csv", SIZED.replace("label", "source").format('"[2, 5, 3, 15]"'), {}, "'object',xywh="),
    ("csv", SIZED.format("1 2 3 4"), {"columns": "xywh=bbox,xyxy=bbox"}, "xyxy, xywh"),
    ("csv", SIZED.format("1 2 3 4"), {"columns": "xywh=box"}, "'bbox'"),
    ("csv", SIZED.replace("label", "xmin").format("1 2 3 4"), {"columns": "xywh=bbox"}, "xmin"),
    ("csv", "1.jpg,a\n2.jpg,b\n", {"columns": "path=0,label=1"}, "from 1"),
    ("csv", "id,label\n7,a\n", {"columns": "path=x/{label}/{idd}.jpg,label=label"}, "id, label"),
    ("jsonl", "id,label\n7,a\n", {"columns": "path=x/{idd}.jpg,label=label"}, "id, label"),
    ("frame", "id,label\n7,a\n", {"columns": "path={idd}.jpg,label=label"}, "id, label"),
    ("csv", AGES, {}, "label=cat|dog"),
    ("csv", "image,label_1,label_2\n1.jpg,0,1\n2.jpg,1,0\n", {}, "label_1|label_2"),
    ("csv", "image,fold,cat,dog\n1.jpg,0,0,1\n2.jpg,1,1,0\n", {}, "fold"),
    ("csv", "image,a|b,c\n1.jpg,0,1\n2.jpg,1,0\n", {}, "a|b"),
    ("csv", "image,cat,dog\n1.jpg,0,1\n", {"columns": "label=cat|owl"}, "'owl'"),
    ("csv", "1.jpg,0,1\n", {"columns": "header=no,path=1,label=2|3"}, "header"),
    ("csv", 'image,label\n1.jpg,"[0, 1]"\n2.jpg,"[0,0]"\n', {}, "label=label[0|1]"),
    ("csv", UNSURE, {"columns": "path=image,label=cat|dog"}, "uncertain=0"),
    ("csv", UNSURE, {"columns": "path=image,uncertain=0"}, "uncertain"),
    ("csv", "image,label\n1.jpg,cat\n2.jpg,dog\n", {"columns": "uncertain=0"}, "uncertain"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lines", "options", "words"), STOPPED)
def test_what_is_unsure_stops(kind, lines, options, words, tmp_path):
    """Nothing is guessed: the message lists the columns, or proposes the option."""
    assert words in str(error_of(UsageError, read, write(tmp_path, kind, lines), **options))


# lines, a part of the option that is proposed
UNKNOWN = [
    (TEXTS.replace("\n", ",7\n").replace("label,7", "label,stars"), "text=text"),
    ("where,breed\n1.jpg,x\n2.jpg,y\n3.jpg,x\n4.jpg,y\n", "path=where"),
    ("filename,x0,y0,breed\n" + "1.jpg,5,6,x\n2.jpg,5,6,y\n" * 2, "path=filename"),
]


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize(("lines", "proposed"), UNKNOWN)
@pytest.mark.parametrize("given", [None, "label='wheat'"])
def test_unknown_columns_stop(lines, proposed, given, kind, tmp_path):
    """A column without a known role stops, also beside a label alone; the advice reads the file."""
    source = write(tmp_path, kind, lines)
    advice = refusal(Reading, source, columns=given).options["columns"]
    assert proposed in advice.split(",")
    assert len(Reading(source, columns=advice).rows) == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1.jpg,cat,.1,.1,,,.2,.2,,\n"),
        ("a.jsonl", '{"imageGcsUri": "1.jpg", "classificationAnnotation": {"displayName": "a"}}'),
        ("a/cat/1.jpg", ""),
    ],
)
def test_a_separator_without_fields_of_labels_is_refused(name, text, tmp_path):
    """An option that would do nothing is a mistake."""
    write_files(tmp_path, {name: text})
    with pytest.raises(UsageError, match="label_separator"):
        read(str(tmp_path / name).removesuffix("cat/1.jpg"), label_separator="|")


def test_one_hot_columns_are_classes_in_their_order(tmp_path):
    """What was inferred can be seen before a row is converted."""
    found = Reading(write(tmp_path, "csv", "filename,dog,cat\n1.jpg,0,1\n2.jpg,1,0\n"))
    assert found.classes == ("dog", "cat")
    assert ("dog|cat", "one-hot labels") in found.detection.columns
    assert found.options.columns.roles["label"] == ("dog|cat",)


def test_a_folder_of_roboflow_needs_no_option(tmp_path):
    """The table in the folder of each split is found, and the folder names the split."""
    for split in ("train", "valid", "test"):
        table = f"filename, cat, dog\n{split}.jpg, 1, 1\n"
        write_files(tmp_path / split, {"_classes.csv": table, f"{split}.jpg": ""})
    rows = read(tmp_path)
    assert sorted(row.partition(" '")[0] for row in rows) == [
        "eval: valid.jpg", "test: test.jpg", "train: train.jpg"
    ]  # fmt: skip


# --- lists, tables and documents ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["frame", "json", "parquet", "feather", "arrow", "arrow stream"])
def test_lists_are_several_labels(kind, tmp_path):
    """A list in a column of labels holds several of them; an empty list holds none."""
    lines = 'text,label\na b,"[""x"", ""y""]"\nc d,"[""y""]"\ne f,[]\n'
    rows = ["a b 'x', 'y'", "c d 'y'", "e f"]
    assert read(write(tmp_path, kind, lines), columns="text=text,label=label") == rows


@pytest.mark.parametrize("columns", [{"xywh": "bbox"}, {"xywh": "bbox", "label": "'cat'"}])
def test_arrays_in_a_frame(columns, tmp_path, make_pictures):
    """Print options of NumPy round no box; an array of 0 and 1 is a one-hot list."""
    make_pictures("a.jpg", "b.jpg")
    names = [str(tmp_path / "in" / name) for name in ("a.jpg", "b.jpg")]
    boxes = [*map(np.array, [[0.25, 0.5, 0.5, 0.25], [0.5, 0.25, 0.25, 0.5]])]
    frame = pd.DataFrame({"image": names, "label": "cat", "split": "train", "bbox": boxes})
    with np.printoptions(precision=1):
        recordgen.convert(frame, str(tmp_path / "out"), columns=columns)
    records = recordgen.source(tmp_path / "out", "train")
    assert [each["image/object/bbox/xmax"].tolist() for each in records] == [[0.75], [0.75]]
    frame = pd.DataFrame({"image": ["1.jpg"], "y": [np.array([0, 1, 1])]})
    assert read(frame, columns="label=y[cat|cow|dog]") == ["1.jpg 'cow', 'dog'"]


@pytest.mark.parametrize("kind", [*KINDS, "csv"])
def test_tables(kind, tmp_path):
    """Records are rows of a table with ``target=``; texts that look like numbers stay texts.

    Blanks around the name of a column do not belong to it; the first may have none.
    """
    lines = ',age,\u00a0zip,my job \n1,58,007,"a, b"\n2,44,012,c\n3,,013,"a, b"\n'
    source = write(tmp_path, kind, lines)
    recordgen.convert(source, tmp_path / "out", columns="target=my job", split="1,0,0")
    rows = sorted(
        (bytes(record["zip"].numpy()).decode(), bytes(record["my job"].numpy()).decode())
        for record in recordgen.read(tmp_path / "out", split="train")
    )
    assert rows == [("007", "a, b"), ("012", "c"), ("013", "a, b")]


SCHEMA = {"x": "text", "y": "label"}


@pytest.mark.parametrize("kind", [*KINDS, "csv"])
def test_a_schema_finds_names_with_blanks(kind, tmp_path):
    """Records of every kind have columns of a schema."""
    source = write(tmp_path, kind, "\u00a0x,y \nabc,a\nabd,b\n")
    assert read(source, schema=SCHEMA) == [" 'abc', 'a'", " 'abd', 'b'"]


def test_a_folder_is_refused_with_a_schema_too(tmp_path):
    """The file in it is proposed, as without one."""
    source = write(tmp_path, "csv", "x,y\nabc,a\n")
    assert refusal(Reading, tmp_path, schema=SCHEMA).source == str(source)


def test_a_missing_image_of_a_schema_has_no_name(tmp_path):
    """Its reject has no uri, rather than ``None``."""
    source = write_file(tmp_path / "a.jsonl", '{"x": null}')
    assert [item.uri for item in Reading(source, schema={"x": "image"}).rejects] == [""]


@pytest.mark.parametrize("given", [None, "text=text,label=label"])
@pytest.mark.parametrize(
    "document",
    [
        '{"train": [["a b", "x"]], "val": [["c d", "y"]]}',
        '["a", "b"]',
        '{"text": {"0": "a"}, "label": {"1": "x"}}',  # columns with other rows
        '{"text": {"m": "a"}, "label": {"m": "x"}}',  # either may be a row
        '{"0": {"0": "a b", "1": "x"}, "1": {"0": "c d", "1": "y"}}',
        '{"0": {"m": "a", "n": "b", "o": "c"}, "1": {"m": "x", "n": "y", "o": "x"}}',
        '{"-1": {"text": "a", "label": "x"}, "m": {"text": "b", "label": "y"}}',
        '{"columns": ["text", "label"], "data": [["a", "x"], ["b"]]}',
        '{\n"text": "a",\n"label": "x"\n}',
    ],
)
def test_other_documents_stop(document, given, tmp_path):
    """A JSON document in another form stops, without an option that would stop again."""
    (tmp_path / "a.json").write_text(document)
    assert not refusal(Reading, tmp_path / "a.json", columns=given).options


@pytest.mark.parametrize("kind", ["json", "parquet", "feather", "arrow", "arrow stream"])
def test_damaged_files(kind, tmp_path):
    """A file that is cut off stops the run, and says which file it is."""
    source = write(tmp_path, kind, "text,label\n" + "Good,praise\n" * 2000)
    source.write_bytes(source.read_bytes()[: -source.stat().st_size // 2])
    with pytest.raises(SourceError, match=source.name):
        Reading(source, columns="text=text,label=label")


@pytest.mark.parametrize("kind", TABLE_WRITERS)
@pytest.mark.parametrize("times", [[0], [10**18]], ids=["bad name", "bad time"])
def test_a_value_that_python_has_not(times, kind, tmp_path):
    """A name that is no UTF-8 and a time behind the year 9999 stop the run, with the file's name."""
    table = pa.table({"text": ["a"], "label": ["b"], "time": pa.array(times, pa.timestamp("us"))})
    source = tmp_path / f"a.{kind}"
    TABLE_WRITERS[kind](table, source)
    if times == [0]:
        source.write_bytes(source.read_bytes().replace(b"time", b"t\x80me"))
    with pytest.raises(SourceError, match=source.name):
        Reading(source, columns="text=text,label=label")


@pytest.mark.parametrize("kind", TABLE_WRITERS)
def test_numbers_have_the_names_that_the_schema_declares(kind, tmp_path):
    """Hugging Face's features name the classes, and -1 is no label."""
    label = {"names": ["no", "yes"], "_type": "ClassLabel"}
    declared = {"huggingface": json.dumps({"info": {"features": {"label": label}}})}
    table = pa.table({"text": ["a b", "c d", "e f"], "label": [1, 0, -1]})
    TABLE_WRITERS[kind](table.replace_schema_metadata(declared), tmp_path / f"a.{kind}")
    assert read(tmp_path / f"a.{kind}") == ["a b 'yes'", "c d 'no'", "e f"]


@pytest.mark.parametrize("kind", TABLE_WRITERS)
def test_decimals_are_numbers(kind, tmp_path):
    """Decimals, which databases give, are numbers of the kind that their digits show."""
    numbers = [Decimal(number) for number in range(9)]
    columns = {
        "price": pa.array([number / 8 for number in numbers], pa.decimal128(9, 3)),
        "count": pa.array(numbers, pa.decimal128(9, 0)),
        "y": pa.array([number / 4 for number in numbers], pa.decimal128(9, 2)),
    }
    source = tmp_path / f"a.{kind}"
    TABLE_WRITERS[kind](pa.table(columns), source)
    features = recordgen.check(source, columns="target=y").dataset.features
    dtypes = {name: spec.dtype for name, spec in features.items()}
    assert dtypes == {"price": "float32", "count": "int64", "y": "float32"}


def test_an_arrow_file_that_announces_too_many_bytes_is_named(tmp_path):
    """Each length in the file may be a lie; the run stops with its name, or reads the rows."""
    source = write(tmp_path, "feather", "text,label\na,b\n")
    data = source.read_bytes()
    messages = []
    for at in range(0, len(data) - 8, 8):
        source.write_bytes(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :])
        try:
            Reading(source, columns="text=text,label=label")
        except RecordgenError as exc:
            messages.append(str(exc))
    assert messages
    assert [text for text in messages if source.name not in text] == []


@pytest.mark.parametrize("kind", ["feather", "arrow stream"])
def test_arrow_unpacks_to_as_much_as_parquet_does(kind, tmp_path, monkeypatch):
    """Texts of 80 MB in some kB are refused, packed or named by their number; rows are read."""
    monkeypatch.setattr(parquet_files, "ROWS", Limit(10, "rows", DOCUMENT))
    source = write(tmp_path, kind, "text,label\n" + "a,b\n" * 50)
    assert len(Reading(source, columns="text=text,label=label").rows) == 50
    texts = pa.array(["x" * 200_000] * 400)
    table = pa.table({"text": texts if kind == "feather" else texts.dictionary_encode()})
    with pa.ipc.new_stream(str(source), table.schema) as writer:
        writer.write_table(table)
    if kind == "feather":
        feather.write_feather(table, source, compression="zstd")
    with pytest.raises(SourceError, match=f"{source.name}.* bytes"):
        Reading(source, columns="text=text", labels="none")


def test_objects_that_differ(tmp_path):
    """A record that is no object is rejected, and so is one with a key that was not checked."""
    first = [{"text": f"text {at}", "label": "x"} for at in range(1000)]
    others = [{"text": "a", "stars": 7}, ["a"], {"text": "b"}]
    (tmp_path / "a.json").write_text(json.dumps([*first, *others]))
    for columns, lines in ((None, [1001, 1002]), ("text=text,label=label", [1002])):
        found = Reading(tmp_path / "a.json", columns=columns)
        assert [item.line for item in found.rejects] == lines
        assert len(found.rows) == 1003 - len(lines)


def test_a_table_of_json_lines(tmp_path):
    """JSON lines with a target are a table; a line that is no object is a reject."""
    lines = [json.dumps({"a": n / 2, "y": "no" if n % 2 else "yes"}) for n in range(9)]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, "", "{broken"]))
    options = {"columns": "target=y", "max_reject_fraction": 0.2}
    recordgen.convert(tmp_path / "a.jsonl", tmp_path / "out", **options)
    [reject] = map(json.loads, (tmp_path / "out/rejects.jsonl").read_text().splitlines())
    assert (reject["line"], reject["code"]) == (10, "bad_line")


NAMED = {"text": ["a b", "c d"], "label": ["x", "y"]}
NUMBERED = {0: NAMED["text"], 1: NAMED["label"]}

# the columns of a frame, its index, the form in which pandas writes it
FORMS = [
    *((NAMED, [-1, 1], orient) for orient in ("columns", "index", "split", "table", "records")),
    (NAMED, ["m", "n"], "index"),
    *((NUMBERED, ["m", "n"], orient) for orient in ("split", "table", "values")),
]


@pytest.mark.parametrize(("columns", "index", "orient"), FORMS)
def test_every_form_of_json_that_pandas_writes(columns, index, orient, tmp_path):
    """Lists of values have numbers as names; the index is no column."""
    pd.DataFrame(columns, index).to_json(tmp_path / "a.json", orient=orient)
    names = [1, 2] if orient == "values" else [*columns]
    given = "text={},label={}".format(*names)
    assert read(tmp_path / "a.json", columns=given) == ["a b 'x'", "c d 'y'"]


def test_a_key_that_the_first_object_lacks(tmp_path):
    """Names of columns are found in each object, with blanks around them or without."""
    lines = {"text": "a b", "kind": "x"}, {" text": "c d", "kind\t": "y", "part ": "TEST"}
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rows = ["a b 'x'", "test: c d 'y'"]
    assert read(tmp_path / "a.jsonl", columns="text=text,label=kind,split=part") == rows


def test_images_in_arrow(tmp_path):
    """Arrow with images stops: Parquet holds them as they are."""
    table = pa.table({"image": [{"bytes": b"\xff\xd8\xff", "path": None}], "label": ["x"]})
    feather.write_feather(table, tmp_path / "a.feather")
    with pytest.raises(RecordgenError, match="Parquet"):
        Reading(tmp_path / "a.feather")


def test_a_folder_of_parquet(tmp_path):
    """Names of files are splits, as those of CSV files are; folders with splits are datasets."""
    for folder, split in (("one", "train"), ("one", "test"), ("other", "train")):
        source = write(tmp_path, "parquet", f"text,label\na {split},x\n")
        (tmp_path / folder).mkdir(exist_ok=True)
        source.rename(tmp_path / folder / f"{split}-00000-of-00001.parquet")
    assert read(f"{tmp_path}/one/") == ["test: a test 'x'", "train: a train 'x'"]
    assert "one and other" in str(refusal(read, f"{tmp_path}/"))
    assert len(Reading(f"{tmp_path}/", format="named_records").rows) == 3
