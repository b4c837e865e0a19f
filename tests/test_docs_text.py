"""docs/tasks/text_classification.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import recordgen
from recordgen.example import parse_example
from recordgen.rows import Reject
from recordgen.sources import ImportFile, RowReader, storage
from recordgen.sources.deciding import decide
from recordgen.tasks import TASKS
from recordgen.tfrecord import read_records

PAGE = (Path(__file__).parents[1] / "docs/tasks/text_classification.md").read_text(encoding="utf-8")

# | task | `line` | code | message |
REJECTS = re.findall(r"^\| (text_\w+) \| `(.+)` \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"^```\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("task", "line", "code", "message"), REJECTS)
def test_each_rejected_line_says_that(
    task: str, line: str, code: str, message: str, tmp_path: Path
) -> None:
    """The table of wrong lines has the code and the words that each of them gets."""
    path = tmp_path / ("a.jsonl" if line.startswith("{") else "a.csv")
    path.write_text(f"{line}\n")
    file = ImportFile(str(path))
    [item] = RowReader(decide([file], recordgen.ConvertOptions(task=task)).options).read(file)
    assert isinstance(item, Reject)
    assert (item.line, item.code) == (1, code)
    assert item.message.startswith(message)


def test_the_table_names_the_tasks() -> None:
    """The first table has a line for each task of labelled texts."""
    rows = re.findall(r"\| `(\w+)` \| `(.+)` \| `(\w+)` \|", PAGE.split("\n## ")[0])
    texts = [
        kind for kind in TASKS.values() if kind.kind == "text" and "class/text" in kind.features
    ]
    assert rows == [(kind.name, kind.expected, kind.json_keys[0]) for kind in texts]
    assert {task for task, *_ in REJECTS} == {kind.name for kind in texts}


@pytest.mark.parametrize(("number", "name"), [(0, "a.csv"), (1, "a.jsonl")])
def test_the_lines_give_the_record(number: int, name: str, tmp_path: Path) -> None:
    """The lines of both formats give the record that the page shows, in the splits they name."""
    (tmp_path / name).write_text(BLOCKS[number])
    (tmp_path / "1.txt").write_bytes(b"\xef\xbb\xbfVery good.\n")
    out = tmp_path / "out"
    dataset = recordgen.convert(str(tmp_path / name), out, task="text_classification").dataset
    found = {
        name: [
            parse_example(data)
            for shard in split.shards
            for data in read_records(storage.join(str(out), shard.file))
        ]
        for name, split in dataset.splits.items()
    }
    first, second, third = found["train"] + found["eval"] + found["test"]
    [source_id] = first.pop("source_id")
    assert isinstance(source_id, bytes)
    assert f'`b"{source_id[:23].decode()}…"`' in PAGE
    assert first == {"text": [b"Good, and cheap."], "class/text": [b"praise"], "class/label": [1]}
    assert '`b"Good, and cheap."`' in PAGE
    assert second["text"] == [b"It came late,\nand broken."]
    assert (third["text"], third["source_id"]) == ([b"Very good.\n"], [b"1.txt"])
