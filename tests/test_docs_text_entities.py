"""docs/tasks/text_entities.md says what is so; its statements are run in test_docs_tasks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.travels import write_tagged, write_travels
from recordgen.options import ConvertOptions
from recordgen.rows import Reject, Row
from recordgen.sources import ImportFile, RowReader
from recordgen.sources.deciding import decide
from recordgen.tasks.text_entities import TextEntities

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/tasks/text_entities.md").read_text(encoding="utf-8")
IMPORTED, REJECTED = PAGE.split("\n## Tokens")[0], PAGE.split("\n## Rows that are rejected")[1]

# | `line` | code | message |, or | `sentence` and `tags` | code | message |
_REJECT = re.compile(r"^\| `(.+)` \| (\w+) \| (.+) \|$", re.MULTILINE)


def read(folder: Path, line: str) -> Row | Reject:
    sentence, _, tags = line.partition("` and `")
    path = folder / ("sentences.txt" if tags else "a.jsonl")
    path.write_text(f"{sentence}\n")
    (folder / "labels.txt").write_text(f"{tags}\n")
    file = ImportFile(str(path))
    [item] = RowReader(decide([file], ConvertOptions(task=TextEntities.name)).options).read(file)
    return item


@pytest.mark.parametrize(("line", "code", "message"), _REJECT.findall(REJECTED))
def test_each_rejected_line_says_that(line: str, code: str, message: str, tmp_path: Path) -> None:
    """The table of wrong lines has the code and the words that each of them gets."""
    item = read(tmp_path, line)
    assert isinstance(item, Reject)
    assert (item.line, item.code) == (1, code)
    assert item.message.startswith(message)


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    """The line of JSONL and the two lines of text on the page name the same entities."""
    json_line, tagged = re.findall(r"^```\n(.*?)\n```", IMPORTED, re.DOTALL | re.MULTILINE)
    lines = [line.partition(".txt")[2].strip() for line in tagged.splitlines()]
    rows = read(tmp_path, json_line), read(tmp_path, "` and `".join(lines))
    assert all(isinstance(row, Row) for row in rows)
    labels = [TextEntities().shown(row.annotation or "") for row in rows if isinstance(row, Row)]
    assert labels == ["0 to 4 (person), 13 to 21 (city)"] * 2


def test_the_sample_is_what_the_script_writes(tmp_path: Path) -> None:
    """The files in examples/ are those of the commands that the page names."""
    write_travels(str(tmp_path), 60)
    write_tagged(str(tmp_path / "iob"), 40)
    sample = ROOT / "examples/text_entities"
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")}
    assert written == {path.relative_to(sample) for path in sample.rglob("*.*")}
    for name in written:
        assert (sample / name).read_bytes() == (tmp_path / name).read_bytes()
