"""The features of other tools' records, by Recordgen's names.

image=jpg,label=kind   →   {"image/encoded": "jpg", "image/class/label": "kind"}
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from recordgen import features
from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.features import TFRECORDER
from recordgen.messages import listed
from recordgen.registry import TASKS

# How the feature with a role ends; the first of these that the task has.
_ENDS = {
    "image": (features.IMAGE_ENCODED,),
    "text": (features.TEXT,),
    "label": ("class/label", "class/text"),
    "mask": ("class/encoded",),
    **{side: (f"bbox/{side}",) for side in ("xmin", "ymin", "xmax", "ymax")},
}

#: So many records show which features other tools' files have.
SHOWN = 16

_PICTURES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM")
_BASE64 = re.compile(rb"[\w-]*={0,2}")
_LABELS = ("label", "class", "category", "target")

_Record: TypeAlias = Mapping[str, Sequence[Any]]


def shown_features(records: Iterable[_Record]) -> dict[str, Sequence[Any]]:
    """Return the features of records, each with its values in the first record that has some."""
    found: dict[str, Sequence[Any]] = {}
    for record in records:
        for name, values in record.items():
            if not len(found.get(name, ())):
                found[name] = values
    return found


def named_features(columns: str, task: str, first: _Record, path: str) -> dict[str, str]:
    """Return the names in other tools' records by the names that a task reads.

    Args:
        columns: pairs of a role and a feature, such as ``image=jpg,label=kind``; "": features
            ``image``, ``text`` and ``label`` have the roles of their names.
        task: a name of :data:`recordgen.tasks.TASKS`.
        first: the features of the first records, see :func:`shown_features`.
        path: its file, for messages.

    Raises:
        NotUnderstoodError: no feature is known to hold the images or texts.
        UsageError: the task has no such role, or the record no such feature.
    """
    payload = TASKS[task].kind
    if payload not in _ENDS:  # a task whose features have no other names
        return {}
    given = dict(pair.partition("=")[::2] for pair in columns.split(",") if pair)
    if len(given) < columns.count("="):
        raise UsageError(f"columns: each role has one feature of a record (got {columns})")
    there = {role for role in (payload, "label") for name in names_of(role, task) if name in first}
    if payload not in there and payload not in given and (columns or payload not in first):
        raise _not_understood(payload, given, first, path)
    if not columns:
        given = {role: role for role in (payload, "label") if role in first and role not in there}
    found = {}
    for role, name in given.items():
        is_tfrecorder = role == "image" == name and {*TFRECORDER} <= {*first}
        if is_tfrecorder and all(map(_is_base64, first["image"])):
            folder = shlex.quote(posixpath.dirname(path) or ".")
            raise UsageError(
                f"{path}: images are raw pixels in base64, as google/tensorflow-recorder writes "
                f"them; convert the files once: recordgen convert {folder} NEW_FOLDER"
            )
        known = names_of(role, task)
        if not known:
            raise UsageError(f"columns: {task} has no role {role!r}; roles: {', '.join(_ENDS)}")
        if name not in first:
            raise UsageError(
                f"columns: {path}: the first records have no feature {name!r}, only "
                f"{listed(sorted(first), str)}"
            )
        is_text = len(first[name]) and isinstance(first[name][0], bytes)
        found[known[-1] if role != "label" or is_text else known[0]] = name
    return found


def _is_base64(value: Any) -> bool:
    return isinstance(value, bytes) and _BASE64.fullmatch(value) is not None


def names_of(role: str, task: str) -> Sequence[str]:
    """Return the features of a task with a role; for labels the numbers, then the texts."""
    names = TASKS[task].features
    ends = _ENDS.get(role, ())
    return [n for e in ends for n in names if n == e or ("/" in e and n.endswith(f"/{e}"))]


def _not_understood(
    payload: str, given: Mapping[str, str], first: _Record, path: str
) -> NotUnderstoodError:
    """Return the refusal, with the columns that are likely to read the records."""
    single = {name: each[0] for name, each in first.items() if len(each) == 1}
    held = {name: value for name, value in single.items() if isinstance(value, bytes)}
    pictures = [name for name, value in held.items() if value.startswith(_PICTURES)]
    labels = [name for name in first if name.rpartition("/")[2] in _LABELS]
    texts = sorted(held.keys() - {*labels, *pictures}, key=lambda name: -len(held[name]))
    payloads = pictures if payload == "image" else texts
    others = [name for name in single if name not in payloads]
    if not labels and len(others) == 1:
        labels = others
    likely = {payload: payloads[:1], "label": labels[:1]}
    roles = {role: names[0] for role, names in likely.items() if names} | dict(given)
    columns = ",".join(map("=".join, roles.items()))
    return NotUnderstoodError(
        f"{path}: no feature is known to hold the {payload} of a record, among "
        f"{listed(sorted(first), str) or 'none'}; source[i] has other features, such as arrays",
        options={"columns": columns} if payloads else None,
    )
