"""The keyword arguments of the reading functions, for type checkers.

The option classes in :mod:`recordgen.reading.options` declare, document and check each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from recordgen.reading.options import Tuning


class RecordKeywords(TypedDict, total=False):
    """Keywords for records of any kind: the fields of ``RecordOptions``."""

    # options: made by `make options`
    shuffle: bool
    seed: int | None
    epochs: int | Literal["endless"]
    cache: str | os.PathLike[str] | None
    only: Callable[..., Any] | Collection[str] | None
    shard: tuple[int, int]
    tuning: Tuning
    # /options


class ReadKeywords(RecordKeywords, total=False):
    """Keywords for examples of all tasks; each task accepts the fields of its option class."""

    # options: made by `make options`
    task: str
    label_mode: Literal["auto", "int", "binary", "categorical", "multi_hot"] | None
    vocabulary: Collection[str] | None
    weights: Literal["balanced"] | Mapping[str, float] | None
    columns: str | Collection[str] | Mapping[str, Any] | None
    scale: str
    resize: Literal["stretch", "fit", "center_crop", "random_crop"]
    augment: Literal["photo"] | Mapping[str, Any] | None
    boxes: str | Mapping[str, Any]
    padding: int | str | Sequence[int]
    # /options
