"""Records → batches of texts and labels: shuffle, repeat, batch, parse."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.access.shards import ShardSet
from recordgen.reading.foreign import check_record, keeping_labelled
from recordgen.reading.kinds import Kind
from recordgen.reading.options import LabelOptions
from recordgen.reading.parsing import parse_named
from recordgen.reading.plan import ReadPlan, plan_texts
from recordgen.reading.records import BatchReading
from recordgen.reading.targets import Targets


def read_texts(shards: ShardSet, plan: ReadPlan, options: LabelOptions) -> BatchReading:
    """Prepare a planned reading; check the first record of other tools' files.

    Raises: as :class:`recordgen.reading.images.ImageReading`.
    """
    if plan.classes is None:
        raise TypeError("a plan for texts has classes")
    targets = Targets(plan.classes, options, text=features.CLASS_TEXT, label=features.CLASS_LABEL)
    extras, stored = check_record(shards, plan, options, tuple(targets.spec))

    def to_batch(records: tf.Tensor) -> Any:
        wanted = {features.TEXT: tf.io.FixedLenFeature((), tf.string), **targets.spec}
        parsed = parse_named(records, wanted, stored)
        parts = [parsed[features.TEXT]]
        if targets.mode is not None:
            parts += targets.parts(targets.labels(parsed), records.shape[0])
        if extras:
            found = tf.io.parse_example(records, dict(extras))
            parts.append({name: found[name] for name in extras})
        return parts[0] if len(parts) == 1 else tuple(parts)

    keep = keeping_labelled(shards, plan, options, targets, stored, {})
    return BatchReading(plan, options, keep, to_batch)


TEXTS = Kind(options=LabelOptions, plan=plan_texts, reading=read_texts)
