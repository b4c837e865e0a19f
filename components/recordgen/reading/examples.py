"""``read``: the pipeline for any ``tf.train.Example``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen.access.named_features import SHOWN
from recordgen.access.parse import Steps
from recordgen.access.shards import Place, ShardSet, find_shards
from recordgen.core.dataset import splits
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed, takes
from recordgen.reading.decoding import as_written
from recordgen.reading.foreign import check_first, first_records, with_lists
from recordgen.reading.keywords import RecordKeywords
from recordgen.reading.naming import Search, searchable
from recordgen.reading.options import RecordOptions, decode_options
from recordgen.reading.parsing import DTYPES, as_floats, parsed_as, parser_for, with_gaps
from recordgen.reading.plan import plan_records
from recordgen.reading.records import batches, check_lengths, finished
from recordgen.registry import TASKS

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Single examples are also parsed in batches: one vectorised call for all of them.
_PARSED_AT_ONCE = 64

# Types that decode_raw does not know, and types of the same width that it knows.
_DECODED_AS = {tf.bool: tf.uint8, tf.uint32: tf.int32, tf.uint64: tf.int64}

_PADDED = tf.io.FixedLenSequenceFeature
_SPECS = (
    *(tf.TensorSpec, tf.io.FixedLenFeature, _PADDED),
    *(tf.io.RaggedFeature, tf.io.SparseFeature, tf.io.VarLenFeature),
)


@takes(RecordKeywords, RecordOptions)
def read(
    source: Place,
    *,
    feature_spec: Mapping[str, Any] | None = None,
    split: str = splits.TRAIN,
    batch_size: int | None = None,
    **options: Unpack[RecordKeywords],
) -> tf.data.Dataset:
    """Return examples of any kind as dicts of tensors: one pass in the order of the shards.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or file patterns.
        feature_spec: the features to read, by name, as for ``tf.io.parse_example``
            (``tf.io.FixedLenFeature``, ``VarLenFeature``, ``RaggedFeature``, …); or a
            ``tf.TensorSpec`` with the shape of one example: string, int64 and float32 are stored as
            such, other dtypes (uint8, float64, …) as raw little-endian bytes. None: all features,
            as described in ``dataset.json``.
        split: the split to read; file patterns name it themselves.
        batch_size: examples per batch; None: single examples.
        **options: the fields of :class:`recordgen.reading.options.RecordOptions`, such as
            ``shuffle=True``, ``epochs="endless"`` or ``cache="memory"``.

    Returns:
        Dicts of tensors by feature name, each [batch, …]; without ``batch_size`` […].

    Raises:
        UsageError: an option is wrong, or ``feature_spec`` is missing.
        SourceError: there is no dataset, or no file matches.
        DataError: there is nothing to read, or the first record lacks a feature.
        RecordError: a file is truncated or damaged.
    """
    return read_features(find_shards(source, split), feature_spec, batch_size, options)


def read_features(
    shards: ShardSet,
    feature_spec: Mapping[str, Any] | None,
    batch_size: int | None,
    options: Mapping[str, Any],
) -> tf.data.Dataset:
    """Return the examples of shards; arguments and errors are as in :func:`read`."""
    single = batch_size is None
    specs = _specs(shards, feature_spec)
    # Lists would be padded to the longest one that is parsed with them, and TensorFlow crashes if
    # it takes arrays without elements out of a batch.
    is_alone = single and any(isinstance(it, _PADDED) or _is_empty(it) for it in specs.values())
    at_once = 1 if is_alone else _PARSED_AT_ONCE
    given = {**options, "batch_size": at_once if single else batch_size}
    decoded: RecordOptions = decode_options(RecordOptions, given)
    if single and decoded.tuning.drop_remainder:
        raise UsageError("drop_remainder needs a batch_size")
    plan = plan_records(shards, decoded)
    check_lengths(plan, shards)
    floats = _with_gaps(shards) if feature_spec is None else ()
    stored = {name: _stored(spec) for name, spec in specs.items()}
    if any(name.endswith("/label") for name in specs):
        shards.check_numbers()
    lists = _lists(plan.files, stored) if shards.dataset is None else ()
    if feature_spec is not None:
        needed = [
            name
            for name, item in stored.items()
            if isinstance(item, tf.io.FixedLenFeature) and item.default_value is None
        ]
        remedy = "give it a default_value if others have it"
        check_first(plan.files, needed, remedy)

    @as_written
    def parse(records: tf.Tensor) -> dict[str, Any]:
        parsed = as_floats(parser_for(shards.dataset, lists)(records, stored), floats)
        return {name: _restored(parsed[name], specs[name]) for name in stored}

    @as_written
    def parse_first(records: tf.Tensor) -> dict[str, Any]:
        return {name: _first(value) for name, value in parse(records).items()}

    keep = None
    if (predicate := decoded.predicate) is not None:

        def keep(record: tf.Tensor) -> tf.Tensor:
            return predicate(parse_first(record[None]))

    to_batch, is_batched = parse_first if is_alone else parse, is_alone or not single
    made = finished(batches(plan, decoded, keep, to_batch), plan, decoded, batched=is_batched)
    return searchable(made, Search(plan.files, lambda: (keep, parse)))


def _lists(files: Sequence[str], stored: Mapping[str, Any]) -> Collection[str]:
    """Return the features to read that are feature lists of SequenceExamples.

    Raises: UsageError: a list has a spec of single values, or the first records have other lists.
    """
    path, first = first_records(files, SHOWN, with_lists)
    lists = [name for name, values in first.items() if isinstance(values, Steps)]
    for name, spec in stored.items():
        is_fixed = isinstance(spec, tf.io.FixedLenFeature)
        if lists and (name in lists if is_fixed else name not in first):
            raise UsageError(
                f"feature_spec: {name!r} is {'a feature list' if is_fixed else 'missing'} in the "
                f"first SequenceExamples of {path}, which have {listed(sorted(first), str)}; lists "
                f"are read as tf.io.RaggedFeature, VarLenFeature or FixedLenSequenceFeature"
            )
    return [name for name in stored if name in lists]


def _with_gaps(shards: ShardSet) -> Collection[str]:
    """Return the whole numbers that become floats. Raises: UsageError: some would lose digits."""
    if shards.dataset is None:
        return ()
    found = with_gaps(shards.dataset.features)
    if lost := sorted(found.intersection(shards.dataset.inexact)):
        raise UsageError(
            f"feature {lost[0]!r} is missing in some examples and has whole numbers that float32 "
            f"cannot hold, so it is not read as float with NaN; give feature_spec={{…}} with a "
            f"default_value for it"
        )
    return found


def _stored(spec: Any) -> Any:
    """Return the spec of a feature for ``tf.io.parse_example``; arrays are read as raw bytes."""
    is_list = spec.dtype in DTYPES.values()
    if _is_empty(spec):
        return tf.io.RaggedFeature(spec.dtype if is_list else tf.string)
    if not isinstance(spec, tf.TensorSpec):
        return spec
    if is_list:
        return tf.io.FixedLenFeature(spec.shape.as_list(), spec.dtype)
    return tf.io.FixedLenFeature((), tf.string)


def _is_empty(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec | tf.io.FixedLenFeature) and 0 in tuple(spec.shape)


def _restored(parsed: Any, spec: Any) -> Any:
    """Turn raw bytes back into arrays; return other values unchanged."""
    if _is_empty(spec):
        return tf.zeros([parsed.nrows(), *spec.shape], spec.dtype)
    if not isinstance(spec, tf.TensorSpec) or spec.dtype in DTYPES.values():
        return parsed
    values = tf.io.decode_raw(parsed, _DECODED_AS.get(spec.dtype, spec.dtype))
    values = tf.reshape(values, [tf.shape(parsed)[0], *spec.shape.as_list()])
    return tf.cast(values, spec.dtype)  # same width: negative numbers wrap to unsigned ones


def _first(batch: Any) -> Any:
    if isinstance(batch, tf.SparseTensor):
        return tf.sparse.reshape(batch, batch.dense_shape[1:])
    return batch[0]


def _specs(shards: ShardSet, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the spec of each feature, in the form of ``feature_spec`` of :func:`read`."""
    if given is not None:
        if not given:
            raise UsageError("feature_spec must have at least one feature")
        return {name: _checked(name, spec) for name, spec in given.items()}
    if shards.dataset is None:
        path, first = first_records([it.path for it in shards.files], SHOWN, with_lists)
        raise UsageError(
            f"{path}: no dataset.json lists its features; give feature_spec={{…}} "
            f"(its first records have: {listed(sorted(first), str) or 'none'})"
        )
    known = shards.dataset.features or TASKS[shards.dataset.task].features
    return {name: _from_ours(spec) for name, spec in known.items()}


def _checked(name: str, spec: Any) -> Any:
    if not isinstance(spec, _SPECS):
        raise UsageError(
            f"feature_spec: {name!r} must be a tf.TensorSpec or a spec of tf.io.parse_example, "
            f"such as tf.io.FixedLenFeature (got {spec!r})"
        )
    if isinstance(spec, tf.TensorSpec) and not spec.shape.is_fully_defined():
        raise UsageError(
            f"feature_spec: {name!r} must have a shape without None (got {spec.shape}); a list "
            f"whose length varies is a tf.io.RaggedFeature"
        )
    return spec


def _from_ours(spec: FeatureSpec) -> Any:
    if spec.shape is None:
        return tf.io.RaggedFeature(DTYPES[spec.dtype])
    if spec.dtype in DTYPES:
        return parsed_as(spec)
    return tf.TensorSpec(spec.shape, tf.dtypes.as_dtype(spec.dtype))
