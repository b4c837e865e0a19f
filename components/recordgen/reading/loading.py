"""``load``: all splits of an output, by name."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen import storage
from recordgen.access.shards import find_shards
from recordgen.core.dataset import splits
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.manifest import (
    DATASET_FILE,
    EXAMPLES,
    SPLIT_PREFIX,
    Dataset,
    read_dataset,
)
from recordgen.core.task.task import ONE, SEVERAL
from recordgen.errors import UsageError
from recordgen.reading.datasets import ImageSize, dataset_of, given_options, takes_options
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

    def __init__(
        self,
        source: str,
        datasets: Mapping[str, tf.data.Dataset],
        class_names: Sequence[str],
    ) -> None:
        self.class_names = list(class_names)
        self._source = source
        self._datasets = dict(datasets)

    def __getitem__(self, split: str) -> tf.data.Dataset:
        """Return the dataset of a split. Raises: SplitNotFoundError, a KeyError."""
        return self._datasets[splits.find_split(self._source, split, list(self._datasets))]

    def __iter__(self) -> Iterator[str]:
        return iter(self._datasets)

    def __len__(self) -> int:
        return len(self._datasets)

    def __repr__(self) -> str:
        return f"Splits({self._datasets})"


@takes_options
def load(
    source: str | os.PathLike[str],
    *,
    batch_size: int = 32,
    image_size: ImageSize | None = None,
    **options: Unpack[ReadKeywords],
) -> Splits:
    """Return all splits of an output: ``{"train": …, "eval": …, "test": …}``.

    ``train`` is shuffled, other splits are in order, as ``model.fit(data["train"],
    validation_data=data["validation"], epochs=5)`` needs it.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or a folder of other tools'
            records in folders ``Split-train``, ….
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
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"source must be an output or its dataset.json (got {source!r})")
    given, where = given_options(options, batch_size, image_size), storage.normal(os.fspath(source))
    parts = _splits_of(where)
    has_task = not any(
        dataset is not None and dataset.task == EXAMPLES for dataset in parts.values()
    )
    found = {}
    for name, dataset in parts.items():
        is_training = name == splits.TRAIN
        shards = find_shards(source, name)
        if not has_task:
            order = {"shuffle": is_training, **options}
            found[name] = read_features(shards, None, batch_size, order)
        elif dataset is not None and not _has_labels(dataset, dataset.splits[name], given):
            _log.warning(
                "load: split %r has no labelled example and is skipped; read it with "
                "label_mode=None",
                name,
            )
        else:
            own = given if is_training else {k: v for k, v in given.items() if k not in _TRAINING}
            found[name] = dataset_of(shards, own, trains=is_training)
    # Take the datasets' names, not the manifest's: ``vocabulary`` may have changed their order.
    names = next((data.class_names for data in found.values()), ()) if has_task else ()
    return Splits(where, found, names)


def _splits_of(where: str) -> dict[str, Dataset | None]:
    """Return the splits of an output, or those of other tools' records, without a dataset."""
    folders = storage.list_folders(where, SPLIT_PREFIX)
    if folders and not storage.exists(storage.join(where, DATASET_FILE)):
        return dict.fromkeys(folder.removeprefix(SPLIT_PREFIX) for folder in folders)
    dataset = read_dataset(where)
    return dict.fromkeys(dataset.splits, dataset)


def _has_labels(dataset: Dataset, split: Split, given: Mapping[str, Any]) -> bool:
    """Return whether a split has a labelled example, or needs none."""
    if given.get("label_mode", "") is None:
        return True
    # Rows have labels only if their target is a class.
    is_class = kind_for(dataset.task).has_target and dataset.labels
    return bool(split.labels) or not (TASKS[dataset.task].labelling in (ONE, SEVERAL) or is_class)
