"""The stages that turn records into batches of texts and labels.

records ─shuffle─▶ repeat ─▶ batch ─▶ parse, tokenize
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError, UsageError
from recordgen.reading.foreign import check_record, predicate_spec
from recordgen.reading.options import TextOptions
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import Keep, batches, finished, keeping
from recordgen.reading.shards import ShardSet
from recordgen.reading.targets import Targets


@dataclass(frozen=True)
class TextReading:
    """The stages of one reading of labelled texts.

    Attributes:
        plan: what was decided.
        options: what was asked for.
        targets: how labels are read.
        extras: specs of the further features.
        is_ours: the records were converted here.
    """

    plan: ReadPlan
    options: TextOptions
    targets: Targets
    extras: Mapping[str, Any]
    is_ours: bool

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: TextOptions) -> TextReading:
        """Prepare a planned reading; looks at a record of what others wrote.

        Raises:
            UsageError: an option does not go with the data.
            DataError: the records are not of texts, or a feature is missing.
            RecordError: the first file is damaged.
        """
        if plan.classes is None:
            raise TypeError("a plan for texts has classes")
        targets = Targets.of(
            plan.classes, options, text=features.CLASS_TEXT, label=features.CLASS_LABEL
        )
        written = shards.dataset.features if shards.dataset is not None else {}
        is_ours = shards.dataset is not None and not written
        if written and features.TEXT not in written:
            raise DataError(
                f"{shards.files[0].path}: written with recordgen.write, without a feature "
                f"{features.TEXT!r}; use recordgen.read"
            )
        extras = check_record(
            plan.files, plan.task, tuple(targets.spec), options.extras, is_ours=is_ours
        )
        return cls(plan, options, targets, extras, is_ours)

    @property
    def keep(self) -> Keep | None:
        """What says (bool []) whether a serialised record (string []) is wanted; None: all are."""
        classes = self.targets.numbers.classes
        is_wanted = self.targets.is_wanted if classes.filters else None
        is_multi = classes.mode == "multi_hot"
        lists = (features.CLASS_LABEL, features.CLASS_TEXT) if is_multi else ()
        files, task = self.plan.files, self.plan.task
        spec = partial(predicate_spec, files, task, lists, {}, is_ours=self.is_ours)
        return keeping(self.options.predicate, spec, is_wanted)

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order.

        Raises:
            UsageError: single examples are asked for, and their ids differ in number.
        """
        plan, options = self.plan, self.options
        texts = batches(plan, options, self.keep, self._elements)
        first = next(iter(tf.nest.flatten(texts.element_spec)))
        if options.map_example is not None and None in first.shape[1:].as_list():
            raise UsageError(
                f"map_example needs examples of one shape (the tokenizer gives {first.shape}): "
                f"give the layer output_sequence_length, or use map_batch"
            )
        return finished(texts, plan, options)

    def _elements(self, records: tf.Tensor) -> Any:
        """Turn records (string [batch]) into what is handed out."""
        wanted = {features.TEXT: tf.io.FixedLenFeature((), tf.string), **self.targets.spec}
        parsed = tf.io.parse_example(records, wanted)
        texts = parsed[features.TEXT]
        if self.options.tokenizer is not None:
            texts = self.options.tokenizer(texts)
            if tf.is_tensor(texts) and not isinstance(texts, tf.RaggedTensor | tf.SparseTensor):
                texts = tf.ensure_shape(texts, (records.shape[0], *texts.shape[1:]))
        parts = [texts]
        if self.targets.mode is not None:
            label = self.targets.labels(parsed)
            label = tf.ensure_shape(label, (records.shape[0], *label.shape[1:]))
            parts.append(label)
            if self.targets.weights:
                parts.append(self.targets.weights_of(label))
        if self.extras:
            extras = tf.io.parse_example(records, dict(self.extras))
            parts.append({name: extras[name] for name in self.extras})
        return parts[0] if len(parts) == 1 else tuple(parts)
