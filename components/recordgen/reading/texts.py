"""Records → batches of texts and labels: shuffle, repeat, batch, parse, tokenize."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import UsageError
from recordgen.reading.foreign import check_record, is_ours, keeping_labelled
from recordgen.reading.options import TextOptions
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import BatchReading, batches, finished
from recordgen.reading.shards import ShardSet
from recordgen.reading.targets import Targets


class TextReading(BatchReading):
    """A reading of labelled texts."""

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order.

        Raises:
            UsageError: ``map_example`` needs one shape, but texts differ in their number of ids.
        """
        texts = batches(self.plan, self.options, self.keep, self.to_batch)
        first = next(iter(tf.nest.flatten(texts.element_spec)))
        if self.options.map_example is not None and None in first.shape[1:].as_list():
            raise UsageError(
                f"map_example needs examples of one shape (the tokenizer gives {first.shape}): "
                f"set the layer's output_sequence_length, or use map_batch"
            )
        return finished(texts, self.plan, self.options)


def read_texts(shards: ShardSet, plan: ReadPlan, options: TextOptions) -> TextReading:
    """Prepare a planned reading; check the first record of other tools' files.

    Raises: as :class:`recordgen.reading.images.ImageReading`.
    """
    if plan.classes is None:
        raise TypeError("a plan for texts has classes")
    targets = Targets(plan.classes, options, text=features.CLASS_TEXT, label=features.CLASS_LABEL)
    ours = is_ours(shards, features.TEXT)
    extras = check_record(plan.files, plan.task, tuple(targets.spec), options.extras, is_ours=ours)

    def to_batch(records: tf.Tensor) -> Any:
        wanted = {features.TEXT: tf.io.FixedLenFeature((), tf.string), **targets.spec}
        parsed = tf.io.parse_example(records, wanted)
        texts = parsed[features.TEXT]
        if options.tokenizer is not None:
            texts = options.tokenizer(texts)
            if tf.is_tensor(texts) and not isinstance(texts, tf.RaggedTensor | tf.SparseTensor):
                texts = tf.ensure_shape(texts, (records.shape[0], *texts.shape[1:]))
        parts = [texts]
        if targets.mode is not None:
            parts += targets.parts(targets.labels(parsed), records.shape[0])
        if extras:
            found = tf.io.parse_example(records, dict(extras))
            parts.append({name: found[name] for name in extras})
        return parts[0] if len(parts) == 1 else tuple(parts)

    keep = keeping_labelled(plan, options, targets, {}, is_ours=ours)
    return TextReading(plan, options, keep, to_batch)
