"""Requests to the model of a table: its columns by name, as in a row of JSON.

``{"instances": [{"alcohol": 14.2, "colour": "red", "photo": {"b64": "…"}}]}``
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.levels import typed
from recordgen.reading.options import AUTO
from recordgen.tables.columns import Column, Table

#: The signature that takes columns by name.
COLUMNS = "columns"

# The function that TensorFlow calls with the inputs by name has parameters of its own.
_TAKEN = frozenset({"self", "args", "kwargs"})


def input_names(columns: Iterable[str]) -> dict[str, str]:
    """Return the name of each column's input: TensorFlow allows Python's names only.

    ``["fixed acidity", "2nd", "class", "a-b", "a_b"]`` → ``fixed_acidity``, ``column_2nd``,
    ``class_``, ``a_b``, ``a_b_``
    """
    found: dict[str, str] = {}
    for column in columns:
        name = "".join(each if f"a{each}".isidentifier() else "_" for each in column)
        if not name[:1].isalpha():
            name = f"column_{name}"
        while name in found.values() or name in _TAKEN or keyword.iskeyword(name):
            name += "_"
        found[column] = name
    return found


def column_specs(table: Table) -> dict[str, tf.TensorSpec]:
    """Return the inputs of the signature ``columns``, by column.

    Texts and image files are string. All numbers are float64, in which NaN is a missing one:
    Serving's JSON has no missing int64, and refuses a whole number above 2^24 for a float32.
    """
    names = input_names(column.name for column in table.inputs)
    return {column.name: _spec(column, names[column.name]) for column in table.inputs}


def _spec(column: Column, name: str) -> tf.TensorSpec:
    if column.type.kind == "floats":
        return tf.TensorSpec([None, column.type.length], tf.float64, name)
    return tf.TensorSpec([None], tf.float64 if column.type.is_number else tf.string, name)


def given_columns(table: Table, values: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """Return columns as a reader returns them; NaN pads lists of any length."""
    columns = {column.name: column.type for column in table.inputs}
    found: dict[str, Any] = {}
    for name, given in values.items():
        found[name] = tf.cast(given, tf.float32) if given.dtype == tf.float64 else given
        if columns[name].kind == "floats" and columns[name].length is None:
            found[name] = tf.ragged.boolean_mask(found[name], ~tf.math.is_nan(given))
    return found


def decode_columns(
    images: Mapping[str, tuple[Any, ...]], decoder: ImageDecoder
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Decode columns of images, given what :meth:`ImageDecoder.attempt` takes.

    Returns:
        float32 [batch, height, width, 3] by column; and string [batch], the first bad column and
        what is wrong with its image, "" if all are good.
    """
    found, error = {}, tf.constant("")
    for name, given in images.items():
        pixels, why = decoder.attempt(*given)
        found[name] = typed(pixels, AUTO, "float32")
        why = tf.where(why == "", "", tf.strings.join([f"{name}: ", why]))
        error = tf.where(error == "", why, error)
    return found, error
