"""Write or check one shard, the unit of work of a worker.

Threads fetch, check, serialise and frame. The calling thread writes in the task's order, so the
bytes do not depend on timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordgen import storage
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records import RECORDS
from recordgen.core.records.format import Record
from recordgen.core.shards.task import OnProgress, ShardResult, ShardStats, ShardTask
from recordgen.core.task.built import BuiltBatch
from recordgen.ordered import threads_here

_SMALL_PAYLOAD_BYTES = 16_000


def write_shard(
    task: ShardTask,
    target: str,
    *,
    vocabulary: Vocabulary,
    conversion: Conversion,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Write one shard under the folder ``target``.

    The file is written under a temporary name and renamed, so it is never incomplete. A second
    attempt replaces it with the same bytes.

    Raises:
        StorageError: storage failed; the data may be fine.
    """
    stats = ShardStats(on_progress, conversion)
    file = task.file(conversion.shards.compression)
    made = task.rows.build(vocabulary, conversion, _threads(task, conversion), _framed)

    def frames() -> Iterator[Record]:
        for built, framed in made:
            stats.add(built)
            yield from framed

    with (
        storage.replacing(storage.join(target, file)) as out,
        RECORDS.writer(out, conversion.shards.compression) as writer,
    ):
        writer.write(frames())
    return stats.result(task, file, writer.bytes, task.fingerprint(vocabulary, conversion))


def check_shard(
    task: ShardTask,
    *,
    vocabulary: Vocabulary,
    conversion: Conversion,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Check one shard as :func:`write_shard` does, but write nothing."""
    stats = ShardStats(on_progress, conversion)
    threads = _threads(task, conversion)
    for built in task.rows.build(vocabulary, conversion, threads, lambda made: made):
        stats.add(built)
    file = task.file(conversion.shards.compression)
    return stats.result(task, file, 0, task.fingerprint(vocabulary, conversion))


def _threads(task: ShardTask, conversion: Conversion) -> int:
    """Return one thread for small payloads, unless options say otherwise, else all of the share.

    Small payloads keep threads in Python, where they only wait for each other.
    """
    rows = task.rows
    is_small = rows.payload_bytes < _SMALL_PAYLOAD_BYTES * len(rows.columns)
    if conversion.threads is None and conversion.task.names_payloads and is_small:
        return 1
    return threads_here(conversion.threads)


def _framed(built: BuiltBatch) -> tuple[BuiltBatch, Sequence[Record]]:
    """Return the batch with its framed records; checksums are made by the thread that calls it."""
    frames = [RECORDS.frame(record) for record in built.records]
    if built.column is not None:
        frames.insert(0, [RECORDS.frame_column(built.column)])
    return built, frames
