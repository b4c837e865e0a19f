"""What the records of a dataset hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from recordgen.core.dataset.manifest import Dataset
from recordgen.features import IMAGE_CHANNELS, IMAGE_ENCODED, OBJECTS, FeatureSpec
from recordgen.registry import TASKS

if TYPE_CHECKING:
    from recordgen.tables.columns import Table

# Suffix of image features, after ``image`` or the name of a column.
_IMAGE_BYTES = "/encoded"


def stored_features(dataset: Dataset) -> Mapping[str, FeatureSpec]:
    """Return the specs of all features by name, from the dataset or else from its task."""
    if dataset.features or dataset.task not in TASKS:
        return dataset.features
    known = TASKS[dataset.task].features
    if dataset.objects:
        known = {**known, **{name: OBJECTS[name] for name in dataset.objects if name in OBJECTS}}
    if IMAGE_ENCODED in known and dataset.encoding.pixels:
        return {**known, IMAGE_CHANNELS: FeatureSpec("int64", 0)}
    return known


def table_of(dataset: Dataset) -> Table | None:
    """Return the columns of a table, inferred or declared; None for other datasets."""
    from recordgen.tables.columns import Table  # readers of records of other tasks need neither
    from recordgen.tables.schema import Schema

    options = dataset.options
    if options.get("table"):
        return Table.from_json(options["table"])
    return Schema.from_json(options["schema"]).table if options.get("schema") else None


def is_image(feature: str) -> bool:
    """Return whether a feature holds the bytes of an image: ``image/encoded``, ``day/encoded``."""
    return feature.endswith(_IMAGE_BYTES)
