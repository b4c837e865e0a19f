"""Open a run on an output, commit it, and clean up after runs that died.

A run changes only its staging folder until :func:`commit`, and writes ``dataset.json`` last, so a
run that dies never looks finished. With ``overwrite``, the old dataset stays until the new one is
complete. A run that dies while it moves its shards leaves no dataset, but the next run can finish
it or start over (:func:`open_run`).

A resumed run keeps a shard if it would write the same bytes: the fingerprint in a shard's result
identifies its input, see :meth:`ShardTask.fingerprint`. The file itself is read to its end before
it is trusted.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from uuid import uuid4

from recordgen import storage
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.manifest import (
    DATASET_FILE,
    INDEX_FILE,
    LABELS_FILE,
    LINT_FILE,
    REJECTS_FILE,
    SPLIT_PREFIX,
    Dataset,
    dataset_text,
    has_dataset,
    is_shard,
    read_dataset,
    write_dataset,
)
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import renumbered
from recordgen.core.ordered import map_in_order
from recordgen.core.records import RECORDS
from recordgen.core.runs import lease
from recordgen.core.runs.lease import is_planned, withdraw, worker_leases
from recordgen.core.runs.staging import STAGING, Staging
from recordgen.core.shards import OnProgress, ShardResult, ShardTask, write_shard
from recordgen.core.task.task import Examples
from recordgen.errors import (
    DataError,
    OutputBusyError,
    OutputExistsError,
    RecordError,
    RunnerError,
    SourceError,
    StorageError,
    UsageError,
)
from recordgen.messages.masking import masked
from recordgen.registry import TASKS
from recordgen.rejects import RejectCode

# Prefix of the files that explain a failed run, if the output holds an older dataset.
_FAILED = "failed-"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leftover:
    """The finished shards of a run that died."""

    staging: Staging  # its staging folder, which holds their results
    # Folders of their files: the staging folder, and the output if the run died while it moved
    # them.
    roots: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """An open run."""

    staging: Staging
    leftovers: tuple[Leftover, ...] = ()  # shards of interrupted runs that this run may keep
    in_parts: bool = False  # another process may have written shards of this run


@contextmanager
def open_run(
    output: str,
    *,
    overwrite: bool,
    append: bool = False,
    resume: bool = False,
    in_parts: bool = False,
    described: Collection[str] = (LABELS_FILE,),
    no_use: tuple[type[BaseException], ...] = (UsageError, DataError),
) -> Iterator[Run]:
    """Open a run with an empty staging folder, for this process only.

    ``resume`` keeps the finished shards of interrupted runs; otherwise they are removed. A run
    ``in_parts`` stays for its workers, and :func:`open_planned` opens it again. Files named in
    ``described`` belong to finished datasets: without one, they are not replaced.

    After success, the staging folders of this run and of those that died are removed. After an
    error of the types ``no_use``, only this run's is, and after any other error all of them stay,
    for ``resume``.

    Raises:
        OutputExistsError: the output holds a dataset that may not be replaced, or files with our
            names that no run of ours left.
        OutputBusyError: another run writes to the output, or is planned there and ``resume`` is
            not given.
    """
    if not (overwrite or (append and has_dataset(output))):
        _check_output(output, described)
    # The finished shards of a resumed run stay useful after a DataError, too.
    no_use = (UsageError,) if resume else no_use
    staging = Staging(storage.join(output, STAGING, uuid4().hex[:12]))
    over = [staging]
    try:
        # If the output cannot be written, fail now and not after an hour.
        with lease.held(staging.lease, is_own=not in_parts):
            # Check after taking the lease: if two runs begin together, at least one sees the other.
            dead = _dead_runs(output, staging, resume=resume)
            with _naming_removal(output, staging):
                finished = has_dataset(output)
                if finished and not (overwrite or append):
                    raise OutputExistsError(f"{output}: another run has just finished here")
                if resume:
                    _keep(dead)
                else:
                    _start_anew(output, dead, described if not finished else ())
                yield Run(staging, find_leftovers(output, staging) if resume else ())
        over += dead
    except no_use:
        with suppress(StorageError):  # the error that ended the run matters more
            if not staging.moving:  # else the next run must know that files there are ours
                _remove(output, over)
        raise
    if not in_parts:
        _remove(output, over)


@contextmanager
def open_planned(output: str) -> Iterator[Staging]:
    """Hold the planned run of an output, to commit it; afterwards its staging folder is removed.

    After an error everything stays as it is.

    Raises: OutputBusyError: another run writes there; RunnerError: no run is planned there.
    """
    staging = find_planned(output)
    if (holder := lease.living_holder(staging.lease)) is not None:
        raise OutputBusyError(f"{output}: is being committed already ({holder})")
    with lease.held(staging.lease):
        others = _dead_runs(output, staging, resume=True)
        with _naming_removal(output, staging):
            yield staging
    withdraw(staging)  # before its other files: a planned run has all of them
    with suppress(StorageError):  # a second worker of a part may still write there
        _remove(output, [staging, *others])


def find_planned(output: str) -> Staging:
    """Return the planned run of an output. Raises: RunnerError if there is none, StorageError."""
    for run in _runs(output):
        if is_planned(run):
            return run
    there = "a finished dataset is there, which recordgen check compares with its dataset.json"
    raise RunnerError(
        f"{output}: no run in parts is planned here"
        + (f"; {there}" if has_dataset(output) else "; recordgen parts plan plans one")
    )


def is_published(output: str) -> bool:
    """Return whether an output has a dataset, and no run in parts waits for its workers."""
    return has_dataset(output) and not any(map(is_planned, _runs(output)))


def is_committed(output: str, staging: Staging) -> bool:
    """Return whether the dataset of a run is complete in the output. Raises: StorageError."""
    if not (staging.moving and has_dataset(output)):
        return False
    paths = (storage.join(root, DATASET_FILE) for root in (staging.results, output))
    return len(set(map(storage.read_text, paths))) == 1


def take_back(output: str, staging: Staging, files: Iterable[str]) -> None:
    """Move back the shards that an interrupted commit had moved. Raises: StorageError."""

    def move(file: str) -> None:
        if not storage.is_file(staging.path(file)):
            storage.move(storage.join(output, file), staging.path(file))

    if staging.moving:
        list(map_in_order(move, files, threads=storage.threads([output])))


def find_leftovers(output: str, staging: Staging) -> tuple[Leftover, ...]:
    """Return the interrupted runs, except ``staging``, that have finished shards."""
    finished = has_dataset(output)
    return tuple(
        Leftover(left, (left.root, output) if left.moving and not finished else (left.root,))
        for left in _runs(output)
        if left != staging and left.count_results()
    )


def _keep(dead: Iterable[Staging]) -> None:
    """End the interrupted runs that have finished shards, and remove the others."""
    for left in dead:
        if left.count_results():
            storage.remove_file(left.lease)  # if it is alive after all, it must not commit
            withdraw(left)
        else:
            storage.remove(left.root)


def _start_anew(output: str, dead: Collection[Staging], described: Collection[str]) -> None:
    """Remove the files of interrupted runs, and what they moved to an output without a dataset."""
    shards = sum(left.count_results() for left in dead)
    if shards:
        _log.warning(
            "%s: starting over; %d finished shards of an interrupted run are removed (--resume "
            "would have kept them)",
            masked(output),
            shards,
        )
    if described and any(left.moving for left in dead):
        _clear(output, described)
    for left in dead:
        storage.remove(left.root)


def commit(
    staging: Staging,
    output: str,
    dataset: Dataset,
    *,
    files: Mapping[str, Iterable[bytes]],
    kept: Collection[str] = (),
    staged: Mapping[str, str] | None = None,
    meanwhile: Dataset | None = None,
) -> None:
    """Move the shards and the other files to the output, ``dataset.json`` last.

    All files are staged, or in memory for an object store, before anything in the output changes,
    so a full disk leaves an older dataset whole; a copy of ``dataset.json`` records that the commit
    has begun. Then the older files are removed, their ``dataset.json`` before all others. Other
    tools' files stay.

    ``files`` are all files that may lie beside the shards except the index; one without pieces is
    not written, and removed if the replaced dataset has it. Existing shards that are ``kept`` stay,
    with the old ``dataset.json`` until the new one replaces it; ``meanwhile`` is what the output
    holds then. New shards are in the staging folder unless ``staged`` has their path.

    Raises: RunnerError: another run took over.
    """
    text = dataset_text(dataset)
    steps: dict[str, Callable[[], None]] = {}
    for name, pieces in {**files, DATASET_FILE: [text.encode()]}.items():
        step = _prepared(staging.path(name), storage.join(output, name), pieces)
        if step is not None:
            steps[name] = step
    lease.check_held(staging.lease)
    storage.write_text(storage.join(staging.results, DATASET_FILE), text)
    if meanwhile is not None:
        write_dataset(output, meanwhile)
    stale = sorted({*files} - {*steps, INDEX_FILE})
    old = [f"{_FAILED}{REJECTS_FILE}", f"{_FAILED}{LINT_FILE}", *stale]
    _clear(output, old if kept else [DATASET_FILE, *old], kept)
    # From here on, shards in the output belong to this run, and not to a run that died moving them.
    for other in _runs(output):
        if other != staging:
            storage.remove(other.root)

    elsewhere = staged or {}

    def move(file: str) -> None:
        source = elsewhere.get(file) or staging.path(file)
        storage.move(source, storage.join(output, file))

    publish, threads = steps.pop(DATASET_FILE), storage.threads([output])
    new = (shard.file for shard in dataset.shards if shard.file not in kept)
    list(map_in_order(move, new, threads=threads))
    list(map_in_order(lambda step: step(), steps.values(), threads=threads))
    move(INDEX_FILE)  # it belongs to the dataset.json that follows it
    publish()


def leave_failed(output: str, name: str, lines: Iterable[str]) -> str:
    """Write the rejects or the findings that made a run fail, and return the path of the file.

    ``failed-`` comes before its name if there is an older dataset.
    """
    path = storage.join(output, f"{_FAILED}{name}" if has_dataset(output) else name)
    with storage.replacing(path) as file:
        file.writelines(line.encode() for line in lines)
    return path


def count_unfinished(output: str) -> int:
    """Return the number of finished shards of unfinished runs. Raises: StorageError."""
    return sum(staging.count_results() for staging in _runs(output))


def check_appendable(output: str) -> None:
    """Check that no run was interrupted while it committed the first dataset of an output.

    Raises: OutputExistsError: a run was interrupted there.
    """
    if has_dataset(output):
        return
    if any(run.moving for run in _runs(output)):
        raise OutputExistsError(
            f"{output}: a run was interrupted while it moved its dataset here; finish it with its "
            f"own command and --resume before you append"
        )


def _check_output(output: str, described: Collection[str]) -> None:
    """Check that nothing in the output is in the way. Raises: OutputExistsError."""
    there = dict(storage.list_dir(output))
    dead = _runs(output) if STAGING in there else []
    if DATASET_FILE in there:
        raise OutputExistsError(
            f"{output}: there is a {DATASET_FILE} already; {ways_on(output)}"
            + (" (with --resume if a run was interrupted)" if dead else "")
        )
    # Without a dataset.json, files with our names are ours only if a run died while it moved them.
    if any(run.moving for run in dead):
        return
    if name := next((name for name in (*described, *_splits(there)) if name in there), None):
        raise OutputExistsError(
            f"{output}: there is a {name} already; choose another output or --overwrite"
        )


def ways_on(output: str) -> str:
    """Return the remedies, as text, if a finished dataset is in the way."""
    try:
        task = TASKS.get(read_dataset(output).task)
        appendable = task is not None and task.names_payloads
    except SourceError:
        appendable = False
    return f"choose another output{', --append' if appendable else ''} or --overwrite"


@contextmanager
def _naming_removal(output: str, staging: Staging) -> Iterator[None]:
    """Raise RunnerError instead of another error if somebody has removed the run's files."""
    try:
        yield
    except (StorageError, RunnerError) as exc:
        with suppress(StorageError):
            if not storage.is_file(staging.lease):
                raise RunnerError(
                    f"{output}: the files of this run were removed while it ran, by hand or by "
                    f"another run that took over; nothing was committed; run it again"
                ) from exc
        raise


def _dead_runs(output: str, staging: Staging, *, resume: bool) -> list[Staging]:
    """Return the other runs, none of which is alive; with ``resume``, also planned ones.

    Raises: OutputBusyError: another run is alive, or is planned and waits for its workers.
    """
    others = [other for other in _runs(output) if other != staging]
    for other in others:
        leases = [other.lease, *worker_leases(other)]
        holders = map_in_order(lease.living_holder, leases, threads=storage.threads([output]))
        if (holder := next(filter(None, holders), None)) is not None:
            raise OutputBusyError(
                f"{output}: another run writes here ({holder}); wait for it, stop it, or choose "
                f"another output"
            )
        if not resume and is_planned(other) and not is_committed(output, other):
            raise OutputBusyError(
                f"{output}: a run in parts is planned here; commit it, let --resume take its "
                f"finished shards over, or choose another output"
            )
    return others


def _runs(output: str) -> list[Staging]:
    root = storage.join(output, STAGING)
    return [Staging(storage.join(root, name)) for name in storage.list_folders(root, "")]


def _remove(output: str, runs: Iterable[Staging]) -> None:
    for run in runs:
        storage.remove(run.root)
    storage.remove_empty(storage.join(output, STAGING))


def _prepared(path: str, target: str, content: Iterable[bytes]) -> Callable[[], None] | None:
    """Prepare a file from pieces; return what puts it in its place, or None if there are none.

    It waits at ``path``, or in memory if it is small and an object store will get it by one
    request.
    """
    pieces, most = iter(content), storage.bytes_at_once(target)
    if (first := next(pieces, None)) is None:
        return None
    begun = bytearray(first)
    while len(begun) <= most and (piece := next(pieces, None)) is not None:
        begun += piece
    if len(begun) <= most:
        return partial(storage.write_bytes, target, bytes(begun))
    with storage.replacing(path) as file:
        file.writelines(chain([begun], pieces))
    return partial(storage.move, path, target)


def _clear(output: str, names: Iterable[str], kept: Collection[str] = ()) -> None:
    """Remove files of an output, then the shards in split folders except ``kept``.

    Other files stay. What is not there is not asked for.
    """
    there = dict(storage.list_dir(output))
    for name in names:
        if name in there:
            storage.remove_file(storage.join(output, name))
    for folder in _splits(there):
        path = storage.join(output, folder)
        shards = [name for name, _ in storage.list_dir(path) if is_shard(name)]
        old = [storage.join(path, name) for name in shards if f"{folder}/{name}" not in kept]
        list(map_in_order(storage.remove_file, old, threads=storage.threads([output])))
        storage.remove_empty(path)


def _splits(there: Mapping[str, bool]) -> list[str]:
    """Return the folders of splits among the entries of an output: whether each is a folder."""
    folders = (name for name, is_folder in there.items() if is_folder)
    return [name for name in folders if name.startswith(SPLIT_PREFIX)]


# --- resume --------------------------------------------------------------------------------------


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
            facts=list(renumbered(found.facts, task.rows.columns)),
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
    if not storage.is_file(path):
        return result
    shard = replace(result.shard, bytes=storage.size(path))
    return replace(result, shard=shard) if is_intact(path, shard, conversion.task) else result


def is_intact(path: str, shard: Shard, task: Examples) -> bool:
    """Return whether a file is a whole shard. Raises: StorageError: storage failed."""
    return not shard_difference(path, shard, task.digested)


#: Returns the bytes that a serialised record adds to its shard's digest. Raises: ValueError.
Digested = Callable[[bytes], bytes]


def shard_difference(path: str, shard: Shard, digested: Digested) -> str:
    """Return how a file differs from a shard, by size, checksums and digest; "" if it does not."""
    digest, examples = hashlib.sha256(), 0
    try:
        if (size := storage.size(path)) != shard.bytes:
            return f"has {size:,} bytes instead of {shard.bytes:,}"
        for record in RECORDS.read(path):
            digest.update(digested(record))
            examples += 1
    except FileNotFoundError:
        return "is missing"
    except RecordError as exc:
        return str(exc).removeprefix(f"{path}: ")
    except (OSError, ValueError) as exc:
        return f"record {examples}: {exc}"
    if examples != shard.examples:
        return f"has {examples:,} records instead of {shard.examples:,}"
    return "" if digest.hexdigest() == shard.digest else "holds other records"


def _may_change(result: ShardResult) -> bool:
    # A reject without a uri cannot be matched with its row.
    return any(item.code in _MAY_PASS or not item.uri for item in result.rejects)


def _moved(source: str, target: str) -> bool:
    """Move a file if it exists. Raises: StorageError."""
    try:
        storage.move(source, target)
    except StorageError:
        if storage.is_file(source):
            raise
        return False
    return True
