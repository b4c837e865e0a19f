"""Records → shards in a staging folder, in parallel, with bounded memory.

With n shards, record i goes to shard i % n. Each shard belongs to one thread, which takes its
records in blocks and checksums, compresses and writes them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from recordgen import storage
from recordgen.core.records import RECORDS
from recordgen.core.runs.staging import Staging
from recordgen.errors import StorageError

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

#: Folder of shards in the staging folder; their final names need the number of shards.
STAGED = "shards"

#: One serialised record, in pieces.
Record = tuple[bytes, ...]


def staged_file(staging: Staging, index: int) -> str:
    """Return the path of a shard in the staging folder."""
    return staging.path(STAGED, f"{index:05d}")


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
        for shard in self._all:
            shard.abandon()

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
        self._waiting.append((shard.hand_over(), size))
        self._waiting_bytes += size

    def _finish_open(self) -> None:
        for shard in self._open:
            self._hand_over(shard)
        self._wait(-1)
        self._finished += [shard.finish() for shard in self._open]
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
        block: records that were not handed over yet.
        block_bytes: approximate memory of these records.
    """

    def __init__(self, path: str, compression: str, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._file = _writing(path, compression)
        next(self._file)  # opens the file
        self.block: list[Record] = []
        self.block_bytes = 0

    def add(self, record: Record) -> int:
        """Add a record to the block; return its size in bytes."""
        size = sum(map(len, record))
        self.block.append(record)
        self.block_bytes += size + _RECORD_OVERHEAD_BYTES
        return size

    def hand_over(self) -> Future[None]:
        """Let the thread write the block."""
        block, self.block, self.block_bytes = self.block, [], 0
        return self._pool.submit(self._file.send, block)

    def finish(self) -> Future[WrittenShard]:
        """Let the thread finish the file."""
        return self._pool.submit(self._finish)

    def _finish(self) -> WrittenShard:
        try:
            self._file.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("unreachable: None ends the file")

    def abandon(self) -> None:
        """Remove the file unless it is finished; the thread must be idle."""
        with suppress(StorageError):
            self._file.close()


def _writing(path: str, compression: str) -> Generator[None, list[Record] | None, WrittenShard]:
    """Write each block of records that is sent; None finishes the file."""
    lengths, digest = array("I"), hashlib.sha256()
    with storage.replacing(path) as file, RECORDS.writer(file, compression) as out:
        while (block := (yield)) is not None:
            lengths.extend(sum(map(len, record)) for record in block)
            for piece in _joined(piece for record in block for piece in record):
                digest.update(piece)
            out.write([_joined(piece for record in block for piece in RECORDS.frame(record))])
    stored = np.asarray(lengths, "<u4").tobytes()
    return WrittenShard(len(lengths), stored, out.bytes, digest.hexdigest())


def _joined(pieces: Iterable[bytes]) -> list[bytes]:
    """Join pieces if there are more than ``_MAX_PIECES``."""
    found = list(pieces)
    return found if len(found) <= _MAX_PIECES else [b"".join(found)]
