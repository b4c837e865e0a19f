"""The keys of JSON objects that ``--columns`` names, and their values as fields of a CSV line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import bad_annotation, printable
from recordgen.core.task.task import Task
from recordgen.errors import UsageError
from recordgen.formats.header import Given, no_column
from recordgen.formats.path_template import PathTemplate
from recordgen.formats.table_layout import row_parser


def check_keys(task: Task, given: Given) -> None:
    """Check that the task has the given roles. Raises: UsageError."""
    if not task.columns:
        raise UsageError(
            f"columns: {task.name} has no columns, because its annotations are lists of spans; "
            f"omit columns"
        )
    row_parser(task, Adjustments()).check_roles(given)


def check_names(records: Iterable[Mapping[str, Any]], given: Given, source: str) -> None:
    """Check that each given key occurs. Raises: UsageError, which lists the existing keys."""
    there = dict.fromkeys(key for record in records for key in record)
    template = PathTemplate.of(given)
    if template is not None:
        there.pop(template.text, None)
    for role in given.roles:
        keys = given.keys_of(role)
        for name in template.names if template is not None and role == "path" else keys:
            if name not in there:
                no_column(name, [*there], f"{source}: columns: {role}={name}")
    if given.group and given.group not in there:
        no_column(given.group, [*there], f"{source}: group_by={given.group}")


def cells(value: Any, name: str) -> list[str]:
    """Return a JSON value as fields of a CSV line; a list becomes a field for each item.

    Raises: AnnotationError: the value is or contains an object.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [text for item in value for text in cells(item, name)]
    if isinstance(value, dict):
        raise bad_annotation(
            f"{printable(name)} must hold a text, a number or a list of these (got {value!r:.80})"
        )
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return [value if isinstance(value, str) else json.dumps(value)]
