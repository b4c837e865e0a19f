"""The labels of rows, many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.task.task import Task

# Arrow's stubs, where there are any, differ from version to version.
Column: TypeAlias = Any  # pa.ChunkedArray of texts
Texts: TypeAlias = Any  # pa.StringArray


def count_labels(annotations: Column, task: Task) -> Mapping[str, int]:
    """Return the number of examples per label; one with several labels counts for each."""
    labels = task.label_lists(annotations.combine_chunks()).flatten()
    return {item["values"]: item["counts"] for item in pc.value_counts(labels).to_pylist()}


def first_labels(annotations: Column, task: Task) -> Texts:
    """Return each example's label, or "" if it has none; examples have at most one."""
    lists = task.label_lists(annotations.combine_chunks())
    has_label = pc.greater(pc.list_value_length(lists), 0)
    at = pc.if_else(has_label, lists.offsets[:-1], pa.scalar(None, pa.int32()))
    return pc.fill_null(lists.values.take(at), "")
