"""Records → parsed features → what a function makes of them: the reading of a task of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from recordgen.features import FeatureSpec
from recordgen.reading.checks import check_one_of
from recordgen.reading.kinds import Kind
from recordgen.reading.options import RecordOptions
from recordgen.reading.parsing import to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import BatchReading, keeping
from recordgen.reading.shards import ShardSet
from recordgen.reading.tuning import AUTO
from recordgen.registry import TASK_CHOICES


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOptions(RecordOptions):
    """How examples of a task of one's own are read; what :class:`RecordOptions` has, and a task.

    Attributes:
        task: what the examples are for; ``auto``: what ``dataset.json`` says.
    """

    task: str = AUTO

    def __post_init__(self) -> None:
        RecordOptions.__post_init__(self)
        check_one_of("task", self.task, TASK_CHOICES)


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

    def reading(shards: ShardSet, plan: ReadPlan, options: RecordOptions) -> BatchReading:
        del shards
        return BatchReading(plan, options, keeping(options.predicate, lambda: spec), parse)

    return Kind(options=ParsedOptions, plan=plan_records, reading=reading)
