"""The fields of a row that hold labels → its labels.

cat|dog      →  cat, dog     with the label separator |
1, 0, 1      →  cat, fish    below the one-hot columns cat, dog and fish
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recordgen.core.task.annotation import bad_annotation

#: Separates the names of one-hot columns in ``--columns label=cat|dog``.
BETWEEN = "|"

#: No column is one-hot.
NO_CLASSES: Mapping[int, str] = {}

#: The contents of one-hot columns, in lower case; ``pandas.get_dummies`` writes ``True``.
IS_CLASS: Mapping[str, bool] = {
    "0": False,
    "1": True,
    "0.0": False,
    "1.0": True,
    "false": False,
    "true": True,
}


def one_hot_columns(name: str, there: Sequence[str]) -> Sequence[str]:
    """Return the columns that a label of ``--columns`` names: ``cat|dog`` are two.

    ``there`` are the existing columns, one of which may have this very name.
    """
    if BETWEEN not in name or name in there:
        return [name]
    return [part for part in map(str.strip, name.split(BETWEEN)) if part]


def classes_of(fields: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Return the labels in the columns of a row, of which some are one-hot.

    Args:
        fields: the contents of the columns.
        classes: the class of each one-hot column; "" for a column of labels.

    Raises:
        AnnotationError: a one-hot column holds something other than 0 and 1.
    """
    if not any(fields):
        return []
    labels = []
    for text, name in zip(fields, classes, strict=True):
        if not name:
            labels.append(text)
        elif (is_class := IS_CLASS.get(text.lower())) is None:
            raise bad_annotation(f"the one-hot column {name!r} must hold 0 or 1 (got {text!r})")
        elif is_class:
            labels.append(name)
    return list(filter(None, labels))


def separated(fields: Sequence[str], separator: str) -> Sequence[str]:
    """Return the labels in fields, each of which may hold several."""
    if not separator:
        return fields
    parts = (part.strip() for field in fields for part in field.split(separator))
    return list(filter(None, parts))
