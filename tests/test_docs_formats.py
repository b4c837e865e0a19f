"""docs/formats.md says what is so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import recordgen
from recordgen.example import parse_example
from recordgen.features import IMAGE_TASKS
from recordgen.rows import Reject
from recordgen.sources import ImportFile, RowReader, storage
from recordgen.sources.deciding import decide
from recordgen.tasks import TASKS
from recordgen.tfrecord import read_records
from tests.conftest import encoded, noise

PAGE_FILE = Path(__file__).parents[1] / "docs/formats.md"
PAGE = PAGE_FILE.read_text(encoding="utf-8")

# | task | `line` | code | message |
_REJECT = re.compile(r"\| (\w+) \| `(.+)` \| (\w+) \| (.+) \|")


def section(title: str) -> str:
    return PAGE[PAGE.index(f"\n## {title}") + 1 :].split("\n## ")[0]


@pytest.mark.parametrize(
    ("task", "line", "code", "message"), _REJECT.findall(section("Rows that are rejected"))
)
def test_each_rejected_line_says_that(
    task: str, line: str, code: str, message: str, tmp_path: Path
) -> None:
    """The table of wrong lines has the code and the words that each of them gets."""
    path = tmp_path / ("a.jsonl" if line.startswith("{") else "a.csv")
    path.write_text(f"{line}\n")
    file = ImportFile(str(path))
    found = decide([file], recordgen.ConvertOptions(task=task)).options
    [item] = RowReader(found).read(file)
    assert isinstance(item, Reject)
    assert (item.line, item.code) == (1, code)
    assert item.message.startswith(message)


def test_the_table_names_all_tasks() -> None:
    """The first table has a line for each task, with its page and its JSONL key."""
    rows = re.findall(r"\| \[`(\w+)`\]\((.*?)\) \| .+ \| (?:`(\w+)`|none) \|", PAGE)
    assert [(name, key) for name, _, key in rows] == [
        (name, "".join(kind.json_keys[:1])) for name, kind in TASKS.items()
    ]
    assert all((PAGE_FILE.parent / page).exists() for _, page, _ in rows)
    assert set(re.findall(r"^\| (\w+) \|", section("Rows that are rejected"), re.MULTILINE)) == {
        "task",
        *IMAGE_TASKS,
        "video_classification",
    }


# The features of the first record of detection's page.
BOXES = {
    "image/object/bbox/xmin": pytest.approx([0.1, 0.3]),
    "image/object/bbox/ymin": pytest.approx([0.2, 0.3]),
    "image/object/bbox/xmax": pytest.approx([0.5, 0.6]),
    "image/object/bbox/ymax": pytest.approx([0.6, 0.6]),
    "image/object/class/text": [b"cat", b"dog"],
    "image/object/class/label": [0, 1],
}


def test_the_boxes_give_the_record(tmp_path: Path) -> None:
    """The lines of detection's page give the record that it shows."""
    text = (PAGE_FILE.parent / "tasks/object_detection.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / name).write_bytes(encoded(noise(), "JPEG"))
    (tmp_path / "a.csv").write_text(lines.replace("gs://bucket/", ""))
    dataset = recordgen.convert(str(tmp_path / "a.csv"), tmp_path / "out").dataset
    assert dataset.task == "object_detection"
    files = storage.list_files(str(tmp_path / "out" / "Split-*" / "*"))
    records = [parse_example(data) for file in files for data in read_records(file)]
    [first] = [record for record in records if record["image/source_id"] == [b"1.jpg"]]
    said = {name: values for name, values in first.items() if name.split("/")[1] == "object"}
    assert said == BOXES
    assert all(str(values).replace("'", '"') in text for values in ([0, 1], [0.1, 0.3]))
    assert '[b"cat", b"dog"]' in text


def test_the_json_line(make_images: Callable[[int], list[Path]], tmp_path: Path) -> None:
    """The line of JSONL on the page converts."""
    [image] = make_images(1)
    [line] = re.findall(r"```\n(\{.*?\})\n```", PAGE)
    record = json.loads(line)
    record["imageGcsUri"] = str(image)
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    dataset = recordgen.convert(str(tmp_path / "a.jsonl"), tmp_path / "out").dataset
    assert (dataset.task, dataset.labels, list(dataset.splits)) == (
        "image_classification",
        ("cat",),
        ["train"],
    )
