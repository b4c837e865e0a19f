"""What the records of a dataset hold, and the files beside them that name labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recordgen.core.dataset.manifest import LABELS_FILE, Dataset
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.records.example import parse_record
from recordgen.errors import RecordError
from recordgen.features import IMAGE_CHANNELS, IMAGE_ENCODED, OBJECTS, FeatureSpec
from recordgen.registry import TASKS

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


# What the values of a feature are; of arrays, their bytes.
_TYPES = {"int64": (int, "whole numbers"), "float32": (float, "numbers")}
_BYTES = (bytes, "text or bytes")


def declared_values(record: bytes, where: str, specs: Mapping[str, FeatureSpec]) -> dict[str, Any]:
    """Parse a record whose features are declared; it may have others.

    Raises: RecordError: it is damaged, at ``where``, or a feature has values of another type, or
        several of them instead of one.
    """
    values = parse_record(record, where)
    for name, found in values.items():
        if name not in specs or not found:
            continue
        kind, what = _TYPES.get(specs[name].dtype, _BYTES)
        if type(found[0]) is not kind:
            raise RecordError(f"{where}: {name} must be {what} (got {found[0]!r:.80})")
        if specs[name].shape == () and len(found) > 1:
            raise RecordError(f"{where}: {name} must be one value (got {len(found):,})")
    return values


def is_image(feature: str) -> bool:
    """Return whether a feature holds the bytes of an image: ``image/encoded``, ``day/encoded``."""
    return feature.endswith(_IMAGE_BYTES)


#: The names of the files that name labels in any of Recordgen's own tasks.
LABEL_FILES = ("label_map.pbtxt", LABELS_FILE, "tags.txt")


def label_files(dataset: Dataset) -> Mapping[str, str]:
    """Return the contents of the files that name the labels, by file name."""
    if dataset.task not in TASKS:  # written from Python, or by a package that is not installed
        return {}
    return {LABELS_FILE: labels_text(dataset.labels), **TASKS[dataset.task].files(dataset.labels)}
