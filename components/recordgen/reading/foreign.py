"""Check the first record of other tools' files, before training starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.access.shards import ShardSet
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.reading.class_masks import MaskTargets
from recordgen.reading.classes import has_boxes
from recordgen.reading.detection import BoxTargets
from recordgen.reading.options import LabelOptions
from recordgen.reading.parsing import parsing_spec, to_parsing_spec, with_gaps
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import Keep, keeping
from recordgen.reading.targets import Targets
from recordgen.registry import TASKS

# The prefix of features with a value for each box, also in other tools' files.
_OBJECT = "image/object/"

# Records of each file that are tried until one can be read.
_TRIED = 100

_DTYPES = {bytes: tf.string, int: tf.int64, float: tf.float32}


def first_record(paths: Sequence[str]) -> tuple[str, Mapping[str, list[Any]]]:
    """Return the file of the first record that can be read, and its features as lists by name.

    Raises:
        RecordError: the first records are damaged or not ``tf.train.Example``.
        DataError: all files are empty.
    """
    problem: RecordError | None = None
    for path in paths:
        for number, record in enumerate(islice(RECORDS.read_around(path), _TRIED)):
            if isinstance(record, RecordError):
                problem = problem or record
                continue
            try:
                return path, parse_example(record)
            except ValueError as exc:
                problem = problem or RecordError(f"{path}: record {number}: {exc}")
    raise problem or DataError(f"{paths[0]}: no record in {len(paths)} files")


def check_first(paths: Sequence[str], needed: Iterable[str], remedy: str) -> None:
    """Check that the first record has the needed features.

    Raises:
        DataError: there is no record, or it lacks a feature.
        RecordError: the first file is damaged.
    """
    path, first = first_record(paths)
    for name in needed:
        if name not in first:
            raise _missing(path, first, name, remedy)


def _missing(path: str, first: Iterable[str], name: str, remedy: str) -> DataError:
    there = listed(sorted(first), str) or "none"
    return DataError(f"{path}: record 0 has no feature {name!r}, only {there}; {remedy}")


def is_ours(shards: ShardSet, payload: str) -> bool:
    """Return whether shards were converted, not written by another tool or ``recordgen.write``.

    Raises: DataError: ``recordgen.write`` wrote them, without the feature that holds the payload.
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

    ``labels`` are the features that hold labels. In converted files (``is_ours``) only extras that
    the task does not have are checked.

    Raises:
        DataError: there is no record, or the first lacks a feature.
        UsageError: an extra is not a feature of the first record, or has a value for each box.
        RecordError: a file is damaged.
    """
    for name in extras:
        if has_boxes(task) and name.startswith(_OBJECT):
            raise UsageError(
                f"columns: {name!r} has a value for each box, but some boxes may be dropped; read "
                f"it with recordgen.read(…, feature_spec=…)"
            )
    known = parsing_spec(extras, task=task)
    if is_ours and len(known) == len(set(extras)):
        return known
    path, first = first_record(paths)
    there = listed(sorted(first), str) or "none"
    # The first record may be an image without objects, which has no features of boxes.
    has_labels = not has_boxes(task) or any(name.startswith(_OBJECT) for name in first)
    payload = features.TEXT if TASKS[task].kind == "text" else features.IMAGE_ENCODED
    for name in (payload, *(labels if has_labels else ())):
        if name not in first and not is_ours:
            raise _missing(path, first, name, _remedy(name, first))
    for name in extras:
        if not first.get(name):
            raise UsageError(f"columns: {path}: record 0 has no feature {name!r}, only {there}")
        if isinstance(known.get(name), tf.io.RaggedFeature):
            continue
        count = len(first[name])
        dtype = _DTYPES[type(first[name][0])]
        known[name] = tf.io.FixedLenFeature(() if count == 1 else (count,), dtype)
    return known


def _remedy(name: str, there: Iterable[str]) -> str:
    if name in (features.IMAGE_ENCODED, features.TEXT):
        return "recordgen.read(files, feature_spec=…) reads any features"
    if name == features.IMAGE_OBJECT_LABEL:
        return f"vocabulary=[…] numbers {features.IMAGE_OBJECT_TEXT}"
    if name.startswith(_OBJECT):
        return "boxes need all of image/object/bbox/xmin, xmax, ymin and ymax"
    if features.IMAGE_OBJECT_XMIN in there:
        return "task='object_detection' reads boxes"
    return "label_mode=None reads examples without labels"


def keeping_labelled(
    plan: ReadPlan,
    options: LabelOptions,
    targets: Targets | BoxTargets | MaskTargets,
    described: Mapping[str, FeatureSpec],
    *,
    is_ours: bool,
) -> Keep | None:
    """Return the function that selects labelled records; None if all are read.

    ``described`` are further features of the records, which a predicate may use.
    """
    numbers = targets.numbers
    lists = (numbers.label, numbers.text) if numbers.classes.mode == "multi_hot" else ()
    spec = partial(_predicate_spec, plan.files, plan.task, lists, described, is_ours=is_ours)
    is_wanted = None
    if isinstance(targets, Targets) and numbers.classes.filters:
        is_wanted = targets.is_wanted
    return keeping(options.predicate, spec, is_wanted, partial(with_gaps, described))


def _predicate_spec(
    paths: Sequence[str],
    task: str,
    lists: Sequence[str],
    described: Mapping[str, FeatureSpec],
    *,
    is_ours: bool,
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of the features that a predicate gets: all but ``image/encoded``.

    For other tools' files, these are the features of the first record. ``lists`` are features that
    may have several values in a record.
    """
    spec = parsing_spec(task=task)
    if not is_ours:
        _, first = first_record(paths)
        # The first record may lack a list that other records have.
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
    """Return the spec of a feature with these values, which may be missing in other records."""
    dtype = _DTYPES[type(values[0])]
    if len(values) > 1:
        return tf.io.RaggedFeature(dtype)
    return tf.io.FixedLenFeature((), dtype, b"" if dtype == tf.string else 0)
