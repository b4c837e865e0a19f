"""``input_fn``, ``train_dataset``, ``eval_dataset``, ``load``: batches of examples."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from recordgen import storage
from recordgen.access.counting import remembered
from recordgen.access.shards import Place, ShardSet, find_shards
from recordgen.core.dataset import splits
from recordgen.core.dataset.manifest import (
    EXAMPLES,
    SPLIT_PREFIX,
    Dataset,
    holds_dataset,
    read_dataset,
)
from recordgen.core.task.task import ONE, SEVERAL
from recordgen.errors import UsageError
from recordgen.messages import Depends, takes
from recordgen.reading.examples import read_features
from recordgen.reading.keywords import ReadKeywords
from recordgen.reading.kinds import Kind, kind_for, kind_of
from recordgen.reading.naming import Search, named_errors, searchable
from recordgen.reading.options import (
    EntityOptions,
    LabelOptions,
    ReadOptions,
    RecordOptions,
    TableOptions,
    TaskOptions,
    decode_options,
)
from recordgen.reading.plan import NOTHING, ReadPlan
from recordgen.reading.records import batches_of, check_lengths, read_records
from recordgen.registry import TASKS

if TYPE_CHECKING:
    from typing_extensions import Unpack


_log = logging.getLogger(__name__)

ImageSize = int | tuple[int, int] | str

# The option classes of all tasks.
_OPTIONS = (
    *(RecordOptions, TaskOptions, LabelOptions, ReadOptions),
    *(EntityOptions, TableOptions),
)

takes_options = takes(ReadKeywords, *_OPTIONS, shuffle=Depends("True for train, else False"))


@takes_options
def input_fn(
    source: Place,
    *,
    split: str = splits.TRAIN,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    input_context: tf.distribute.InputContext | None = None,
    **options: Unpack[ReadKeywords],
) -> tf.data.Dataset:
    """Return batches of examples: shuffled for the split ``train``, in order for other splits.

    Calls :func:`train_dataset` or :func:`eval_dataset`.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or file patterns (TFX's
            ``fn_args.train_files``).
        split: the split to read, by any of its names (``validation`` is ``eval``); file patterns
            name it themselves.
        batch_size: examples per batch; with ``input_context`` the sum over all replicas.
        image_size: height and width of images in pixels, one number for a square, or a text such as
            ``224x320``; None: 224 by 224.
        input_context: from ``strategy.distribute_datasets_from_function``; selects this worker's
            share.
        **options: the fields of the task's option class, such as
            :class:`recordgen.reading.options.ReadOptions` for images.

    Returns:
        The dataset of :func:`train_dataset` or :func:`eval_dataset`.

    Raises:
        UsageError: an option is wrong, or does not fit the data.
        SourceError: there is no dataset, or no file matches.
        DataError: there is nothing to read, or the records are not as expected.
        RecordError: a file is truncated or damaged.
    """
    if input_context is not None:
        if "shard" in options:
            raise UsageError("shard and input_context both select a share; give one of them")
        options["shard"] = (input_context.input_pipeline_id, input_context.num_input_pipelines)
        batch_size = _per_replica(batch_size, input_context.num_replicas_in_sync)
    given = given_options(options, batch_size, image_size)
    return prepared(find_shards(source, split), given, trains=_trains(split)).build()


@takes(ReadKeywords, *_OPTIONS, shuffle=True)
def train_dataset(
    source: Place,
    *,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    split: str = splits.TRAIN,
    **options: Unpack[ReadKeywords],
) -> tf.data.Dataset:
    """Return one shuffled pass over a split; each iteration has a different order.

    ``model.fit(train_dataset(out), epochs=10)``; with ``epochs="endless"`` the dataset repeats
    without end, in full batches, and ``fit`` needs ``steps_per_epoch=steps_per_epoch(out, 32)``.
    It takes the arguments of :func:`input_fn`.

    Returns:
        Batches of images (float32 [batch, height, width, 3] in [0, 1], or as ``scale`` says) and
        labels (int64 [batch], float32 [batch, 1] or float32 [batch, classes]); then weights
        (float32 [batch]) and ``columns`` (a dict by feature name), if requested. Unlabelled
        examples are skipped. The last batch may be short.

        Object detection has boxes instead of labels: a dict of ``boxes`` (float32 [batch, n, 4])
        and ``labels`` (int64 [batch, n]), both padded with -1 or ragged, and ``count`` (int64
        [batch]), the number of boxes.

        Instead of images, tables and declared columns have a dict of columns by name, videos a dict
        of the parts of segments, and entities a dict of ``tokens`` and ``mask``.

        The dataset's ``class_names`` are the classes in the order of their numbers.

    Raises: UsageError: ``drop_remainder`` leaves no batch; RecordgenError: as :func:`input_fn`.
    """
    given = given_options(options, batch_size, image_size)
    return prepared(find_shards(source, split), given, trains=True).build()


@takes(ReadKeywords, *_OPTIONS)
def eval_dataset(
    source: Place,
    *,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    split: str = splits.EVAL,
    **options: Unpack[ReadKeywords],
) -> tf.data.Dataset:
    """Return one pass over a split in the order of the shards.

    Arguments, batches and errors are as in :func:`train_dataset`.
    """
    given = given_options(options, batch_size, image_size)
    return prepared(find_shards(source, split), given, trains=False).build()


@takes_options
def reading_plan(
    source: Place,
    *,
    split: str = splits.TRAIN,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    **options: Unpack[ReadKeywords],
) -> ReadPlan:
    """Return the decisions of :func:`input_fn` for the same arguments, for ``print``.

    Raises the same errors.
    """
    given = given_options(options, batch_size, image_size)
    _, _, plan = _planned(find_shards(source, split), given, trains=_trains(split))
    return plan


@takes_options
def steps_per_epoch(
    source: Place,
    batch_size: int,
    *,
    split: str = splits.TRAIN,
    image_size: ImageSize | None = None,
    **options: Unpack[ReadKeywords],
) -> int:
    """Return the number of batches in one pass.

    100 examples in batches of 32 → 4; with ``Tuning(drop_remainder=True)`` 3.

    Counts come from ``dataset.json``. If it does not have them (other tools' files, a function as
    ``only``, several classes of examples with any number of labels), records are read and counted,
    without decoding images. The user's cache folder keeps the count, unless ``only`` is a function.
    It takes the arguments of :func:`input_fn`; ``image_size`` is ignored.

    Raises:
        UsageError: there are too few examples for one whole batch.
        RecordgenError: as :func:`input_fn`.
    """
    shards = find_shards(source, split)
    given = {**given_options(options, batch_size, image_size), "epochs": 1}
    kind, decoded, plan = _planned(shards, given, trains=_trains(split))
    examples = plan.examples
    if examples is None:
        count = partial(_counted, shards, plan, decoded, kind)
        what = f"{plan.pieces} {plan.turn} {plan.classes}"
        examples = count() if decoded.predicate else remembered(plan.files, what, count)
    _check_batch_size(examples, decoded)
    return batches_of(examples, decoded)


def _counted(shards: ShardSet, plan: ReadPlan, options: RecordOptions, kind: Kind) -> int:
    reading = kind.reading(shards, plan, options)
    records = read_records(plan, options, reading.keep)
    search = Search(plan.files, lambda: (reading.keep, tf.identity))
    with named_errors(searchable(records, search)):
        return int(records.reduce(tf.constant(0, tf.int64), lambda total, _: total + 1))


def given_options(
    options: Mapping[str, Any], batch_size: int, image_size: ImageSize | None
) -> dict[str, Any]:
    """Return options together with those that have an argument of their own."""
    given = {**options, "batch_size": batch_size}
    return given if image_size is None else {**given, "image_size": image_size}


def _per_replica(batch_size: int, replicas: int) -> int:
    whole: int = decode_options(RecordOptions, {"batch_size": batch_size}).batch_size
    if whole % replicas:
        raise UsageError(
            f"batch_size must be a multiple of the {replicas} replicas (got {whole}); "
            f"{-(-whole // replicas) * replicas} is one"
        )
    return whole // replicas


class Prepared(NamedTuple):
    """A dataset that was planned and checked, and is built when it is needed.

    Building traces functions, which takes most of the time before the first batch.

    Attributes:
        class_names: the classes in the order of their numbers.
        build: returns the dataset.
    """

    class_names: Sequence[str]
    build: Callable[[], tf.data.Dataset]


def prepared(shards: ShardSet, given: Mapping[str, Any], *, trains: bool) -> Prepared:
    """Prepare the dataset of shards, for training or in order. Raises: as :func:`input_fn`."""
    kind, decoded, plan = _planned(shards, given, trains=trains)
    _check_batch_size(plan.examples, decoded)
    if plan.cache is not None:
        level = logging.WARNING if plan.cache.stage == NOTHING else logging.INFO
        _log.log(level, "cache: %s", plan.cache)
    reading = kind.reading(shards, plan, decoded)
    names = () if shards.dataset is None else shards.dataset.labels
    if plan.classes is not None and plan.classes.names is not None:
        names = plan.classes.names

    def build() -> tf.data.Dataset:
        search = Search(plan.files, lambda: (reading.keep, reading.to_batch))
        found = searchable(reading.dataset(), search)
        # The same attribute as in Keras's image_dataset_from_directory.
        found.class_names = list(names)
        return found

    return Prepared(names, build)


def _planned(
    shards: ShardSet, given: Mapping[str, Any], *, trains: bool
) -> tuple[Kind, RecordOptions, ReadPlan]:
    kind = kind_of(shards, given)
    defaults = {"shuffle": True} if trains else {}
    decoded: RecordOptions = decode_options(kind.options, {**defaults, **given})
    plan = kind.plan(shards, decoded)
    check_lengths(plan, shards)
    return kind, decoded, plan


def _trains(split: str) -> bool:
    """Return whether :func:`input_fn` reads a split for training."""
    return splits.split_named(split) == splits.TRAIN


def _check_batch_size(examples: int | None, options: RecordOptions) -> None:
    if examples is not None and options.tuning.drop_remainder and not batches_of(examples, options):
        raise UsageError(
            f"batch_size must be at most {examples}, the number of examples to read (got "
            f"{options.batch_size})"
        )


# --- all splits of an output ----------------------------------------------------------------------


# Options of :func:`load` that apply to ``train`` only.
_TRAINING = ("augment", "weights")


class Splits(Mapping[str, tf.data.Dataset]):
    """Datasets by split; any name of a split is a key: ``["validation"]`` is ``["eval"]``.

    Attributes:
        class_names: the classes, in the order of their numbers.
    """

    def __init__(self, source: str, known: Mapping[str, Prepared]) -> None:
        # Not the manifest's names: ``vocabulary`` may have changed their order.
        self.class_names = next((list(each.class_names) for each in known.values()), [])
        self._source = source
        self._known = known
        self._built: dict[str, tf.data.Dataset] = {}

    def __getitem__(self, split: str) -> tf.data.Dataset:
        """Return the dataset of a split. Raises: SplitNotFoundError, a KeyError."""
        name = splits.find_split(self._source, split, list(self._known))
        if name not in self._built:
            self._built[name] = self._known[name].build()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Splits({dict(self)})"


@takes_options
def load(
    source: Place,
    *,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    **options: Unpack[ReadKeywords],
) -> Splits:
    """Return all splits of an output: ``{"train": …, "eval": …, "test": …}``.

    ``train`` is shuffled, other splits are in order, as ``model.fit(data["train"],
    validation_data=data["validation"], epochs=5)`` needs it.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``, or several; a folder of
            other tools' records in folders ``Split-train``, …; or files of records or patterns:
            one split, ``train`` if no output says another.
        batch_size: examples per batch.
        image_size: as in :func:`input_fn`.
        **options: as in :func:`input_fn`, for all splits; ``augment`` and ``weights`` only for
            ``train``. An output of :func:`recordgen.write` has no task, and takes the options of
            :func:`recordgen.read`.

    Returns:
        The datasets by split, and the ``class_names``. A split without labelled examples is skipped
        with a warning. Without a task, batches are dicts of all features.

    Raises: RecordgenError: as :func:`input_fn`.
    """
    if "split" in options:
        raise UsageError("load reads all splits; input_fn(…, split=…) reads one")
    given = given_options(options, batch_size, image_size)
    parts = _shards_of(source)
    known = [shards.dataset for shards in parts.values() if shards.dataset is not None]
    has_task = not any(dataset.task == EXAMPLES for dataset in known)
    found = {}
    for name, shards in parts.items():
        is_training = name == splits.TRAIN
        if not has_task:
            order = {"shuffle": is_training, **options}
            found[name] = _built(read_features(shards, None, batch_size, order))
        elif shards.dataset is not None and not _has_labels(shards.dataset, name, given):
            _log.warning(
                "load: split %r has no labelled example and is skipped; read it with "
                "label_mode=None",
                name,
            )
        else:
            own = given if is_training else {k: v for k, v in given.items() if k not in _TRAINING}
            found[name] = prepared(shards, own, trains=is_training)
    return Splits(str(source), found)


def _built(dataset: tf.data.Dataset) -> Prepared:
    return Prepared((), lambda: dataset)


def _shards_of(source: Place) -> dict[str, ShardSet]:
    """Return the shards by split; files are one split: ``train``, if no output says another."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    several = isinstance(paths, Iterable) and [
        _splits_in(storage.normal(os.fspath(path))) for path in paths
    ]
    if several and all(several):
        return {name: find_shards(source, name) for name in dict.fromkeys(chain(*several))}
    shards = find_shards(source, splits.TRAIN)
    return {shards.split or splits.TRAIN: shards}


def _splits_in(path: str) -> Sequence[str]:
    """Return the names of an output's splits, or of those of other tools' records; else none."""
    if holds_dataset(path):
        return list(read_dataset(path).splits)
    folders = storage.list_folders(path, SPLIT_PREFIX)
    return [folder.removeprefix(SPLIT_PREFIX) for folder in folders]


def _has_labels(dataset: Dataset, split: str, given: Mapping[str, Any]) -> bool:
    """Return whether a split has a labelled example, or needs none."""
    if given.get("label_mode", "") is None:
        return True
    # Rows have labels only if their target is a class.
    is_class = kind_for(dataset.task).has_target and dataset.labels
    needs_labels = TASKS[dataset.task].labelling in (ONE, SEVERAL) or is_class
    return bool(dataset.splits[split].labels) or not needs_labels
