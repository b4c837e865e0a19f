"""The keyword arguments of the reading functions, for type checkers.

The option classes in :mod:`recordgen.reading.options` document and check each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from recordgen.reading.options import Augmentation
from recordgen.reading.tuning import Tuning


class RecordKeywords(TypedDict, total=False):
    """Keywords for records of any kind: the fields of ``RecordOptions``."""

    shuffle: bool
    seed: int | None
    epochs: int | Literal["endless"]
    drop_remainder: bool
    cache: str | os.PathLike[str] | None
    cache_bytes: int | None
    predicate: Callable[..., Any] | None
    shard: tuple[int, int]
    map_example: Callable[..., Any] | None
    map_batch: Callable[..., Any] | None
    on_error: Literal["fail", "skip"] | Callable[[str], None]
    tuning: Tuning


class ReadKeywords(RecordKeywords, total=False):
    """Keywords for examples of all tasks; each task accepts the fields of its option class."""

    task: str
    label_mode: Literal["auto", "int", "binary", "categorical", "multi_hot"] | None
    labels: Collection[str] | None
    vocabulary: Sequence[str] | None
    weights: Literal["balanced"] | Mapping[str, float] | None
    extras: Sequence[str]
    # Images and boxes
    dtype: Any
    scale: str
    resize: Literal["stretch", "fit", "center_crop", "random_crop"]
    crop_margin: float
    augment: Augmentation | Literal["photo"] | None
    box_format: str
    boxes: Literal["padded", "ragged"]
    max_boxes: int | None
    min_visible: float
    # Texts and entities
    tokenizer: Callable[..., Any] | None
    buckets: Literal["auto"] | Sequence[int] | None
    sequence_length: int | None
    # Tables and declared columns
    columns: Sequence[str] | None
    defaults: Mapping[str, Any]
    vectors: Literal["padded", "ragged"]
