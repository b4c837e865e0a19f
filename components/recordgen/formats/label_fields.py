"""The fields of a row that hold labels → its labels.

cat|dog      →  cat, dog     with the label separator |
1, 0, 1      →  cat, fish    below the one-hot columns cat, dog and fish
[1, 0, 1]    →  cat, fish    below the one-hot list labels[cat|dog|fish]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from typing import TypeAlias

from recordgen.core.dataset.vocabulary import LIST
from recordgen.core.task.annotation import AnnotationError, bad_annotation
from recordgen.formats.field_kinds import field_at
from recordgen.tables.roles import AUTO

#: Separates the names of one-hot columns in ``--columns label=cat|dog``.
BETWEEN = "|"

#: Joins the labels of a list in one field. No label holds it, since it is a control character.
BETWEEN_ITEMS = "\x1f"

#: The class of a one-hot column, or those of a column of one-hot lists, in the order of the list.
Classes: TypeAlias = "str | tuple[str, ...]"

#: The contents of one-hot columns, in lower case; ``pandas.get_dummies`` writes ``True``.
IS_CLASS = dict.fromkeys(("0", "0.0", "false"), False) | dict.fromkeys(("1", "1.0", "true"), True)

# A text in quotes, as Python and JSON write it in a list.
_QUOTED = re.compile(r"""(?<=[\[({,\s])(?:'([^']*)'|"([^"]*)")(?=\s*[\])},\s])""")

#: What -1 and an empty field in a one-hot column hold in CheXpert and CelebA.
UNCERTAIN = frozenset({"", "-1", "-1.0"})


def label_columns(name: str, there: Sequence[str]) -> Mapping[str, Classes]:
    """Return the columns that a label of ``--columns`` names, each with its classes if one-hot.

    ``breed`` → {breed: ""}, ``cat|dog`` → {cat: cat, dog: dog}, and ``labels[cat|dog]`` →
    {labels: (cat, dog)}. ``there`` are the existing columns, one of which may have this very name.
    """
    if BETWEEN not in name or name in there:
        return {name: ""}
    column, mark, rest = name.partition("[")
    is_list = bool(column and mark) and rest.endswith("]")
    parts = map(str.strip, (rest[:-1] if is_list else name).split(BETWEEN))
    names = tuple(filter(None, parts))
    if len(names) == 1:
        return {name if is_list else names[0]: ""}
    return {column.strip(): names} if is_list else dict(zip(names, names, strict=True))


def flags_in(text: str) -> list[bool]:
    """Return the values of a one-hot list, such as ``[0, 1]`` or NumPy's ``[0. 1.]``.

    They are empty if the text is no such list.
    """
    if len(text) < 2 or text[0] + text[-1] not in ("[]", "()"):
        return []
    parts = text[1:-1].replace(",", " ").lower().split()
    flags = [IS_CLASS.get(part.removesuffix(".")) for part in parts]
    return [flag for flag in flags if flag is not None] if None not in flags else []


def width_of_lists(values: Iterable[str]) -> int:
    """Return the length of one-hot lists; 0 if most values are none, or of another length."""
    widths = Counter(len(flags_in(value)) for value in values)
    [(width, count)] = widths.most_common(1) or [(0, 0)]
    return width if count * 2 > widths.total() else 0


def classes_of(texts: Sequence[str], names: Sequence[Classes], uncertain: str = AUTO) -> list[str]:
    """Return the labels in the columns of a row, of which some are one-hot.

    Args:
        texts: the contents of the columns.
        names: the classes of each one-hot column; "" for a column of labels.
        uncertain: what -1 means, see :class:`recordgen.tables.roles.Columns`. Then a column of
            labels holds 0 and 1, too.

    Raises: AnnotationError: a one-hot column holds something other than 0 and 1.
    """
    if any(names) and not any(texts):
        return []
    labels = list[str]()
    for text, name in zip(texts, names, strict=True):
        if isinstance(name, tuple):
            labels += _in_list(text, name)
        elif not name:
            labels.append(text if uncertain == AUTO else str(int(_flag(text, "label", uncertain))))
        elif _flag(text, name, uncertain):
            labels.append(name)
    return list(filter(None, labels))


def _flag(text: str, name: str, uncertain: str) -> bool:
    """Return the value of a one-hot column. Raises: AnnotationError."""
    if uncertain != AUTO and text in UNCERTAIN:
        return bool(text) and uncertain == "1"
    is_class = IS_CLASS.get(text.lower())
    if is_class is None:
        raise bad_annotation(f"the column {name!r} must hold 0 or 1 (got {text!r})")
    return is_class


def have_several(rows: Sequence[Sequence[str]], classes: Mapping[int, Classes]) -> bool:
    """Return whether a row of one-hot columns has several classes, or none.

    A row whose columns are empty has no labels, and decides nothing.
    """
    for row in rows:
        fields = [field_at(row, at) for at in classes]
        with suppress(AnnotationError):  # the reader rejects the row
            if any(fields) and len(classes_of(fields, [*classes.values()], "1")) != 1:
                return True
    return False


def _in_list(text: str, names: Sequence[str]) -> Iterable[str]:
    flags = flags_in(text)
    if len(flags) != len(names):
        raise bad_annotation(f"expected a list of {len(names)} times 0 or 1 (got {text!r:.80})")
    return compress(names, flags)


def separated(fields: Sequence[str], separator: str) -> Sequence[str]:
    """Return the labels in fields, each of which may hold several, also as a list in brackets.

    ``cat, dog``, ``[cat,dog]`` and ``['cat', 'dog']`` → cat, dog with the separator ``,``
    """
    if not separator:
        return fields
    parts = (part.strip() for field in fields for part in _items(field.strip(), separator))
    return list(filter(None, parts))


def _items(field: str, separator: str) -> Sequence[str]:
    if separator == BETWEEN_ITEMS or not LIST.fullmatch(field):
        return field.split(separator)
    quoted = [one or other for one, other in _QUOTED.findall(field)]
    return quoted or field[1:-1].split(separator)
