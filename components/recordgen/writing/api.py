"""``write``: any examples → TFRecord shards with a ``dataset.json``.

    write([{"x": np.zeros((28, 28), np.uint8), "y": 3}, …], "out")

    OUT/Split-train/data_tfrecord-00000-of-00008
    OUT/dataset.json                               has the type and shape of each feature

The calling thread takes the examples, checks and serialises them; threads checksum, compress and
write, each its own shards. Records go to the open shards in turn, so the bytes do not depend on the
number of threads.

Processes would speed up small examples, which the interpreter bounds on one core. But ``spawn``
imports the caller's script again and fails without a main guard, and ``fork`` may copy locks of
TensorFlow and gRPC. Threads that also serialise gain little under the interpreter's lock, and would
write later values of a generator that refills one array.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from recordgen import storage
from recordgen.access.index import lengths_there
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.index import write_index
from recordgen.core.dataset.joining import dataset_of, with_splits
from recordgen.core.dataset.manifest import (
    DATASET_FILE,
    EXAMPLES,
    INDEX_FILE,
    SPLIT_NAME,
    Dataset,
    read_dataset,
    shard_file,
    split_dir,
)
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.ordered import default_threads
from recordgen.core.records.example import serialize_example
from recordgen.core.runs.commit import commit, open_run
from recordgen.core.runs.staging import STAGING, Staging
from recordgen.errors import NothingToConvertError, OutputExistsError, UsageError, names_checked
from recordgen.exports.beside import WRITTEN, described_names, exported, no_files
from recordgen.exports.output import Output
from recordgen.features import FeatureSpec
from recordgen.messages import Shown
from recordgen.options import COMPRESSIONS
from recordgen.writing.example_schema import ExampleSchema
from recordgen.writing.shard_writer import ShardedWriter, WrittenShard, staged_file


@dataclass(frozen=True, repr=False)
class WriteResult(Shown):
    """The result of :func:`write`.

    Attributes:
        output: the folder or URL prefix of the dataset.
        dataset: the content of its ``dataset.json``, with all splits.
        seconds: wall-clock time.
    """

    output: str
    dataset: Dataset
    seconds: float


@names_checked
def write(
    examples: Iterable[Mapping[str, Any]],
    output: str | os.PathLike[str],
    *,
    shards: int | None = None,
    workers: int | None = None,
    split: str = TRAIN,
    compression: str = "none",
    overwrite: bool = False,
) -> WriteResult:
    """Write examples as one split of ``output``.

    ``write([{"text": "a", "ids": [1, 2]}, {"text": "b", "ids": [3]}], "out")`` → two records, the
    features ``text`` (bytes, scalar) and ``ids`` (int64, a list of varying length).

    Args:
        examples: dicts of values by feature name: numbers, text, bytes, NumPy arrays and lists of
            these; consumed once, in the calling thread. All have the same features, see
            :class:`recordgen.writing.example_schema.ExampleSchema`. You may reuse an array for the
            next example.
        output: folder or URL prefix to write; other splits in it stay, and must have the same
            features.
        shards: the number of files; fewer if there are fewer examples. They are all open at the
            same time. None: eight, and eight more whenever these hold 128 MB each.
        workers: threads that checksum, compress and write; None: one per core, at least two. The
            bytes do not depend on it.
        split: the split's name.
        compression: ``none`` or ``gzip``; gzip adds ``.gz`` to the shards' names.
        overwrite: replace the split if it is already there.

    Raises:
        UsageError: an argument is wrong, or ``output`` holds the split or something else, or
            another run writes there.
        NothingToConvertError: there are no examples.
        DataError: an example cannot be stored or does not fit the others; the message names it.
        StorageError: storage failed.
    """
    started = time.monotonic()
    _check_arguments(shards, workers, split, compression)
    numbered = enumerate(_iterate(examples))
    target = storage.normal(os.fspath(output))
    others = _other_splits(target, split, compression, overwrite=overwrite)
    schema = ExampleSchema()
    if others is not None:
        schema = ExampleSchema(others.features, f"{target}, split {next(iter(others.splits))!r}")
    with _staging(target, split, others, overwrite=overwrite) as staging:
        if _other_splits(target, split, compression, overwrite=overwrite) != others:
            raise OutputExistsError(f"{target}: another run just finished here; write again")
        threads = workers or default_threads()
        with ShardedWriter(
            staging, shards=shards, workers=threads, compression=compression
        ) as writer:
            for number, example in numbered:
                writer.write(serialize_example(schema.check(example, number)))
            written = writer.finish()
        if not written:
            raise NothingToConvertError("nothing to write: there are no examples")
        dataset = _with_split(others, split, written, schema.specs(), compression)
        new = zip(dataset.splits[split].shards, written, strict=True)
        lengths = {shard.file: item.lengths for shard, item in new}
        of_old = lengths_there(target, others) if others is not None else lengths.__getitem__

        def lengths_of(file: str) -> bytes:
            return lengths[file] if file in lengths else of_old(file)

        dataset = write_index(staging.path(INDEX_FILE), dataset, lengths_of)
        _put(staging, target, others, split, dataset)
    return WriteResult(target, dataset, time.monotonic() - started)


def _iterate(examples: Any) -> Iterator[Any]:
    if not isinstance(examples, Mapping | str | bytes):
        with suppress(TypeError):
            return iter(examples)
    raise UsageError(
        f"examples must be an iterable of dicts, one per example (got a {type(examples).__name__})"
    )


def _check_arguments(shards: int | None, workers: int | None, split: str, compression: str) -> None:
    for name, number in (("shards", shards), ("workers", workers)):
        if number is not None and (type(number) is not int or number < 1):
            raise UsageError(f"{name} must be a whole number above 0 (got {number!r})")
    if not isinstance(split, str) or not SPLIT_NAME.fullmatch(split):
        raise UsageError(
            f"split must be a name of letters, digits, '-', '_' and '.', such as 'train' "
            f"(got {split!r})"
        )
    if compression not in COMPRESSIONS:
        raise UsageError(
            f"compression must be one of {', '.join(COMPRESSIONS)} (got {compression!r})"
        )


def _other_splits(target: str, split: str, compression: str, *, overwrite: bool) -> Dataset | None:
    """Return the dataset in ``target`` without ``split``; None if it has no other splits.

    Raises: OutputExistsError: the split exists already, or the dataset has a task.
    """
    storage.check_writable(target)
    if not storage.exists(storage.join(target, DATASET_FILE)):
        return None
    found = read_dataset(target)
    if found.task != EXAMPLES:
        raise OutputExistsError(
            f"{target}: a dataset of the task {found.task} exists already; choose another output"
        )
    if split in found.splits and not overwrite:
        raise OutputExistsError(
            f"{target}: the split {split!r} exists already; choose another split or output, or "
            f"overwrite=True"
        )
    splits = {name: item for name, item in found.splits.items() if name != split}
    if not splits:
        return None
    if found.compression != compression:
        raise UsageError(
            f"compression must be {found.compression} as in the other splits of {target} "
            f"(got {compression!r})"
        )
    return with_splits(found, splits)


def _with_split(
    others: Dataset | None,
    name: str,
    written: Sequence[WrittenShard],
    features: Mapping[str, FeatureSpec],
    compression: str,
) -> Dataset:
    shards = (
        Shard(
            file=shard_file(name, index, len(written), compression),
            examples=item.examples,
            bytes=item.bytes,
            digest=item.digest,
        )
        for index, item in enumerate(written)
    )
    splits = {name: Split.of(shards, {})}
    if others is not None:
        return with_splits(others, {**others.splits, **splits})
    return dataset_of(EXAMPLES, splits, compression=compression, features=features)


@contextmanager
def _staging(
    target: str, split: str, others: Dataset | None, *, overwrite: bool
) -> Iterator[Staging]:
    """Provide a new staging folder; remove it if writing fails."""
    folder = storage.join(target, split_dir(split))
    stale = others is not None and not overwrite and storage.exists(folder)
    # A split's folder that is not in dataset.json is Recordgen's own only if a run died while it
    # moved the shards.
    if stale and not storage.exists(storage.join(target, STAGING)):
        raise OutputExistsError(
            f"{target}: the folder {split_dir(split)} exists already; choose another split or "
            f"overwrite=True"
        )
    with open_run(
        target,
        overwrite=overwrite or others is not None,
        described=described_names(),
        no_use=(BaseException,),
    ) as run:
        if stale:
            storage.remove(folder)
        yield run.staging


class _WrittenOutput(Output):
    """The output before its commit. A replaced dataset may still have an ``examples.parquet``."""

    def has_examples(self) -> bool:
        return False


def _put(
    staging: Staging,
    target: str,
    others: Dataset | None,
    split: str,
    dataset: Dataset,
) -> None:
    """Commit the split. The other splits stay complete all the time."""
    shards = enumerate(dataset.splits[split].shards)
    staged = {shard.file: staged_file(staging, index) for index, shard in shards}
    kept: frozenset[str] = frozenset()
    if others is not None:
        kept = frozenset(shard.file for item in others.splits.values() for shard in item.shards)
    files = no_files() | exported(_WrittenOutput(target, dataset), WRITTEN)
    # While shards are moved, dataset.json lacks the split.
    commit(staging, target, dataset, files=files, kept=kept, staged=staged, meanwhile=others)
