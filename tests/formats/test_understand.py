# ruff: noqa: E501 - tables with a case on each line
"""Files of rows: what fits a definition as a whole is read; everything else stops, with options."""

import pytest

from recordgen.errors import NotUnderstoodError
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile, Samples
from recordgen.formats.row_reader import preview_files
from recordgen.formats.source import open_source
from recordgen.options import make_options
from tests.conftest import ROOT, write_file
from tests.formats.cases import cases
from tests.formats.sources import Reading, refusal, write_files

ROWS = 12
MANY = ",".join(f"x{number}" for number in range(3_000))
TURNS = f"1,{MANY},M\n1,{MANY},B\n1,{MANY},B\n".replace("x", ".")
MANY_COLUMNS = pytest.param("a.csv", f"id,{MANY},label\n{TURNS * 13}", {"columns": "target=label"}, [], id="many columns")  # fmt: skip

# fmt: off
# the lines of a file of texts or images whose task is given, the task, and the proposed options
GIVEN = [
    ('word\ngood\nbad', 'text_classification', {'columns': 'text=word', 'labels': 'none'}),
    ('word,kind\ngood,p\nbad,n', 'text_classification', {'columns': 'text=word,label=kind'}),
    ('word,kind\ngood,p\nbad,n', 'image_classification', {}),
    ('image,kind\na.jpg,p\nb.jpg,n', 'image_segmentation', {}),
    ('1,The river is long\n2,It is cold here', 'text_classification', {'columns': 'text=2,label=1,header=no'}),
    ('image,Id\n1.jpg,a\n2.jpg,b\n3.jpg,a', 'image_classification', {'columns': 'path=image,label=Id'}),
    ('joy,"It is cold, and late"\nfear,Nobody knows that\njoy,Who is it\nfear,So it goes on', 'text_multi_label', {'columns': 'text=2,label=1,header=no'}),
    ('{"headline": "It is cold here {i}", "is_odd": {d}}', 'text_classification', {'columns': 'text=headline,label=is_odd'}),
    ('img,pair\na.jpg,AC|DC\nb.jpg,Rock', 'image_classification', {'columns': 'path=img,label=pair'}),
    ('img,kind\na.jpg,x\na.jpg,y\nb.jpg,x', 'image_multi_label', {'columns': 'path=img,label=kind'}),
    ('img,kind\na.jpg,x\na.jpg,y\nb.jpg,x', 'image_classification', {}),
    ('img/a0.jpg,train,dog\nimg/a1.jpg,train,cat\nimg/a2.jpg,test,dog', 'image_multi_label', {'columns': 'path=1,split=2,label=3,header=no'}),
]
KIND = {"columns": "text=2,label=1,header=no"}
# files of rows in a folder without images, the proposed options, and the proposed source
FOLDERS = [
    ({"in/train.tsv": "a\tIt is cold.\nb\tGood, dear.\n" * 9, "in/dev.tsv": "a\tIt is late.\n"}, KIND, "in/*.tsv"),
    ({"a-train.txt": "x;It is cold.;a\ny;It is late.;b\n" * 9, "a-test.txt": "1;It is warm.\n"}, KIND, "a-train.txt"),
    ({"a.data": "5.1,3,x\n4.9,3.1,y\n5.0,3.2,x\n", "readme.txt": "No, x\n", "mapping.txt": "0, x\n"}, {"columns": "target=3,header=no"}, "a.data"),
    ({"train.txt": "__label__a It is cold.\n", "dev.txt": "__label__b It is late.\n"}, {}, ""),
    ({"mapping.csv": "text,label\nIt is cold.,a\nIt is late.,b\n", "notes.md": "x\n"}, {}, "mapping.csv"),
    ({"a_submission.csv": "id,y\n1,0\n", "test.csv": "id,x\n1,5\n", "train.csv": "id,x,y\n1,5,a\n2,7,b\n3,9,a\n"}, {"columns": "target=y"}, "train.csv"),
    ({"a/1": b"\x89PNG\r\n\x1a\n\0", "b/2": b"\x89PNG\r\n\x1a\n\0"}, {}, ""),
    ({"a-labels.json": '{"a": "0"}\n', "a-train.json": '[{"id": "1", "label": "a"}]'}, {}, ""),
    ({"train.csv": "image,cat,dog\n1.jpg,0,1\n2.jpg,1,0\n", "test.csv": "image\n3.jpg\n"}, {"columns": "path=image,label=cat|dog"}, "train.csv"),
    ({"train.csv": "image,label\n1.jpg,0\n2.jpg,1\n", "test.csv": "image,label\n3.jpg,cat\n"}, {"labels": "text"}, "*.csv"),
    ({"train.csv": "image,label\n1.jpg,0\n2.jpg,1\n", "test.csv": "image,label,fog\n3.jpg,1,n\n"}, {"columns": "path=image,label=label"}, "*.csv"),
    ({"Train/0/aa1.png": b"", "Test/bb2.png": b"", "Meta/cc3.png": b"", "Train.csv": "Path,ClassId\nTrain/0/aa1.png,4\n"}, {"columns": "path=Path,label=ClassId"}, "Train.csv"),
    ({**{f"train/{n}/{n}c0ffee7.png": b"" for n in range(6)}, "a.csv": "img,kind\n" + "".join(f"train/{n}/{n}c0ffee7.png,k{n % 3}\n" for n in range(6))}, {"columns": "path=img,label=kind"}, "a.csv"),
    ({**{f"{at}/{n}.txt": "It is late." for at in ("cat", "dog") for n in "12"}, "meta.tsv": "a\tb\n1\t2\n"}, {"layout": "{label}/{name}.txt"}, ""),
    ({**{f"news/{c}/00{n}.txt": "It is late." for c in ("art", "sport") for n in "12"}, "news/README.TXT": ""}, {"layout": "news/{label}/{name}"}, ""),
    ({"a_tags.txt": "B-P O\nB-P I-P\n", "b_words.txt": "Ben left\nAnna Day\n"}, {}, ""),
    ({f"{name}.csv": "text,label\nIt is late.,a\nIt is cold.,b\n" for name in ("all", "dev", "train")}, {}, "[dt]*.csv"),
    ({f"{name}.csv": "foo,bar\nIt is late.,a\nIt is cold.,b\nIt is cold.,b\n" for name in ("test", "toxic", "train")}, {"columns": "text=foo,label=bar"}, "t*.csv"),
    ({f"{name}.csv": f"text,label\nIt is {name}.,a\nIt is cold.,b\n" for name in ("test", "train", "train_old")}, {}, "train.csv"),
    ({"a.jsonl": '{"t": "It is late, @john"}\n' * 2}, {"columns": "text=t", "labels": "none"}, "a.jsonl"),
    ({"a.jsonl": '{"foo": "Good and cheap", "baz": "praise"}\n', "b.jsonl": ""}, {"columns": "text=foo,label=baz"}, "a.jsonl"),
    ({"train/a.jsonl": '{"s": "It is cold."}\n', "test/a.jsonl": '{"s": "It is late."}\n'}, {"columns": "text=s", "labels": "none"}, "*/*.jsonl"),
]
# fmt: on


def definitions():
    """Yield the definitions on the page of formats, and the lines of their examples."""
    page = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    table = page.split("| a source | is read if |")[1].split("\n\n")[0]
    for row in table.split("\n")[2:]:
        name, _, example = map(str.strip, row.strip("|").split("|"))
        if example:
            yield name.partition(" (")[0], "\n".join(it.strip("`") for it in example.split("<br>"))


TASKS = {
    "AutoML's rows": "image_classification",
    "named columns": "image_classification",
    "one-hot columns": "image_multi_label",
    "AutoML's objects": "image_classification",
}


def test_each_definition_of_the_page_reads_its_example(tmp_path):
    """No definition of rows is without one."""
    found = {}
    for name, lines in definitions():
        path = write_file(tmp_path / ("a.jsonl" if lines.startswith("{") else "a.csv"), lines)
        found[name] = first_row(path).partition(":")[0]
    assert found == TASKS


def written(folder, name, lines):
    header, _, line = lines.partition("\n") if "\n" in lines else ("", "", lines)
    if "{i}" in header:
        header, line = "", lines
    repeated = [line.replace("{i}", f"{n}").replace("{d}", f"{n % 3}") for n in range(ROWS)]
    path = folder / name
    rows = [*filter(None, [header]), *(repeated if "{i}" in line else [line])]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def first_row(path, **options):
    """Return the task, and the first row if there is one."""
    decided = detect([ImportFile(str(path))], make_options(options)).options
    rows = preview_files([ImportFile(str(path))], decided, Samples()).rows
    first = next((f"{row.split} | {row.subject} | {row.annotation}" for row in rows), "no rows")
    return f"{decided.task}: {first.rstrip()}"


@cases("understood.txt", "Read")
def test_what_fits_a_definition_is_read(name, lines, options, rows, tmp_path):
    """Its task is decided by its columns or lines, and a given task reads the same row."""
    path = write_file(tmp_path / name, lines)
    [row] = rows
    assert first_row(path) == first_row(path, task=row.partition(":")[0], **options) == row


@cases("understood.txt", "Stopped", MANY_COLUMNS)
def test_everything_else_stops_with_options_that_read_it(name, lines, options, rows, tmp_path):
    """No guess becomes data, and no advice leads back to the same stop."""
    path = written(tmp_path, name, lines)
    refused = refusal(detect, [ImportFile(str(path))], make_options({}))
    assert refused.options == options
    assert str(path) in refused.reason
    assert [first_row(path, **options) for _ in rows] == rows


@pytest.mark.parametrize(("files", "options", "source"), FOLDERS)
def test_files_of_rows_are_proposed_where_no_image_is(files, options, source, tmp_path):
    """A folder of splits is read whole if they are alike, else the file of train."""
    root = write_files(tmp_path, files)
    refused = refusal(Reading, f"{root}")
    assert (refused.options, refused.source) == (options, source and f"{root}/{source}")
    assert not source or not Reading(refused.source, **options).rejects


@pytest.mark.parametrize(("lines", "task", "options"), GIVEN)
def test_no_table_is_proposed_to_those_who_name_another_task(lines, task, options, tmp_path):
    """The proposal for a first row keeps to the task that is named."""
    path = written(tmp_path, "a.jsonl" if lines[0] == "{" else "a.csv", lines)
    assert refusal(first_row, path, task=task).options == options


def test_a_row_of_many_fields_costs_its_own_length_alone(tmp_path):
    """Advice about thousands of rows does not look for each field of the widest one in all."""
    path = tmp_path / "a.csv"
    rows = "TEST,bad,worse\n" * 4_000
    for lines in (f"{rows}{',' * 100_000}x\n{rows}", f"5{',1' * 784}\n" * 4):
        path.write_text(lines)
        with pytest.raises(NotUnderstoodError):  # not the error of the allowance of time
            open_source(str(path), make_options({}))
