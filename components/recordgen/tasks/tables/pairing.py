"""Rows of tables, their targets and weights, without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing
from recordgen.access.records import Example, Records
from recordgen.errors import UsageError
from recordgen.features import NO_LABEL
from recordgen.tables.columns import Table, is_mask
from recordgen.tables.stored import table_of
from recordgen.tasks.pairing import images

#: The weight of a row without one.
DEFAULT_WEIGHT = 1.0


def rows(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of columns and the target, or of images and labels.

    Raises: UsageError: no ``dataset.json`` lists the columns, or a column of images has masks.
    """
    table = None if source.dataset is None else table_of(source.dataset)
    if table is None:
        raise UsageError(f"{source!r}: no dataset.json lists the columns of its examples")
    check_masks(table.images)
    if table.is_labelled_image:
        return images(source, there, decoder)
    decoders = {
        name: decoder.of_examples(source.dataset, table.image_feature(name, "")[:-1])
        for name in table.images
    }
    features = [
        feature
        for name in table.read_names
        for feature in (decoders[name].names if name in decoders else [name])
    ]
    target, weight = _target(table, source.class_names), table.weight
    defaults = {} if weight is None else {weight: DEFAULT_WEIGHT}
    inputs = partial(_inputs, table.read_names, decoders)
    if target is None:
        return Pairing(features, inputs, defaults=defaults)
    return Pairing(features, inputs, *target, weight or "", defaults)


def check_masks(images: Sequence[str]) -> None:
    """Check that no column of images has the name of masks. Raises: UsageError."""
    if masks := [name for name in images if is_mask(name)]:
        raise UsageError(
            f"column {masks[0]!r} has the name of a mask, whose pixels are classes: resizing would "
            f"mix them, and scaling divide them by 255; read its bytes with recordgen.read, leave "
            f"it out with columns=[…], or convert it under another name if it is a picture"
        )


def _inputs(names: Sequence[str], decoders: Any, example: Example) -> dict[str, Any]:
    return {
        name: decoders[name](example).pixels if name in decoders else example[name]
        for name in names
    }


def _target(table: Table, classes: Sequence[str]) -> tuple[str, Callable[[Any], Any]] | None:
    """Return the feature of the target, and what makes its number; None if there is no target."""
    if table.label is not None:
        return table.label_features[1], np.int64
    if table.target is None:
        return None
    if not table.has_labels:
        return table.target, np.float32
    numbers = {name: np.int64(number) for number, name in enumerate(classes)}
    return table.target, lambda value: numbers.get(_text(value), np.int64(NO_LABEL))


def _text(value: Any) -> str:
    """Return the class that a target names; a whole number that rows may lack is read as float."""
    return value if isinstance(value, str) or np.isnan(value) else str(int(value))
