"""The tables of the documentation agree with the code."""

import inspect
import re

import pytest
import yaml

import recordgen
from pipelines.component import STEPS
from recordgen import cli
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.options import OPTIONS, ConvertOptions
from recordgen.rejects import Reject
from tests.pages import pages, text_of, wrong_rows
from tests.rows import read_rows

# A test as pages name it: its file and its name.
_TEST = re.compile(r"`(tests/\S+)::(\w+)")


def section(page, title):
    text = text_of(page)
    return text[text.index(f"\n## {title}") + 1 :].split("\n## ")[0]


# --- rows that are rejected -----------------------------------------------------------------------

# | task | `line` | code | message |; for entities also `sentence` and `tags`
_REJECTS = re.findall(
    r"^\| (\w+) \| `(.+)` \| (\w+) \| (.+) \|$", wrong_rows("Import files"), re.MULTILINE
)


def read(folder, task, line):
    """Return the reject or row of a line that is the only one in its file."""
    line, _, tags = line.partition("` and `")
    name = "sentences.txt" if tags else "a.jsonl" if line.startswith("{") else "a.csv"
    (folder / name).write_text(f"{line}\n")
    (folder / "labels.txt").write_text(f"{tags}\n")
    file = ImportFile(str(folder / name))
    [item] = read_rows(detect([file], ConvertOptions(task=task)).options, file)
    return item


@pytest.mark.parametrize(("task", "line", "code", "message"), _REJECTS)
def test_each_rejected_line_has_its_code_and_message(task, line, code, message, tmp_path):
    """A line that is wrong for its task is a reject with this code and message."""
    item = read(tmp_path, task, line)
    assert isinstance(item, Reject)
    assert (item.line, item.code) == (1, code)
    assert item.message.startswith(message)


# --- options ----------------------------------------------------------------------------------


def test_tables_name_every_option_of_every_command():
    """And no other."""
    [commands] = [each for each in cli.build_parser()._actions if isinstance(each.choices, dict)]
    known = {
        action.option_strings[-1]
        for command in commands.choices.values()
        for action in command._actions
        if action.option_strings and action.dest != "help"
    }
    text = section("docs/convert.md", "The command") + text_of("docs/options.md")
    assert set(re.findall(r"^\| (?:`-\w`, )?`(--[\w-]+)", text, re.MULTILINE)) == known


def test_table_names_every_parameter_of_the_component():
    """In their order."""
    pytest.importorskip("tfx")
    from recordgen.examplegen import AutoMLExampleGen

    _, *own, _ = inspect.signature(AutoMLExampleGen.__init__).parameters
    text = section("docs/tfx.md", "Parameters")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == own


def test_the_api_page_names_every_export():
    """Each once."""
    named = re.findall(r"^::: recordgen\.(\w+)$", text_of("docs/api.md"), re.MULTILINE)
    assert len(named) == len(set(named))
    modules = set(dir(recordgen)) - set(recordgen.__all__)
    assert set(named) - modules == set(recordgen.__all__) - {"__version__"}


def test_tables_of_the_kubeflow_step():
    """Each input that is no option of the conversion has a row, and so has each output."""
    page = text_of("docs/kubeflow.md")
    step = yaml.safe_load(text_of("component.yaml"))
    found = re.findall(r"^\| `(\w+)` \| ([\w, ]+?) \| (.*?)\|", page, re.MULTILINE)
    rows = {name: (kind, default.strip()) for name, kind, default in found}
    for item in step["inputs"]:
        if item["name"] not in OPTIONS:
            kind = "String, or Dataset" if item["name"] == "source" else item["type"]
            assert rows[item["name"]] == (kind, item.get("default", "")), item["name"]
    for name, made in STEPS.items():
        [row] = re.findall(rf"^\| {name}\.yaml .*", page, re.MULTILINE)
        if not name.startswith(("convert", "check")):
            assert all(f"`{value['name']}`" in row for value in made["outputs"]), name
    for item in step["outputs"]:
        assert f"`{item['name']}`" in page


def test_every_fault_is_shown_by_a_test():
    """Each row of the page names one."""
    rows = [line for line in text_of("docs/faults.md").splitlines() if line.startswith("| ")]
    shown = [_TEST.findall(row) for row in rows if "shown by" not in row]
    assert len(shown) > 20
    assert all(shown)


def test_tests_that_pages_name_exist():
    """In the files that they name."""
    found = {test for page in pages() for test in _TEST.findall(text_of(page))}
    assert not [test for test in found if f"\ndef {test[1]}(" not in text_of(test[0])]
