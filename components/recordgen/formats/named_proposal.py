"""Advice: the value of ``--columns`` that probably reads named columns.

    breed   where        dingo   a/1.jpg     →  path=where,label=breed
    a       b            0.5     yes         →  target=b

It decides nothing: a refusal shows it, and the user runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recordgen.core.dataset.splits import is_ml_use
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    SPLIT_COLUMNS,
    TEXT_COLUMNS,
    column_name,
    find_columns,
)
from recordgen.formats.field_kinds import filled_at, is_media, is_sentence, mostly
from recordgen.tables.roles import LABEL_COLUMNS


def propose(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the likely roles, as ``--columns`` takes them.

    Args:
        names: of the columns.
        rows: the texts of some records, with a field for each column.
    """
    columns = {name: filled_at(rows, at) for at, name in enumerate(names) if name}
    columns = {name: values for name, values in columns.items() if not _are_objects(values)}

    def first(known: frozenset[str], fits: Callable[[str], object]) -> str:
        rest = [name for name in columns if name not in roles.values()]
        by_name = [rest[at] for at in find_columns(rest, known)]
        by_value = [name for name in rest if mostly(fits, columns[name])]
        both = [name for name in by_name if name in by_value]
        return next(iter([*both, *by_value, *by_name]), "")

    roles: dict[str, str] = {}
    path, text = first(PATH_COLUMNS, is_media), first(TEXT_COLUMNS, is_sentence)
    if path and (not text or mostly(is_media, columns[path])):
        roles["path"] = path
    elif text:
        roles["text"] = text
    else:
        targets = [name for name in columns if column_name(name) in {*LABEL_COLUMNS, "target"}]
        return f"target={[*columns, *targets][-1]}"
    if split := first(SPLIT_COLUMNS, is_ml_use):
        roles["split"] = split
    rest = [name for name in columns if name not in roles.values()]
    labels = [rest[at] for at in find_columns(rest, LABEL_COLUMNS)]
    labels += [name for name in rest if 1 < len({*columns[name]}) <= len(columns[name]) / 2]
    if labels:
        roles["label"] = labels[0]
    return ",".join(f"{role}={name}" for role, name in roles.items())


def _are_objects(values: Sequence[str]) -> bool:
    return any(value.startswith("{") for value in values)
