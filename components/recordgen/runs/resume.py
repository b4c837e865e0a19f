"""Shards that are there already: kept if they are what would be written now, byte for byte.

The fingerprint in a shard's result says what it was made of, see :meth:`ShardTask.fingerprint`;
the file itself is read to its end before it is trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from recordgen import storage
from recordgen.dataset.manifest import Shard
from recordgen.dataset.vocabulary import Vocabulary
from recordgen.errors import RecordError, StorageError
from recordgen.lint.facts import renumbered
from recordgen.options import ConvertOptions
from recordgen.records.tfrecord import read_records
from recordgen.rejects import RejectCode
from recordgen.runs.commit import Leftover
from recordgen.runs.staging import Staging
from recordgen.shards.task import OnProgress, ShardResult, ShardTask
from recordgen.shards.write import check_shard, write_shard
from recordgen.tasks import Task, task_for

# Faults of the storage, not of the payload: they may be fixed while the payload stays the same.
_MAY_PASS = frozenset(
    {
        RejectCode.MISSING_FILE.value,
        RejectCode.PERMISSION_DENIED.value,
        RejectCode.NOT_A_FILE.value,
        RejectCode.UNREACHABLE.value,
        RejectCode.HTTP_ERROR.value,
        RejectCode.BAD_RESPONSE.value,
        RejectCode.PARTIAL_CONTENT.value,
        RejectCode.UNKNOWN_SCHEME.value,
    }
)


def keep_or_write_shard(
    task: ShardTask,
    staging: Staging,
    leftovers: Sequence[Leftover],
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Take a shard over from a run that died, or else write it.

    Its file is moved before it is looked at: a worker of the run that died, but still writes,
    does not reach it any more.

    Raises:
        StorageError: storage failed; says nothing about the data.
    """
    fingerprint = task.fingerprint(vocabulary, options)
    # This run's own first: a second attempt finds what the first one has taken over.
    for left in (Leftover(staging, (staging.root,)), *leftovers):
        found = left.staging.find_result(task.split, task.index, fingerprint)
        if not fingerprint or found is None or _may_change(found):
            continue
        result = replace(
            found,
            rejects=tuple(task.rows.renumbered(found.rejects)),
            kept=found.kept or left.staging != staging,
            facts=renumbered(found.facts, task.rows.columns),
        )
        # The result goes first: wherever the file is when this run dies, too, the next finds both.
        staging.write_result(result, task.index)
        path = staging.path(result.shard.file)
        sources = [storage.join(root, result.shard.file) for root in left.roots]
        if any(source == path or _moved(source, path) for source in sources) and is_intact(
            path, result.shard, task_for(options)
        ):
            return result
    return write_shard(
        task, staging.root, vocabulary=vocabulary, options=options, on_progress=on_progress
    )


def compare_shard(
    task: ShardTask,
    output: str,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Check a shard's payloads, and that its file in ``output`` holds them.

    Returns:
        What writing it would give; its file has no bytes if the one that is there is another.

    Raises:
        StorageError: storage failed; says nothing about the data.
    """
    result = check_shard(task, vocabulary=vocabulary, options=options, on_progress=on_progress)
    path = storage.join(output, result.shard.file)
    if not storage.exists(path):
        return result
    shard = replace(result.shard, bytes=storage.size(path))
    return replace(result, shard=shard) if is_intact(path, shard, task_for(options)) else result


def is_intact(path: str, shard: Shard, task: Task) -> bool:
    """Say whether a file holds what its shard should: by size, checksums and digest of records.

    Raises:
        StorageError: storage failed.
    """
    digest = hashlib.sha256()
    examples = 0
    try:
        if storage.size(path) != shard.bytes:
            return False
        for record in read_records(path):
            digest.update(task.digested(record))
            examples += 1
    except (OSError, RecordError, ValueError):
        return False
    return (examples, digest.hexdigest()) == (shard.examples, shard.digest)


def _may_change(result: ShardResult) -> bool:
    # A reject without a uri does not say whose it is.
    return any(item.code in _MAY_PASS or not item.uri for item in result.rejects)


def _moved(source: str, target: str) -> bool:
    """Move a file if it is there. Raises: StorageError."""
    try:
        storage.move(source, target)
    except StorageError:
        if storage.exists(source):
            raise
        return False
    return True
