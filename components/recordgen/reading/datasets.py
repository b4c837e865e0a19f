"""``input_fn``, ``train_dataset``, ``eval_dataset``, ``load``: the doors to batches of examples."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from recordgen import splits
from recordgen.dataset import read_dataset
from recordgen.errors import RecordError, UsageError
from recordgen.reading.counting import count_records, remembered
from recordgen.reading.examples import read
from recordgen.reading.kinds import KINDS, Kind, kind_of
from recordgen.reading.options import AUTO, RecordOptions, decode_options
from recordgen.reading.plan import ReadPlan
from recordgen.reading.records import read_records
from recordgen.reading.shards import ShardSet, find_shards
from recordgen.tasks import TASKS, Declared

_log = logging.getLogger(__name__)

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_TRAINING: Mapping[str, Any] = {
    "shuffle_buffer": AUTO,
    "epochs": None,
    "drop_remainder": True,
}
_EVALUATION: Mapping[str, Any] = {"shuffle_buffer": 0, "epochs": 1, "drop_remainder": False}

# What is not asked for, by kind.
_Defaults = Callable[[Kind], Mapping[str, Any]]

# Of :func:`load`: what makes a pass over ``train`` end, and what only ``train`` has.
_ONE_PASS: Mapping[str, Any] = {"epochs": 1, "drop_remainder": False}
_PLAIN = ("augment", "weights")


def input_fn(
    source: Source,
    *,
    split: str = splits.TRAIN,
    batch_size: int = 32,
    image_size: tuple[int, int] | None = None,
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
        image_size: height and width of images, in pixels; None: 224 by 224.
        input_context: which worker this is; handed in by
            ``strategy.distribute_datasets_from_function``.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`, of examples that
            are no images those of their own kind.

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
        batch_size = _per_replica(batch_size, input_context.num_replicas_in_sync)
    read = train_dataset if split == splits.TRAIN else eval_dataset
    return read(source, split=split, batch_size=batch_size, image_size=image_size, **options)


def train_dataset(
    source: Source,
    *,
    batch_size: int = 32,
    image_size: tuple[int, int] | None = None,
    split: str = splits.TRAIN,
    **options: Any,
) -> tf.data.Dataset:
    """Return an endless, shuffled, augmented dataset of full batches.

    ``model.fit(train_dataset(out), steps_per_epoch=steps_per_epoch(out, 32), epochs=10)``

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        image_size: height and width of images, in pixels; None: 224 by 224.
        split: the split to read; file patterns name it themselves.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`, of examples that
            are no images those of their own kind.

    Returns:
        Batches of images (float32 [batch_size, height, width, 3] in [0, 1], or uint8) and labels
        (int64 [batch_size], or float32 [batch_size, classes]); then weights (float32 [batch_size])
        and extras (a dict by feature name), if they are asked for. Without the unlabelled examples.

        Of object detection there are boxes in place of labels: a dict of ``boxes`` (float32
        [batch_size, n, 4]), ``labels`` (int64 [batch_size, n]), both padded with -1 or ragged, and
        ``count`` (int64 [batch_size]), how many are boxes. Images without objects have none.

        Of tables, and of declared columns, there is a dict of columns by name in place of images.

    Raises:
        As :func:`input_fn`; and UsageError if a batch cannot be filled.
    """
    return _dataset(source, split, batch_size, image_size, _of_training, options)


def eval_dataset(
    source: Source,
    *,
    batch_size: int = 32,
    image_size: tuple[int, int] | None = None,
    split: str = splits.EVAL,
    **options: Any,
) -> tf.data.Dataset:
    """Return one complete pass in the order of the shards; the last batch may be short.

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        image_size: height and width of images, in pixels; None: 224 by 224.
        split: the split to read; file patterns name it themselves.
        **options: the fields of :class:`recordgen.reading.options.ReadOptions`, of examples that
            are no images those of their own kind.

    Returns:
        As :func:`train_dataset`, with up to ``batch_size`` examples in a batch.

    Raises:
        As :func:`input_fn`.
    """
    return _dataset(source, split, batch_size, image_size, _of_evaluation, options)


def _per_replica(batch_size: int, replicas: int) -> int:
    whole: int = decode_options(RecordOptions, {"batch_size": batch_size}).batch_size
    if whole % replicas:
        raise UsageError(
            f"batch_size must be a multiple of the {replicas} replicas (got {whole}); "
            f"{-(-whole // replicas) * replicas} is one"
        )
    return whole // replicas


class Splits(dict[str, tf.data.Dataset]):
    """Datasets by split; any spelling of ML_USE is a name, too: ``["VALIDATION"]`` is ``eval``."""

    def __missing__(self, name: str) -> tf.data.Dataset:
        split = splits.parse_ml_use(name) if splits.is_ml_use(name) else None
        if split is None or split not in self:
            raise KeyError(name)
        return self[split]


def load(source: str | os.PathLike[str], **options: Any) -> Splits:
    """Return all splits of an output: ``{"train": …, "eval": …, "test": …}``.

    Each is finite: ``train`` one shuffled and augmented pass (another order each time), the others
    one ordered pass, so that ``model.fit(data["train"], validation_data=data["eval"], epochs=5)``
    does what it says.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``.
        **options: ``batch_size``, ``image_size`` and the others of :func:`train_dataset`, for all
            splits; ``augment`` and ``weights`` only for ``train``. Of an output that
            :func:`recordgen.write` made, or that was converted by a schema, those of
            :func:`recordgen.read`.

    Returns:
        The datasets by split, without splits that have no labelled example (with a warning).

    Raises:
        As :func:`input_fn`.
    """
    if "split" in options:
        raise UsageError("load reads all splits; one of them is read by input_fn(…, split=…)")
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"source must be an output or its dataset.json (got {source!r})")
    found = Splits()
    dataset = read_dataset(os.fspath(source))
    kind = KINDS[TASKS[dataset.task].kind] if dataset.task in TASKS else None
    for name, split in dataset.splits.items():
        if kind is None or dataset.task == Declared.name:
            found[name] = read(source, split=name, **options)
            continue
        needs_labels = dataset.task in kind.labelled and options.get("label_mode") != "none"
        if needs_labels and not split.labels:
            _log.warning(
                "load: split %r has no labelled example and is left out; read it with "
                "label_mode='none'",
                name,
            )
        elif name == splits.TRAIN:
            found[name] = train_dataset(source, **{**_ONE_PASS, **options})
        else:
            plain = {key: value for key, value in options.items() if key not in _PLAIN}
            found[name] = eval_dataset(source, split=name, **plain)
    return found


def reading_plan(source: Source, *, split: str = splits.TRAIN, **options: Any) -> ReadPlan:
    """Return what :func:`input_fn` decides for the same arguments; ``print`` it to see.

    Args:
        source: as in :func:`input_fn`.
        split: as in :func:`input_fn`.
        **options: as in :func:`train_dataset`, with ``batch_size`` and ``image_size``.

    Raises: as :func:`input_fn`.
    """
    shards = find_shards(source, split)
    defaults = _of_training if split == splits.TRAIN else _of_evaluation
    kind, decoded = _asked(shards, defaults, options)
    return kind.plan(shards, decoded)


def steps_per_epoch(
    source: Source, batch_size: int, *, split: str = splits.TRAIN, **options: Any
) -> int:
    """Return how many batches one pass gives.

    100 examples in batches of 32 → 3 in training, where a short batch is left out; 4 in evaluation.

    Counts come from ``dataset.json``. Files of others are counted by reading them, once: the count
    is remembered in the user's cache folder.

    Args:
        source: as in :func:`input_fn`.
        batch_size: examples per batch.
        split: the split; file patterns name it themselves.
        **options: as in :func:`train_dataset`, where they change what is read: ``labels``,
            ``shard``, ``drop_remainder``, …

    Raises:
        UsageError: not one whole batch can be filled.
        And as :func:`input_fn`.
    """
    shards = find_shards(source, split)
    defaults = _of_training if split == splits.TRAIN else _of_evaluation
    kind, decoded = _asked(shards, defaults, {**options, "batch_size": batch_size, "epochs": 1})
    plan = kind.plan(shards, decoded)
    examples = plan.examples
    if examples is None:
        what = f"{decoded.shard} {plan.classes}"
        examples = (
            _counted(shards, plan, decoded, kind)
            if decoded.predicate is not None
            else remembered(plan.files, what, lambda: _counted(shards, plan, decoded, kind))
        )
    _check_batch_size(batch_size, examples, decoded)
    return examples // batch_size if decoded.drop_remainder else -(-examples // batch_size)


def _counted(shards: ShardSet, plan: ReadPlan, options: RecordOptions, kind: Kind) -> int:
    """Count the wanted records by reading them, without decoding a single image."""
    reading = kind.reading(shards, plan, options)
    records = read_records(plan, options, reading.keep)
    try:
        return int(records.reduce(tf.constant(0, tf.int64), lambda total, _: total + 1))
    except tf.errors.DataLossError as exc:
        for path in plan.files:
            count_records(path)  # says which file, and where
        raise RecordError(f"{plan.files[0]} and the like: {exc.message}") from exc


def _dataset(
    source: Source,
    split: str,
    batch_size: int,
    image_size: tuple[int, int] | None,
    defaults: _Defaults,
    options: Mapping[str, Any],
) -> tf.data.Dataset:
    shards = find_shards(source, split)
    given = {**options, "batch_size": batch_size}
    if image_size is not None:
        given["image_size"] = image_size
    kind, decoded = _asked(shards, defaults, given)
    plan = kind.plan(shards, decoded)
    if decoded.drop_remainder:
        _check_batch_size(batch_size, plan.examples, decoded)
    if plan.cache is not None:
        _log.info("cache: %s", plan.cache)
    return kind.reading(shards, plan, decoded).dataset()


def _asked(
    shards: ShardSet, defaults: _Defaults, given: Mapping[str, Any]
) -> tuple[Kind, RecordOptions]:
    """Return how the shards are read, and what was asked for."""
    kind = kind_of(shards, given)
    decoded: RecordOptions = decode_options(kind.options, {**defaults(kind), **given})
    return kind, decoded


def _of_training(kind: Kind) -> Mapping[str, Any]:
    return {**_TRAINING, **kind.training}


def _of_evaluation(kind: Kind) -> Mapping[str, Any]:
    return _EVALUATION


def _check_batch_size(batch_size: int, examples: int | None, options: RecordOptions) -> None:
    """Check that a batch can be filled."""
    if examples is not None and options.drop_remainder and batch_size > examples:
        raise UsageError(
            f"batch_size must not be above the number of examples to read, {examples} (got "
            f"{batch_size}); or give drop_remainder=False"
        )
