"""Records → parsed features → what a function makes of them: the reading of a task of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from recordgen.features import FeatureSpec
from recordgen.reading.kinds import Kind
from recordgen.reading.options import TaskOptions
from recordgen.reading.parsing import to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import BatchReading, keeping
from recordgen.reading.shards import ShardSet


def parsed_kind(
    features: Mapping[str, FeatureSpec], to_batch: Callable[[Mapping[str, tf.Tensor]], Any]
) -> Kind:
    """Return how examples of a task are read, for its ``reading``.

    Args:
        features: those of the task.
        to_batch: takes a batch of them by name, and returns what is handed out: tensors, or tuples
            and dicts of them.
    """
    spec = to_parsing_spec(features)

    def parse(records: tf.Tensor) -> Any:
        return to_batch(tf.io.parse_example(records, dict(spec)))

    def reading(shards: ShardSet, plan: ReadPlan, options: TaskOptions) -> BatchReading:
        del shards
        return BatchReading(plan, options, keeping(options.predicate, lambda: spec), parse)

    return Kind(options=TaskOptions, plan=plan_records, reading=reading)
