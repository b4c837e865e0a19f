"""The refusal of a file whose rows fit no definition: what was seen, and the options that read it.

    labels.csv:1: no role is known for the columns id, breed
    the first lines of labels.csv:
      id | breed
      000bec | collie
    read it with:
    recordgen convert labels.csv out --columns path=id,label=breed --image-root train/

The options are advice, which may be wrong: nothing is read before the user agrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError
from recordgen.formats import foreign_formats
from recordgen.formats.field_kinds import NUMBER, have_words, kind_of, words_of
from recordgen.formats.header import KNOWN_COLUMNS, Head
from recordgen.formats.proposal import CONSIDERED, doubt_about_boxes, propose

_ROWS_SHOWN = 3
# Words in the name of a split, such as ``PublicTest``.
_WORDS_OF_A_SPLIT = 3
_ROW_CHARACTERS = 160

_BOXES = re.compile(r"\[\[\s*-?[\d.]+,")


def stop(
    head: Head,
    problem: str,
    *,
    options: Mapping[str, str] | None = None,
    header: str = "",
    task: Task | None = None,
) -> NoReturn:
    """Stop with the first rows and the options that are likely to read them.

    Args:
        head: the first rows of the file.
        problem: the clause that does not fit.
        options: the options, if they are known; otherwise they are made of the rows.
        header: the value of ``--columns header``, if the file itself does not show it.
        task: the given task.

    Raises: NotUnderstoodError: always; it names the tool whose rows these are, if it is known.
    """
    objects = [record for _, record in head.objects[:_ROWS_SHOWN]]
    first = [", ".join(f"{key}: {value}" for key, value in each.items()) for each in objects]
    between = " ; " if head.delimiter == ";" else " | "
    first = first or [between.join(row) for row in head.rows[:_ROWS_SHOWN]]
    shown = "".join(f"\n  {line:.{_ROW_CHARACTERS}}" for line in first)
    names, rows = _named_rows(head, header)
    form = None if options else foreign_formats.of_rows(first)
    misleading = _what_misleads(head, names, rows)
    if misleading:
        problem, options = f"{problem}; {misleading}", {}
    elif options is None:
        options = propose(names, rows, head.path, header=header, task=task)
        if not options and (head.has_header or header == "yes"):
            problem += "; --columns says what columns hold, such as target=NAME for a table"
            if len({*names}) < len(names):
                problem += ", whose columns need different names: rename one"
        problem += doubt_about_boxes(options.get("columns", ""))
    are_images = "image_root" in options or "path=" in options.get("columns", "")
    if form is not None and not are_images:
        raise form.error(head.where)
    shown = f"the first lines of {head.path}:{shown}"
    raise NotUnderstoodError(f"{head.where}: {problem}", shown=shown, options=options)


def some_of(values: Iterable[str]) -> str:
    """Return up to three values as messages show them."""
    found = sorted(values)
    shown = ", ".join(f"{value:.30}" for value in found[:3])
    return shown if len(found) <= 3 else f"{shown}, …"


def _named_rows(head: Head, header: str) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the columns as ``--columns`` names them, and their rows."""
    if head.objects:
        from recordgen.formats.named_records import as_before_gaps  # a CSV has no keys

        records = [record for _, record in head.objects[:CONSIDERED]]
        names = [*dict.fromkeys(key for record in records for key in record)][:CONSIDERED]
        return names, [[str(as_before_gaps(it.get(name, ""))) for name in names] for it in records]
    if head.has_header or header == "yes":
        return head.rows[0], head.rows[1:]
    width = max(map(len, head.rows))
    return [str(number) for number in range(1, width + 1)], head.rows


def _what_misleads(head: Head, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return what must change in rows before any options read them; "" if nothing must.

    A column holds words of ML_USE in others, such as ``PublicTest``; a second line has names; or a
    field of a CSV, which holds one box, has several.
    """
    for name, values in zip(names, zip(*rows, strict=False), strict=False):
        is_csv = not (head.objects or head.lists)
        if is_csv and have_words("boxes", words_of(name)) and any(map(_BOXES.match, values)):
            return "fields hold lists in lists: write a row for each box"
        words = [[*map(str.lower, words_of(value))] for value in {*values}]
        hold = [any(map(is_ml_use, each)) and len(each) <= _WORDS_OF_A_SPLIT for each in words]
        is_split = all(map(is_ml_use, values))
        are_few = 1 < len(words) < len(values)
        if are_few and sum(hold) * 2 > len(hold) and not is_split and not any(map(kind_of, values)):
            return f"{name!r} names splits: write TRAIN, VALIDATION or TEST in it"
    headers = [row for row in rows[:_ROWS_SHOWN] if len(row) > 1 and KNOWN_COLUMNS.issuperset(row)]
    if headers and headers[0] != names:
        return f"{','.join(headers[0]):.80} names columns: remove the lines above it"
    first, *others = rows or [()]
    are_numbers = [all(map(NUMBER.fullmatch, values)) for values in zip(*others, strict=False)]
    if sum(are_numbers) * 2 > len(names) and all(first) and not any(map(NUMBER.fullmatch, first)):
        return f"below {','.join(names)!s:.80} is a second line of names: remove one of them"
    return ""
