"""The options of reading: names, defaults and checks, without TensorFlow."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from recordgen.errors import UsageError
from recordgen.features import TEXT_ENTITIES
from recordgen.options import check_image_size, check_names
from recordgen.reading.checks import (
    check_at_least,
    check_function,
    check_list_of_names,
    check_one_of,
    check_range,
    check_type,
    is_integer,
    is_number,
)
from recordgen.reading.tuning import AUTO, Tuning
from recordgen.registry import TASK_CHOICES
from recordgen.scales import scale_for

DTYPES = ("float32", "float16", "bfloat16", "uint8")
#: Keras's words, and ``multi_hot`` for examples with any number of labels.
LABEL_MODES = (AUTO, "int", "binary", "categorical", "multi_hot", None)
RESIZES = ("stretch", "fit", "center_crop", "random_crop")
ON_ERROR = ("fail", "skip")

#: Keras's names: ``xyxy`` is left, top, right, bottom in pixels; ``rel_``: in shares of the image.
BOX_FORMATS = tuple(
    prefix + order for prefix in ("rel_", "") for order in ("xyxy", "yxyx", "xywh", "center_xywh")
)
BOXES = ("padded", "ragged")

#: The options that only boxes have.
BOX_OPTIONS = ("box_format", "boxes", "max_boxes", "min_visible")

#: ``epochs`` of a dataset that repeats without end.
ENDLESS = "endless"

MEMORY = "memory"
BALANCED = "balanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """Random changes of training images, new for each image; pixels stay in their range.

    All are off by default, because it depends on the data which changes keep a label true: a
    mirrored photo is a photo, but a mirrored digit or traffic sign is not.

    Attributes:
        flip: mirror every other image left to right.
        brightness: add up to this share of the full range to all channels, 0..1.
        contrast: stretch or squeeze around the image's mean, by up to this share, 0..1.
        saturation: move pixels away from or towards their gray, by up to this share, 0..1.
        hue: turn colours by up to this share of the full circle, 0..0.5.
        crop: cut off up to this share of height and of width, and resize the rest, 0..1.
    """

    flip: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    crop: float = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "crop"):
            check_range(name, getattr(self, name), 0, 1)
        check_range("hue", self.hue, 0, 0.5)
        check_type(bool, "True or False", flip=self.flip)
        if self.crop == 1:
            raise UsageError("crop must be below 1: nothing would be left of the image")


#: ``augment="photo"``: what is usual for photos, as options.
PHOTO = "photo"
_PHOTO: Mapping[str, Any] = {
    "resize": "random_crop",
    "augment": Augmentation(flip=True, brightness=0.1, contrast=0.1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """How records of any kind are read, ordered and batched.

    Attributes:
        batch_size: examples per batch.
        shuffle: read the examples in random order, new in each epoch; False: in the order of the
            shards.
        seed: makes order and augmentation reproducible, at some cost in speed, independent of
            ``tf.random.set_seed``; None: different each time.
        epochs: passes over the data; ``endless``: repeat, which needs ``steps_per_epoch`` in
            ``model.fit``.
        drop_remainder: drop a short last batch, so that all shapes are known.
        cache: keep the examples in ``memory``, or in the file at a path (which must not exist, or
            come from the same reading); None: no cache.
        cache_bytes: how many bytes a cache may take; None: half of the free memory, or any number
            in a file. Images are kept decoded as far as they fit, see
            :mod:`recordgen.reading.caching`.
        predicate: takes a dict of one record's features (scalars; without ``image/encoded``) and
            returns whether to read it (bool []).
        shard: (index, count): read only this worker's share.
        map_example: a function of one example, before batching; takes and returns the parts of a
            batch, without the first dimension.
        map_batch: a function of whole batches; takes and returns their parts.
        on_error: what to do with records that cannot be read, such as images that do not decode:
            ``fail``; ``skip`` them, with a warning that counts them and names file and record; or
            a function that is called with the warning's text, or with the source id of an image.
        tuning: threads, buffers and other settings of speed and memory.
    """

    batch_size: int = 32
    shuffle: bool = False
    seed: int | None = None
    epochs: int | str = 1
    drop_remainder: bool = False
    cache: str | os.PathLike[str] | None = None
    cache_bytes: int | None = None
    predicate: Callable[..., Any] | None = None
    shard: tuple[int, int] = (0, 1)
    map_example: Callable[..., Any] | None = None
    map_batch: Callable[..., Any] | None = None
    on_error: str | Callable[[str], None] = "fail"
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        check_at_least(1, batch_size=self.batch_size)
        check_type(bool, "True or False", shuffle=self.shuffle, drop_remainder=self.drop_remainder)
        if self.seed is not None and not is_integer(self.seed):
            raise UsageError(f"seed must be a whole number or None (got {self.seed!r})")
        if self.epochs is None or (isinstance(self.epochs, str) and self.epochs != ENDLESS):
            raise UsageError(
                f"epochs must be a whole number, or {ENDLESS!r} to repeat without end "
                f"(got {self.epochs!r})"
            )
        if self.epochs != ENDLESS:
            check_at_least(1, epochs=self.epochs)
        if self.cache is not None and not (
            isinstance(self.cache, str | os.PathLike) and os.fspath(self.cache)
        ):
            raise UsageError(
                f"cache must be {MEMORY!r}, the path of a file, or None (got {self.cache!r})"
            )
        if self.cache_bytes is not None:
            check_at_least(1, cache_bytes=self.cache_bytes)
            if self.cache is None:
                raise UsageError("cache_bytes needs a cache: give cache='memory', or a file's path")
        if not _are_two_integers(self.shard) or not 0 <= self.shard[0] < self.shard[1]:
            raise UsageError(
                f"shard must be (index, count) with 0 ≤ index < count (got {self.shard!r})"
            )
        check_function(
            predicate=self.predicate, map_example=self.map_example, map_batch=self.map_batch
        )
        if not callable(self.on_error):
            check_one_of("on_error", self.on_error, ON_ERROR)
        check_type(Tuning, "a Tuning(…)", tuning=self.tuning)

    @property
    def passes(self) -> int | None:
        """The number of passes over the data; None if endless."""
        return None if isinstance(self.epochs, str) else self.epochs

    @property
    def has_full_batches(self) -> bool:
        """Whether every batch has ``batch_size`` examples."""
        # Batches continue across the end of an epoch, so an endless dataset has no last batch.
        return self.drop_remainder or self.passes is None

    @property
    def skips(self) -> bool:
        """Whether records that cannot be read are skipped."""
        return self.on_error != "fail"

    @property
    def is_ordered(self) -> bool:
        """Whether elements come in an order that does not depend on timing."""
        if self.tuning.deterministic is not None:
            return self.tuning.deterministic
        return self.seed is not None or not self.shuffle


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions(RecordOptions):
    """How examples of a task are read: the fields of :class:`RecordOptions`, and this.

    Attributes:
        task: a name of :data:`recordgen.tasks.TASKS`; ``auto``: as in ``dataset.json``.
    """

    task: str = AUTO

    def __post_init__(self) -> None:
        RecordOptions.__post_init__(self)
        check_one_of("task", self.task, TASK_CHOICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions(TaskOptions):
    """How labels are read: the fields of :class:`TaskOptions`, and these.

    Attributes:
        label_mode: Keras's words: ``int`` (int64 []), ``categorical`` (float32 [classes]) or, for
            two classes, ``binary`` (float32 [1]); ``multi_hot`` (float32 [classes]) for any number
            of labels; or None: no labels, unlabelled records are read too. ``auto``: ``multi_hot``
            where examples have any number of labels, else ``int``.
        labels: read only examples of these classes, with their numbers of ``labels.txt``. In a
            dataset written with ``--shard-by label`` only the files of these classes are opened.
        vocabulary: number the classes by their position here, not in ``labels.txt``.
        weights: ``balanced``: all classes have the same total weight, the mean weight is 1; or a
            weight for each class; None: no weights.
        extras: further features to return, such as ``image/source_id`` or ``source_id``.
    """

    label_mode: str | None = AUTO
    labels: Collection[str] | None = None
    vocabulary: Sequence[str] | None = None
    weights: str | Mapping[str, float] | None = None
    extras: Sequence[str] = ()

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        check_one_of("label_mode", self.label_mode, LABEL_MODES)
        if isinstance(self.weights, str):
            check_one_of("weights", self.weights, (BALANCED,))
        elif self.weights is not None:
            check_type(Mapping, f"{BALANCED!r} or a dict by class", weights=self.weights)
            for label, weight in self.weights.items():
                if not is_number(weight) or not 0 <= weight < math.inf:
                    raise UsageError(
                        f"weights must be finite and at least 0 (got {weight!r} for {label!r})"
                    )
        for name in ("labels", "vocabulary", "extras"):
            if name == "extras" or getattr(self, name) is not None:
                check_list_of_names(name, getattr(self, name))
        if self.labels is not None and not self.labels:
            raise UsageError("labels must name at least one class; None reads all classes")
        if self.vocabulary is not None and len(set(self.vocabulary)) < max(1, len(self.vocabulary)):
            raise UsageError(
                f"vocabulary must name classes, each once (got {list(self.vocabulary)})"
            )
        if self.label_mode is None and self.weights is not None:
            raise UsageError("weights need labels: choose another label_mode than None")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(LabelOptions):
    """How texts and labels are read: the fields of :class:`LabelOptions`, and this.

    Attributes:
        tokenizer: a function of a batch of texts (string [batch]), such as an adapted
            ``keras.layers.TextVectorization`` or the result of
            :func:`recordgen.text_vectorization`; None: return the texts themselves.
    """

    tokenizer: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        LabelOptions.__post_init__(self)
        check_function(
            "a function of texts, such as an adapted TextVectorization", tokenizer=self.tokenizer
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(LabelOptions):
    """How images and labels are read: the fields of :class:`LabelOptions`, and these.

    Attributes:
        image_size: height and width of the returned images, in pixels; one number for a square.
        dtype: ``float32``, ``float16`` or ``bfloat16`` in [0, 1], or ``uint8`` in 0..255; also
            TensorFlow's and NumPy's types of these names.
        scale: the range of pixels: ``0..1``, ``0..255``, ``-1..1``, or a model in
            ``keras.applications``, for the range of its pretrained weights; ``auto``: by ``dtype``.
        resize: ``stretch`` to the size; ``fit`` into it, with black bars; ``center_crop``: the
            largest window of the size's shape from the middle; ``random_crop``: a window of 8 to
            100 % of the area and of 3:4 to 4:3 of its shape, from anywhere.
        crop_margin: size of the pictures that a cache keeps for ``random_crop``: their largest
            crops are this times ``image_size``, unless a picture is smaller; 1..16.
        augment: random changes, or None. ``photo``: ``resize="random_crop"``, mirrored in half of
            the cases, with light changed by up to 10 %.
        task: a task of images; ``auto`` without a ``dataset.json``: ``image_classification``.
        label_mode: not for boxes.
        labels: for boxes, read only boxes of these classes.
        box_format: the four numbers of a box, one of :data:`BOX_FORMATS`.
        boxes: ``padded`` with -1 to the largest number of boxes in a batch, or ``ragged``.
        max_boxes: keep at most this many boxes of an image, the largest, and pad to this number;
            None: all.
        min_visible: skip a box if cropping leaves a smaller share of its area, 0..1.
    """

    image_size: tuple[int, int] = (224, 224)
    dtype: str = "float32"
    scale: str = AUTO
    resize: str = "stretch"
    crop_margin: float = 1.15
    augment: Augmentation | None = None
    box_format: str = "rel_xyxy"
    boxes: str = "padded"
    max_boxes: int | None = None
    min_visible: float = 0.3

    def __post_init__(self) -> None:
        LabelOptions.__post_init__(self)
        check_image_size(self.image_size)
        check_one_of("dtype", self.dtype, DTYPES)
        scale_for(self.scale, self.dtype)  # checks both
        check_one_of("resize", self.resize, RESIZES)
        check_range("crop_margin", self.crop_margin, 1, 16)
        check_one_of("box_format", self.box_format, BOX_FORMATS)
        check_one_of("boxes", self.boxes, BOXES)
        if self.max_boxes is not None:
            check_at_least(1, max_boxes=self.max_boxes)
        check_range("min_visible", self.min_visible, 0, 1)
        if self.augment is not None:
            expected = f"{PHOTO!r}, an Augmentation(…) or None"
            check_type(Augmentation, expected, augment=self.augment)

    @property
    def draws_pixels(self) -> bool:
        """Whether the decoded image differs from one reading to the next."""
        return self.resize == "random_crop"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions(TaskOptions):
    """How tokens and their tags are read: the fields of :class:`TaskOptions`, and these.

    Attributes:
        tokenizer: a function from tokens (string [batch, n]) to numbers ([batch, n]), such as the
            result of :func:`recordgen.token_lookup`; None: return the tokens themselves.
        buckets: ``auto``: shuffled batches hold texts of similar length. Lengths in tokens: each
            batch is also padded to the first sufficient length, so that there are few shapes.
            None: batches in the order of the records.
        sequence_length: cut and pad all texts to this number of tokens; None: pad to the longest of
            the batch.
        extras: further features to return, such as ``source_id`` or ``text``; lists are ragged.
    """

    tokenizer: Callable[[Any], Any] | None = None
    buckets: str | Sequence[int] | None = None
    sequence_length: int | None = None
    extras: Sequence[str] = ()

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        check_list_of_names("extras", self.extras)
        for name in self.extras:
            check_one_of("extras", name, tuple(TEXT_ENTITIES))
        check_function("a function of tokens", tokenizer=self.tokenizer)
        if self.sequence_length is not None:
            check_at_least(1, sequence_length=self.sequence_length)
        if isinstance(self.buckets, str):
            check_one_of("buckets", self.buckets, (AUTO,))
        elif self.buckets is not None:
            check_type(Sequence, f"{AUTO!r}, lengths in tokens, or None", buckets=self.buckets)
            for length in self.buckets:
                check_at_least(1, buckets=length)
            if sorted(set(self.buckets)) != list(self.buckets) or not self.buckets:
                raise UsageError(f"buckets must be increasing lengths (got {self.buckets!r})")
        if self.map_example is not None and (self.sequence_length is None or self.extras):
            raise UsageError(
                "map_example needs examples of one shape: give sequence_length=…, and no extras"
            )


def decode_options(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return ``kind(**values)`` with normalised numbers, sizes and types.

    Raises:
        UsageError: a name is unknown, or a value is not allowed.
    """
    for name in values:
        if name in {field.name for field in fields(Tuning)}:
            raise UsageError(f"{name} is a field of Tuning; write tuning=Tuning({name}=…)")
    check_names(values, [field.name for field in fields(kind)])
    decoded = {name: _plain(value) for name, value in values.items()}
    if is_integer(decoded.get("image_size")):
        decoded["image_size"] = (decoded["image_size"],) * 2
    if "dtype" in decoded:
        decoded["dtype"] = _dtype_name(decoded["dtype"])
    if decoded.get("augment") == PHOTO:
        decoded |= _PHOTO
    return kind(**decoded)


def _plain(value: Any) -> Any:
    """Convert NumPy's integers to Python's, also in tuples; return other values unchanged."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return int(value) if is_integer(value) else value


def _dtype_name(dtype: Any) -> Any:
    """Return the name of a type: ``tf.float16``, ``np.dtype("float16")`` → ``"float16"``."""
    # tf.DType and np.dtype have a name; NumPy's scalar types are classes.
    return dtype.__name__ if isinstance(dtype, type) else getattr(dtype, "name", dtype)


def _are_two_integers(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(is_integer, value))
