"""Write or check one shard, the unit of work of a worker.

Threads fetch, check and serialise. The calling thread writes in the task's order, so the bytes do
not depend on timing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordgen import storage
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.options import ConvertOptions, default_threads
from recordgen.records.tfrecord import write_frames
from recordgen.shards.task import OnProgress, ShardResult, ShardStats, ShardTask


def write_shard(
    task: ShardTask,
    target: str,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Write one shard under the folder ``target``.

    The file is written under a temporary name and renamed, so it is never incomplete. A second
    attempt replaces it with the same bytes.

    Raises:
        StorageError: storage failed; the data may be fine.
    """
    stats = ShardStats(on_progress, options)
    file = task.file(options.compression)
    frames = _frames(task, stats, vocabulary, options)
    with storage.replacing(storage.join(target, file)) as out:
        size = write_frames(out, frames, options.compression)
    return stats.result(task, file, size, task.fingerprint(vocabulary, options))


def check_shard(
    task: ShardTask,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Check one shard as :func:`write_shard` does, but write nothing."""
    stats = ShardStats(on_progress, options)
    for _ in _frames(task, stats, vocabulary, options):
        pass
    file = task.file(options.compression)
    return stats.result(task, file, 0, task.fingerprint(vocabulary, options))


def _frames(
    task: ShardTask, stats: ShardStats, vocabulary: Vocabulary, options: ConvertOptions
) -> Iterator[Sequence[bytes]]:
    threads = options.threads or default_threads()
    for built in task.rows.build(vocabulary, options, threads):
        stats.add(built)
        yield from built.frames
