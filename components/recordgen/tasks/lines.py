"""What AutoML's tasks share: the keys of their JSON lines, annotations that add up, stored uris.

A misspelt key of a JSON object is an error, because it would count as missing::

    {"start_offset": 5, "endOffset": 9}   →  AnnotationError: did you mean 'startOffset'?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, TypeVar

from recordgen.core.task import annotation
from recordgen.messages.masking import without_secrets
from recordgen.rejects import RejectCode

_Item = TypeVar("_Item")


# "startOfset" is close to a key, and "annotationSpecId" is not.
_CLOSE = 0.85

# Short keys are close by chance.
_SHORT = 6

_PLACE = re.compile(r"(start|begin|from|first|end|stop|until|last|offset|time)", re.IGNORECASE)


def add_up(rows: Iterable[Iterable[_Item]]) -> tuple[set[_Item], int]:
    """Return the items of all rows of a payload, and the number of rows that add none."""
    found: set[_Item] = set()
    duplicates = 0
    for number, items in enumerate(rows):
        new = set(items) - found
        duplicates += number > 0 and not new
        found |= new
    return found, duplicates


def too_many_fields(message: str) -> annotation.AnnotationError:
    """Return the error of a line that has more fields than its task."""
    return annotation.AnnotationError(RejectCode.TOO_MANY_FIELDS, message)


def uri_in(record: Mapping[str, Any], key: str, noun: str) -> str:
    """Return the uri under ``key`` in a line of JSONL. Raises: AnnotationError: it is missing."""
    uri = record.get(key)
    if not isinstance(uri, str) or not uri.strip():
        raise annotation.AnnotationError(
            RejectCode.NO_PATH,
            f"each line needs {key}, the {noun}'s path or URL (got the keys "
            f"{', '.join(map(annotation.printable, record)) or 'none'!s:.80})",
        )
    return annotation.check_uri(uri.strip())


def list_in(record: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under a key of a line of JSONL, or []. Raises: AnnotationError."""
    found = record.get(key) or []
    if not isinstance(found, list):
        raise annotation.bad_annotation(f"{key} must be a list of objects (got {found!r:.80})")
    return found


def display_names(record: Mapping[str, Any], several: str, single: str) -> list[str]:
    """Return the labels in a line of JSONL: a list under ``several``, an object under ``single``.

    Raises: AnnotationError: they cannot be used.
    """
    labels = [display_name(item, f"each of {several}") for item in list_in(record, several)]
    if record.get(single) is not None:
        labels.append(display_name(record[single], single))
    return labels


def display_name(value: Any, where: str, keys: Sequence[str] = ("displayName",)) -> str:
    """Return the label of a JSON annotation, under the first of ``keys`` that it has.

    ``{"displayName": "cat"}`` → ``cat``

    Raises: AnnotationError: it has no label.
    """
    name = either(value, keys) if isinstance(value, Mapping) else None
    if isinstance(name, str) and name.strip():
        return annotation.check_label(name.strip())
    raise annotation.bad_annotation(
        f'{where} must be an object with a {keys[0]}, such as {{"{keys[0]}": "cat"}} '
        f"(got {value!r:.80})"
    )


def either(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the value of the first of ``keys`` that a JSON object has, or None."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def stored_uri(source_id: bytes) -> str:
    """Return the uri of a row, given the source ID in its record."""
    return without_secrets(source_id.decode("utf-8"))


def check_spelling(
    record: Mapping[str, Any], known: Sequence[str], where: str, *, of_places: bool = False
) -> None:
    """Check that no key stands for a missing one. Raises: AnnotationError, names both.

    Args:
        record: the JSON object.
        known: the keys that are read from it.
        where: the object, for the message.
        of_places: the known keys are places or times that have a default: then no other key may
            name one, such as ``start``.
    """
    missing = [name for name in known if record.get(name) is None]
    if not missing:
        return
    for key, value in record.items():
        if key in known or value in (None, "", [], {}):
            continue
        for name in missing:
            if _is_near(key, name) or (of_places and _PLACE.match(key)):
                raise annotation.bad_annotation(
                    f"{where} has the key {annotation.printable(key)!s:.80}, which is not read; "
                    f"did you mean {name!r}?"
                )


@lru_cache(maxsize=4096)
def _is_near(key: str, name: str) -> bool:
    """Return whether a key differs from a name only in its case, its separators or a typo."""
    one, other = (text.replace("_", "").replace("-", "").lower() for text in (key, name))
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORT or abs(len(one) - len(other)) > 2:
        return False
    return SequenceMatcher(None, one, other).ratio() >= _CLOSE
