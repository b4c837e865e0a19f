"""Formats of other tools that Recordgen does not read: how to make an import file from them.

    @relation iris                     →  ARFF: …
    img1/000001.jpg, gt/gt.txt         →  MOTChallenge: write a CSV …

``foreign_tools.json`` is the table: a new tool is a new entry. A file is recognised by its first
bytes, a folder by the names in it, and rows that fit no definition by the first of them. This
module opens no file except the table.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import NamedTuple

from recordgen.errors import NotUnderstoodError

#: Enough for what shows a format.
HEAD_BYTES = 64 * 1024
_ROW_LETTERS = 4_000


class ForeignFormat(NamedTuple):
    """A format of another tool: its name, the remedy, and how to recognise it.

    Patterns joined by ``&`` must all have a match. Those of files are globs for the end of a path,
    in lower case: ``gt/gt.txt``.

    Attributes:
        name: its usual name, with an article if it needs one.
        remedy: how to turn it into something that Recordgen reads.
        begins: regular expressions for the first bytes of its files, read as Latin-1.
        rows: regular expressions for its first rows, as messages show them, if no definition fits:
            ``a | b``, or ``key: value`` of objects.
        files: its files in a folder without images.
        beside: its files beside images, which it describes.
        line: a regular expression for the first line of a file that ``beside`` names.
    """

    name: str
    remedy: str
    begins: Sequence[str] = ()
    rows: Sequence[str] = ()
    files: Sequence[str] = ()
    beside: Sequence[str] = ()
    line: str = ""

    def error(self, where: str, evidence: str = "") -> NotUnderstoodError:
        """Return the error that names the format.

        Args:
            where: the file, file and line, or folder.
            evidence: what shows the format, if ``where`` does not.
        """
        shown = f" ({evidence})" if evidence else ""
        return NotUnderstoodError(f"{where}: this looks like {self.name}{shown}; {self.remedy}")


@cache
def foreign_formats() -> Sequence[ForeignFormat]:
    """Return the table; the first entry that matches wins."""
    table = resources.files("recordgen.formats").joinpath("foreign_tools.json")
    return [ForeignFormat(**entry) for entry in json.loads(table.read_text(encoding="utf-8"))]


def of_file(head: bytes) -> ForeignFormat | None:
    """Return the format of a file with these first bytes, or None if it may be an import file."""
    from recordgen.core.records import RECORDS

    text = head.removeprefix(b"\xef\xbb\xbf")
    if RECORDS.is_mine(head):
        return next(each for each in foreign_formats() if each.name == "a TFRecord file")
    if _is_row_of_markup(text):
        return None
    letters = text.decode("latin-1")
    return next((each for each in foreign_formats() if _begin(letters, each.begins)), None)


def of_rows(rows: Sequence[str]) -> ForeignFormat | None:
    """Return the format of a file with these first rows, which fit no definition, or None."""
    text = "\n".join(row[:_ROW_LETTERS] for row in rows)
    return next((each for each in foreign_formats() if _begin(text, each.rows)), None)


def of_folder(
    names: Collection[str], head: Callable[[str], bytes], *, images: Collection[str]
) -> tuple[ForeignFormat, str] | None:
    """Return the format of a folder, and the first file that shows it.

    Args:
        names: its files that are no images by their names.
        head: returns the first bytes of a file.
        images: its images, which the files may describe.
    """
    by_suffix = defaultdict(list)
    for name in names:
        by_suffix[posixpath.splitext(name.lower())[1]].append(name)

    def first(pattern: str) -> str | None:
        suffix = posixpath.splitext(pattern)[1]
        candidates = names if pattern.endswith("*") else by_suffix.get(suffix, ())
        return next((n for n in candidates if fnmatchcase(f"/{n.lower()}", f"*/{pattern}")), None)

    for found in foreign_formats():
        for patterns in (*found.beside, *(() if images else found.files)):
            evidence = first(patterns.partition("&")[0])
            if evidence is None or not all(map(first, patterns.split("&"))):
                continue
            if not found.line or re.match(found.line, head(evidence).decode("latin-1"), re.M):
                return found, evidence
    return None


def _begin(text: str, forms: Sequence[str]) -> bool:
    return any(re.match(form, text, re.S) for form in forms)


def _is_row_of_markup(text: bytes) -> bool:
    """Return whether the first line is a text with a label: ``<html>Hello</html>,spam``."""
    line = text.partition(b"\n")[0]
    return line.startswith(b"<") and b'"' not in line and line.rfind(b",") > line.rfind(b">") > 0
