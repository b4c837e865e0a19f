"""A look at the first record: is it what the reading expects? Said before training starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.example import parse_example
from recordgen.reading.parsing import parsing_spec
from recordgen.tfrecord import read_records

_DTYPES = {bytes: tf.string, int: tf.int64, float: tf.float32}


def first_record(paths: Sequence[str]) -> tuple[str, Mapping[str, list[Any]]]:
    """Return the first record's file, and its features as lists by name.

    Raises:
        RecordError: the file is damaged, or holds no ``tf.train.Example``.
        DataError: all files are empty.
    """
    for path in paths:
        for record in read_records(path):
            try:
                return path, parse_example(record)
            except ValueError as exc:
                raise RecordError(f"{path}: record 0: {exc}") from exc
    raise DataError(f"{paths[0]}: no record in {len(paths)} files")


def check_record(
    paths: Sequence[str], labels: Sequence[str], extras: Sequence[str], *, is_ours: bool
) -> dict[str, tf.io.FixedLenFeature]:
    """Check that images and labels can be read from the files.

    Args:
        paths: the shard files; those before the first record may be empty.
        labels: the features that labels are read from.
        extras: further features that are wanted.
        is_ours: written by Recordgen, so only the names of the extras have to be looked at.

    Returns:
        The specs of the extras.

    Raises:
        DataError: there is no record, or the first lacks a feature.
        UsageError: an extra is none of its features.
        RecordError: a file is damaged.
    """
    known = parsing_spec()
    known = {name: spec for name, spec in known.items() if name in extras}
    if is_ours and len(known) == len(set(extras)):
        return known
    path, first = first_record(paths)
    there = ", ".join(sorted(first)) or "none"
    for name in (features.IMAGE_ENCODED, *labels):
        if name not in first and not is_ours:
            remedy = (
                "recordgen.read(files, feature_spec=…) reads any features"
                if name == features.IMAGE_ENCODED
                else "label_mode='none' reads images without labels"
            )
            raise DataError(f"{path}: record 0 has no feature {name!r}, only {there}; {remedy}")
    for name in extras:
        if not first.get(name):
            raise UsageError(f"extras: {path}: record 0 has no feature {name!r}, only {there}")
        dtype = _DTYPES[type(first[name][0])]
        known[name] = tf.io.FixedLenFeature(
            () if len(first[name]) == 1 else (len(first[name]),), dtype
        )
    return known


def predicate_spec(
    paths: Sequence[str], lists: Sequence[str], *, is_ours: bool
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of what a predicate gets of one record: all but ``image/encoded``.

    Args:
        paths: the shard files.
        lists: features that may have several values in a record.
        is_ours: written by Recordgen; else the first record says which features there are.

    Raises:
        DataError, RecordError: as :func:`first_record`.
    """
    spec = parsing_spec()
    if not is_ours:
        _, first = first_record(paths)
        spec = {name: _optional(values) for name, values in first.items() if values}
    spec.pop(features.IMAGE_ENCODED, None)
    for name in lists:
        if name in spec:
            spec[name] = tf.io.RaggedFeature(spec[name].dtype)
    return spec


def _optional(values: Sequence[Any]) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
    """Return the spec of a feature like these values, which another record may lack."""
    dtype = _DTYPES[type(values[0])]
    if len(values) > 1:
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenFeature((), dtype, b"" if dtype == tf.string else 0)
