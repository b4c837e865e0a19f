"""`recordgen inspect --where`: conditions, matching examples, and extracted files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordgen
from recordgen.cli import main
from recordgen.errors import SourceError, UsageError
from recordgen.report.conditions import Values, parse_condition
from recordgen.report.examples import find_examples
from recordgen.report.extraction import extract
from tests.conftest import encoded, noise

COLUMNS: Mapping[str, Values] = {
    "label": Values(pa.array(["cat", "dog", "cat"]), np.array([0, 0, 2])),
    "line": Values(pa.array([1, 2, 3, None])),
    "split": Values(pa.array(["train", "test", None, "a b"])),
    "level": Values(pa.array(["error"]), np.array([1]), ("error", "warning")),
}

# condition, matching examples
CONDITIONS = [
    ("label=cat", [0, 2]),
    ("label=cat and label=dog", [0]),
    ("label!=cat", [1, 3]),
    ("not label=cat or line>1", [1, 2, 3]),
    ("not (label=cat or line>1)", [3]),
    ("line=1 or line=2 and label=cat", [0]),
    ("NOT (line<=2 AND split=train)", [1, 2, 3]),
    ("line>=2 and line<3", [1]),
    ("line!=2", [0, 2, 3]),
    ("split='a b'", [3]),
    ('split="a b" or label ~ "^d.g$"', [0, 3]),
    ("split~T", []),
    ("level=warning", []),
    ("not not level=error", [1]),
]


@pytest.mark.parametrize(("text", "fits"), CONDITIONS, ids=range(len(CONDITIONS)))
def test_conditions(text: str, fits: Sequence[int]) -> None:
    """`not` binds most tightly, then `and`; one of several values is enough; `!=` negates `=`."""
    assert np.flatnonzero(parse_condition(text)(COLUMNS, 4)).tolist() == fits


# condition, position of the caret, words of the error
FAULTS = [
    ("", 0, r"expected the name of a column, not, or \( \(got the end\)"),
    ("label=cat an line=1", 10, r"expected and, or, or the end \(got 'an'\)"),
    ("lable=cat", 0, "no column is named 'lable'; did you mean 'label'"),
    ("line=x", 5, r"line is compared with a number \(got 'x'\)"),
    ("split<3", 5, "split is a text: compare it with =, != or ~"),
    ("line~3", 4, "~ searches text, but line is a number"),
    ("split~'('", 6, "not a regular expression"),
    ("(label=cat", 10, r"expected \) or and, or \(got the end\)"),
    ("label==cat", 6, "expected a value"),
    ("label='cat", 6, "a quote that does not end"),
    ("label", 5, "expected one of = <"),
    ("and", 0, r"expected the name of a column, not, or \( \(got 'and'\)"),
    ("level=eror", 6, "no level is 'eror'; did you mean 'error'"),
    ("(" * 60 + "line=1" + ")" * 60, 50, "more than 50 levels"),
]


@pytest.mark.parametrize(("text", "at", "words"), FAULTS, ids=range(len(FAULTS)))
def test_faults(text: str, at: int, words: str) -> None:
    """An error names what was expected, and a caret points to the place."""
    with pytest.raises(UsageError, match=words) as caught:
        parse_condition(text)(COLUMNS, 4)
    _, shown, caret = str(caught.value).splitlines()
    assert (shown, caret) == (f"  {text}", f"  {' ' * at}^")


ROWS = """\
TRAIN,a.png,cat
TEST,b/a.png,cat
TRAIN,c.png,../up
TRAIN,sub/c.png,../up
VALIDATION,d.png,
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output: b/a.png has the bytes of a.png, and two files are named c.png."""
    folder = tmp_path_factory.mktemp("where")
    for name, seed in (("a", 1), ("b/a", 1), ("c", 2), ("sub/c", 3), ("d", 4)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.png").write_bytes(encoded(noise(40, 30, seed=seed), "PNG"))
    (folder / "rows.csv").write_text(ROWS)
    recordgen.convert(folder / "rows.csv", folder / "out")
    return folder


def test_examples_behind_findings(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list has each example with its findings; --json has all, --num limits both."""
    command = ["inspect", str(images / "out")]
    assert main([*command, "--where", "code=LEAK and label=cat"]) == 0
    header, row, finding, count = capsys.readouterr().out.splitlines()
    assert header.split() == ["row", "split", "labels", "uri"]
    assert row.split() == [f"{images}/rows.csv:2", "test", "cat", "b/a.png"]
    assert finding.split()[:4] == ["LEAK", "the", "same", "image"]
    assert count == "1 examples"
    assert main([*command, "--where", "line>=1", "--num", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "… and 3 more (--num, --json)",
        "5 examples",
    ]
    assert main([*command, "--where", "split!=train", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["count"], found["written"]) == (2, [])
    assert [item["line"] for item in found["examples"]] == [2, 5]
    assert found["examples"][0]["labels"] == ["cat"]
    assert [item["code"] for item in found["examples"][0]["findings"]] == ["LEAK"]
    assert len(find_examples(str(images / "out"), "width=40", split="train")) == 3


def test_what_is_extracted_can_be_imported(images: Path, tmp_path: Path) -> None:
    """Files have the records' bytes and safe unique names; splits and labels are the same."""
    found = find_examples(str(images / "out"), "width=40")
    written = extract(found, str(tmp_path / "to"))
    names = [str(Path(path).relative_to(tmp_path / "to")) for path in written]
    assert sorted(names[:-1]) == [
        "eval/unlabelled/d.png",
        "test/cat/a.png",
        "train/_up/c-2.png",
        "train/_up/c.png",
        "train/cat/a.png",
    ]
    assert names[-1] == "examples.csv"
    data = {Path(path).read_bytes() for path in written[:-1]}
    assert data == {path.read_bytes() for path in images.glob("**/*.png")}
    again = recordgen.convert(tmp_path / "to/examples.csv", tmp_path / "out").dataset
    before = recordgen.read_dataset(str(images / "out"))
    assert {name: split.labels for name, split in again.splits.items()} == {
        name: split.labels for name, split in before.splits.items()
    }
    with pytest.raises(UsageError, match="this folder is not empty"):
        extract(found, str(tmp_path / "to"))


# task, rows
IMPORTED = [
    ("object_detection", "TRAIN,a.png,cat,.1,.2,,,.5,.7,,\nTRAIN,a.png,dog,0,0,,,1,1,,\n"),
    ("image_multi_label", "TRAIN,a.png,cat,dog\nTEST,c.png,dog\n"),
    ("text_multi_label", "TRAIN,first words,cat,dog\nTEST,other words,dog\n"),
]


@pytest.mark.parametrize(("task", "rows"), IMPORTED, ids=[item[0] for item in IMPORTED])
def test_other_tasks(task: str, rows: str, images: Path, tmp_path: Path) -> None:
    """Boxes, texts and several labels are extracted and imported again."""
    (images / f"{task}.csv").write_text(rows)
    recordgen.convert(images / f"{task}.csv", tmp_path / "one", task=task)
    found = find_examples(str(tmp_path / "one"), "label=dog")
    extract(found, str(tmp_path / "to"))
    recordgen.convert(tmp_path / "to/examples.csv", tmp_path / "two", task=task)

    def said(output: Path) -> list[dict[str, Any]]:
        from recordgen.report.inspection import inspect

        return [
            {name: value for name, value in record.features.items() if "source_id" not in name}
            for split in recordgen.read_dataset(str(output)).splits
            for record in inspect(str(output), split=split)
        ]

    assert said(tmp_path / "two") == said(tmp_path / "one")


def test_what_cannot_be_asked(images: Path, tmp_path: Path) -> None:
    """Tables have no payloads to extract; datasets from Python have no list of examples."""
    (tmp_path / "table.csv").write_text("age,kind\n1,a\n2,b\n3,a\n")
    recordgen.convert(tmp_path / "table.csv", tmp_path / "table", task="tabular")
    found = find_examples(str(tmp_path / "table"), "line<=3")
    assert len(found) == 2
    with pytest.raises(UsageError, match="not the rows of tabular; omit --to"):
        extract(found, str(tmp_path / "to"))
    with pytest.raises(UsageError, match="no column is named 'label'"):
        find_examples(str(tmp_path / "table"), "label=a")
    recordgen.write([{"name": "a"}], str(tmp_path / "written"))
    with pytest.raises(UsageError, match=r"examples\.parquet: no such file"):
        find_examples(str(tmp_path / "written"), "line=1")
    with pytest.raises(UsageError, match="no split 'val'; there are"):
        find_examples(str(images / "out"), "line=1", split="val")
    (tmp_path / "table/lint.jsonl").write_text("{}\n")
    with pytest.raises(SourceError, match=r"lint\.jsonl:1: not a finding"):
        find_examples(str(tmp_path / "table"), "line=1")
