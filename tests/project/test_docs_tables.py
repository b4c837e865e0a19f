"""The tables and listings of the documentation agree with the code."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import recordgen
from pipelines.component import STEPS
from pipelines.samples.travels import sentences, write_travels
from recordgen import cli
from recordgen.console.summaries import detection_lines
from recordgen.core.rows.row import Adjustments, Row
from recordgen.formats.automl_csv import LineParser
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import open_source
from recordgen.old_options import OLD_NAMES
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject
from recordgen.scales import BACKBONES
from recordgen.tables.roles import ROLES
from recordgen.tasks import TASKS, ObjectDetection
from recordgen.tasks.object_detection import Box, decode_boxes
from recordgen.tasks.tags import tags_of, tokenize
from recordgen.tasks.text_entities import TextEntities
from tests.conftest import encoded, noise, run_python, stored_examples
from tests.pages import ROOT, blocks, pages

pytestmark = pytest.mark.once


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def listings(page: str) -> list[str]:
    """Return the blocks of a page that are not code."""
    return [block.text for block in blocks(page) if not block.language]


def section(page: str, title: str) -> str:
    text = text_of(page)
    return text[text.index(f"\n## {title}") + 1 :].split("\n## ")[0]


FORMATS, TEXTS = "docs/formats.md", "docs/tasks/text_classification.md"
ENTITIES = "docs/tasks/text_entities.md"


# --- tables of every page ------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages())
def test_no_table_is_empty(page: str) -> None:
    """Every table has at least one row, as wide as its head."""
    lines = text_of(page).splitlines()
    for number, line in enumerate(lines):
        if re.fullmatch(r"\|( *:?-+:? *\|)+", line):
            row = lines[number + 1] if number + 1 < len(lines) else ""
            assert row.startswith("|"), f"{page}:{number}: a table without rows"
            cells = [re.sub(r"\\\||`[^`]*`", "", each).count("|") for each in (line, row)]
            assert cells[0] == cells[1], f"{page}:{number}"


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    """Linked files exist, and so do the linked headings."""
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(found), f"{page}: {target}"


def anchors(path: Path) -> set[str]:
    """Return GitHub's anchors for the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


# --- rows that are rejected -----------------------------------------------------------------------

# | task | `line` | code | message |; for entities `sentence` and `tags`, and no task
_REJECTS = [
    *re.findall(
        r"^\| (\w+) \| `(.+)` \| (\w+) \| (.+) \|$",
        section(FORMATS, "Rows that are rejected") + text_of(TEXTS),
        re.MULTILINE,
    ),
    *(
        (TextEntities.name, *cells)
        for cells in re.findall(
            r"^\| `(.+)` \| (\w+) \| (.+) \|$",
            section(ENTITIES, "Rows that are rejected"),
            re.MULTILINE,
        )
    ),
]


def read(folder: Path, task: str, line: str) -> Row | Reject:
    """Return the reject or row of a line that is the only one in its file."""
    line, _, tags = line.partition("` and `")
    name = "sentences.txt" if tags else "a.jsonl" if line.startswith("{") else "a.csv"
    (folder / name).write_text(f"{line}\n")
    (folder / "labels.txt").write_text(f"{tags}\n")
    file = ImportFile(str(folder / name))
    [item] = RowReader(detect([file], ConvertOptions(task=task)).options).read(file)
    return item


@pytest.mark.parametrize(("task", "line", "code", "message"), _REJECTS)
def test_each_rejected_line_says_that(
    task: str, line: str, code: str, message: str, tmp_path: Path
) -> None:
    """Each wrong line in the tables gets the shown code and message."""
    item = read(tmp_path, task, line)
    assert isinstance(item, Reject)
    assert (item.line, item.code) == (1, code)
    assert item.message.startswith(message)


def test_rejects_of_every_task() -> None:
    """Each of these tasks shows at least one wrong line."""
    by_line = {name for name, task in TASKS.items() if task.kind not in ("table", "declared")}
    assert {task for task, *_ in _REJECTS} == by_line


# --- detection --------------------------------------------------------------------------------


def test_detection_is_explained_in_ten_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page explains detection in ten lines, and shows the summary's output."""
    text = section(FORMATS, "How a file is detected")
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(n) for n in range(1, 11)]
    [shown] = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(
        "split,image_uri,label\nTRAIN,img/1.jpg,cat\n,img/2.jpg,dog\nTEST,img/3.jpg,\n"
    )
    opened, _ = open_source("labels.csv", recordgen.ConvertOptions())
    assert "\n".join(detection_lines(opened.detection)) == shown


def test_all_roles_are_named() -> None:
    """The table has every role."""
    rows = re.findall(r"^\| (`.+`) \|", section(FORMATS, "Columns of other names"), re.MULTILINE)
    assert tuple(role for row in rows for role in re.findall(r"`(\w+)`", row)) == ROLES


@pytest.mark.parametrize("page", pages())
def test_pages_that_name_a_backbone_say_its_pixels(page: str) -> None:
    """Pretrained weights need pixels in their own range, and nothing else checks that."""
    text = text_of(page)
    if set(re.findall(r"\w+", text)) & set(BACKBONES):
        assert re.search("-1 to 1|range of pixels", text)


# --- tasks ------------------------------------------------------------------------------------


def test_the_table_names_all_tasks() -> None:
    """The first table has a line for each task, with its page and its JSONL key."""
    rows = re.findall(r"\| \[`(\w+)`\]\((.*?)\) \| .+ \| (?:`(\w+)`|none) \|", text_of(FORMATS))
    assert [(name, key) for name, _, key in rows] == [
        (name, "".join(kind.json_keys[:1])) for name, kind in TASKS.items()
    ]


def test_the_table_names_the_tasks_of_labelled_texts() -> None:
    rows = re.findall(r"\| `(\w+)` \| `(.+)` \| `(\w+)` \|", text_of(TEXTS).split("\n## ")[0])
    texts = [
        kind for kind in TASKS.values() if kind.kind == "text" and "class/text" in kind.features
    ]
    assert rows == [(kind.name, kind.expected, kind.json_keys[0]) for kind in texts]


# --- lines with the records that they become -----------------------------------------------------


# The features of the first record on the page of object detection.
BOXES = {
    "image/object/bbox/xmin": pytest.approx([0.1, 0.3]),
    "image/object/bbox/ymin": pytest.approx([0.2, 0.3]),
    "image/object/bbox/xmax": pytest.approx([0.5, 0.6]),
    "image/object/bbox/ymax": pytest.approx([0.6, 0.6]),
    "image/object/class/text": [b"cat", b"dog"],
    "image/object/class/label": [0, 1],
}


def test_the_boxes_give_the_record(tmp_path: Path) -> None:
    """The lines on the page of object detection give the record that it shows."""
    page = "docs/tasks/object_detection.md"
    lines, pixels = listings(page)
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / name).write_bytes(encoded(noise(), "JPEG"))
    (tmp_path / "a.csv").write_text(lines.replace("gs://bucket/", ""))
    dataset = recordgen.convert(str(tmp_path / "a.csv"), tmp_path / "out").dataset
    assert dataset.task == "object_detection"
    records = stored_examples(tmp_path / "out")
    [first] = [values for _, values in records if values["image/source_id"] == [b"1.jpg"]]
    said = {name: values for name, values in first.items() if name.split("/")[1] == "object"}
    assert said == BOXES
    text = text_of(page)
    assert all(str(values).replace("'", '"') in text for values in ([0, 1], [0.1, 0.3]))
    assert '[b"cat", b"dog"]' in text
    raw = [line.encode() for line in pixels.splitlines()]
    [row] = LineParser.parse_lines(
        raw, source="a.csv", task=ObjectDetection(), adjusted=Adjustments()
    )
    assert isinstance(row, Row)
    [box] = decode_boxes(row.annotation)
    assert box == pytest.approx(Box("raccoon", 81 / 650, 88 / 417, 522 / 650, 408 / 417))


def test_the_json_line(make_images: Callable[[int], list[Path]], tmp_path: Path) -> None:
    """The line of JSONL on the page of formats can be converted."""
    [image] = make_images(1)
    [line] = [text for text in listings(FORMATS) if text.startswith("{")]
    record = json.loads(line)
    record["imageGcsUri"] = str(image)
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    dataset = recordgen.convert(str(tmp_path / "a.jsonl"), tmp_path / "out").dataset
    assert (dataset.task, dataset.labels, list(dataset.splits)) == (
        "image_classification",
        ("cat",),
        ["train"],
    )


@pytest.mark.parametrize(("number", "name"), [(0, "a.csv"), (1, "a.jsonl")])
def test_the_texts_give_the_record(number: int, name: str, tmp_path: Path) -> None:
    """The lines of both formats give the shown record, in the splits that they name."""
    (tmp_path / name).write_text(listings(TEXTS)[number])
    (tmp_path / "1.txt").write_bytes(b"\xef\xbb\xbfVery good.\n")
    out = tmp_path / "out"
    recordgen.convert(str(tmp_path / name), out, task="text_classification")
    splits, (first, second, third) = zip(*stored_examples(out), strict=True)
    assert splits == ("train", "eval", "test")
    [source_id] = first.pop("source_id")
    assert isinstance(source_id, bytes)
    assert f'`b"{source_id[:23].decode()}…"`' in text_of(TEXTS)
    assert first == {"text": [b"Good, and cheap."], "class/text": [b"praise"], "class/label": [1]}
    assert '`b"Good, and cheap."`' in text_of(TEXTS)
    assert second["text"] == [b"It came late,\nand broken."]
    assert (third["text"], third["source_id"]) == ([b"Very good.\n"], [b"1.txt"])


def test_both_formats_of_entities_say_the_same(tmp_path: Path) -> None:
    """The line of JSONL and the two lines of text on the page name the same entities."""
    json_line, tagged = listings(ENTITIES)[:2]
    lines = [line.partition(".txt")[2].strip() for line in tagged.splitlines()]
    name = TextEntities.name
    rows = read(tmp_path, name, json_line), read(tmp_path, name, "` and `".join(lines))
    assert all(isinstance(row, Row) for row in rows)
    labels = [TextEntities().shown(row.annotation or "") for row in rows if isinstance(row, Row)]
    assert labels == ["0 to 4 (person), 13 to 21 (city)"] * 2


def write_tagged(folder: Path, count: int) -> None:
    """Write the sentences of the sample as tokens and tags; every fifth is in ``eval``."""
    for number, (text, spans) in enumerate(sentences(count)):
        split = folder / ("train" if number % 5 else "eval")
        split.mkdir(parents=True, exist_ok=True)
        tokens = tokenize(text)
        words = (text[start:end] for start, end in tokens)
        for name, line in (("sentences", words), ("labels", tags_of(tokens, spans))):
            with open(split / f"{name}.txt", "a", encoding="utf-8") as file:
                file.write(" ".join(line) + "\n")


def test_the_sample_of_entities_is_what_the_script_writes(tmp_path: Path) -> None:
    """The files in examples/ are the output of the commands on the page."""
    write_travels(str(tmp_path), 60)
    write_tagged(tmp_path / "iob", 40)
    sample = ROOT / "examples/text_entities"
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")}
    assert written == {path.relative_to(sample) for path in sample.rglob("*.*")}
    for name in written:
        assert (sample / name).read_bytes() == (tmp_path / name).read_bytes()


# --- options ----------------------------------------------------------------------------------


def test_tables_name_every_option_of_every_command() -> None:
    """The tables have exactly the options, also options outside of ConvertOptions."""
    [commands] = [each for each in cli.build_parser()._actions if isinstance(each.choices, dict)]
    known = {
        action.option_strings[-1]
        for command in commands.choices.values()
        for action in command._actions
        if action.option_strings and action.dest not in ("help", *OLD_NAMES)
    }
    text = section("docs/convert.md", "The command") + text_of("docs/options.md")
    assert set(re.findall(r"^\| (?:`-\w`, )?`(--[\w-]+)", text, re.MULTILINE)) == known


def test_table_names_every_parameter_of_the_component() -> None:
    pytest.importorskip("tfx")
    from recordgen.examplegen import AutoMLExampleGen
    from recordgen.examplegen.parameters import OPTION_TYPES

    _, *own, _ = inspect.signature(AutoMLExampleGen.__init__).parameters
    text = section("docs/tfx.md", "Parameters")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*own, *OPTION_TYPES]


def test_the_api_page_names_every_export() -> None:
    """The page of public names has exactly ``recordgen.__all__``."""
    named = re.findall(r"^::: recordgen\.(\w+)$", text_of("docs/api.md"), re.MULTILINE)
    assert len(named) == len(set(named))
    modules = set(dir(recordgen)) - set(recordgen.__all__)
    assert set(named) - modules == set(recordgen.__all__) - {"__version__"}


@pytest.mark.once
def test_the_journey_of_a_row() -> None:
    """The table of modules is the output of ``scripts/journey``."""
    printed = run_python(str(ROOT / "scripts/journey")).stdout
    assert len(printed.splitlines()) > 6
    assert text_of("docs/how-it-works.md").endswith(f"\n\n{printed}"), "scripts/journey --write"


def test_tables_of_the_kubeflow_step() -> None:
    """The table has every input with its type and default, and every output."""
    page = text_of("docs/kubeflow.md")
    step = yaml.safe_load(text_of("component.yaml"))
    found = re.findall(r"^\| `(\w+)` \| ([\w, ]+?) \| (.*?)\|", page, re.MULTILINE)
    rows = {name: (kind, default.strip()) for name, kind, default in found}
    for item in step["inputs"]:
        kind = "String, or Dataset" if item["name"] == "source" else item["type"]
        assert rows[item["name"]] == (kind, item.get("default", "")), item["name"]
    for name, made in STEPS.items():
        [row] = re.findall(rf"^\| {name}\.yaml .*", page, re.MULTILINE)
        if not name.startswith(("convert", "check")):
            assert all(f"`{value['name']}`" in row for value in made["outputs"]), name
    for item in step["outputs"]:
        assert f"`{item['name']}`" in page


def test_every_fault_is_shown_by_a_test() -> None:
    """docs/faults.md names existing tests."""
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    shown = [re.findall(r"`(tests/\S+)::(\w+)`", row) for row in rows if "shown by" not in row]
    assert len(shown) > 20
    assert all(shown)
    for path, name in (test for tests in shown for test in tests):
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
