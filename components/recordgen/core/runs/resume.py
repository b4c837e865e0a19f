"""Keep existing shards if this run would write the same bytes.

The fingerprint in a shard's result identifies its input, see :meth:`ShardTask.fingerprint`. The
file itself is read to its end before it is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recordgen import storage
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import renumbered
from recordgen.core.runs.commit import Leftover
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.intact import shard_difference
from recordgen.core.shards.task import OnProgress, ShardResult, ShardTask, write_shard
from recordgen.core.task.task import Examples
from recordgen.errors import StorageError
from recordgen.rejects import RejectCode

# Failures of the storage, not of the payload: a retry may succeed with the same payload.
_MAY_PASS = frozenset(
    code.value
    for code in {RejectCode.MISSING_FILE, RejectCode.PERMISSION_DENIED, RejectCode.NOT_A_FILE}
    | {RejectCode.UNREACHABLE, RejectCode.HTTP_ERROR, RejectCode.BAD_RESPONSE}
    | {RejectCode.PARTIAL_CONTENT, RejectCode.UNKNOWN_SCHEME}
)


def keep_or_write_shard(
    task: ShardTask,
    staging: Staging,
    leftovers: Sequence[Leftover],
    *,
    vocabulary: Vocabulary,
    conversion: Conversion,
    on_progress: OnProgress,
) -> ShardResult:
    """Take over a shard from a run that died, or write it.

    The file is moved before it is checked, so that a worker of the other run that still writes can
    no longer change it.
    """
    fingerprint = task.fingerprint(vocabulary, conversion)
    # This run's own folder first: a second attempt finds the shard that the first one took over.
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
        # Write the result before moving the file: if this run dies, too, the next one finds both.
        staging.write_result(result, task.index)
        path = staging.path(result.shard.file)
        sources = [storage.join(root, result.shard.file) for root in left.roots]
        if any(source == path or _moved(source, path) for source in sources) and is_intact(
            path, result.shard, conversion.task
        ):
            return result
    return write_shard(
        task, staging.root, vocabulary=vocabulary, conversion=conversion, on_progress=on_progress
    )


def compare_shard(
    task: ShardTask,
    output: str,
    *,
    vocabulary: Vocabulary,
    conversion: Conversion,
    on_progress: OnProgress,
) -> ShardResult:
    """Check a shard's payloads, and return its result; without bytes if the file differs."""
    result = write_shard(
        task, "", vocabulary=vocabulary, conversion=conversion, on_progress=on_progress
    )
    path = storage.join(output, result.shard.file)
    if not storage.exists(path):
        return result
    shard = replace(result.shard, bytes=storage.size(path))
    return replace(result, shard=shard) if is_intact(path, shard, conversion.task) else result


def is_intact(path: str, shard: Shard, task: Examples) -> bool:
    """Return whether a file is a whole shard. Raises: StorageError: storage failed."""
    return not shard_difference(path, shard, task.digested)


def _may_change(result: ShardResult) -> bool:
    # A reject without a uri cannot be matched with its row.
    return any(item.code in _MAY_PASS or not item.uri for item in result.rejects)


def _moved(source: str, target: str) -> bool:
    """Move a file if it exists. Raises: StorageError."""
    try:
        storage.move(source, target)
    except StorageError:
        if storage.exists(source):
            raise
        return False
    return True
