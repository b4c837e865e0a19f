"""``schema.pbtxt``: a TensorFlow Data Validation schema for this dataset and the next spans.

    feature {
      name: "image/class/text"
      type: BYTES
      value_count { min: 1 max: 1 }
      presence { min_fraction: 1 min_count: 1 }
      domain: "labels"
    }
    string_domain { name: "labels" value: "cat" value: "dog" }

A schema that TFDV infers from statistics describes whatever the data happens to contain. This one
follows from the task: labels are in ``labels.txt``, corners are inside the image, times and sizes
are not negative, and a feature that every record has must be present. Payloads and unique names
have a type and no rule: statistics skip them, and Transform reads them by this schema.

Format: tensorflow_metadata/proto/v0/schema.proto, as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recordgen import features
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.stored import label_files, stored_features
from recordgen.exports.export import FileExport
from recordgen.exports.output import Output
from recordgen.features import LIST_DTYPES, FeatureSpec, statistics_features
from recordgen.tables.stored import label_features, table_of

_TYPES = {"bytes": "BYTES", "int64": "INT", "float32": "FLOAT"}

# TFDV compares each value with the whole domain; larger vocabularies get no domain.
_MOST_VALUES = 10_000

_LABELS = "labels"
_TAGS = "tags"
_FORMATS = "formats"

_TAGS_FILE = "tags.txt"

_IMAGE_FORMATS = ("bmp", "gif", "jpeg", "png")


class _Known(NamedTuple):
    """What holds for all features; it is found once, because it parses all columns of a table.

    Attributes:
        labels: the features with the text and the number of labels, see :func:`label_features`.
        declared: the features of a table's columns; more may be missing in later examples.
    """

    labels: tuple[str | None, str | None]
    declared: Mapping[str, FeatureSpec]

    @classmethod
    def of(cls, dataset: Dataset) -> _Known:
        table = table_of(dataset)
        return cls(label_features(dataset), {} if table is None else table.features())


# Smallest and largest possible values of features.
_INT_BOUNDS: Mapping[str, tuple[int | None, int | None]] = {
    features.IMAGE_HEIGHT: (1, None),
    features.IMAGE_WIDTH: (1, None),
    features.ENTITY_START: (0, None),
    features.ENTITY_END: (0, None),
}
_FLOAT_BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    **dict.fromkeys(features.BBOX, (0.0, 1.0)),
    features.VIDEO_SEGMENT_START: (0.0, None),
    features.VIDEO_SEGMENT_END: (0.0, None),
}


class Tfdv(FileExport):
    """``schema.pbtxt``, which every conversion writes."""

    file = "schema.pbtxt"

    def text(self, output: Output) -> str:
        return schema_text(output.dataset)


def schema_text(dataset: Dataset) -> str:
    """Return the content of ``schema.pbtxt``."""
    specs = stored_features(dataset)
    domains = _domains(dataset)
    known = _Known.of(dataset)
    domain_of = {
        features.TAGS_TEXT: _TAGS,
        features.IMAGE_FORMAT: _FORMATS,
        known.labels[0]: _LABELS,
    }
    used = {name: domain_of[name] for name in specs if domain_of.get(name) in domains}
    allowed = statistics_features(dataset.task, specs)
    lines = []
    for name, spec in specs.items():
        rules = _rules(dataset, known, name, spec, used.get(name))
        lines += [
            "feature {",
            f"  name: {_quoted(name)}",
            f"  type: {_TYPES[spec.dtype] if spec.dtype in LIST_DTYPES else 'BYTES'}",
            *(f"  {rule}" for rule in rules if allowed is None or name in allowed),
            "}",
        ]
    for domain in sorted(set(used.values())):
        values = (f"  value: {_quoted(value)}" for value in domains[domain])
        lines += ["string_domain {", f"  name: {_quoted(domain)}", *values, "}"]
    return "".join(f"{line}\n" for line in lines)


def _rules(
    dataset: Dataset, known: _Known, name: str, spec: FeatureSpec, domain: str | None
) -> Iterator[str]:
    count = _value_count(spec)
    if count is not None:
        yield f"value_count {{ min: {count} max: {count} }}"
    if (presence := _presence(dataset, known, name, spec)) is not None:
        yield f"presence {{ {presence} }}"
    if domain is not None:
        yield f"domain: {_quoted(domain)}"
    yield from _bounds(dataset, known, name, spec)


def _value_count(spec: FeatureSpec) -> int | None:
    """Return the number of values in each record; None if it varies."""
    if spec.shape is None:
        return None
    # An array of another dtype is one value of raw bytes.
    return math.prod(spec.shape) if spec.dtype in LIST_DTYPES else 1


def _presence(dataset: Dataset, known: _Known, name: str, spec: FeatureSpec) -> str | None:
    """Return the required presence of a feature; None for lists, which may always be empty."""
    if spec.shape is None:
        return None
    # The default of sizes is for other tools' records; ours always have them.
    is_always_there = known.declared.get(name, spec).default is None or name in _INT_BOUNDS
    if name in known.labels:
        is_always_there = not any(split.unlabelled for split in dataset.splits.values())
    # A column of a table may have gaps, but must not be missing entirely.
    return "min_fraction: 1 min_count: 1" if is_always_there else "min_count: 1"


def _domains(dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """Return the values of each domain by name, if they are known and not too many."""
    tags = label_files(dataset).get(_TAGS_FILE, "").splitlines()
    stats = [split.images for split in dataset.splits.values()]
    formats = {kind for images in stats if images is not None for kind in images.formats}
    is_known = stats and None not in stats
    found = {
        _LABELS: dataset.labels,
        _TAGS: tags,
        _FORMATS: sorted(formats) if is_known else _IMAGE_FORMATS,
    }
    return {name: values for name, values in found.items() if 0 < len(values) <= _MOST_VALUES}


def _bounds(dataset: Dataset, known: _Known, name: str, spec: FeatureSpec) -> Iterator[str]:
    low: float | None
    high: float | None
    if dataset.labels and name == known.labels[1]:
        low, high = 0, len(dataset.labels) - 1
    else:
        low, high = _INT_BOUNDS.get(name) or _FLOAT_BOUNDS.get(name) or (None, None)
    limits = [f"min: {low}"] if low is not None else []
    limits += [f"max: {high}"] if high is not None else []
    if limits:
        kind = "int_domain" if spec.dtype == "int64" else "float_domain"
        yield f"{kind} {{ {' '.join(limits)} }}"


def _quoted(text: str) -> str:
    """Return text as a string of protobuf's text format: UTF-8, control characters in octal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " else f"\\{ord(char):03o}" for char in escaped) + '"'
