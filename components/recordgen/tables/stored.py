"""What a dataset says of its table, and of the features of its labels."""

from __future__ import annotations

from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.stored import stored_features
from recordgen.registry import TASKS
from recordgen.tables.columns import Table
from recordgen.tables.schema import Schema


def table_of(dataset: Dataset) -> Table | None:
    """Return the columns of a table, inferred or declared; None for other datasets."""
    options = dataset.options
    if options.get("table"):
        return Table.from_json(options["table"])
    return Schema.from_json(options["schema"]).table if options.get("schema") else None


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
