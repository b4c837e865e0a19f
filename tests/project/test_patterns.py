"""Every regular expression of the package takes linear time, or its texts are bounded."""

from __future__ import annotations

import ast
import importlib
import re
from typing import NamedTuple

import pytest

from recordgen.formats.foreign_formats import foreign_formats
from recordgen.formats.separators import _ADDRESS
from recordgen.payloads.header import beginnings
from tests.conftest import COMPONENTS
from tests.linear_patterns import is_linear

PACKAGE = COMPONENTS / "recordgen"
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")

# Patterns that are slow by their structure, and the reason why that does no harm.
BOUNDED = {
    ("messages/masking.py", r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"): "fits with at most one letter less",
    ("formats/field_kinds.py", r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+"): (
        "fits with at most one letter less"
    ),
    ("messages/__init__.py", r"^ {4}(\w+): (.+(?:\n {8}.+)*)"): "docstrings of this package",
    ("cli.py", r"(?m)^ +(?:-\w, )?(--[\w-]+)"): "the help of this command",
    ("tasks/suiting.py", r"--([a-z-]+) ([\w:=,]+)"): "remedies of this package",
    ("core/task/annotation.py", r"/(?:\.?/)+"): "fits with at most one letter less",
    ("reading/naming.py", r"\{\{.*?\}\}|\[Op:\w+\]( name: \S*)?"): "a few thousand letters",
    ("formats/json_values.py", r'"(?:[^"\\]|\\.)*"|"[\s\S]*\Z|[{}\[\]:,]'): (
        "where the first alternative fails, the second one takes all"
    ),
    ("formats/json_values.py", r'"[^"\\]*(?:\\.[^"\\]*)*"'): "texts of JSON that was parsed before",
    ("formats/separators.py", _ADDRESS.pattern): "passed on, and only fullmatch is called",
}

# pattern, method, whether it takes linear time
EXAMPLES = [
    (r"\d+\.?\d*", "fullmatch", False),
    (r"\d+(?:\.\d*)?", "fullmatch", True),
    (r"([A-Za-z][A-Za-z0-9+.-]*)://", "search", False),
    (r"([A-Za-z][A-Za-z0-9+.-]*)://", "match", True),
    (r"([?&;#])([^=&;#?\s]+)=([^&;#\s]+)", "sub", True),
    (r"[^\s/:@]+:[^\s/@]+@", "search", False),
    (r"(\w+-?)*x", "match", False),
    (r"(a+)*b", "match", False),
    (r"(a|b)*c", "match", True),
    (r"(a|a)*c", "match", False),
    (r"\{\{.*?\}\}", "sub", False),
    (r".*x.*y", "match", False),
    (r"\s+$", "search", False),
    (r"\S+", "sub", True),
    (r"(?!.*x.*y)a", "match", False),
]


@pytest.mark.parametrize(("pattern", "method", "linear"), EXAMPLES)
def test_the_judge(pattern, method, linear):
    """It tells the known kinds of slow patterns from linear ones."""
    assert is_linear(pattern, method=method) == linear


class Use(NamedTuple):
    """A pattern, and a method that is called with it."""

    module: str
    pattern: str | bytes
    flags: int
    method: str


def uses_in(path):
    """Yield the patterns of a module; names and f-strings are looked up in the loaded module."""
    module = path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.args
        ):
            continue
        if node.func.attr in METHODS and isinstance(node.args[0], ast.Constant):
            yield Use(module, node.args[0].value, 0, node.func.attr)


def compiled_in(path, sources):
    """Yield the compiled patterns of a module with each method that some module calls."""
    name = path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
    module = importlib.import_module(name.removesuffix(".__init__"))
    where, own = path.relative_to(PACKAGE).as_posix(), path.read_text()
    for key, value in vars(module).items():
        if isinstance(value, re.Pattern):
            read = own if key.startswith("_") else sources
            called = re.findall(rf"\b{key}\.({'|'.join(METHODS)})\b", read)
            for method in set(called) or {"search"}:  # search: it is passed on
                yield Use(where, value.pattern, value.flags, method)
        for each in value if isinstance(value, tuple | list) else ():
            if isinstance(each, re.Pattern):
                yield Use(where, each.pattern, each.flags, "search")


# Without modules that load TensorFlow or TFX: only their patterns in calls are read.
LOADED = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in ("examplegen", "kubeflow", "reading", "training")
    and "re.compile(" in path.read_text()
]


def test_every_pattern_is_linear():
    """Or is listed with the reason why its text is short."""
    sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    uses = [use for path in sorted(PACKAGE.rglob("*.py")) for use in uses_in(path)]
    uses += [use for path in LOADED for use in compiled_in(path, sources)]
    for each in foreign_formats():
        forms = [*each.begins, *each.rows, *filter(None, [each.line])]
        uses += [Use("formats/foreign_tools.json", form, re.S, "match") for form in forms]
    uses += [Use("beginnings.json", it.pattern, it.flags, "match") for it in beginnings().values()]
    assert len(uses) > 50
    slow = {
        (use.module, use.pattern)
        for use in uses
        if not is_linear(use.pattern, use.flags, method=use.method)
    }
    assert sorted(slow - set(BOUNDED), key=str) == []
    assert set(BOUNDED) <= slow  # no reason for a pattern that is gone
