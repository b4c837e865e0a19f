"""Records → parsed features → batches by a function: the reading of a user's own task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from recordgen.access.shards import ShardSet
from recordgen.features import FeatureSpec
from recordgen.reading.kinds import Kind
from recordgen.reading.options import TaskOptions
from recordgen.reading.parsing import to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import BatchReading, keeping


def parsed_kind(
    features: Mapping[str, FeatureSpec], to_batch: Callable[[Mapping[str, tf.Tensor]], Any]
) -> Kind:
    """Return the :class:`Kind` of a task, for its ``reading``.

    Args:
        features: the features of the task.
        to_batch: takes a batch of parsed features by name, and returns the batch that the user
            gets: tensors, or tuples and dicts of them.
    """
    spec = to_parsing_spec(features)

    def parse(records: tf.Tensor) -> Any:
        return to_batch(tf.io.parse_example(records, dict(spec)))

    def reading(shards: ShardSet, plan: ReadPlan, options: TaskOptions) -> BatchReading:
        del shards
        return BatchReading(plan, options, keeping(options.predicate, lambda: spec), parse)

    return Kind(options=TaskOptions, plan=plan_records, reading=reading)
