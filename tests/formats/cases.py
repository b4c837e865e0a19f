"""Cases of tests in text files beside this module: the lines of a file, and what is said of them.

A case begins with ``## `` and the name of its file. Its lines follow, then options, as of the
command, and rows, each behind ``= ``. An invisible character is written as ``\\u00a0``.
"""

import re
from pathlib import Path

import pytest


def cases(file, title, *more):
    """Return a mark that runs a test for each case of a section, and for more cases.

    The test gets the name of the file, its lines, the options, and the rows without final blanks.
    """
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    section = text.partition(f"\n# {title}\n")[2].partition("\n# ")[0]
    found = (_case(*each.strip("\n").split("\n")) for each in section.split("\n## ")[1:])
    return pytest.mark.parametrize(("name", "lines", "options", "rows"), [*found, *more])


def _case(name, *written):
    lines, options, rows = [], {}, []
    for line in map(_unescaped, written):
        if line.startswith("= "):
            rows.append(line.removeprefix("= ").rstrip())
        elif line.startswith("--"):
            option, _, value = line.removeprefix("--").partition(" ")
            options[option] = value
        else:
            lines.append(line)
    return name, "\n".join(lines), options, rows


def _unescaped(line):
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), line)
