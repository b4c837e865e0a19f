"""The page that says what is read without an option, held to its examples."""

from pathlib import Path

import pytest

import recordgen
from recordgen.formats.detect import detect
from recordgen.formats.import_file import ImportFile
from recordgen.options import ConvertOptions

PAGE = Path(recordgen.__file__).parents[2] / "docs/formats.md"

TASKS = {
    "AutoML's rows": "image_classification",
    "named columns": "image_classification",
    "one-hot columns": "image_multi_label",
    "AutoML's objects": "image_classification",
}


def examples():
    """Yield the name of each definition on the page, and the lines of its example."""
    table = PAGE.read_text(encoding="utf-8").split("| a source | is read if |")[1].split("\n\n")[0]
    for row in table.split("\n")[2:]:
        name, _, example = map(str.strip, row.strip("|").split("|"))
        if example:
            yield name.partition(" (")[0], [line.strip("`") for line in example.split("<br>")]


def found(folder, lines):
    path = folder / ("a.jsonl" if lines[0].startswith("{") else "a.csv")
    path.write_text("\n".join(lines) + "\n")
    return detect([ImportFile(str(path))], ConvertOptions()).options.task


@pytest.mark.parametrize(("name", "lines"), examples(), ids=str)
def test_each_example_of_the_page_is_read(name, lines, tmp_path):
    """A definition reads what its page shows."""
    assert found(tmp_path, lines) == TASKS[name]


def test_the_page_has_an_example_of_each_definition():
    """No definition of rows is without one."""
    assert {name for name, _ in examples()} == TASKS.keys()
