"""Records → batches of segments: where a video lies, from when to when, and its label.

Nothing here opens a video. Which frames of it a model sees, and by which library they are decoded,
is for ``map_example``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import DataError, UsageError
from recordgen.reading.classes import ClassPlan
from recordgen.reading.options import AUTO, RecordOptions
from recordgen.reading.parsing import to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import Keep, cached, finished, keeping, ordered, read_records
from recordgen.reading.shards import ShardSet
from recordgen.tasks import VideoClassification

LABEL_MODES = (AUTO, "index", "one_hot", "none")

# What is handed out of each segment, by the feature that holds it.
_SEGMENT = {
    "uri": features.VIDEO_URI,
    "start": features.VIDEO_SEGMENT_START,
    "end": features.VIDEO_SEGMENT_END,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoOptions(RecordOptions):
    """How segments of videos are read; what :class:`RecordOptions` has, and the following.

    Attributes:
        task: ``video_classification``, which records of others do not say of themselves; ``auto``:
            what ``dataset.json`` says.
        label_mode: ``index`` (int64), ``one_hot`` (float32 [classes]), or ``none``: segments
            without a label are read too, and there are no labels; ``auto``: ``index``.
    """

    task: str = AUTO
    label_mode: str = AUTO

    def __post_init__(self) -> None:
        RecordOptions.__post_init__(self)
        for name, allowed in (
            ("task", (AUTO, VideoClassification.name)),
            ("label_mode", LABEL_MODES),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} must be one of {', '.join(allowed)} (got {getattr(self, name)!r})"
                )

    @property
    def mode(self) -> str:
        """What labels become."""
        return "index" if self.label_mode == AUTO else self.label_mode


def plan_videos(shards: ShardSet, options: VideoOptions) -> ReadPlan:
    """Plan how segments are read.

    Raises:
        UsageError: an option does not go with the data.
        DataError: nothing is left to read.
    """
    plan = plan_records(shards, options)
    names = None if shards.dataset is None else shards.dataset.labels
    if options.mode == "one_hot" and names is None:
        raise UsageError(
            "label_mode='one_hot' needs the number of classes, and there is no dataset.json that "
            "says it"
        )
    labelled = None
    if shards.dataset is not None and shards.examples is not None:
        labelled = shards.examples - shards.unlabelled
    filters = options.mode != "none" and labelled != shards.examples
    if filters and labelled == 0:
        raise DataError(
            f"split {shards.split!r} has no labelled segment ({shards.examples} unlabelled); "
            f"label_mode='none' reads those"
        )
    classes = ClassPlan(options.mode, names, None, False, None, filters, shards.labels)
    if not filters:
        return replace(plan, classes=classes)
    is_all = options.shard[1] == 1 and options.predicate is None
    return replace(plan, classes=classes, examples=labelled if is_all else None)


@dataclass(frozen=True)
class VideoReading:
    """The stages of one reading.

    Attributes:
        plan: what was decided.
        options: what was asked for.
        classes: the number of classes, for ``one_hot``.
    """

    plan: ReadPlan
    options: VideoOptions
    classes: int

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: VideoOptions) -> VideoReading:
        """Prepare a planned reading."""
        return cls(plan, options, len(shards.dataset.labels) if shards.dataset is not None else 0)

    @property
    def keep(self) -> Keep | None:
        """What says (bool []) whether a serialised record (string []) is wanted; None: all are."""
        filters = self.plan.classes is not None and self.plan.classes.filters
        return keeping(self.options.predicate, lambda: _SPEC, _is_labelled if filters else None)

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        plan, options = self.plan, self.options
        records = ordered(
            cached(read_records(plan, options, self.keep), plan, options), plan, options
        )
        # Batch before parse: one vectorised call for all records.
        records = records.batch(options.batch_size, drop_remainder=options.drop_remainder)
        segments = records.map(
            self._segments,
            num_parallel_calls=options.num_parallel_calls,
            deterministic=options.is_ordered,
        )
        return finished(segments, plan, options)

    def _segments(self, records: tf.Tensor) -> Any:
        """Turn records (string [batch]) into what is handed out."""
        parsed = tf.io.parse_example(records, _SPEC)
        segments = {name: parsed[feature] for name, feature in _SEGMENT.items()}
        label = parsed[features.VIDEO_CLASS_LABEL]
        if self.options.mode == "none":
            return segments
        if self.options.mode == "one_hot":
            label = tf.one_hot(label, self.classes)
        return segments, label


_SPEC = to_parsing_spec(features.VIDEO_CLASSIFICATION)


def _is_labelled(record: tf.Tensor) -> tf.Tensor:
    example = tf.io.parse_single_example(record, _SPEC)
    return example[features.VIDEO_CLASS_LABEL] != features.NO_LABEL
