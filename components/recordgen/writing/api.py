"""``write``: any examples → TFRecord shards with a ``dataset.json``.

    write([{"x": np.zeros((28, 28), np.uint8), "y": 3}, …], "out")

    OUT/Split-train/data_tfrecord-00000-of-00008
    OUT/dataset.json                               has the type and shape of each feature

The calling thread takes the examples, checks and serialises them; threads checksum, compress and
write, each its own shards. With n shards, record i goes to shard i % n, so the bytes do not depend
on the number of threads.

Processes would speed up small examples, which the interpreter bounds on one core. But ``spawn``
imports the caller's script again and fails without a main guard, and ``fork`` may copy locks of
TensorFlow and gRPC. Threads that also serialise gain little under the interpreter's lock, and would
write later values of a generator that refills one array.
"""

from __future__ import annotations

import hashlib
import os
import time
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recordgen import storage
from recordgen.access.shards import lengths_there
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.joining import dataset_of, with_splits
from recordgen.core.dataset.manifest import (
    EXAMPLES,
    INDEX_FILE,
    SPLIT_NAME,
    Dataset,
    has_dataset,
    read_dataset,
    shard_file,
    split_dir,
    write_index,
)
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.ordered import default_threads
from recordgen.core.records import RECORDS, Record
from recordgen.core.records.example import serialize_example
from recordgen.core.runs.commit import commit, open_run
from recordgen.core.runs.staging import STAGING, Staging
from recordgen.errors import (
    NothingToConvertError,
    OutputExistsError,
    StorageError,
    UsageError,
    check_at_least,
    check_one_of,
    names_checked,
)
from recordgen.exports.export import WRITTEN, Output, described_names, exported, no_files
from recordgen.messages import Shown
from recordgen.options import COMPRESSIONS
from recordgen.writing.example_schema import ExampleSchema

# Eight shards can be written and read in parallel.
_SHARDS_AT_ONCE = 8

#: Target shard size when ``shards`` is not given; the default of ``convert``.
SHARD_BYTES = 128_000_000

# Threads take blocks: handing over a single record costs more than writing it.
_BLOCK_RECORDS = 256
_BLOCK_BYTES = 1_000_000

# Limit for the bytes of records in incomplete blocks, and again in blocks that wait.
_IN_FLIGHT_BYTES = 64_000_000
_RECORD_OVERHEAD_BYTES = 200

# After hashing or writing a piece, a thread waits for the interpreter's lock.
_MAX_PIECES = 64


def staged_file(staging: Staging, index: int) -> str:
    """Return the path of a shard in the staging folder: its name needs the number of shards."""
    return staging.path("shards", f"{index:05d}")


class WrittenShard(NamedTuple):
    """A finished shard."""

    examples: int
    lengths: bytes  # length of each record in bytes (uint32, little-endian)
    bytes: int
    digest: str  # sha256 (hex) of its serialised records


class ShardedWriter:
    """Distributes records to shards, and shards to threads.

    Without ``shards``, it opens eight shards, and eight more whenever these hold ``shard_bytes``
    each on average. Leaving the context ends the threads and removes unfinished shards.
    """

    def __init__(
        self,
        staging: Staging,
        *,
        shards: int | None,
        workers: int,
        compression: str,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        self._staging = staging
        self._compression = compression
        self._at_once = shards or _SHARDS_AT_ONCE
        self._full_bytes = None if shards else self._at_once * shard_bytes
        self._block_bytes = min(_BLOCK_BYTES, _IN_FLIGHT_BYTES // self._at_once)
        threads = min(workers, self._at_once)
        self._pools = [ThreadPoolExecutor(1, "recordgen") for _ in range(threads)]
        self._open: list[_ShardWriter] = []
        self._open_bytes = 0
        self._next = 0
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self._waiting_bytes = 0
        self._finished: list[Future[WrittenShard]] = []
        self._all: list[_ShardWriter] = []

    def __enter__(self) -> ShardedWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)
        for shard in self._all:  # the threads are idle: remove its file unless it is finished
            with suppress(StorageError):
                shard.file.close()

    def write(self, record: Record) -> None:
        """Take the next record; wait while too many bytes are in flight."""
        if self._next == self._at_once:
            self._next = 0
            if self._full_bytes is not None and self._open_bytes >= self._full_bytes:
                self._finish_open()
        if self._next == len(self._open):
            index = len(self._all)
            pool = self._pools[index % len(self._pools)]
            path = staged_file(self._staging, index)
            self._open.append(_ShardWriter(path, self._compression, pool))
            self._all.append(self._open[-1])
        shard = self._open[self._next]
        self._next += 1
        self._open_bytes += shard.add(record)
        if shard.block_bytes >= self._block_bytes or len(shard.block) >= _BLOCK_RECORDS:
            self._hand_over(shard)

    def finish(self) -> list[WrittenShard]:
        """Finish all shards and return them."""
        self._finish_open()
        return [shard.result() for shard in self._finished]

    def _hand_over(self, shard: _ShardWriter) -> None:
        size = shard.block_bytes
        self._wait(_IN_FLIGHT_BYTES - size)
        block, shard.block, shard.block_bytes = shard.block, [], 0
        self._waiting.append((shard.hand_over(block), size))
        self._waiting_bytes += size

    def _finish_open(self) -> None:
        for shard in self._open:
            self._hand_over(shard)
        self._wait(-1)
        self._finished += [shard.hand_over(None) for shard in self._open]
        self._open, self._open_bytes = [], 0

    def _wait(self, allowed: int) -> None:
        """Wait until at most ``allowed`` bytes are in flight; raise the error of a thread."""
        while self._waiting and (self._waiting_bytes > allowed or self._waiting[0][0].done()):
            block, size = self._waiting.popleft()
            block.result()
            self._waiting_bytes -= size


class _ShardWriter:
    """One shard: an incomplete block, and the file that the shard's thread writes.

    Attributes:
        file: writes the blocks that it is sent.
        block: records that were not handed over yet.
        block_bytes: approximate memory of these records.
    """

    def __init__(self, path: str, compression: str, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.file = _writing(path, compression)
        next(self.file)  # opens the file
        self.block: list[Record] = []
        self.block_bytes = 0

    def add(self, record: Record) -> int:
        """Add a record to the block; return its size in bytes."""
        size = sum(map(len, record))
        self.block.append(record)
        self.block_bytes += size + _RECORD_OVERHEAD_BYTES
        return size

    def hand_over(self, block: list[Record] | None) -> Future[Any]:
        """Let the thread write a block, or finish the file: the result is the shard."""
        return self._pool.submit(self.file.send, block)


def _writing(path: str, compression: str) -> Generator[Any, list[Record] | None, None]:
    """Write each block of records that is sent; for None, finish the file and yield the shard."""
    lengths, digest = array("I"), hashlib.sha256()
    with storage.replacing(path) as file, RECORDS.writer(file, compression) as out:
        while (block := (yield)) is not None:
            lengths.extend(sum(map(len, record)) for record in block)
            for piece in _joined(piece for record in block for piece in record):
                digest.update(piece)
            out.write([_joined(piece for record in block for piece in RECORDS.frame(record))])
    stored = np.asarray(lengths, "<u4").tobytes()
    yield WrittenShard(len(lengths), stored, out.bytes, digest.hexdigest())


def _joined(pieces: Iterable[bytes]) -> list[bytes]:
    """Join pieces if there are more than ``_MAX_PIECES``."""
    found = list(pieces)
    return found if len(found) <= _MAX_PIECES else [b"".join(found)]


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
        dataset = dataset_of(EXAMPLES, {}, compression=compression, features=schema.specs())
        new = [
            Shard(
                shard_file(split, at, len(written), compression), it.examples, it.bytes, it.digest
            )
            for at, it in enumerate(written)
        ]
        lengths = {shard.file: it.lengths for shard, it in zip(new, written, strict=True)}
        of_old, kept = lengths.__getitem__, frozenset[str]()
        if others is not None:
            dataset, of_old = others, lengths_there(target, others)
            kept = frozenset(shard.file for shard in others.shards)
        dataset = with_splits(dataset, {**dataset.splits, split: Split.of(new, {})})

        def lengths_of(file: str) -> bytes:
            return lengths[file] if file in lengths else of_old(file)

        dataset = write_index(staging.path(INDEX_FILE), dataset, lengths_of)
        commit(
            staging,
            target,
            dataset,
            files=no_files() | exported(_WrittenOutput(target, dataset), WRITTEN),
            kept=kept,
            staged={shard.file: staged_file(staging, at) for at, shard in enumerate(new)},
            meanwhile=others,  # while shards are moved, dataset.json lacks the split
        )
    return WriteResult(target, dataset, time.monotonic() - started)


def _iterate(examples: Any) -> Iterator[Any]:
    if not isinstance(examples, Mapping | str | bytes):
        with suppress(TypeError):
            return iter(examples)
    raise UsageError(
        f"examples must be an iterable of dicts, one per example (got a {type(examples).__name__})"
    )


def _check_arguments(shards: int | None, workers: int | None, split: str, compression: str) -> None:
    given = {"shards": shards, "workers": workers}
    check_at_least(1, **{name: number for name, number in given.items() if number is not None})
    if not isinstance(split, str) or not SPLIT_NAME.fullmatch(split):
        raise UsageError(
            f"split must be a name of letters, digits, '-', '_' and '.', such as 'train' "
            f"(got {split!r})"
        )
    check_one_of("compression", compression, COMPRESSIONS)


def _other_splits(target: str, split: str, compression: str, *, overwrite: bool) -> Dataset | None:
    """Return the dataset in ``target`` without ``split``; None if it has no other splits.

    Raises: OutputExistsError: the split exists already, or the dataset has a task.
    """
    storage.check_writable(target)
    if not has_dataset(target):
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


@contextmanager
def _staging(
    target: str, split: str, others: Dataset | None, *, overwrite: bool
) -> Iterator[Staging]:
    """Provide a new staging folder; remove it if writing fails."""
    folder = storage.join(target, split_dir(split))
    there = dict(storage.list_dir(target) if others is not None and not overwrite else ())
    stale = split_dir(split) in there
    # A split's folder that is not in dataset.json is Recordgen's own only if a run died while it
    # moved the shards.
    if stale and STAGING not in there:
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
