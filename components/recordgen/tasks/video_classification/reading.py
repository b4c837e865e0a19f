"""Records → batches of segments: address of the video, start, end, and label.

This module does not open videos: the user's function chooses and decodes frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

from recordgen import features, storage
from recordgen.access.shards import ShardSet
from recordgen.errors import DataError
from recordgen.reading.classes import ClassPlan, check_mode
from recordgen.reading.decoding import as_written
from recordgen.reading.kinds import Kind
from recordgen.reading.options import AUTO, TaskOptions, check_one_of
from recordgen.reading.parsing import to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_records
from recordgen.reading.records import BatchReading, keeping
from recordgen.reading.targets import encoded_labels, number_table
from recordgen.tasks.pairing import SEGMENT

LABEL_MODES = (AUTO, "int", "categorical", "binary", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoOptions(TaskOptions):
    """How segments of videos are read: the fields of :class:`TaskOptions`, and this.

    Attributes:
        label_mode: ``int`` (int64), ``categorical`` (float32 [classes]), ``binary`` for two classes
            (float32 [1]), or None: no labels, unlabelled segments are read too; ``auto``: ``int``.
    """

    label_mode: Literal["auto", "int", "binary", "categorical"] | None = AUTO

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        check_one_of("label_mode", self.label_mode, LABEL_MODES)

    @property
    def mode(self) -> str | None:
        """The label mode, with ``auto`` resolved."""
        return "int" if self.label_mode == AUTO else self.label_mode


def plan_videos(shards: ShardSet, options: VideoOptions) -> ReadPlan:
    """Plan how segments are read. Raises: as :func:`recordgen.reading.plan.plan_reading`."""
    names = None if shards.dataset is None else shards.dataset.labels
    check_mode(options.mode, names)
    labelled = None
    if shards.dataset is not None and shards.examples is not None:
        labelled = shards.examples - shards.unlabelled
    filters = options.mode is not None and labelled != shards.examples
    if filters and labelled == 0:
        raise DataError(
            f"split {shards.split!r} has no labelled segment ({shards.examples} unlabelled); "
            f"label_mode=None reads them"
        )
    by_text = shards.renumbered
    classes = ClassPlan(options.mode, names, None, by_text, None, filters, shards.labels)
    return plan_records(shards, options, classes)


def read_videos(shards: ShardSet, plan: ReadPlan, options: VideoOptions) -> BatchReading:
    """Prepare a planned reading."""
    dataset = shards.dataset
    folder, classes = (dataset.folder, len(dataset.labels)) if dataset is not None else ("", 0)
    filters = plan.classes is not None and plan.classes.filters
    keep = keeping(options.predicate, lambda: _SPEC, _is_labelled if filters else None)
    table = None if plan.classes is None else number_table(plan.classes)

    @as_written
    def to_segments(records: tf.Tensor) -> Any:
        parsed = tf.io.parse_example(records, _SPEC)
        segments = {name: parsed[feature] for name, feature in SEGMENT.items()}
        segments["uri"] = to_addresses(segments["uri"], folder)
        if options.mode is None:
            return segments
        label = parsed[features.VIDEO_CLASS_LABEL]
        if table is not None:
            label = table.lookup(parsed[features.VIDEO_CLASS_TEXT])
        return segments, encoded_labels(label, options.mode, classes)

    return BatchReading(plan, options, keep, to_segments)


def to_addresses(uris: tf.Tensor, folder: str) -> tf.Tensor:
    """Resolve the uris of videos against a folder.

    ``["v/1.gif", "../2.gif", "gs://b/3.gif"]``, ``/data/lists`` → ``["/data/lists/v/1.gif",
    "/data/2.gif", "gs://b/3.gif"]``; without a folder, they stay as they are.
    """
    if not folder:
        return uris
    folders = tf.fill(tf.shape(uris), storage.join(folder, ""))
    paths = uris
    # Object stores do not know "..": resolve it here, folder by folder.
    for parent in storage.parents(folder):
        folders = tf.where(_begins(paths, r"\.\./"), storage.join(parent, ""), folders)
        paths = tf.strings.regex_replace(paths, r"^\.\./", "", replace_global=False)
    return tf.where(_begins(uris, "/|[A-Za-z][A-Za-z0-9+.-]*://"), uris, folders + paths)


def _begins(texts: tf.Tensor, pattern: str) -> tf.Tensor:
    return tf.strings.regex_full_match(texts, f"(?s)({pattern}).*")


_SPEC = to_parsing_spec(features.VIDEO_CLASSIFICATION)


def _is_labelled(record: tf.Tensor) -> tf.Tensor:
    example = tf.io.parse_single_example(record, _SPEC)
    return example[features.VIDEO_CLASS_LABEL] != features.NO_LABEL


VIDEOS = Kind(options=VideoOptions, plan=plan_videos, reading=read_videos)
