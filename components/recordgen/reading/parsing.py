"""Serialised records → tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from recordgen.core.dataset.manifest import Dataset
from recordgen.features import FeatureSpec
from recordgen.registry import OF_OTHER_RECORDS, TASKS

#: Represents a missing whole number between parsing and :func:`as_floats`; none is rarer.
NO_WHOLE = -(1 << 63)

#: The kinds of tf.train.Feature; arrays of any other type are stored as their raw bytes.
DTYPES = {"bytes": tf.string, "int64": tf.int64, "float32": tf.float32}

#: Parses serialised records (string [batch]) by a spec, as ``tf.io.parse_example`` does.
Parse: TypeAlias = Callable[..., Any]


def parsing_spec(
    names: Iterable[str] | None = None, *, task: str = OF_OTHER_RECORDS
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of a task's features for ``tf.io.parse_example``.

    Args:
        names: the features to read; None: all features of the task.
        task: a name of :data:`recordgen.tasks.TASKS`.
    """
    known = TASKS[task].features
    wanted = known if names is None else tuple(names)
    return to_parsing_spec({name: spec for name, spec in known.items() if name in wanted})


def to_parsing_spec(
    known: Mapping[str, FeatureSpec],
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of these features for ``tf.io.parse_example``."""
    return {name: parsed_as(spec) for name, spec in known.items()}


def parsed_as(spec: FeatureSpec) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
    """Return the spec of one feature for ``tf.io.parse_example``."""
    dtype = DTYPES[spec.dtype]
    if spec.shape is None:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    default: Any = NO_WHOLE if spec.has_gaps else spec.default
    if default is not None and spec.shape:
        default = np.full(spec.shape, default)
    return tf.io.FixedLenFeature(spec.shape, dtype, default)


def parse_named(
    records: tf.Tensor,
    spec: Mapping[str, Any],
    stored: Mapping[str, str],
    parse: Parse = tf.io.parse_example,
) -> dict[str, Any]:
    """Parse features by Recordgen's names; ``stored`` has those with another name in records."""
    found = parse(records, {stored.get(name, name): item for name, item in spec.items()})
    return {name: found[stored.get(name, name)] for name in spec}


def parser_for(dataset: Dataset | None, lists: Collection[str] = ()) -> Parse:
    """Return what parses the records of a dataset, or of other tools, of which some are lists."""
    return tf.io.parse_example if dataset is not None else partial(_with_lists, lists)


def _with_lists(lists: Collection[str], records: tf.Tensor, stored: Mapping[str, Any]) -> Any:
    """Parse records, of which some features are ``lists`` of SequenceExamples.

    Raises:
        tf.errors.InvalidArgumentError: one of those is a single feature of a record, or another
            one a list, which the first records do not show.
    """
    sequence = {name: stored[name] for name in lists}
    context = {name: spec for name, spec in stored.items() if name not in lists}
    no_lists, no_features = (
        {name: tf.io.VarLenFeature(spec.dtype) for name, spec in of.items()}
        for of in (context, sequence)
    )
    features, steps, _ = tf.io.parse_sequence_example(
        records, context | no_features, sequence | no_lists
    )
    others = [*map(features.pop, no_features), *map(steps.pop, no_lists)]
    is_right = tf.add_n([tf.size(each.values) for each in others]) == 0
    message = "a record has a feature list where the first records have a feature, or none of these"
    return checked(features | steps, is_right, message, *stored)


def checked(values: Any, is_right: tf.Tensor, message: str, *shown: Any) -> Any:
    """Return a tensor; fail with a message and what is ``shown`` unless it is right."""
    with tf.control_dependencies([tf.debugging.Assert(is_right, [message, *shown])]):
        return tf.nest.map_structure(tf.identity, values, expand_composites=True)


def with_gaps(known: Mapping[str, FeatureSpec]) -> frozenset[str]:
    """Return the names of whole numbers that records may lack, see :func:`as_floats`."""
    return frozenset(name for name, spec in known.items() if spec.has_gaps)


def as_floats(parsed: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return parsed features, those of ``names`` from int64 to float32 with NaN where missing."""
    return {name: gaps_as_nan(value) if name in names else value for name, value in parsed.items()}


def gaps_as_nan(values: tf.Tensor) -> tf.Tensor:
    """Return whole numbers (int64) as float32, NaN in place of :data:`NO_WHOLE`."""
    missing = tf.constant(math.nan, tf.float32)
    return tf.where(values == NO_WHOLE, missing, tf.cast(values, tf.float32))
