"""Check the first records of other tools' files, before training starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import tensorflow as tf

from recordgen import features
from recordgen.access.named_features import SHOWN, named_features, shown_features
from recordgen.access.parse import parse as parse_views
from recordgen.access.shards import ShardSet
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.reading.detection import BoxTargets, MaskTargets
from recordgen.reading.options import LabelOptions
from recordgen.reading.parsing import parser_for, parsing_spec, to_parsing_spec, with_gaps
from recordgen.reading.plan import ReadPlan, has_boxes
from recordgen.reading.records import Keep, keeping
from recordgen.reading.targets import Targets

# The prefix of features with a value for each box, also in other tools' files.
_OBJECT = "image/object/"

# Records of each file that are tried until one can be read.
_TRIED = 100

_Parse: TypeAlias = Callable[[bytes, str], Mapping[str, Sequence[Any]]]

_DTYPES = {bytes: tf.string, int: tf.int64, float: tf.float32}


def first_records(
    paths: Sequence[str], count: int, parse: _Parse = parse_record
) -> tuple[str, Mapping[str, Sequence[Any]]]:
    """Return the first file with a record that can be read, and the features of its first records.

    ``count`` records are read, see :func:`recordgen.access.named_features.shown_features`, with
    :func:`with_lists` also those of SequenceExamples.

    Raises:
        RecordError: the first records are damaged or not ``tf.train.Example``.
        DataError: all files are empty.
    """
    problems: list[RecordError] = []
    for path in paths:
        if records := list(islice(_readable(path, problems, parse), count)):
            return path, shown_features(records)
    raise next(iter(problems), DataError(f"{paths[0]}: no record in {len(paths)} files"))


def with_lists(record: bytes, where: str) -> dict[str, Any]:
    """Parse a record as ``parse_record``; feature lists are :class:`Steps`."""
    try:
        return parse_views(record)
    except ValueError as exc:
        raise RecordError(f"{where}: {exc}") from exc


def _readable(
    path: str, problems: list[RecordError], parse: _Parse
) -> Iterator[Mapping[str, Sequence[Any]]]:
    """Yield the first records of a file that can be read, and add the others to the problems."""
    for number, record in enumerate(islice(RECORDS.read_around(path), _TRIED)):
        if isinstance(record, RecordError):
            problems.append(record)
            continue
        try:
            yield parse(record, f"{path}: record {number}")
        except RecordError as exc:
            problems.append(exc)


def check_first(paths: Sequence[str], needed: Iterable[str], remedy: str) -> None:
    """Check that the first record has the needed features.

    Raises:
        DataError: there is no record, or it lacks a feature.
        RecordError: the first file is damaged.
    """
    path, first = first_records(paths, 1, with_lists)
    for name in needed:
        if name not in first:
            raise DataError(f"{path}: record 0 has {_no_feature(name, first)}; {remedy}")


def _no_feature(name: str, first: Iterable[str]) -> str:
    return f"no feature {name!r}, only {listed(sorted(first), str) or 'none'}"


def is_ours(shards: ShardSet) -> bool:
    """Return whether shards were converted, not written by another tool or ``recordgen.write``."""
    return shards.dataset is not None and not shards.dataset.features


def check_record(
    shards: ShardSet, plan: ReadPlan, options: LabelOptions, labels: Sequence[str]
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Check that payloads and labels can be read from the files.

    ``labels`` are the features that hold labels. In converted files only extras that the task does
    not have are checked.

    Returns:
        The specs of the extras; and the names of features in other tools' records, see
        :func:`recordgen.access.named_features.named_features`.

    Raises:
        NotUnderstoodError: no feature is known to hold the payload.
        DataError: there is no record, or the first ones lack a label.
        UsageError: an extra is not a feature of the first records, or has a value for each box.
        RecordError: a file is damaged.
    """
    task, extras = plan.task, options.extras
    for name in extras:
        if has_boxes(task) and name.startswith(_OBJECT):
            raise UsageError(
                f"columns: {name!r} has a value for each box, but some boxes may be dropped; read "
                f"it with recordgen.read(…, feature_spec=…)"
            )
    if options.roles and is_ours(shards):
        raise UsageError(f"columns={options.roles!r} is for other tools' records; remove it")
    known = parsing_spec(extras, task=task)
    if is_ours(shards) and len(known) == len(set(extras)):
        return known, {}
    path, first = first_records(plan.files, SHOWN)
    stored = {} if is_ours(shards) else named_features(options.roles, task, first, path)
    # The first record may be an image without objects, which has no features of boxes.
    has_labels = not has_boxes(task) or any(name.startswith(_OBJECT) for name in first)
    for name in labels if has_labels and not is_ours(shards) else ():
        if stored.get(name, name) not in first:
            remedy = _remedy(name, {**{name: name for name in first}, **stored})
            raise DataError(f"{path}: the first records have {_no_feature(name, first)}; {remedy}")
    for name in extras:
        if not first.get(name):
            raise UsageError(f"columns: {path}: the first records have {_no_feature(name, first)}")
        if isinstance(known.get(name), tf.io.RaggedFeature):
            continue
        count = len(first[name])
        dtype = _DTYPES[type(first[name][0])]
        known[name] = tf.io.FixedLenFeature(() if count == 1 else (count,), dtype)
    return known, stored


def _remedy(name: str, there: Mapping[str, str]) -> str:
    """Return what to write if a feature is missing; ``there`` are features by our names."""
    if (text := name.replace("class/label", "class/text")) != name and text in there:
        return f"vocabulary=[…] numbers {there[text]}"
    if name.startswith(_OBJECT):
        return "boxes need all of image/object/bbox/xmin, xmax, ymin and ymax"
    if features.IMAGE_OBJECT_XMIN in there:
        return "task='object_detection' reads boxes"
    return "label_mode=None reads examples without labels"


def keeping_labelled(
    shards: ShardSet,
    plan: ReadPlan,
    options: LabelOptions,
    targets: Targets | BoxTargets | MaskTargets,
    stored: Mapping[str, str],
    described: Mapping[str, FeatureSpec],
) -> Keep | None:
    """Return the function that selects labelled records; None if all are read.

    ``stored`` are the names of :func:`check_record`; ``described`` are further features of the
    records, which a predicate may use.
    """
    numbers = targets.numbers
    lists = (numbers.label, numbers.text) if numbers.classes.mode == "multi_hot" else ()
    spec = partial(_predicate_spec, plan, lists, stored, described, is_ours=is_ours(shards))
    is_wanted = None
    if isinstance(targets, Targets) and numbers.classes.filters:
        is_wanted = partial(targets.is_wanted, stored=stored, parse=parser_for(shards.dataset))
    return keeping(options.predicate, spec, is_wanted, partial(with_gaps, described))


def _predicate_spec(
    plan: ReadPlan,
    lists: Sequence[str],
    stored: Mapping[str, str],
    described: Mapping[str, FeatureSpec],
    *,
    is_ours: bool,
) -> dict[str, tf.io.FixedLenFeature | tf.io.RaggedFeature]:
    """Return the spec of the features that a predicate gets: all but the image.

    For other tools' files, these are the features of the first records. ``lists`` are features that
    may have several values in a record.
    """
    spec = parsing_spec(task=plan.task)
    if not is_ours:
        _, first = first_records(plan.files, SHOWN)
        # The first records may lack a list that other records have.
        found = {name: item for name, item in spec.items() if isinstance(item, tf.io.RaggedFeature)}
        lists = [*lists, *found, *(name for name in first if name.startswith(_OBJECT))]
        spec = found | {name: _optional(values) for name, values in first.items() if values}
    spec |= to_parsing_spec(described)
    spec.pop(stored.get(features.IMAGE_ENCODED, features.IMAGE_ENCODED), None)
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
