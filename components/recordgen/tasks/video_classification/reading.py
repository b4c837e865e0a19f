"""Records → batches of segments: address of the video, start, end, and label.

This module does not open videos: the user's function chooses and decodes frames.
"""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from recordgen import features, storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.reading.kinds import labelled_kind
from recordgen.tasks.pairing import SEGMENT


def _segments(parsed: Mapping[str, tf.Tensor], dataset: Dataset | None) -> dict[str, tf.Tensor]:
    segments = {name: parsed[feature] for name, feature in SEGMENT.items()}
    segments["uri"] = to_addresses(segments["uri"], dataset.folder if dataset else "")
    return segments


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


VIDEOS = labelled_kind(
    {name: features.VIDEO_CLASSIFICATION[name] for name in SEGMENT.values()},
    _segments,
    text=features.VIDEO_CLASS_TEXT,
    label=features.VIDEO_CLASS_LABEL,
)
