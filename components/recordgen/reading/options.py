"""How to read: every knob, its default and what it means. No TensorFlow is needed to say it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from recordgen.errors import UsageError
from recordgen.features import IMAGE_TASKS, TEXT_ENTITIES, TEXT_TASKS
from recordgen.options import check_image_size, check_names

#: ``tf.data.AUTOTUNE``, said without importing TensorFlow.
AUTOTUNE = -1

#: What is chosen from the data: see :func:`recordgen.reading.plan.plan_reading`.
AUTO = "auto"

DTYPES = ("float32", "uint8")
LABEL_MODES = (AUTO, "index", "one_hot", "multi_hot", "none")
RESIZES = ("stretch", "fit", "center_crop", "random_crop")
DECODERS = ("fast", "exact")
ON_ERROR = ("fail", "skip")

#: Keras's names: left, top, right, bottom in pixels, and so on; ``rel_``: in shares of the image.
BOX_FORMATS = tuple(
    prefix + order for prefix in ("rel_", "") for order in ("xyxy", "yxyx", "xywh", "center_xywh")
)
BOXES = ("padded", "ragged")

#: The options that only boxes have.
BOX_OPTIONS = ("box_format", "boxes", "max_boxes", "min_visible")

MEMORY = "memory"
BALANCED = "balanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """Random changes of training images, drawn anew for each image; pixels stay in [0, 1].

    The defaults change light and colour a little, which leaves every label true. ``flip`` is off:
    a mirrored photo is a photo, a mirrored digit, text or traffic sign is not.

    Attributes:
        flip: mirror every other image left to right.
        brightness: add up to this share of the full range to all channels, 0..1.
        contrast: stretch or squeeze around the image's mean, by up to this share, 0..1.
        saturation: move pixels away from or towards their gray, by up to this share, 0..1.
        hue: turn colours by up to this share of the full circle, 0..0.5.
        crop: cut off up to this share of height and of width, at a random place, and resize what is
            left, 0..1.
    """

    flip: bool = False
    brightness: float = 0.1
    contrast: float = 0.1
    saturation: float = 0.1
    hue: float = 0.0
    crop: float = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "crop"):
            _from_to(name, getattr(self, name), 0, 1)
        _from_to("hue", self.hue, 0, 0.5)
        _of_type(bool, "True or False", flip=self.flip)
        if self.crop == 1:
            raise UsageError("crop must be below 1: nothing would be left of the image")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """How records of any kind are read, ordered, batched and handed on.

    Attributes:
        batch_size: examples per batch.
        predicate: takes a dict of one record's features (scalars; without ``image/encoded``) and
            returns whether it is wanted (bool []).
        shuffle_buffer: records held for shuffling; ``auto``: chosen from their count and size; 0:
            the order of the shards.
        seed: makes order and augmentation reproducible, at some cost in speed; None: others each
            time.
        deterministic: give elements in an order that does not depend on timing; None: only with a
            seed or without shuffling.
        epochs: passes over the data; None: endless.
        drop_remainder: leave out a short last batch, so that all shapes are known.
        cache: keep what was read: ``memory``, or the path of a file (which must not exist, or come
            from the same reading); None: no.
        shard: (index, count): read only this worker's share.
        map_example: the user's function on one example, before batching; takes and returns what a
            batch has, without the first dimension.
        map_batch: the user's function on whole batches; takes and returns their parts.
        cycle_length: shards that are read at the same time.
        num_parallel_calls: batches that are parsed and decoded at the same time.
        prefetch: batches that are made ahead.
        threads: of a thread pool of this dataset's own; None: that of the process.
        autotune: let tf.data change the AUTOTUNE numbers while it runs, instead of taking its
            defaults (one per core, at most 16).
    """

    batch_size: int = 32
    predicate: Callable[..., Any] | None = None
    shuffle_buffer: int | str = AUTO
    seed: int | None = None
    deterministic: bool | None = None
    epochs: int | None = 1
    drop_remainder: bool = False
    cache: str | os.PathLike[str] | None = None
    shard: tuple[int, int] = (0, 1)
    map_example: Callable[..., Any] | None = None
    map_batch: Callable[..., Any] | None = None
    cycle_length: int = AUTOTUNE
    num_parallel_calls: int = AUTOTUNE
    prefetch: int = AUTOTUNE
    threads: int | None = None
    autotune: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, batch_size=self.batch_size)
        if self.shuffle_buffer != AUTO:
            check_at_least(0, shuffle_buffer=self.shuffle_buffer)
        for name in ("cycle_length", "num_parallel_calls", "prefetch"):
            if getattr(self, name) != AUTOTUNE:
                check_at_least(1, **{name: getattr(self, name)})
        for name in ("epochs", "threads"):
            if getattr(self, name) is not None:
                check_at_least(1, **{name: getattr(self, name)})
        if not _are_two_integers(self.shard) or not 0 <= self.shard[0] < self.shard[1]:
            raise UsageError(
                f"shard must be (index, count) with 0 ≤ index < count (got {self.shard!r})"
            )
        _of_type(bool, "True or False", drop_remainder=self.drop_remainder, autotune=self.autotune)
        if self.deterministic is not None:
            _of_type(bool, "True, False or None", deterministic=self.deterministic)
        if self.seed is not None and not _is_integer(self.seed):
            raise UsageError(f"seed must be a whole number or None (got {self.seed!r})")
        if self.cache is not None and not (
            isinstance(self.cache, str | os.PathLike) and os.fspath(self.cache)
        ):
            raise UsageError(
                f"cache must be {MEMORY!r}, the path of a file, or None (got {self.cache!r})"
            )
        for name in ("predicate", "map_example", "map_batch"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise UsageError(f"{name} must be a function (got {getattr(self, name)!r})")

    @property
    def is_ordered(self) -> bool:
        """Whether elements come in an order that does not depend on timing."""
        if self.deterministic is not None:
            return self.deterministic
        return self.seed is not None or self.shuffle_buffer == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions(RecordOptions):
    """How labels are read; what :class:`RecordOptions` has, and the following.

    Attributes:
        task: what the examples are for, a name of :data:`recordgen.tasks.TASKS`; ``auto``: what
            ``dataset.json`` says.
        label_mode: ``index`` (int64), ``one_hot`` or ``multi_hot`` (float32 [classes]), or
            ``none``: unlabelled records are read too, and there are no labels; ``auto``:
            ``multi_hot`` where examples have any number of labels, else ``index``.
        labels: only examples of these classes; their numbers stay those of ``labels.txt``. In a
            dataset written with ``--shard-by label`` only their files are opened.
        vocabulary: number the classes by their place in this sequence, not in ``labels.txt``.
        weights: ``balanced``: every class weighs the same in all, the mean weight is 1; or a weight
            for each class; None: no weights.
        extras: further features to hand out, such as ``image/source_id`` or ``source_id``.
    """

    task: str = AUTO
    label_mode: str = AUTO
    labels: Collection[str] | None = None
    vocabulary: Sequence[str] | None = None
    weights: str | Mapping[str, float] | None = None
    extras: Sequence[str] = ()

    def __post_init__(self) -> None:
        RecordOptions.__post_init__(self)
        _one_of("label_mode", self.label_mode, LABEL_MODES)
        if isinstance(self.weights, str):
            _one_of("weights", self.weights, (BALANCED,))
        elif self.weights is not None:
            _of_type(Mapping, f"{BALANCED!r} or a dict by class", weights=self.weights)
            for label, weight in self.weights.items():
                if not _is_number(weight) or not 0 <= weight < math.inf:
                    raise UsageError(
                        f"weights must be finite and at least 0 (got {weight!r} for {label!r})"
                    )
        for name in ("labels", "vocabulary", "extras"):
            if name == "extras" or getattr(self, name) is not None:
                _names(name, getattr(self, name))
        if self.labels is not None and not self.labels:
            raise UsageError("labels must name at least one class; None reads all of them")
        if self.vocabulary is not None and len(set(self.vocabulary)) < max(1, len(self.vocabulary)):
            raise UsageError(
                f"vocabulary must name classes, each once (got {list(self.vocabulary)})"
            )
        if self.label_mode == "none" and self.weights is not None:
            raise UsageError("weights need labels: choose another label_mode than 'none'")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(LabelOptions):
    """How texts and labels are read; what :class:`LabelOptions` has, and the following.

    Attributes:
        tokenizer: takes a batch of texts (string [batch]) and returns what is handed out for them,
            such as an adapted ``keras.layers.TextVectorization``, or what
            :func:`recordgen.text_vectorization` returns; None: the texts themselves.
    """

    tokenizer: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        LabelOptions.__post_init__(self)
        _one_of("task", self.task, (AUTO, *TEXT_TASKS))
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise UsageError(
                f"tokenizer must be a function of texts, such as an adapted TextVectorization "
                f"(got {self.tokenizer!r})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(LabelOptions):
    """How images and labels are read; what :class:`LabelOptions` has, and the following.

    Attributes:
        image_size: height and width of what is returned, in pixels.
        dtype: ``float32`` in [0, 1], or ``uint8`` in 0..255.
        resize: ``stretch`` to the size; ``fit`` into it, with black bars; ``center_crop``: the
            largest window of the size's shape from the middle; ``random_crop``: a window of 8 to
            100 % of the area and of 3:4 to 4:3 of its shape, from anywhere.
        decoder: ``fast``: JPEGs with chroma doubled, not interpolated, at the smallest scale that
            covers the size; ``exact``: every pixel as ``tf.io.decode_jpeg`` has it by default,
            resized with antialiasing.
        augment: random changes; None: none.
        task: one of :data:`recordgen.features.IMAGE_TASKS`; ``auto`` without a ``dataset.json``:
            ``image_classification``.
        label_mode: not for boxes.
        labels: of boxes, those of these classes.
        box_format: what the four numbers of a box are, one of :data:`BOX_FORMATS`.
        boxes: ``padded`` with -1 to the largest number of boxes in a batch, or ``ragged``.
        max_boxes: at most so many boxes of an image, the largest ones, and always padded to so
            many; None: all.
        min_visible: boxes of which a smaller share of the area is left after cropping are left
            out, 0..1.
        on_error: what to do with images that do not decode: ``fail``; ``skip`` them, with a warning
            that counts them; or a function that is called with each one's source id.
    """

    image_size: tuple[int, int] = (224, 224)
    dtype: str = "float32"
    resize: str = "stretch"
    decoder: str = "fast"
    augment: Augmentation | None = None
    box_format: str = "rel_xyxy"
    boxes: str = "padded"
    max_boxes: int | None = None
    min_visible: float = 0.3
    on_error: str | Callable[[str], None] = "fail"

    def __post_init__(self) -> None:
        LabelOptions.__post_init__(self)
        check_image_size(self.image_size)
        _one_of("dtype", self.dtype, DTYPES)
        _one_of("resize", self.resize, RESIZES)
        _one_of("decoder", self.decoder, DECODERS)
        _one_of("task", self.task, (AUTO, *IMAGE_TASKS))
        _one_of("box_format", self.box_format, BOX_FORMATS)
        _one_of("boxes", self.boxes, BOXES)
        if self.max_boxes is not None:
            check_at_least(1, max_boxes=self.max_boxes)
        _from_to("min_visible", self.min_visible, 0, 1)
        if not callable(self.on_error):
            _one_of("on_error", self.on_error, ON_ERROR)
        if self.augment is not None:
            _of_type(Augmentation, "an Augmentation(…) or None", augment=self.augment)

    @property
    def draws_pixels(self) -> bool:
        """Whether the decoded image differs from one reading to the next."""
        return self.resize == "random_crop"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions(RecordOptions):
    """How tokens and their tags are read; what :class:`RecordOptions` has, and the following.

    Attributes:
        task: what the examples are for: ``text_entities``, or ``auto``.
        tokenizer: takes tokens (string [batch, n]) and returns their numbers ([batch, n]), such as
            what :func:`recordgen.token_lookup` gives; None: the tokens themselves.
        buckets: texts of like length come in one batch, where their order is free (training):
            ``auto``; or lengths in tokens: each batch is padded to the first that is long enough
            for it, so that there are few shapes. None: they come as they are.
        sequence_length: cut texts off behind so many tokens, and pad all to so many; None: pad to
            the longest of the batch.
        extras: further features to hand out, such as ``source_id`` or ``text``; lists are ragged.
    """

    task: str = AUTO
    tokenizer: Callable[[Any], Any] | None = None
    buckets: str | Sequence[int] | None = None
    sequence_length: int | None = None
    extras: Sequence[str] = ()

    def __post_init__(self) -> None:
        RecordOptions.__post_init__(self)
        _one_of("task", self.task, (AUTO, "text_entities"))
        _names("extras", self.extras)
        for name in self.extras:
            _one_of("extras", name, tuple(TEXT_ENTITIES))
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise UsageError(f"tokenizer must be a function of tokens (got {self.tokenizer!r})")
        if self.sequence_length is not None:
            check_at_least(1, sequence_length=self.sequence_length)
        if isinstance(self.buckets, str):
            _one_of("buckets", self.buckets, (AUTO,))
        elif self.buckets is not None:
            _of_type(Sequence, f"{AUTO!r}, lengths in tokens, or None", buckets=self.buckets)
            for length in self.buckets:
                check_at_least(1, buckets=length)
            if sorted(set(self.buckets)) != list(self.buckets) or not self.buckets:
                raise UsageError(f"buckets must be lengths that grow (got {self.buckets!r})")
        if self.map_example is not None and (self.sequence_length is None or self.extras):
            raise UsageError(
                "map_example needs examples of one shape: give sequence_length=…, and no extras"
            )


def decode_options(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return ``kind(**values)``. Raises: UsageError for an unknown name or a wrong value."""
    check_names(values, [field.name for field in fields(kind)])
    return kind(**{name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    """Return Python's number for NumPy's, also in tuples; everything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return int(value) if _is_integer(value) else value


def _names(name: str, value: object) -> None:
    """Check what must be several names."""
    if isinstance(value, str):
        raise UsageError(
            f"{name} must be several names, not one text (got {value!r}); write [{value!r}]"
        )
    if not isinstance(value, Collection) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name} must be a list of names, each a text (got {value!r})")


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")


def check_at_least(least: int, **named: Any) -> None:
    """Check whole numbers of 64 bits by name. Raises: UsageError."""
    for name, value in named.items():
        if not _is_integer(value):
            raise UsageError(f"{name} must be a whole number (got {value!r})")
        if value < least:
            raise UsageError(f"{name} must be at least {least} (got {value!r})")
        if value >= 1 << 63:
            raise UsageError(f"{name} must be a number of 64 bits (got {value!r})")


def _of_type(kind: type[Any], expected: str, **named: object) -> None:
    for name, value in named.items():
        if not isinstance(value, kind):
            raise UsageError(f"{name} must be {expected} (got {value!r})")


def _is_integer(value: object) -> bool:
    """Say whether a value is a whole number, also one of NumPy's."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_two_integers(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_integer, value))


def _from_to(name: str, value: Any, low: float, high: float) -> None:
    if not _is_number(value) or not low <= value <= high:  # not a number is not in between
        raise UsageError(f"{name} must be from {low} to {high} (got {value!r})")
