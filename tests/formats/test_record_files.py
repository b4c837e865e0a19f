"""Files of named records are read as the same CSV is: JSON documents, Parquet, Feather, Arrow."""

import json

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import recordgen
from recordgen.errors import NotUnderstoodError, RecordgenError, SourceError
from recordgen.tasks.texts.text_task import TextContent
from tests.formats.sources import Reading

TEXTS = {
    "split": ["TRAIN", "TEST", None, "TRAIN"],
    "text": ["Good, and cheap", "Bad", "So so", 'A "quote"\nand a break'],
    "label": ["praise", "complaint", "praise", None],
}


def write(folder, kind, columns):
    """Write columns as a file of a kind, and return its path."""
    frame, table = pd.DataFrame(columns), pa.table(columns)
    path = folder / f"a.{kind.partition(' ')[0]}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind.startswith("json"):
        orient = {"json": "records", "jsonl": "records", "json columns": "columns"}[kind]
        frame.to_json(path, orient=orient, lines=kind == "jsonl")
    elif kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "feather":
        feather.write_feather(table, path)
    else:
        open_file = pa.ipc.new_stream if kind == "arrow stream" else pa.ipc.new_file
        with open_file(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


KINDS = ["json", "json columns", "jsonl", "parquet", "feather", "arrow", "arrow stream"]


def rows_of(source, **options):
    """Return the rows of a source without lines, which files count differently."""
    rows = Reading(source, **options).rows
    return [(row.split, row.uri, row.annotation, row.group) for row in rows]


# columns, the option columns
MAPPED = [
    (TEXTS, "text=text,label=label,split=split"),
    ({"a": ["1.jpg", "2.jpg"], "b": ["x", "y"]}, "path=a,label=b"),
    ({"a": ["1.jpg", "2.jpg"], "b": [7, 9]}, "image=a,label=b"),
    ({"a": ["1.jpg", "2.jpg"]}, "path=a,label='wheat'"),
    ({"id": [1, 2], "b": ["x", "y"]}, "path=x/{id}.jpg,label=b"),
    ({"a": ["1.jpg", "2.jpg"], "x": [0, 1], "y": [1, 1]}, "path=a,label=x|y"),
    ({"a": ["1.jpg", "2.jpg"], "m": ["1.png", "2.png"]}, "image=a,mask=m"),
    ({"a": ["1.jpg"], "b": ["[10, 20, 30, 40]"], "c": ["cat"]}, "image=a,xywh=b,label=c"),
    ({"a": ["1.jpg"], "x": [1.5], "y": [2], "r": [3], "d": [4], "c": ["cat"]},
     "image=a,xmin=x,ymin=y,xmax=r,ymax=d,label=c"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "given"), MAPPED)
def test_named_columns(columns, given, kind, tmp_path):
    """Every kind of record takes the roles of ``--columns``, and gives the rows of a CSV."""
    wanted = rows_of(write(tmp_path, "csv", columns), columns=given)
    assert rows_of(write(tmp_path, kind, columns), columns=given) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_groups(kind, tmp_path):
    """A column of groups is one, whichever file holds it."""
    columns = {"a": ["1.jpg", "2.jpg"], "b": ["x", "y"], "who": [7, 8]}
    options = {"columns": "path=a,label=b", "group_by": "who"}
    assert [row[3] for row in rows_of(write(tmp_path, kind, columns), **options)] == ["7", "8"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jsonl"])
def test_known_columns(kind, tmp_path):
    """Columns that all have a known name need no option."""
    wanted = rows_of(write(tmp_path, "csv", TEXTS))
    assert rows_of(write(tmp_path, kind, TEXTS)) == wanted


@pytest.mark.parametrize("kind", ["json", "parquet", "feather", "arrow", "arrow stream", "frame"])
def test_lists_are_several_labels(kind, tmp_path):
    """A list in a column of labels holds several of them; an empty list holds none."""
    columns = {"text": ["a b", "c d", "e f"], "label": [["x", "y"], ["y"], []]}
    frame = kind == "frame"
    source = pd.DataFrame(columns) if frame else write(tmp_path, kind, columns)
    found = Reading(source, columns={"text": "text", "label": "label"})
    labels = [TextContent.decode(row.annotation).said or [] for row in found.rows]
    assert (found.options.task, labels) == ("text_multi_label", [["x", "y"], ["y"], []])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jsonl"])
def test_tables(kind, tmp_path):
    """Records are rows of a table with ``target=``; texts that look like numbers stay texts."""
    columns = {"age": [58, 44, None], "zip": ["007", "012", "100"], "job": ["a, b", "c", "a, b"]}
    output = tmp_path / "out"
    source = write(tmp_path, kind, columns)
    recordgen.convert(str(source), output, columns="target=job", split="1,0,0")
    rows = sorted(
        (bytes(record["zip"].numpy()).decode(), bytes(record["job"].numpy()).decode())
        for record in recordgen.read(output, split="train")
    )
    assert rows == [("007", "a, b"), ("012", "c"), ("100", "a, b")]


# columns, a part of the option that is proposed
UNKNOWN = [
    ({**TEXTS, "stars": [1, 2, 3, 4]}, "text=text"),
    ({"where": ["1.jpg", "2.jpg", "3.jpg", "4.jpg"], "breed": ["x", "y", "x", "y"]}, "path=where"),
    ({"filename": ["1.jpg"] * 4, "x0": [5] * 4, "y0": [6] * 4, "x1": [9] * 4}, "path=filename"),
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jsonl"])
@pytest.mark.parametrize(("columns", "proposed"), UNKNOWN)
@pytest.mark.parametrize("given", [None, "label='wheat'"])
def test_unknown_columns_stop(columns, proposed, given, kind, tmp_path):
    """A column without a known role stops, also beside a label alone; the advice reads the file."""
    source = write(tmp_path, kind, columns)
    with pytest.raises(NotUnderstoodError) as caught:
        Reading(source, columns=given)
    advice = caught.value.options["columns"]
    assert proposed in advice.split(",")
    assert len(rows_of(source, columns=advice)) == 4


# a document, what it is
DOCUMENTS = [
    ('{"train": [["a b", "x"]], "val": [["c d", "y"]]}', "lists by split"),
    ('[["a b", "x"]]', "lists"),
    ('["a", "b"]', "texts"),
    ('{"text": {"0": "a"}, "label": {"1": "x"}}', "columns with other rows"),
    ('{\n"text": "a",\n"label": "x"\n}', "one object"),
]


@pytest.mark.parametrize("given", [None, "text=text,label=label"])
@pytest.mark.parametrize(("document", "what"), DOCUMENTS)
def test_other_documents_stop(document, what, given, tmp_path):
    """A JSON document in another form stops, without an option that would stop again."""
    (tmp_path / "a.json").write_text(document)
    with pytest.raises(NotUnderstoodError) as caught:
        Reading(tmp_path / "a.json", columns=given)
    assert not caught.value.options, what


# a damaged file
@pytest.mark.parametrize("kind", ["json", "parquet", "feather", "arrow", "arrow stream"])
def test_damaged_files(kind, tmp_path):
    """A file that is cut off stops the run, and says which file it is."""
    source = write(tmp_path, kind, {key: values * 500 for key, values in TEXTS.items()})
    source.write_bytes(source.read_bytes()[: -source.stat().st_size // 2])
    with pytest.raises(SourceError, match=source.name):
        Reading(source, columns="text=text,label=label")


def test_objects_that_differ(tmp_path):
    """A record that is no object is rejected, and so is one with a key that was not checked."""
    first = [{"text": f"text {at}", "label": "x"} for at in range(1000)]
    others = [{"text": "a", "stars": 7}, ["a"], {"text": "b"}]
    (tmp_path / "a.json").write_text(json.dumps([*first, *others]))
    found = Reading(tmp_path / "a.json")
    assert ([item.line for item in found.rejects], len(found.rows)) == ([1001, 1002], 1001)
    found = Reading(tmp_path / "a.json", columns="text=text,label=label")
    assert ([item.line for item in found.rejects], len(found.rows)) == ([1002], 1002)


def test_images_in_arrow(tmp_path):
    """Arrow with images stops: Parquet holds them as they are."""
    columns = {"image": [{"bytes": b"\xff\xd8\xff", "path": None}], "label": ["x"]}
    with pytest.raises(RecordgenError, match="Parquet"):
        Reading(write(tmp_path, "arrow", columns))


def test_a_folder_of_parquet(tmp_path):
    """Names of files are splits, as those of CSV files are."""
    for split in ("train", "test"):
        write(tmp_path, "parquet", {"text": [f"a {split}"], "label": ["x"]})
        (tmp_path / "a.parquet").rename(tmp_path / f"{split}-00000-of-00001.parquet")
    assert [row[0] for row in rows_of(f"{tmp_path}/")] == ["test", "train"]
