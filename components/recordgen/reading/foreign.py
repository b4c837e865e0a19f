"""Check the first record of other tools' files, before training starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.features import FeatureSpec
from recordgen.reading.classes import DETECTION
from recordgen.reading.detection import BoxTargets
from recordgen.reading.options import LabelOptions
from recordgen.reading.parsing import parsing_spec, to_parsing_spec
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import Keep, keeping
from recordgen.reading.shards import ShardSet
from recordgen.reading.targets import Targets
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_around
from recordgen.tasks import TASKS

# The prefix of features with a value for each box, also in other tools' files.
_OBJECT = "image/object/"

# Records of each file that are looked at until one can be read.
_LOOKED_AT = 100

_DTYPES = {bytes: tf.string, int: tf.int64, float: tf.float32}


def first_record(paths: Sequence[str]) -> tuple[str, Mapping[str, list[Any]]]:
    """Return the file of the first record that can be read, and its features as lists by name.

    Raises:
        RecordError: the first records are damaged, or are no ``tf.train.Example``.
        DataError: all files are empty.
    """
    problem: RecordError | None = None
    for path in paths:
        for number, record in enumerate(islice(read_around(path), _LOOKED_AT)):
            if isinstance(record, RecordError):
                problem = problem or record
                continue
            try:
                return path, parse_example(record)
            except ValueError as exc:
                problem = problem or RecordError(f"{path}: record {number}: {exc}")
    raise problem or DataError(f"{paths[0]}: no record in {len(paths)} files")


def check_first(paths: Sequence[str], needed: Iterable[str], remedy: str) -> None:
    """Check that the first record has some features.

    Raises:
        DataError: there is no record, or it lacks one.
        RecordError: the first file is damaged.
    """
    path, first = first_record(paths)
    for name in needed:
        if name not in first:
            raise _missing(path, first, name, remedy)


def _missing(path: str, first: Iterable[str], name: str, remedy: str) -> DataError:
    there = ", ".join(sorted(first)) or "none"
    return DataError(f"{path}: record 0 has no feature {name!r}, only {there}; {remedy}")


def is_ours(shards: ShardSet, payload: str) -> bool:
    """Return whether shards were converted, and not written by another tool or from Python.

    Raises:
        DataError: they were written from Python, without the feature that holds the payload.
    """
    if shards.dataset is None:
        return False
    written = shards.dataset.features
    if written and payload not in written:
        raise DataError(
            f"{shards.files[0].path}: written with recordgen.write, without a feature {payload!r}; "
            f"use recordgen.read"
        )
    return not written


def check_record(
    paths: Sequence[str], task: str, labels: Sequence[str], extras: Sequence[str], *, is_ours: bool
) -> dict[str, Any]:
    """Check that payloads and labels can be read from the files; return the specs of the extras.

    ``labels`` are the features that labels are read from. Of files that were converted
    (``is_ours``), only unknown extras are looked up.

    Raises:
        DataError: there is no record, or the first lacks a feature.
        UsageError: an extra is not a feature of the first record, or has a value for each box.
        RecordError: a file is damaged.
    """
    for name in extras:
        if task == DETECTION and name.startswith(_OBJECT):
            raise UsageError(
                f"extras: {name!r} has a value for each box, and boxes may be left out; read it "
                f"with recordgen.read(…, feature_spec=…)"
            )
    known = parsing_spec(extras, task=task)
    if is_ours and len(known) == len(set(extras)):
        return known
    path, first = first_record(paths)
    there = ", ".join(sorted(first)) or "none"
    # An image without objects has no features of boxes, and the first may be one.
    has_labels = task != DETECTION or any(name.startswith(_OBJECT) for name in first)
    payload = features.TEXT if TASKS[task].kind == "text" else features.IMAGE_ENCODED
    for name in (payload, *(labels if has_labels else ())):
        if name not in first and not is_ours:
            raise _missing(path, first, name, _remedy(name, first))
    for name in extras:
        if not first.get(name):
            raise UsageError(f"extras: {path}: record 0 has no feature {name!r}, only {there}")
        if isinstance(known.get(name), tf.io.RaggedFeature):
            continue
        count = len(first[name])
        dtype = _DTYPES[type(first[name][0])]
        known[name] = tf.io.FixedLenFeature(() if count == 1 else (count,), dtype)
    return known


def _remedy(name: str, there: Iterable[str]) -> str:
    """Return the remedy for a record that lacks a feature but has others."""
    if name in (features.IMAGE_ENCODED, features.TEXT):
        return "recordgen.read(files, feature_spec=…) reads any features"
    if name == features.IMAGE_OBJECT_LABEL:
        return f"vocabulary=[…] numbers {features.IMAGE_OBJECT_TEXT}"
    if name.startswith(_OBJECT):
        return "boxes need all of image/object/bbox/xmin, xmax, ymin and ymax"
    if features.IMAGE_OBJECT_XMIN in there:
        return f"task={DETECTION!r} reads boxes"
    return "label_mode=None reads examples without labels"


def keeping_labelled(
    plan: ReadPlan,
    options: LabelOptions,
    targets: Targets | BoxTargets,
    described: Mapping[str, FeatureSpec],
    *,
    is_ours: bool,
) -> Keep | None:
    """Return the function that selects labelled records; None: all are read.

    ``described`` are features of the records beside those of the task.
    """
    numbers = targets.numbers
    lists = (numbers.label, numbers.text) if numbers.classes.mode == "multi_hot" else ()
    spec = partial(_predicate_spec, plan.files, plan.task, lists, described, is_ours=is_ours)
    is_wanted = None
    if isinstance(targets, Targets) and numbers.classes.filters:
        is_wanted = targets.is_wanted
    return keeping(options.predicate, spec, is_wanted)


def _predicate_spec(
    paths: Sequence[str],
    task: str,
    lists: Sequence[str],
    described: Mapping[str, FeatureSpec],
    *,
    is_ours: bool,
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of the features that a predicate gets: all but ``image/encoded``.

    The first record of other tools' files names their features. ``lists`` are features that may
    have several values in a record.
    """
    spec = parsing_spec(task=task)
    if not is_ours:
        _, first = first_record(paths)
        # The first record may lack a list that others have.
        found = {name: item for name, item in spec.items() if isinstance(item, tf.io.RaggedFeature)}
        lists = [*lists, *found, *(name for name in first if name.startswith(_OBJECT))]
        spec = found | {name: _optional(values) for name, values in first.items() if values}
    spec |= to_parsing_spec(described)
    spec.pop(features.IMAGE_ENCODED, None)
    for name in lists:
        if name in spec:
            spec[name] = tf.io.RaggedFeature(spec[name].dtype)
    return spec


def _optional(values: Sequence[Any]) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
    """Return the spec of a feature with such values, which may be missing in other records."""
    dtype = _DTYPES[type(values[0])]
    if len(values) > 1:
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenFeature((), dtype, b"" if dtype == tf.string else 0)
