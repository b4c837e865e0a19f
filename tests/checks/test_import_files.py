"""Headers and byte order marks among the rows of an import file are found in any format."""

import pytest

from recordgen.core.rows.row import Row
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import open_source
from recordgen.options import make_options
from recordgen.rejects import FIRST_MARK, INNER_MARK, OddLine, Reject
from tests.rows import read_rows

HEADER, MARK = False, True
BOM = "\ufeff"
JSON = '{{"textContent": "{}", "classificationAnnotation": {{"displayName": "{}"}}}}'

# task, file, options, lines, lines that become rows, rejects, odd lines
FILES = [
    # A repeated header, and a header with the mark of the file that it began.
    (
        *("image_classification", "a.csv", {}),
        ["path,label", "a.jpg,x", "path,label", "b.jpg,y", f"{BOM}path,label", "c.jpg,y"],
        *([2, 4, 6], [], [(HEADER, 3), (MARK, 5), (HEADER, 5)]),
    ),
    # The header of a second file, in another spelling.
    (
        *("image_classification", "a.csv", {}),
        ["split,Image URI,label", "TRAIN,a.jpg,x", "Split,image_uri,label,", "TEST,b.jpg,y"],
        *([2, 4], [], [(HEADER, 3)]),
    ),
    (
        *("text_classification", "a.csv", {}),
        ["text,label", "one,x", '"Text","label"', "two,x", "text,x"],
        *([2, 4, 5], [], [(HEADER, 3)]),
    ),
    # Without a header, no header is repeated.
    (
        *("text_classification", "a.csv", {"columns": "header=no"}),
        ["one,x", "text,label"],
        *([1, 2], [], []),
    ),
    # Marks at the start of a row, in a rejected row, in a field, or in a quoted text (allowed).
    (
        *("text_classification", "a.csv", {}),
        [f"{BOM}TRAIN,one,x", f"{BOM}TRIAN,two,x", f"TRAIN,three,y{BOM}", f'TEST,"4{BOM}",x'],
        *([1, 3, 4], [2], [(MARK, 2), (MARK, 3)]),
    ),
    (
        *("text_classification", "a.csv", {}),
        [f'{BOM}{BOM}"one, 1",x', f'{BOM}"two\n{BOM}lines",x', f'{BOM}"open,x', f"{BOM}last,x"],
        *([1, 2, 5], [4], [(MARK, 1), (MARK, 2), (MARK, 4), (MARK, 5)]),
    ),
    (
        *("text_classification", "a.jsonl", {}),
        [
            *(JSON.format("one", "x"), BOM + JSON.format("two", "x")),
            *(JSON.format("3", "y") + BOM + JSON.format("4", "y"), JSON.format(f"5{BOM}", "y")),
        ],
        *([1, 2, 4], [3], [(MARK, 2), (MARK, 3)]),
    ),
    (
        *("tabular", "a.csv", {"columns": "header=yes"}),
        ["", "age,job", "1,a", "age,job", f'{BOM}"age",job', f"{BOM}2,b", "age,c"],
        *([3, 6, 7], [], [(HEADER, 4), (MARK, 5), (HEADER, 5), (MARK, 6)]),
    ),
    ("tabular", "a.csv", {}, ['"age","job"', "1,a", "age,job"], [2], [], [(HEADER, 3)]),
    (
        *("declared", "a.csv", {"schema": {"age": "int", "job": "label"}}),
        ["job,age", "a,1", "job,age", f"{BOM}b,2"],
        *([2, 4], [], [(HEADER, 3), (MARK, 4)]),
    ),
    (
        *("text_entities", "sentences.txt", {}),
        ["Anna left", f"{BOM}Bob left"],
        *([1, 2], [], [(MARK, 2)]),
    ),
]


@pytest.mark.parametrize(
    ("task", "name", "options", "lines", "rows", "rejects", "odd"), FILES, ids=range(len(FILES))
)
def test_odd_lines(task, name, options, lines, rows, rejects, odd, tmp_path):
    """Each is found once; rows do not keep a mark from the start of a line."""
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "labels.txt").write_text("B-person O\n" * len(lines))
    _, decided = open_source(str(path), make_options({"task": task, **options}))
    found = read_rows(decided, ImportFile(str(path)))
    assert [item.line for item in found if isinstance(item, Row)] == rows
    assert [item.line for item in found if isinstance(item, Reject)] == rejects
    reasons = [(item[3:5], item.line) for item in found if isinstance(item, OddLine)]
    assert [(reason in (FIRST_MARK, INNER_MARK), line) for reason, line in reasons] == odd
    assert {code for (code, _), _ in reasons} <= {"JOINED_FILES"}
    kept = [f"{item.uri}{item.annotation}" for item in found if isinstance(item, Row)]
    assert not any(f'"{BOM}' in text or text.startswith(BOM) for text in kept)
