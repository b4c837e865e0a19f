"""Shards of a table: examples are made, checksummed and framed a block of lines at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.dataset.vocabulary import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.records.tfrecord import frame_head, masked
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.arrow import Records, Texts, heads_by_size, joined_by_row
from recordgen.tables.columns import Table
from recordgen.tables.examples import make_examples

if TYPE_CHECKING:
    from recordgen.shards.task import Tally

# Arrow's stubs, where there are any, differ from version to version.
Columns: TypeAlias = Any  # pa.Table
Block: TypeAlias = Any  # pa.RecordBatch

# Blocks held at once: enough to keep the threads busy while the writer waits for the oldest.
_BLOCKS_PER_THREAD = 3


@dataclass(frozen=True)
class PlannedLines:
    """Lines that will become examples unless their values are refused, in order.

    Attributes:
        blocks: columns ``source``, ``line``, ``text``, ``bytes`` (of the record, about) and
            ``drawn`` (the split was assigned, not named).
    """

    blocks: Sequence[Block]

    @property
    def payload_bytes(self) -> int:
        """What the records of all lines take, about."""
        return sum(map(_bytes_of, self.blocks))

    def encode(self) -> Iterator[tuple[bytes, int]]:
        """Yield each block packed, and what its records take."""
        for block in self.blocks:
            yield packed(block), _bytes_of(block)

    def identity(self, vocabulary: Vocabulary, options: ConvertOptions) -> Iterator[bytes]:
        """Yield what decides, beside the options, what becomes of the lines."""
        del vocabulary, options
        for block in self.blocks:
            texts = block.column("text")
            yield pc.binary_length(texts).to_numpy().tobytes()
            yield bytes(_joined(texts))
            yield block.column("drawn").to_numpy(zero_copy_only=False).tobytes()

    def renumbered(self, rejects: Sequence[Reject]) -> Sequence[Reject]:
        """Return rejects: lines without a uri are not to be told from others."""
        return rejects

    def frames(
        self, tally: Tally, vocabulary: Vocabulary, options: ConvertOptions, threads: int
    ) -> Iterator[Sequence[bytes]]:
        """Yield the framed records of a block at a time, in order; a few are in flight."""
        del vocabulary
        table = Table.from_json(options.table)
        waiting: deque[tuple[Block, Future[_Made]]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="recordgen") as pool:
            try:
                for block in self.blocks:
                    waiting.append((block, pool.submit(_make, block, table)))
                    if len(waiting) > threads * _BLOCKS_PER_THREAD:
                        yield self._written(*waiting.popleft(), tally)
                while waiting:
                    yield self._written(*waiting.popleft(), tally)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    @staticmethod
    def _written(block: Block, future: Future[_Made], tally: Tally) -> Sequence[bytes]:
        made = future.result()
        tally.add(
            len(made.records),
            made.digested,
            drawn=made.drawn,
            labels=made.labels,
            rejects=made.rejects,
            payload_bytes=_bytes_of(block),
        )
        return (made.frames,)


class _Made(NamedTuple):
    """A block of examples.

    Attributes:
        records: serialised (binary).
        digested: all of them, one behind the other.
        frames: the same as they stand in a file.
        drawn: examples whose split was drawn.
        labels: examples by label.
        rejects: lines whose values were refused.
    """

    records: Records
    digested: memoryview
    frames: bytes
    drawn: int
    labels: Mapping[str, int]
    rejects: Sequence[Reject]


def _make(block: Block, table: Table) -> _Made:
    examples = make_examples(block.column("text"), table)
    drawn = block.column("drawn")
    rejects = []
    if examples.errors:
        sources, lines = block.column("source"), block.column("line")
        code = RejectCode.BAD_ANNOTATION.value
        rejects = [
            Reject(sources[row].as_py(), lines[row].as_py(), "", code, examples.errors[row])
            for row in sorted(examples.errors)
        ]
        drawn = drawn.filter(pa.array([row not in examples.errors for row in range(len(block))]))
    return _Made(
        examples.records,
        _joined(examples.records),
        bytes(_joined(framed(examples.records))),
        pc.sum(drawn).as_py() or 0,
        examples.labels,
        rejects,
    )


def framed(records: Records) -> Records:
    """Return each record as it stands in a file, see :func:`recordgen.records.tfrecord.frame`."""
    sums = np.fromiter(map(google_crc32c.value, records.to_pylist()), np.uint64, len(records))
    ends = np.arange(0, 4 * len(records) + 1, 4, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(masked(sums).astype("<u4"))]
    checksums = pa.Array.from_buffers(pa.binary(), len(records), buffers)
    return joined_by_row([heads_by_size(records, frame_head), records, checksums])


def _joined(items: Records | Texts) -> memoryview:
    """Return items one behind the other, without copying them."""
    _, offsets, data = items.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[items.offset : items.offset + len(items) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]


def _bytes_of(block: Block) -> int:
    return pc.sum(block.column("bytes")).as_py() or 0


def packed(columns: Columns | Block) -> bytes:
    """Return columns as bytes, which :func:`unpacked` takes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns.schema) as stream:
        stream.write(columns)
    return bytes(sink.getvalue())


def unpacked(file: pa.BufferReader) -> Columns:
    """Return the next columns of a file of packed ones."""
    return pa.ipc.open_stream(file).read_all()
