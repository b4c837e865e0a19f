"""Keywords of earlier versions, and what is written instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from recordgen.errors import UsageError
from recordgen.reading.tuning import Tuning

#: Keyword of an earlier version → the new spelling.
MOVED: Mapping[str, str] = {
    **{field.name: f"tuning=Tuning({field.name}=…)" for field in fields(Tuning)},
    "box_format": "boxes='xyxy'",
    "buckets": "padding='auto', or padding=[16, 32, 64]",
    "defaults": "columns={'age': 0, 'job': None}",
    "dtype": "scale='uint8', or scale='0..1:float16'",
    "extras": "columns=['image/source_id']",
    "labels": "only=['cat', 'dog']",
    "map_batch": ".map(function, num_parallel_calls=tf.data.AUTOTUNE) after the dataset",
    "map_example": ".unbatch().map(function).batch(32) after the dataset",
    "max_boxes": "padding=100",
    "min_visible": "boxes={'format': 'xyxy', 'min_visible': 0.3}",
    "predicate": "only=function",
    "sequence_length": "padding=64",
    "tokenizer": ".map(lambda texts, labels: (tokenizer(texts), labels)) after the dataset",
    "vectors": "padding='ragged'",
}


def check_moved(values: Mapping[str, object]) -> None:
    """Check that no option is a keyword of an earlier version. Raises: UsageError."""
    for name, value in values.items():
        if name in MOVED:
            raise UsageError(f"{name} is no option; write {MOVED[name]}")
        if name == "boxes" and value in ("padded", "ragged"):
            raise UsageError(f"boxes={value!r} is no format; write padding='auto' or 'ragged'")
