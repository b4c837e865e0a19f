"""Finds the code blocks of the documentation, and runs the blocks of one page in order.

Python blocks share one namespace; statements after ``>>>`` must print the lines below them. A
``console`` block has commands: all of its lines, or the lines that begin with ``$ ``. Lines below
such a command must appear in its output in this order; other lines may be between them. ``…``
matches any text; times, rates, sizes and digests may differ.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shlex
import subprocess
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import recordgen
from recordgen import cli

ROOT = Path(__file__).parents[1]

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
# Values that differ from run to run: 2.9 s, 619 images/s, 132.3 kB, a.json (digest 0a1b2c…).
_VOLATILE = re.compile(r"\d[\d,.]*(?= ?(?:s|[kMG]?B|\w+/s)\b)|(?<=digest )[0-9a-f]+")
_ANYTHING = "\ue000"  # not used on any page
_SHELL = ("cat", "head", "ls")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: the path of the page, from the top of the repository.
        line: the first line of its text, from 1.
        language: the language after the fence; empty for a listing.
        text: its text without the fences and the indentation of a list.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def starts(self) -> list[str]:
        """The names by which parts can be skipped: the commands, or the first line."""
        if self.language == "console":
            return [command for command, _ in self.commands()]
        return self.text.splitlines()[:1]

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return the commands of a ``console`` block, each with its shown lines of output."""
        lines = self.text.replace("\\\n", " ").splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        found: list[tuple[str, list[str]]] = []
        for line in lines:
            if not prompted or line.startswith("$ "):
                found.append((" ".join(line.removeprefix("$ ").split()), []))
            elif line.strip():
                found[-1][1].append(line)
        return found


def pages() -> list[str]:
    """Return the pages of the documentation, from the top of the repository."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in paths]


def wrong_rows(title: str) -> str:
    """Return a section of the tables of wrong rows."""
    return text_of("tests/wrong_rows.txt").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def text_of(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in their order."""
    text = text_of(page)
    return [
        Block(page, text.count("\n", 0, match.start()) + 2, match[2], textwrap.dedent(match[3]))
        for match in _FENCE.finditer(text)
    ]


def is_shown(shown: str, line: str) -> bool:
    """Return whether a line of output matches a line on a page."""
    words = re.escape(_VOLATILE.sub(_ANYTHING, shown).strip())
    words = words.replace(_ANYTHING, r"[\w,.]+").replace("…", ".*")
    return re.fullmatch(re.sub(r"(\\ )+", r"\\s+", words), line.strip()) is not None


def first_missing(shown: list[str], output: str) -> str | None:
    """Return the first shown line that is missing from the output after its predecessors."""
    lines = iter(output.splitlines())
    for wanted in shown:
        if wanted.strip() != "…" and not any(is_shown(wanted, line) for line in lines):
            return wanted
    return None


def run_page(page: str, skipped: Collection[str], replaced: Mapping[str, str]) -> None:
    """Run the blocks of a page in the working directory.

    Args:
        page: path from the top of the repository.
        skipped: beginnings of commands, and of first lines of Python blocks, that are not run.
        replaced: texts and their replacements.

    Raises:
        AssertionError: a command failed, or its output differs from the page.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        for old, new in replaced.items():
            block = replace(block, text=block.text.replace(old, new))
        if block.language == "console":
            for command, shown in block.commands():
                if not command.startswith(tuple(skipped)):
                    _run_command(block, command, shown)
        elif block.language == "python" and not block.text.startswith(tuple(skipped)):
            _run_python(block, names)
    exec(AFTER.get(page, ""), names)


def _run_python(block: Block, names: dict[str, Any]) -> None:
    path = str(ROOT / block.page)
    if not block.text.startswith(">>>"):
        # Lines of the code match lines of the page, for tracebacks and for inspect.
        text = "\n" * (block.line - 1) + block.text
        exec(compile(text, path, "exec", dont_inherit=True), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, path, path, block.line - 1)
    test.globs = names
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    with io.StringIO() as report:
        failed = runner.run(test, out=report.write, clear_globs=False).failed
        assert not failed, report.getvalue()


def _run_command(block: Block, command: str, shown: list[str]) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = _code_of(shlex.split(command, comments=True))
    told = f"{block.page}:{block.line}: {command}\n{output.getvalue()}"
    assert not code, f"exit code {code}: {told}"
    missing = first_missing(shown, output.getvalue())
    assert missing is None, f"no line {missing!r} from {told}"


def _code_of(words: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    program, *arguments = [word.removeprefix(".venv/bin/") for word in words]
    if program == "recordgen":
        return cli.main(arguments)
    if (program, *arguments[:1]) == ("python", "-m"):
        module = importlib.import_module(arguments[1])
        if hasattr(module, "__path__"):  # a package runs its __main__
            module = importlib.import_module(f"{arguments[1]}.__main__")
        return int(module.main(arguments[2:]) or 0)
    assert program in _SHELL, f"{program}: add it to NOT_RUN in test_docs.py, with the reason"
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done.returncode


@contextlib.contextmanager
def bare_import() -> Iterator[None]:
    """Reset ``recordgen`` to its state after ``import recordgen``, without modules loaded since."""
    loaded = {
        name: value
        for name, value in vars(recordgen).items()
        if isinstance(value, ModuleType) and value.__name__ == f"recordgen.{name}"
    }
    for name in loaded.keys() - {"version"}:  # `import recordgen` itself loads this one
        delattr(recordgen, name)
    try:
        yield
    finally:
        vars(recordgen).update(loaded)


# Assertions about the names of a page after all of its blocks have run.
AFTER = {
    "docs/tasks/video_classification.md": """
assert clips.shape == (8, 8, 16, 16, 3)
for frames, label in zip(clips.numpy(), labels.numpy(), strict=True):
    first, *_, last = frames[..., 0].sum(axis=1).argmax(axis=1)  # the column of the square
    assert first < last if result.dataset.labels[label] == "right" else first > last
"""
}
