"""Feature names and specs: the contract between writing and reading.

The names are the ones that TensorFlow's own image code uses (Object Detection API,
tf_slim, TF Model Garden), so that other readers find what they look for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

IMAGE_ENCODED = "image/encoded"
IMAGE_FORMAT = "image/format"
IMAGE_HEIGHT = "image/height"
IMAGE_WIDTH = "image/width"
IMAGE_SOURCE_ID = "image/source_id"
IMAGE_SHA256 = "image/key/sha256"
IMAGE_CLASS_TEXT = "image/class/text"
IMAGE_CLASS_LABEL = "image/class/label"

#: What ``image/class/label`` reads as when a record has no label.
NO_LABEL = -1


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """One scalar feature of every record.

    Attributes:
        dtype: ``bytes`` or ``int64``, the two list kinds of ``tf.train.Feature`` in use.
        default: what a reader gets for a record without the feature; None: every record has it.
    """

    dtype: str
    default: bytes | int | None


#: Image classification, single label: every feature is a scalar.
IMAGE_CLASSIFICATION: Mapping[str, FeatureSpec] = {
    IMAGE_ENCODED: FeatureSpec("bytes", None),
    IMAGE_FORMAT: FeatureSpec("bytes", None),
    IMAGE_HEIGHT: FeatureSpec("int64", 0),
    IMAGE_WIDTH: FeatureSpec("int64", 0),
    IMAGE_SOURCE_ID: FeatureSpec("bytes", None),
    IMAGE_SHA256: FeatureSpec("bytes", None),
    IMAGE_CLASS_TEXT: FeatureSpec("bytes", b""),
    IMAGE_CLASS_LABEL: FeatureSpec("int64", NO_LABEL),
}

#: Features whose statistics say something; bytes of pixels and unique keys do not.
STATISTICS_ALLOWLIST = (
    IMAGE_FORMAT,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    IMAGE_CLASS_TEXT,
    IMAGE_CLASS_LABEL,
)
