"""The options of reading: names, defaults and checks, without TensorFlow."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import repeat
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from recordgen.access.boxes import BOX_FORMATS
from recordgen.access.scales import parse_scale
from recordgen.core.image_settings import image_size_of
from recordgen.errors import (
    UsageError,
    check_at_least,
    check_names,
    check_one_of,
    is_integer,
)
from recordgen.features import OBJECT_FIELDS, TEXT_ENTITIES
from recordgen.registry import TASK_CHOICES


def check_fields(options: Any) -> None:
    """Check that each field of a dataclass has its default, or a value of its type.

    The type says all that is allowed: whole numbers are from 1 and of 64 bits, or in the ``range``
    of the field's metadata; numbers with fractions are shares from 0 to 1; texts are not empty.

    Raises: UsageError.
    """
    kinds = _types(type(options))  # type: ignore[arg-type]  # types are hashable
    for each in fields(options):
        value, allowed = getattr(options, each.name), each.metadata.get("range", range(1, 1 << 63))
        if value is not each.default and not _fits(value, kinds[each.name], allowed):
            wanted = _described(kinds[each.name], allowed)
            raise UsageError(f"{each.name} must be {wanted} (got {value!r})")


_types = lru_cache(get_type_hints)


def _fits(value: Any, kind: Any, allowed: range) -> bool:
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each, allowed) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is int:
        return is_integer(value) and int(value) in allowed
    if origin is float:
        return is_number(value) and 0 <= value <= 1
    if origin is tuple:
        fits = isinstance(value, Sequence) and len(value) == len(inside)
        return fits and all(map(_fits, value, inside, repeat(allowed)))
    if origin in (Collection, Mapping, Sequence):
        fits = isinstance(value, origin) and not isinstance(value, str)
        return fits and all(_fits(item, inside[0], allowed) for item in value)
    return isinstance(value, origin) and value != ""


def _described(kind: Any, allowed: range) -> str:
    """Return a type in words: ``'auto', or 2 items, each a whole number from 0 to 9``."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return ", or ".join(_described(each, allowed) for each in inside)
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is Mapping:
        return f"a dict with texts as keys{' and numbers as values' if float in inside else ''}"
    if origin in (Collection, Sequence, tuple):
        number = len(inside) if origin is tuple else "a list of"
        return f"{number} items, each {_described(inside[0], allowed)}"
    if kind is int:
        return f"a whole number from {allowed[0]} to {allowed[-1]}"
    return _WORDS.get(origin or kind) or f"a {kind.__name__}"


_WORDS = {
    bool: "True or False",
    float: "a number from 0 to 1",
    str: "a text",
    NoneType: "None",
    Callable: "a function",
    os.PathLike: "a path",
}


def is_number(value: object) -> bool:
    """Return whether a value is a real number of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


#: ``tf.data.AUTOTUNE``, defined here so that options can be decoded without TensorFlow.
AUTOTUNE = -1

#: Let the plan choose: see :func:`recordgen.reading.plan.plan_reading`.
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Threads and memory of a reading. The defaults suit most machines.

    Attributes:
        shuffle_buffer: records held for shuffling; ``auto``: chosen from their number and size.
        cycle_length: shards read at the same time.
        num_parallel_calls: batches parsed and decoded at the same time.
        prefetch: batches prepared ahead of the model.
        threads: size of the dataset's own thread pool; None: share the process's pool.
        autotune: let tf.data adjust the numbers that are ``AUTOTUNE`` (-1) while it runs. Without
            it, they are tf.data's fixed defaults: one per core, at most 16.
        deterministic: return elements in an order that does not depend on timing; None: only with a
            seed or without shuffling. With several ``epochs``, records are decoded in order anyway.
        drop_remainder: drop a short last batch, so that all shapes are known.
        cache_bytes: how many bytes a cache may take; None: half of the free memory, or any number
            in a file. Images are kept decoded if all of them fit, see
            :mod:`recordgen.reading.plan`.
        decoder: how images are decoded. ``fast`` decodes JPEGs at the smallest scale that covers
            the image size, and takes means of areas, rounded to whole levels; ``exact`` decodes
            every pixel and resizes with antialiasing, in floats.
    """

    shuffle_buffer: int | Literal["auto"] = AUTO
    cycle_length: int = AUTOTUNE
    num_parallel_calls: int = AUTOTUNE
    prefetch: int = AUTOTUNE
    threads: int | None = None
    autotune: bool = False
    deterministic: bool | None = None
    drop_remainder: bool = False
    cache_bytes: int | None = None
    decoder: Literal["fast", "exact"] = "fast"

    def __post_init__(self) -> None:
        check_fields(self)


# No random crops: the images of a row belong together, so they must not be cropped independently.
_ROW_RESIZES = ("stretch", "fit", "center_crop")
_ROW_PADDINGS = (AUTO, "ragged")

#: ``padding``: to the longest list of a batch; or not at all.
LONGEST, RAGGED = "longest", "ragged"

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
        crop: cut off up to this share of height and of width, and resize the rest, 0..1.
    """

    flip: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    crop: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.crop == 1:
            raise UsageError("crop must be below 1: nothing would be left of the image")


#: ``augment="photo"``: the usual changes of photos; it also means ``resize="random_crop"``.
PHOTO = "photo"
_PHOTO = {"flip": True, "brightness": 0.1, "contrast": 0.1}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxForm:
    """How boxes are returned.

    Attributes:
        format: the four numbers of a box, one of :data:`BOX_FORMATS`.
        min_visible: skip a box if cropping leaves a smaller share of its area, 0..1.
        fields: what else to return of each box, names of
            :data:`recordgen.features.OBJECT_FIELDS`. Without ``is_crowd``, boxes around crowds are
            skipped.
    """

    format: str = "rel_xyxy"
    min_visible: float = 0.3
    fields: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        check_one_of("boxes", self.format, BOX_FORMATS)
        for name in self.fields:
            check_one_of("fields", name, OBJECT_FIELDS)


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
        cache: keep the examples in ``memory``, or in the file at a path (which must not exist, or
            come from the same reading); None: no cache.
        only: a function that takes a dict of one record's features (scalars; without
            ``image/encoded``) and returns whether to read it (bool []). With labels, also names of
            classes: read only their examples, or boxes, with their numbers of ``labels.txt``. In a
            dataset written with ``--shard-by label`` only the files of these classes are opened.
        shard: (index, count): read only this worker's share.
        tuning: threads, buffers and other settings of speed and memory.
    """

    batch_size: int = 32
    shuffle: bool = False
    seed: int | None = field(default=None, metadata={"range": range(-(1 << 64), 1 << 64)})
    epochs: int | Literal["endless"] = 1
    cache: str | os.PathLike[str] | None = None
    only: Callable[..., Any] | Collection[str] | None = None
    shard: tuple[int, int] = field(default=(0, 1), metadata={"range": range(1 << 63)})
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.shard[0] >= self.shard[1]:
            raise UsageError(f"shard must be (index, count) with index < count (got {self.shard})")
        if self.tuning.cache_bytes is not None and self.cache is None:
            raise UsageError("cache_bytes needs a cache: give cache='memory', or a file's path")
        self._check_only()

    def _check_only(self) -> None:
        if self.only is not None and not callable(self.only):
            raise UsageError(f"only must be a function of a record's features (got {self.only!r})")

    @property
    def predicate(self) -> Callable[..., Any] | None:
        """The function that selects records; None if there is none."""
        return self.only if callable(self.only) else None

    @property
    def passes(self) -> int | None:
        """The number of passes over the data; None if endless."""
        return None if isinstance(self.epochs, str) else self.epochs

    @property
    def has_full_batches(self) -> bool:
        """Whether every batch has ``batch_size`` examples."""
        # Batches continue across the end of an epoch, so an endless dataset has no last batch.
        return self.tuning.drop_remainder or self.passes is None

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
        vocabulary: number the classes by their position here, not in ``labels.txt``.
        weights: ``balanced``: all classes have the same total weight, the mean weight is 1; or a
            weight for each class; None: no weights.
        columns: further features to return, such as ``image/source_id`` or ``source_id``, as a
            dict; or, of other tools' records, the features to read by their roles:
            ``image=jpg,label=kind`` (``image``, ``text``, ``label``, ``mask``, ``xmin``, …). Of a
            table, the columns to return, or a dict by column with the value of rows that
            have none (None: NaN for numbers, and empty text); None: all but the target and the
            weights.
    """

    label_mode: Literal["auto", "int", "binary", "categorical", "multi_hot"] | None = AUTO
    vocabulary: Collection[str] | None = None
    weights: Literal["balanced"] | Mapping[str, float] | None = None
    columns: str | Collection[str] | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        if isinstance(self.weights, Mapping):
            for label, weight in self.weights.items():
                if not is_number(weight) or not 0 <= weight < math.inf:
                    raise UsageError(
                        f"weights must be finite and at least 0 (got {weight!r} for {label!r})"
                    )
        if isinstance(self.columns, str) and not self.roles:
            raise UsageError(f"columns must be several names: write [{self.columns!r}]")
        names = self.vocabulary
        if names is not None and len(set(names)) < max(1, len(names)):
            raise UsageError(f"vocabulary must name classes, each once (got {list(names)})")
        if self.label_mode is None and self.weights is not None:
            raise UsageError("weights need labels: choose another label_mode than None")

    def _check_only(self) -> None:
        if isinstance(self.only, Collection) and not self.only:
            raise UsageError(f"only must name at least one class, in a list (got {self.only!r})")

    @property
    def labels(self) -> Collection[str] | None:
        """The only classes to read; None for all."""
        return None if callable(self.only) else self.only

    @property
    def roles(self) -> str:
        """The features of other tools' records by role, such as ``image=jpg``; else empty."""
        return self.columns if isinstance(self.columns, str) and "=" in self.columns else ""

    @property
    def extras(self) -> tuple[str, ...]:
        """The further features to return."""
        return () if self.roles else tuple(self.columns or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelOptions(LabelOptions):
    """What images and rows with images share; the classes below describe the fields."""

    image_size: tuple[int, int] = (224, 224)
    scale: str = AUTO
    resize: Literal["stretch", "fit", "center_crop", "random_crop"] = "stretch"

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_size", image_size_of(self.image_size))
        LabelOptions.__post_init__(self)
        parse_scale(self.scale)

    @property
    def pixels(self) -> tuple[str, str]:
        """The range of pixels and their type."""
        return parse_scale(self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(PixelOptions):
    """How images and labels are read: the fields of :class:`LabelOptions`, and these.

    Attributes:
        image_size: height and width of the returned images in pixels, one number for a square, or a
            text such as ``224x320``.
        scale: the range of pixels: ``0..1``, ``0..255``, ``-1..1``, or a model in
            ``keras.applications``, for the range of its pretrained weights; and their type, if it
            is not float32: ``uint8``, or ``-1..1:float16``, ``-1..1:bfloat16``.
        resize: ``stretch`` to the size; ``fit`` into it, with black bars; ``center_crop``: the
            largest window of the size's shape from the middle; ``random_crop``: a window of 8 to
            100 % of the area and of 3:4 to 4:3 of its shape, from anywhere.
        augment: random changes, such as ``{"flip": True, "crop": 0.1}``, see :class:`Augmentation`;
            ``photo``: ``resize="random_crop"``, mirrored in half of the cases, with light changed
            by up to 10 %.
        task: a task of images; ``auto`` without a ``dataset.json``: ``image_classification``.
        label_mode: not for boxes.
        boxes: the four numbers of a box, one of :data:`BOX_FORMATS`; or a dict of the fields of
            :class:`BoxForm`.
        padding: ``auto``: boxes are padded with -1 to the largest number in a batch; ``ragged``;
            or a number: the largest boxes of an image, padded to this number. Tokens and the lists
            of tables are padded, too; see :class:`EntityOptions` and
            :class:`TableOptions`.
    """

    augment: Literal["photo"] | Mapping[str, Any] | None = None
    boxes: str | Mapping[str, Any] = "rel_xyxy"
    padding: int | str | Sequence[int] = AUTO

    def __post_init__(self) -> None:
        PixelOptions.__post_init__(self)
        if isinstance(self.padding, str):
            check_one_of("padding", self.padding, (AUTO, RAGGED))
        else:
            check_at_least(1, padding=self.padding)
        _ = self.changes, self.box_form  # checks them

    @property
    def changes(self) -> Augmentation | None:
        """The random changes of images; None for none."""
        given: Any = _PHOTO if self.augment == PHOTO else self.augment
        return None if given is None else _of_fields(Augmentation, "augment", given)

    @property
    def box_form(self) -> BoxForm:
        """How boxes are returned."""
        if isinstance(self.boxes, Mapping):
            return _of_fields(BoxForm, "boxes", self.boxes)
        return BoxForm(format=self.boxes)

    @property
    def max_boxes(self) -> int | None:
        """The most boxes of an image; None for all."""
        return self.padding if isinstance(self.padding, int) else None

    @property
    def draws_pixels(self) -> bool:
        """Whether the decoded image differs from one reading to the next."""
        return self.resize == "random_crop"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions(TaskOptions):
    """How tokens and their tags are read: the fields of :class:`TaskOptions`, and these.

    Attributes:
        padding: ``auto``: texts are padded to the longest of the batch, and shuffled batches hold
            texts of similar length; ``longest``: batches in the order of the records; lengths in
            tokens: as ``auto``, but padded to the first sufficient length, so that there are few
            shapes; a number: cut and pad all texts to this number of tokens.
        columns: further features to return, such as ``source_id`` or ``text``; lists are ragged.
    """

    padding: int | str | Sequence[int] = AUTO
    columns: Collection[str] | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(self)
        for name in self.extras:
            check_one_of("columns", name, tuple(TEXT_ENTITIES))
        if isinstance(self.padding, str):
            check_one_of("padding", self.padding, (AUTO, LONGEST))
            return
        lengths: Any = (self.padding,) if is_integer(self.padding) else self.padding
        if sorted(set(lengths)) != list(lengths) or not lengths:
            raise UsageError(f"padding must be increasing lengths (got {self.padding!r})")

    @property
    def sequence_length(self) -> int | None:
        """The number of tokens of all texts; None if it differs."""
        return self.padding if isinstance(self.padding, int) else None

    @property
    def lengths(self) -> Sequence[int]:
        """The lengths to which batches are padded; () for the longest text."""
        return () if isinstance(self.padding, int | str) else self.padding

    @property
    def groups_lengths(self) -> bool:
        """Whether shuffled batches hold texts of similar length."""
        return self.padding == AUTO or bool(self.lengths)

    @property
    def extras(self) -> tuple[str, ...]:
        """The further features to return."""
        return tuple(self.columns or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(PixelOptions):
    """How rows of tables are read: the fields of :class:`LabelOptions`, and these.

    Attributes:
        columns: the columns to return, or a dict by column with the value of rows that have none;
            None as a value, or without a dict: NaN for numbers, and empty text; a column of whole
            numbers with such rows is read as float32 with NaN. None: all but the target and the
            weights.
        image_size: height and width of images, in pixels.
        scale: of images; see :class:`ReadOptions`.
        resize: ``stretch``, ``fit`` or ``center_crop``; see :class:`ReadOptions`.
        padding: lists of any length are padded with 0 to the longest in a batch, or ``ragged``.
    """

    padding: int | str | Sequence[int] = AUTO

    def __post_init__(self) -> None:
        PixelOptions.__post_init__(self)
        if self.columns is not None and not self.columns:
            raise UsageError(f"columns must name at least one (got {self.columns!r})")
        check_one_of("resize", self.resize, _ROW_RESIZES)
        check_one_of("padding", self.padding, _ROW_PADDINGS)

    @property
    def defaults(self) -> Mapping[str, Any]:
        """By column, the value of rows that have none."""
        given = self.columns if isinstance(self.columns, Mapping) else {}
        return {name: value for name, value in given.items() if value is not None}


def decode_options(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return ``kind(**values)`` with normalised numbers and types.

    Raises: UsageError: a name is unknown, or a value is not allowed.
    """
    check_names(values, [field.name for field in fields(kind)])
    decoded = {name: _plain(value) for name, value in values.items()}
    if decoded.get("augment") == PHOTO:
        decoded["resize"] = "random_crop"
    return kind(**decoded)


def _of_fields(kind: type[Any], option: str, values: Mapping[str, Any]) -> Any:
    known = [field.name for field in fields(kind)]
    for name in values:
        check_one_of(f"{option}: a key", name, known)
    return kind(**values)


def _plain(value: Any) -> Any:
    """Convert NumPy's integers to Python's, also in tuples; return other values unchanged."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return int(value) if is_integer(value) else value
