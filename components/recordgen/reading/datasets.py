"""``input_fn``, ``train_dataset``, ``eval_dataset`` and ``load``: records → batches of images.

files ─shuffle─▶ interleave ─▶ records ─shuffle─▶ repeat ─▶ batch ─▶ parse, decode, augment
                                  │                                          │
                                cache                                     prefetch
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import tensorflow as tf

from recordgen import features, splits
from recordgen.dataset import read_dataset
from recordgen.errors import DataError, RecordError, UsageError
from recordgen.reading.augmentation import augment
from recordgen.reading.counting import count_records, remembered
from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.foreign import check_record
from recordgen.reading.options import AUTO, Augmentation, ReadOptions, decode_options
from recordgen.reading.parsing import parsing_spec
from recordgen.reading.plan import ReadPlan, plan_reading
from recordgen.reading.records import cached, finished, ordered, read_records
from recordgen.reading.shards import ShardSet, find_shards
from recordgen.reading.targets import Targets, keep_function

_log = logging.getLogger(__name__)

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_IMAGE, _ENCODED, _SIZE, _LABEL, _EXTRAS, _ID, _DECODES = (
    "image",
    "encoded",
    "size",
    "label",
    "extras",
    "id",
    "decodes",
)

_TRAINING: Mapping[str, Any] = {
    "shuffle_buffer": AUTO,
    "epochs": None,
    "drop_remainder": True,
    "augment": Augmentation(),
}
_EVALUATION: Mapping[str, Any] = {"shuffle_buffer": 0, "epochs": 1, "drop_remainder": False}


def input_fn(
    source: Source,
    *,
    split: str = splits.TRAIN,
    batch_size: int = 32,
    image_size: tuple[int, int] = (224, 224),
    input_context: tf.distribute.InputContext | None = None,
    **options: Any,
) -> tf.data.Dataset:
    """Return batches of images and labels, in the way that the split is for.

    The split ``train`` is read as :func:`train_dataset` does it, others as :func:`eval_dataset`.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or file patterns (TFX's
            ``fn_args.train_files``).
        split: the split to read; file patterns name it themselves.
        batch_size: examples per batch; with ``input_context`` those of all replicas together.
        image_size: height and width of the images, in pixels.
        input_context: which worker this is; handed in by
            ``strategy.distribute_datasets_from_function``.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`.

    Returns:
        As :func:`train_dataset` or :func:`eval_dataset`.

    Raises:
        UsageError: an option is wrong, or does not go with the data.
        SourceError: there is no dataset, or no file matches.
        DataError: there is nothing to read, or it is not what was expected.
        RecordError: a file is truncated or damaged.
    """
    if input_context is not None:
        if "shard" in options:
            raise UsageError("shard and input_context say the same; give one of them")
        options["shard"] = (input_context.input_pipeline_id, input_context.num_input_pipelines)
        batch_size = input_context.get_per_replica_batch_size(batch_size)
    read = train_dataset if split == splits.TRAIN else eval_dataset
    return read(source, split=split, batch_size=batch_size, image_size=image_size, **options)


def train_dataset(
    source: Source,
    *,
    batch_size: int = 32,
    image_size: tuple[int, int] = (224, 224),
    split: str = splits.TRAIN,
    **options: Any,
) -> tf.data.Dataset:
    """Return an endless, shuffled, augmented dataset of full batches.

    ``model.fit(train_dataset(out), steps_per_epoch=steps_per_epoch(out, 32), epochs=10)``

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        image_size: height and width of the images, in pixels.
        split: the split to read; file patterns name it themselves.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`.

    Returns:
        Batches of images (float32 [batch_size, height, width, 3] in [0, 1], or uint8) and labels
        (int64 [batch_size], or float32 [batch_size, classes]); then weights (float32 [batch_size])
        and extras (a dict by feature name), if they are asked for. Without the unlabelled examples.

    Raises:
        As :func:`input_fn`; and UsageError if a batch cannot be filled.
    """
    return _images(source, split, batch_size, image_size, {**_TRAINING, **options})


def eval_dataset(
    source: Source,
    *,
    batch_size: int = 32,
    image_size: tuple[int, int] = (224, 224),
    split: str = splits.EVAL,
    **options: Any,
) -> tf.data.Dataset:
    """Return one complete pass in the order of the shards; the last batch may be short.

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        image_size: height and width of the images, in pixels.
        split: the split to read; file patterns name it themselves.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`.

    Returns:
        As :func:`train_dataset`, with up to ``batch_size`` examples in a batch.

    Raises:
        As :func:`input_fn`.
    """
    return _images(source, split, batch_size, image_size, {**_EVALUATION, **options})


class Splits(dict[str, tf.data.Dataset]):
    """Datasets by split; ``validation``, as TFRecorder has it, is another name for ``eval``."""

    def __missing__(self, name: str) -> tf.data.Dataset:
        if name == "validation" and splits.EVAL in self:
            return self[splits.EVAL]
        raise KeyError(name)


def load(source: str | os.PathLike[str], **options: Any) -> Splits:
    """Return all splits of an output: ``{"train": …, "eval": …, "test": …}``.

    Each is finite: ``train`` one shuffled and augmented pass (another order each time), the others
    one ordered pass, so that ``model.fit(data["train"], validation_data=data["eval"], epochs=5)``
    does what it says.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``.
        **options: ``batch_size``, ``image_size`` and the others of :func:`train_dataset`, for all
            splits; ``augment`` only for ``train``.

    Raises:
        As :func:`input_fn`.
    """
    found = Splits()
    for split in read_dataset(os.fspath(source)).splits:
        if split == splits.TRAIN:
            found[split] = train_dataset(
                source, **{"epochs": 1, "drop_remainder": False, **options}
            )
        else:
            found[split] = eval_dataset(source, split=split, **{**options, "augment": None})
    return found


def reading_plan(source: Source, *, split: str = splits.TRAIN, **options: Any) -> ReadPlan:
    """Return what :func:`input_fn` decides for the same arguments; ``print`` it to see.

    Args:
        source: as in :func:`input_fn`.
        split: as in :func:`input_fn`.
        **options: as in :func:`input_fn`, with ``batch_size`` and ``image_size``.

    Raises: as :func:`input_fn`.
    """
    defaults = _TRAINING if split == splits.TRAIN else _EVALUATION
    return plan_reading(find_shards(source, split), _options({**defaults, **options}))


def steps_per_epoch(
    source: Source, batch_size: int, *, split: str = splits.TRAIN, **options: Any
) -> int:
    """Return how many batches one pass gives.

    100 examples in batches of 32 → 3; with ``drop_remainder=False`` → 4.

    Counts come from ``dataset.json``. Files of others are counted by reading them, once: the count
    is remembered in the user's cache folder.

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        split: the split; file patterns name it themselves.
        **options: as in :func:`input_fn`, where they change what is read: ``labels``, ``shard``, …

    Raises:
        UsageError: not one whole batch can be filled.
        And as :func:`input_fn`.
    """
    values = {"drop_remainder": True, **options, "batch_size": batch_size, "epochs": 1}
    decoded = _options(values)
    shards = find_shards(source, split)
    plan = plan_reading(shards, decoded)
    examples = plan.examples
    if examples is None:
        what = f"{decoded.label_mode} {decoded.shard} {plan.classes}"
        examples = (
            _counted(shards, plan, decoded)
            if decoded.predicate is not None
            else remembered(plan.files, what, lambda: _counted(shards, plan, decoded))
        )
    _check_batch_size(batch_size, examples, decoded)
    return examples // batch_size if decoded.drop_remainder else -(-examples // batch_size)


def _counted(shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> int:
    """Count the wanted records by reading them, without decoding a single image."""
    reading = _Reading.of(shards, plan, options)
    records = read_records(plan, options, reading.keep)
    try:
        return int(records.reduce(tf.constant(0, tf.int64), lambda total, _: total + 1))
    except tf.errors.DataLossError as exc:
        for path in plan.files:
            count_records(path)  # says which file, and where
        raise RecordError(f"{plan.files[0]} and the like: {exc.message}") from exc


def _images(
    source: Source,
    split: str,
    batch_size: int,
    image_size: tuple[int, int],
    values: Mapping[str, Any],
) -> tf.data.Dataset:
    options = _options({**values, "batch_size": batch_size, "image_size": image_size})
    shards = find_shards(source, split)
    plan = plan_reading(shards, options)
    if options.drop_remainder:
        _check_batch_size(batch_size, plan.examples, options)
    if plan.cache is not None:
        _log.info("cache: %s", plan.cache)
    return _Reading.of(shards, plan, options).dataset()


def _options(values: Mapping[str, Any]) -> ReadOptions:
    options: ReadOptions = decode_options(ReadOptions, values)
    return options


def _check_batch_size(batch_size: int, examples: int | None, options: ReadOptions) -> None:
    """Check that a batch can be filled."""
    if examples is not None and options.drop_remainder and batch_size > examples:
        raise UsageError(
            f"batch_size must not be above the number of examples to read, {examples} (got "
            f"{batch_size}); or give drop_remainder=False"
        )


@dataclass(frozen=True)
class _Reading:
    """The stages of one reading, each a function of tensors.

    Attributes:
        plan: what was decided.
        options: what was asked for.
        targets: how labels are read.
        extras: specs of the further features.
        decoder: how images are decoded.
        trusts_sizes: records say how large their images are.
    """

    plan: ReadPlan
    options: ReadOptions
    targets: Targets
    extras: Mapping[str, Any]
    decoder: ImageDecoder
    trusts_sizes: bool

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> _Reading:
        if plan.classes is None:
            raise TypeError("a plan for images has classes")
        targets = Targets.of(plan.classes, options)
        written = shards.dataset.features if shards.dataset is not None else {}
        is_ours = shards.dataset is not None and not written
        if written and features.IMAGE_ENCODED not in written:
            raise DataError(
                f"{shards.files[0].path}: written with recordgen.write, without "
                f"{features.IMAGE_ENCODED}; use recordgen.read"
            )
        extras = check_record(plan.files, tuple(targets.spec), options.extras, is_ours=is_ours)
        decoder = ImageDecoder(
            options.image_size, options.resize, options.decoder, shards.images if is_ours else None
        )
        return cls(plan, options, targets, extras, decoder, is_ours)

    @property
    def keep(self) -> Any:
        predicate = self.options.predicate
        if predicate is None:
            return keep_function(self.targets, None)
        spec = parsing_spec()
        del spec[features.IMAGE_ENCODED]
        if not self.trusts_sizes:
            spec = {name: _optional(feature) for name, feature in spec.items()}
        return keep_function(
            self.targets, lambda record: predicate(tf.io.parse_single_example(record, spec))
        )

    def dataset(self) -> tf.data.Dataset:
        plan, options = self.plan, self.options
        records = read_records(plan, options, self.keep)
        parallel = {
            "num_parallel_calls": options.num_parallel_calls,
            "deterministic": options.is_ordered,
        }
        if plan.cache is not None and plan.cache.stage == "images":
            # Cache before augmenting: else every epoch would see the same changes.
            images = records.batch(options.batch_size).map(self._kept_images, **parallel)
            images = ordered(cached(self._readable(images).unbatch(), plan, options), plan, options)
            images = images.batch(options.batch_size, drop_remainder=options.drop_remainder)
            return self._finished(self._seeded(images).map(self._elements, **parallel))
        records = ordered(cached(records, plan, options), plan, options)
        if self._skips:
            # Some images will be missing, so full batches are made only afterwards.
            images = self._seeded(records.batch(options.batch_size)).map(self._decoded, **parallel)
            images = self._readable(images).unbatch()
            images = images.batch(options.batch_size, drop_remainder=options.drop_remainder)
            return self._finished(self._seeded(images).map(self._elements, **parallel))
        # Batch before parse: one vectorised call for all records.
        records = records.batch(options.batch_size, drop_remainder=options.drop_remainder)
        batched = self._seeded(records).map(
            lambda batch, seed: self._elements(self._decoded(batch, seed), seed), **parallel
        )
        return self._finished(batched)

    def _finished(self, batched: tf.data.Dataset) -> tf.data.Dataset:
        # Nobody knows how many images will be skipped.
        plan = replace(self.plan, examples=None) if self._skips else self.plan
        dataset = finished(batched, plan, self.options)
        if self.plan.is_checked:
            return dataset
        # What looks for images that do not decode counts as stateful, which would forbid to save
        # an iterator; its state is nothing but the number of those that were skipped.
        settings = tf.data.Options()
        settings.experimental_external_state_policy = (
            tf.data.experimental.ExternalStatePolicy.IGNORE
        )
        return dataset.with_options(settings)

    @property
    def _skips(self) -> bool:
        return self.options.on_error != "fail" and not self.plan.is_checked

    def _seeded(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Give each batch a random number of its own, so that its changes can be repeated."""
        if self.options.augment is None and not self.options.draws_pixels:
            return dataset.map(lambda batch: (batch, tf.constant(0, tf.int64)))
        numbers = tf.data.Dataset.random(self.options.seed, rerandomize_each_iteration=True)
        return tf.data.Dataset.zip((dataset, numbers))

    def _decoded(self, records: tf.Tensor, seed: tf.Tensor) -> dict[str, Any]:
        """Turn records (string [batch]) into float32 images from 0 to 255 and what goes along."""
        wanted = {features.IMAGE_ENCODED: tf.io.FixedLenFeature((), tf.string)}
        wanted |= {**self.targets.spec, **self.extras}
        if self.trusts_sizes:
            wanted |= parsing_spec([features.IMAGE_HEIGHT, features.IMAGE_WIDTH])
        if not self.plan.is_checked:
            wanted[features.IMAGE_SOURCE_ID] = tf.io.FixedLenFeature((), tf.string, "")
        parsed = tf.io.parse_example(records, wanted)
        found = {_EXTRAS: {name: parsed[name] for name in self.extras}}
        if self.targets.mode != "none":
            found[_LABEL] = self.targets.labels(parsed)
        encoded = parsed[features.IMAGE_ENCODED]
        crop_seed = tf.stack([seed, 0]) if self.options.draws_pixels else None
        if self.plan.is_checked:
            sizes = None
            if self.trusts_sizes:
                sizes = [parsed[features.IMAGE_HEIGHT], parsed[features.IMAGE_WIDTH]]
                sizes = tf.stack(sizes, 1)
            return {_IMAGE: self.decoder.decode(encoded, sizes, crop_seed), **found}
        images, decodes = self.decoder.try_decode(encoded, crop_seed)
        ids = parsed[features.IMAGE_SOURCE_ID]
        with tf.control_dependencies([self._reported(ids, decodes)]):
            return {_IMAGE: images, _DECODES: tf.identity(decodes), **found}

    def _reported(self, ids: tf.Tensor, decodes: tf.Tensor) -> tf.Operation:
        """Fail for images that do not decode, or say which are skipped."""
        failed = tf.boolean_mask(ids, ~decodes)
        if not self._skips:
            message = "images that do not decode; mend them, or read with on_error='skip':"
            return tf.debugging.Assert(tf.reduce_all(decodes), [message, failed])
        on_error = self.options.on_error
        report = _Skipped() if isinstance(on_error, str) else on_error

        def tell(names: Any) -> None:
            for name in names:
                report(name.decode("utf-8", "replace"))

        return tf.cond(
            tf.reduce_all(decodes),
            tf.no_op,
            lambda: tf.group(tf.numpy_function(tell, [failed], [])),
        )

    def _readable(self, images: tf.data.Dataset) -> tf.data.Dataset:
        """Leave out the images that do not decode."""
        if self.plan.is_checked:
            return images

        def masked(batch: dict[str, Any]) -> Any:
            decodes = batch.pop(_DECODES)
            return tf.nest.map_structure(lambda part: tf.boolean_mask(part, decodes), batch)

        return images.map(masked)

    def _kept_images(self, records: tf.Tensor) -> dict[str, Any]:
        found = self._decoded(records, tf.constant(0, tf.int64))
        found[_IMAGE] = _to_uint8(found[_IMAGE])
        return found

    def _elements(self, decoded: dict[str, Any], seed: tf.Tensor) -> Any:
        """Turn a decoded batch into what is handed out."""
        options = self.options
        images = decoded[_IMAGE]
        if options.augment is not None:
            images = tf.cast(images, tf.float32) * (1 / 255)
            images = augment(images, options.augment, tf.stack([seed, 1]))
            if options.dtype == "uint8":
                images = _to_uint8(images * 255)
        elif options.dtype == "float32":
            images = tf.cast(images, tf.float32) * (1 / 255)
        elif images.dtype != tf.uint8:
            images = _to_uint8(images)
        parts = [images]
        if self.targets.mode != "none":
            label = decoded[_LABEL]
            label = tf.ensure_shape(label, (images.shape[0], *label.shape[1:]))
            parts.append(label)
            if self.targets.weights:
                parts.append(self.targets.weights_of(label))
        if self.extras:
            parts.append(decoded[_EXTRAS])
        return parts[0] if len(parts) == 1 else tuple(parts)


class _Skipped:
    """Counts the images that are skipped, and says which."""

    def __init__(self) -> None:
        self._counter = count(1)

    def __call__(self, source_id: str) -> None:
        _log.warning("skipped %d: %s: its bytes do not decode", next(self._counter), source_id)


def _to_uint8(images: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.round(images), tf.uint8)


def _optional(feature: tf.io.FixedLenFeature) -> tf.io.FixedLenFeature:
    default = b"" if feature.dtype == tf.string else 0
    value = default if feature.default_value is None else feature.default_value
    return tf.io.FixedLenFeature(feature.shape, feature.dtype, value)
