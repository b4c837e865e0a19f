"""What a dataset says of its table, and of the features of its labels."""

from __future__ import annotations

from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotation import stored_features
from recordgen.errors import SourceError
from recordgen.registry import TASKS
from recordgen.tables.columns import Table
from recordgen.tables.schema import Schema


def table_of(dataset: Dataset) -> Table | None:
    """Return the columns of a table, inferred or declared; None for other datasets.

    Raises: SourceError: somebody changed them.
    """
    options = dataset.options
    name = "table" if options.get("table") else "schema"
    if not options.get(name):
        return None
    try:
        text = options[name]
        table = Table.from_json(text) if name == "table" else Schema.from_json(text).table
        for column in table.stored:
            for feature in table.features_of(column):
                _ = dataset.features[feature]
    except (AttributeError, LookupError, TypeError, ValueError) as exc:
        reason = f"{exc} is no feature" if isinstance(exc, KeyError) else exc
        raise SourceError(
            f"dataset.json: option {name} does not fit its features: {reason}; restore the file, "
            f"or convert again"
        ) from exc
    return table


def label_features(dataset: Dataset) -> tuple[str | None, str | None]:
    """Return the features with the text and the number of labels, each None if it is missing.

    ``("image/class/text", "image/class/label")``; for a table, the target if it is text.
    """
    if (table := table_of(dataset)) is not None:
        if table.label:
            return table.label_features
        is_text = table.has_labels and dataset.features[str(table.target)].dtype == "bytes"
        return (table.target, None) if is_text else (None, None)
    if dataset.task not in TASKS:  # written from Python: any feature may have any name
        return None, None
    names = stored_features(dataset)
    text = next((name for name in names if name.endswith("class/text")), None)
    number = next((name for name in names if name.endswith("class/label")), None)
    return text, number
