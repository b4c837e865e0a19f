"""Feature names and specs: the contract between writing and reading.

Features of images have the names that TensorFlow's own image code uses (Object Detection API,
tf_slim, TF Model Garden), so that other readers find them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recordgen.registry import TASKS

IMAGE_ENCODED = "image/encoded"
IMAGE_FORMAT = "image/format"
IMAGE_HEIGHT = "image/height"
IMAGE_WIDTH = "image/width"
IMAGE_CHANNELS = "image/channels"
IMAGE_SOURCE_ID = "image/source_id"
IMAGE_SHA256 = "image/key/sha256"
IMAGE_CLASS_TEXT = "image/class/text"
IMAGE_CLASS_LABEL = "image/class/label"
IMAGE_OBJECT_XMIN = "image/object/bbox/xmin"
IMAGE_OBJECT_XMAX = "image/object/bbox/xmax"
IMAGE_OBJECT_YMIN = "image/object/bbox/ymin"
IMAGE_OBJECT_YMAX = "image/object/bbox/ymax"
IMAGE_OBJECT_TEXT = "image/object/class/text"
IMAGE_OBJECT_LABEL = "image/object/class/label"
IMAGE_OBJECT_IS_CROWD = "image/object/is_crowd"
IMAGE_OBJECT_AREA = "image/object/area"
IMAGE_OBJECT_KEYPOINT_X = "image/object/keypoint/x"
IMAGE_OBJECT_KEYPOINT_Y = "image/object/keypoint/y"
IMAGE_OBJECT_KEYPOINT_VISIBILITY = "image/object/keypoint/visibility"
IMAGE_OBJECT_KEYPOINT_NUM = "image/object/keypoint/num"
IMAGE_OBJECT_POLYGON_X = "image/object/polygon/x"
IMAGE_OBJECT_POLYGON_Y = "image/object/polygon/y"
IMAGE_OBJECT_POLYGON_POINTS = "image/object/polygon/points"
IMAGE_OBJECT_POLYGON_COUNT = "image/object/polygon/count"
IMAGE_OBJECT_MASK_RUNS = "image/object/mask/runs"
IMAGE_OBJECT_MASK_COUNT = "image/object/mask/count"
# "encoded" and "format" as in DeepLab's datasets/build_data.py (TensorFlow Model Garden).
IMAGE_MASK_ENCODED = "image/segmentation/class/encoded"
IMAGE_MASK_FORMAT = "image/segmentation/class/format"
IMAGE_MASK_SOURCE_ID = "image/segmentation/class/source_id"
IMAGE_MASK_TEXT = "image/segmentation/class/text"
IMAGE_MASK_LABEL = "image/segmentation/class/label"
TEXT = "text"
TEXT_SOURCE_ID = "source_id"
CLASS_TEXT = "class/text"
CLASS_LABEL = "class/label"

TOKENS = "tokens"
TAGS_TEXT = "tags/text"
TAGS_LABEL = "tags/label"
ENTITY_START = "entity/start"
ENTITY_END = "entity/end"
ENTITY_TEXT = "entity/class/text"
ENTITY_LABEL = "entity/class/label"

#: What each record of google/tensorflow-recorder has: raw pixels in base64, and their size.
TFRECORDER = ("image", "image_width", "image_height", "image_channels")

VIDEO_URI = "video/uri"
VIDEO_SOURCE_ID = "video/source_id"
VIDEO_SEGMENT_START = "video/segment/start"
VIDEO_SEGMENT_END = "video/segment/end"
VIDEO_CLASS_TEXT = "video/class/text"
VIDEO_CLASS_LABEL = "video/class/label"

#: The features that say which payload a record holds.
SOURCE_IDS = (IMAGE_SOURCE_ID, TEXT_SOURCE_ID, VIDEO_SOURCE_ID)

#: ``image/format`` of an image that is stored as pixels: uint8 [height, width, 3], RGB, in C order.
#: Its record also has ``image/channels``.
RAW = "raw"
RAW_CHANNELS = 3

#: ``image/format`` of a WEBP, which not every TensorFlow decodes.
WEBP = "webp"

#: The corners of boxes.
BBOX = (IMAGE_OBJECT_XMIN, IMAGE_OBJECT_YMIN, IMAGE_OBJECT_XMAX, IMAGE_OBJECT_YMAX)

#: The words that may hold of an object, and the features that say so, 0 or 1 for each box.
FLAGS = ("is_crowd", "difficult", "truncated", "occluded", "group_of")
IS_CROWD, DIFFICULT, TRUNCATED, OCCLUDED, GROUP_OF = FLAGS
OBJECT_FLAGS = tuple(f"image/object/{name}" for name in FLAGS)

#: What boxes may be read with; ``masks`` are drawn from outlines, or stored runs.
AREA, KEYPOINTS, MASKS = "area", "keypoints", "masks"
OBJECT_FIELDS = (*FLAGS, AREA, KEYPOINTS, MASKS)

#: The value of ``image/class/label`` and ``class/label`` for a record without a label.
NO_LABEL = -1

#: The types of the three lists of ``tf.train.Feature``.
LIST_DTYPES = ("bytes", "float32", "int64")

#: Arrays of these types are stored as raw bytes: one value of a bytes_list.
RAW_DTYPES = (
    "bool",
    "float16",
    "float64",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSpec:
    """One feature of every record.

    Attributes:
        dtype: ``bytes``, ``int64`` or ``float32``: the values of a list; or one of
            :data:`RAW_DTYPES`: an array as bytes, little-endian, in C order.
        default: the value for a record without the feature; None if every record has it, or if
            ``shape`` is None and the value is an empty list. NaN for an int64: readers return such
            a feature as float32, so that a missing number differs from every other.
        shape: () for a scalar, the shape of an array or list, or None for a list whose length
            varies.
    """

    dtype: str
    default: bytes | int | float | None = None
    shape: tuple[int, ...] | None = ()

    def __eq__(self, other: object) -> bool:
        # Compare as text: a default of NaN is not equal to itself.
        return isinstance(other, FeatureSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def has_gaps(self) -> bool:
        """Whether this is a whole number that a record may lack."""
        return self.dtype == "int64" and isinstance(self.default, float)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"dtype": "uint8", "shape": [28, 28]}``, and the default if there is one."""
        shape = None if self.shape is None else list(self.shape)
        default = self.default.decode() if isinstance(self.default, bytes) else self.default
        if isinstance(default, float) and not math.isfinite(default):
            default = str(default)  # JSON has no NaN and no infinity
        return {"dtype": self.dtype, "shape": shape} | (
            {} if default is None else {"default": default}
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FeatureSpec:
        """Build a spec from the result of :meth:`to_json`."""
        default, shape = data.get("default"), data["shape"]
        if data["dtype"] in ("float32", "int64") and isinstance(default, str):
            default = float(default)
        return cls(
            data["dtype"],
            default.encode() if isinstance(default, str) else default,
            None if shape is None else tuple(shape),
        )


# Every record has the value; or 0 or "" stands for a missing one; or there is any number of values.
_BYTES, _FLOAT = FeatureSpec("bytes"), FeatureSpec("float32")
_TEXT_OR_EMPTY, _NUMBER_OR_ZERO = FeatureSpec("bytes", b""), FeatureSpec("int64", 0)
_TEXTS, _NUMBERS, _FLOATS = (
    FeatureSpec(kind, shape=None) for kind in ("bytes", "int64", "float32")
)
_CLASS = FeatureSpec("int64", NO_LABEL)

#: The features of every example with an image.
IMAGE: Mapping[str, FeatureSpec] = {
    **dict.fromkeys((IMAGE_ENCODED, IMAGE_FORMAT), _BYTES),
    **dict.fromkeys((IMAGE_HEIGHT, IMAGE_WIDTH), _NUMBER_OR_ZERO),
    **dict.fromkeys((IMAGE_SOURCE_ID, IMAGE_SHA256), _BYTES),
}

#: Image classification, single label: every feature is a scalar.
IMAGE_CLASSIFICATION: Mapping[str, FeatureSpec] = {
    **IMAGE,
    IMAGE_CLASS_TEXT: _TEXT_OR_EMPTY,
    IMAGE_CLASS_LABEL: _CLASS,
}

#: Image classification, any number of labels: lists, sorted by number.
IMAGE_MULTI_LABEL: Mapping[str, FeatureSpec] = {
    **IMAGE,
    IMAGE_CLASS_TEXT: _TEXTS,
    IMAGE_CLASS_LABEL: _NUMBERS,
}

#: Object detection: lists with one value per box, in the same order; coordinates from 0 to 1.
OBJECT_DETECTION: Mapping[str, FeatureSpec] = {
    **IMAGE,
    **dict.fromkeys(
        (IMAGE_OBJECT_XMIN, IMAGE_OBJECT_XMAX, IMAGE_OBJECT_YMIN, IMAGE_OBJECT_YMAX), _FLOATS
    ),
    IMAGE_OBJECT_TEXT: _TEXTS,
    IMAGE_OBJECT_LABEL: _NUMBERS,
}

#: What records with boxes hold only if it is known of one of their boxes; ``objects`` in
#: ``dataset.json`` names those that any record of the dataset has. Flags, areas and counts have one
#: value for each box, keypoints the same number for each.
OBJECTS: Mapping[str, FeatureSpec] = {
    **dict.fromkeys(OBJECT_FLAGS, _NUMBERS),
    **dict.fromkeys((IMAGE_OBJECT_AREA, IMAGE_OBJECT_KEYPOINT_X, IMAGE_OBJECT_KEYPOINT_Y), _FLOATS),
    **dict.fromkeys((IMAGE_OBJECT_KEYPOINT_VISIBILITY, IMAGE_OBJECT_KEYPOINT_NUM), _NUMBERS),
    **dict.fromkeys((IMAGE_OBJECT_POLYGON_X, IMAGE_OBJECT_POLYGON_Y), _FLOATS),
    **dict.fromkeys((IMAGE_OBJECT_POLYGON_POINTS, IMAGE_OBJECT_POLYGON_COUNT), _NUMBERS),
    **dict.fromkeys((IMAGE_OBJECT_MASK_RUNS, IMAGE_OBJECT_MASK_COUNT), _NUMBERS),
}

#: Image segmentation: a mask whose pixels are class numbers, and the classes that have pixels.
IMAGE_SEGMENTATION: Mapping[str, FeatureSpec] = {
    **IMAGE,
    **dict.fromkeys((IMAGE_MASK_ENCODED, IMAGE_MASK_FORMAT, IMAGE_MASK_SOURCE_ID), _TEXT_OR_EMPTY),
    IMAGE_MASK_TEXT: _TEXTS,
    IMAGE_MASK_LABEL: _NUMBERS,
}

# The features of every example with a text.
_TEXT: Mapping[str, FeatureSpec] = dict.fromkeys((TEXT, TEXT_SOURCE_ID), _BYTES)

#: Text classification and sentiment, one label per text: every feature is a scalar.
TEXT_CLASSIFICATION: Mapping[str, FeatureSpec] = {
    **_TEXT,
    CLASS_TEXT: _TEXT_OR_EMPTY,
    CLASS_LABEL: _CLASS,
}

#: Text classification, any number of labels: lists, sorted by number.
TEXT_MULTI_LABEL: Mapping[str, FeatureSpec] = {**_TEXT, CLASS_TEXT: _TEXTS, CLASS_LABEL: _NUMBERS}

#: Entities in texts: lists with one value per token, and lists with one value per entity, by place.
TEXT_ENTITIES: Mapping[str, FeatureSpec] = {
    **_TEXT,
    **dict.fromkeys((TOKENS, TAGS_TEXT), _TEXTS),
    **dict.fromkeys((TAGS_LABEL, ENTITY_START, ENTITY_END), _NUMBERS),
    ENTITY_TEXT: _TEXTS,
    ENTITY_LABEL: _NUMBERS,
}

#: Video classification: one segment per example, in seconds; infinity is the end of the video.
VIDEO_CLASSIFICATION: Mapping[str, FeatureSpec] = {
    **dict.fromkeys((VIDEO_URI, VIDEO_SOURCE_ID), _BYTES),
    **dict.fromkeys((VIDEO_SEGMENT_START, VIDEO_SEGMENT_END), _FLOAT),
    VIDEO_CLASS_TEXT: _TEXT_OR_EMPTY,
    VIDEO_CLASS_LABEL: _CLASS,
}

#: Features with useful statistics: not pixel bytes and unique keys.
STATISTICS_ALLOWLIST = (
    *(IMAGE_FORMAT, IMAGE_HEIGHT, IMAGE_WIDTH),
    *(IMAGE_CLASS_TEXT, IMAGE_CLASS_LABEL, CLASS_TEXT, CLASS_LABEL),
    *(*BBOX, IMAGE_OBJECT_TEXT, IMAGE_OBJECT_LABEL),
    *(IMAGE_MASK_TEXT, IMAGE_MASK_LABEL),
    *(TOKENS, TAGS_TEXT, ENTITY_TEXT, ENTITY_LABEL),
    # Not the ends of segments: with an infinite end there is no mean.
    *(VIDEO_SEGMENT_START, VIDEO_CLASS_TEXT, VIDEO_CLASS_LABEL),
)

# Endings of features with pixel bytes and unique keys, for images in columns.
_WITHOUT_STATISTICS = ("/encoded", "/source_id", "/sha256")


def statistics_features(task: str, declared: Iterable[str] = ()) -> list[str] | None:
    """Return the features of a task with useful statistics; None for all features.

    Args:
        task: a name of :data:`recordgen.tasks.TASKS`.
        declared: all features of a table, as far as they are known.
    """
    if task not in TASKS or TASKS[task].features:
        return list(STATISTICS_ALLOWLIST)
    return [name for name in declared if not name.endswith(_WITHOUT_STATISTICS)] or None
