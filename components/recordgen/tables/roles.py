"""Roles of columns, which ``--columns path=image_id,label=source`` assigns in an import file.

A role is the use of a column. Its value names the column: by its name in the header, by the key of
JSON objects, or by its number, counted from 1.

    path=image_id,label=source   →  {"path": ("image_id",), "label": ("source",)}
    path=1,label=3,label=4       →  {"path": ("1",), "label": ("3", "4")}
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from recordgen.errors import UsageError, did_you_mean

#: The image's size in pixels, for boxes in pixels.
SIZE_ROLES = ("width", "height")
BOX_ROLES = ("xmin", "ymin", "xmax", "ymax")
SEGMENT_ROLES = ("start", "end")
#: The roles that only tables have, with the equivalent option.
TABLE_ROLES: Mapping[str, str] = {"target": "target_column", "weight": "weight_column"}
ROLES = ("path", "text", "split", "label", *BOX_ROLES, *SIZE_ROLES, *SEGMENT_ROLES, *TABLE_ROLES)

# The only role that several columns may have.
_REPEATS = "label"

Roles = Mapping[str, tuple[str, ...]]


def parse_columns(value: str | Mapping[str, str | int | Sequence[str | int]]) -> Roles:
    """Return the columns by role.

    Args:
        value: comma-separated ``ROLE=NAME`` pairs, quoted as in a CSV line if a name contains a
            comma; or a mapping of roles to names, for labels also to several names.

    Raises:
        UsageError: a role is unknown or given twice, or a pair has no ``=`` or no name.
    """
    found: dict[str, tuple[str, ...]] = {}
    for role, name in _pairs(value):
        if role not in ROLES:
            hint = did_you_mean(role, ROLES, f"; roles: {', '.join(ROLES)}")
            raise UsageError(f"columns: there is no role {role!r}{hint}")
        if not name:
            raise UsageError(f"columns: the role {role!r} needs the name of a column (got none)")
        if role in found and role != _REPEATS:
            raise UsageError(
                f"columns: the role {role!r} must have one column (got {found[role][0]} and {name})"
            )
        found[role] = (*found.get(role, ()), name)
    return found


def _pairs(value: str | Mapping[str, str | int | Sequence[str | int]]) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [
            (str(role), str(name).strip())
            for role, names in value.items()
            for name in ([names] if isinstance(names, str | int) else names)
        ]
    if not value.strip():
        return []
    try:
        [items] = csv.reader([value], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as exc:
        raise UsageError(f"columns: quotes must be balanced ({exc}; got {value!r})") from exc
    pairs = []
    for item in items:
        role, equals, name = item.partition("=")
        if not equals:
            raise UsageError(
                f"columns must be comma-separated ROLE=NAME pairs, such as "
                f"path=image_id,label=source (got {item!r})"
            )
        pairs.append((role.strip().lower(), name.strip()))
    return pairs


def columns_text(roles: Roles) -> str:
    """Return roles as text for :func:`parse_columns`; equal roles have equal texts."""
    line = io.StringIO(newline="")
    pairs = [f"{role}={name}" for role in ROLES for name in roles.get(role, ())]
    csv.writer(line, lineterminator="").writerow(pairs)
    return line.getvalue()
