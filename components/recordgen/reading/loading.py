"""``load``: all splits of an output, by name."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen import storage
from recordgen.access.shards import Place, ShardSet, find_shards
from recordgen.core.dataset import splits
from recordgen.core.dataset.manifest import (
    DATASET_FILE,
    EXAMPLES,
    SPLIT_PREFIX,
    Dataset,
    read_dataset,
)
from recordgen.core.task.task import ONE, SEVERAL
from recordgen.errors import UsageError
from recordgen.reading.datasets import ImageSize, Prepared, given_options, prepared, takes_options
from recordgen.reading.examples import read_features
from recordgen.reading.keywords import ReadKeywords
from recordgen.reading.kinds import kind_for
from recordgen.registry import TASKS

if TYPE_CHECKING:
    from typing_extensions import Unpack

_log = logging.getLogger(__name__)

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
    if path.endswith(DATASET_FILE) or storage.exists(storage.join(path, DATASET_FILE)):
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
