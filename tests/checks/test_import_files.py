# ruff: noqa: E501 - tables with a case on each line
"""Headers and byte order marks among the rows of an import file are found in any format."""

import pytest

from recordgen.core.rows.row import Row
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import open_source
from recordgen.options import make_options
from recordgen.rejects import FIRST_MARK, INNER_MARK, Reject
from tests.rows import read_rows

BOM = "\ufeff"
JSON = '{{"textContent": "{}", "classificationAnnotation": {{"displayName": "{}"}}}}'
ONE, TWO, LAST = JSON.format("one", "x"), JSON.format("two", "x"), JSON.format(f"5{BOM}", "y")
NUMBERS = {"schema": {"age": "int", "job": "label"}}
TEXTS = {"schema": {"a": "text", "b": "label"}}

# task, file, options, lines, what each line is and what is found there; -: neither
FILES = {
    "repeated": ("image_classification", "a.csv", {}, ["path,label", "a.jpg,x", "path,label", "b.jpg,y", f"{BOM}path,label", "c.jpg,y"], "- row header row header+mark row"),
    "in another spelling": ("image_classification", "a.csv", {}, ["split,Image URI,label", "TRAIN,a.jpg,x", "Split,image_uri,label,", "TEST,b.jpg,y"], "- row header row"),
    "quoted": ("text_classification", "a.csv", {}, ["text,label", "one,x", '"Text","label"', "two,x", "text,x"], "- row header row row"),
    "with other blanks": ("text_classification", "a.csv", {}, ["text ,label", "text,label", "Good,praise"], "- header row"),
    "none is repeated without one": ("text_classification", "a.csv", {"columns": "header=no"}, ["one,x", "text,label"], "row row"),
    "mark in a field": ("text_classification", "a.csv", {}, [f"{BOM}TRAIN,one,x", f"{BOM}TRIAN,two,x", f"TRAIN,three,y{BOM}", f'TEST,"4{BOM}",x'], "row mark+reject mark+row row"),
    "mark before quotes": ("text_classification", "a.csv", {}, [f'{BOM}{BOM}"one, 1",x', f'{BOM}"two', f'{BOM}lines",x', f'{BOM}"open,x', f"{BOM}last,x"], "mark+row mark+row - mark+reject mark+row"),
    "JSON": ("text_classification", "a.jsonl", {}, [ONE, f"{BOM}{TWO}", f"{TWO}{BOM}{ONE}", LAST], "row mark+row mark+reject row"),
    "table": ("tabular", "a.csv", {"columns": "header=yes"}, ["", "age,job", "1,a", "age,job", f'{BOM}"age",job', f"{BOM}2,b", "age,c"], "- - row header header+mark mark+row row"),
    "quoted names": ("tabular", "a.csv", {}, ['"age","job"', "1,a", "age,job"], "- row header"),
    "declared": ("declared", "a.csv", NUMBERS, ["job,age", "a,1", "job,age", f"{BOM}b,2"], "- row header mark+row"),
    "declared texts": ("declared", "a.csv", TEXTS, ["a,b", "x,y", ",,", "a, b", '"p', 'q",z'], "- row - header row -"),
    "sentences": ("text_entities", "sentences.txt", {}, ["Anna left", f"{BOM}Bob left"], "row mark+row"),
}  # fmt: skip


def kind(item):
    if isinstance(item, Row | Reject):
        return type(item).__name__.lower()
    assert item.code == "JOINED_FILES"
    return "mark" if item[3:5] in (FIRST_MARK, INNER_MARK) else "header"


@pytest.mark.parametrize(
    ("task", "name", "options", "lines", "expected"), FILES.values(), ids=FILES
)
def test_odd_lines(task, name, options, lines, expected, tmp_path):
    """Each is found once; rows do not keep a mark from the start of a line."""
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "labels.txt").write_text("B-person O\n" * len(lines))
    _, decided = open_source(str(path), make_options({"task": task, **options}))
    found = read_rows(decided, ImportFile(str(path)))
    kinds = {line: [] for line in range(1, len(lines) + 1)}
    for item in found:
        kinds[item.line].append(kind(item))
    words = ["+".join(sorted(each)) or "-" for each in kinds.values()]
    assert words == expected.split()
    kept = [f"{item.uri}{item.annotation}" for item in found if isinstance(item, Row)]
    assert not any(f'"{BOM}' in text or text.startswith(BOM) for text in kept)
