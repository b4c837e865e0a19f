"""Exports that write one file for each shard, so that a second run skips whole shards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import IO

from recordgen import storage
from recordgen.exports.copying import Copy, CopyExport, Stored


class ShardCopyExport(CopyExport):
    """A copy with a file for each shard."""

    @abstractmethod
    def shard_name(self, split: str, at: int, count: int) -> str:
        """Return the path of a file: ``train``, 0, 12 → ``data/train-00000-of-00012.parquet``."""

    @abstractmethod
    def write_shard(self, copy: Copy, file: IO[bytes], examples: Iterator[Stored]) -> None:
        """Write one file. ``file`` can only be written, from the beginning to the end."""

    def write(self, copy: Copy) -> None:
        for split, at, first, shard in copy.shards():
            name = self.shard_name(split, at, len(copy.splits[split].shards))
            if copy.has(name):
                copy.skip(shard)
                continue
            with storage.replacing(copy.path(name)) as file:
                self.write_shard(copy, file, copy.examples(first, shard))
