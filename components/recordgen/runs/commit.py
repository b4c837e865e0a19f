"""How a run on an output begins and ends, and what the next one does with what a dead one left.

Nothing but the staging folder changes before :func:`commit`, and ``dataset.json`` is written last:
a run that dies leaves nothing that looks finished. With ``overwrite`` the old dataset stays until
the new one is complete; a run that dies while its shards are moved leaves neither, but
all that the next run needs to end what it began or to start anew (:func:`open_run`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from uuid import uuid4

from recordgen import storage
from recordgen.dataset.manifest import (
    DATASET_FILE,
    EXAMPLES_FILE,
    FINDINGS_FILE,
    LABELS_FILE,
    LINT_FILE,
    REJECTS_FILE,
    REPORT_FILE,
    SPLIT_PREFIX,
    Dataset,
    is_shard,
    read_dataset,
    write_dataset,
)
from recordgen.errors import (
    DataError,
    OutputBusyError,
    OutputExistsError,
    RunnerError,
    SourceError,
    StorageError,
    UsageError,
)
from recordgen.masking import masked
from recordgen.ordered import map_in_order
from recordgen.registry import OWN
from recordgen.rejects import Reject, to_lines
from recordgen.runs import lease
from recordgen.runs.staging import STAGING, STORAGE_THREADS, Staging
from recordgen.standards.croissant import CROISSANT_FILE, INDEX_FILE, croissant_text
from recordgen.standards.stored_features import label_files
from recordgen.standards.tfdv_schema import SCHEMA_FILE, schema_text
from recordgen.tasks import TASKS

# Before the names of files that say why a run has failed beside an older dataset.
_FAILED = "failed-"

_STREAMED = (FINDINGS_FILE, LINT_FILE, EXAMPLES_FILE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leftover:
    """What a run that died has left.

    Attributes:
        staging: its staging folder, with the results of its finished shards.
        roots: where their files lie: in that folder, and in the output if it died moving them.
    """

    staging: Staging
    roots: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """A run that has begun.

    Attributes:
        staging: its staging folder.
        leftovers: shards of interrupted runs that this run may keep.
    """

    staging: Staging
    leftovers: tuple[Leftover, ...] = ()


@contextmanager
def open_run(
    output: str,
    *,
    overwrite: bool,
    append: bool = False,
    resume: bool = False,
    no_use: tuple[type[BaseException], ...] = (UsageError, DataError),
) -> Iterator[Run]:
    """Begin a run in an empty staging folder.

    Args:
        output: folder or URL prefix that is written.
        overwrite: a dataset that is there will be replaced.
        append: a dataset that is there will be added to.
        resume: go on where interrupted runs have stopped; otherwise what they left is removed.
        no_use: errors that make the staged files useless; they are removed.

    Raises:
        OutputExistsError: the output holds a dataset and ``overwrite`` was not asked for, or
            files of our names that no run of ours left.
        OutputBusyError: another run is at work there.
        StorageError: the output cannot be written.
    """
    _check_output(output, overwrite=overwrite, append=append)
    # Shards of a resumed run stay useful, whatever the data are.
    with _begun(output, (UsageError,) if resume else no_use) as (staging, dead):
        finished = _has_dataset(output)
        if finished and not (overwrite or append):
            raise OutputExistsError(f"{output}: another run has just finished here")
        leave = _keep if resume else _start_anew
        yield Run(staging, tuple(leave(output, dead, finished=finished)))


def _keep(output: str, dead: Iterable[Staging], *, finished: bool) -> Iterator[Leftover]:
    """Yield interrupted runs with finished shards, and remove the others."""
    for left in dead:
        if not left.count_results():
            storage.remove(left.root)
            continue
        lease.end(left.lease)  # should it be alive after all, it must not commit
        moved = (output,) if left.moving and not finished else ()
        yield Leftover(left, (left.root, *moved))


def _start_anew(output: str, dead: Collection[Staging], *, finished: bool) -> Sequence[Leftover]:
    """Remove what interrupted runs have left."""
    shards = sum(left.count_results() for left in dead)
    if shards:
        _log.warning(
            "%s: starting anew; %d finished shards of an interrupted run are removed, which "
            "--resume would have kept",
            masked(output),
            shards,
        )
    if not finished and any(left.moving for left in dead):
        for name in (LABELS_FILE, REPORT_FILE):
            storage.remove(storage.join(output, name))
        _clear_shards(output)
    for left in dead:
        storage.remove(left.root)
    return ()


def commit(
    staging: Staging,
    output: str,
    dataset: Dataset,
    *,
    texts: Mapping[str, str],
    streams: Mapping[str, Iterable[bytes]] = MappingProxyType({}),
    kept: Collection[str] = (),
    staged: Mapping[str, str] | None = None,
) -> None:
    """Move the shards to their places, write what stands beside them, ``dataset.json`` last.

    What an older run left is removed first, its commit mark before all else; other files stay.

    Args:
        staging: holds the new shards.
        output: gets them.
        dataset: the whole dataset.
        texts: what stands beside it, by the file's name, see :func:`texts_beside`.
        streams: further files by name, not held in memory; without content there is no file.
        kept: files of its shards that lie in ``output`` already: the commit mark that names them
            stays until the new one replaces it.
        staged: where each new shard lies; None: in the staging folder, under its own name.

    Raises:
        RunnerError: another run has taken this one for dead.
        StorageError: storage failed.
    """
    lease.check_held(staging.lease)
    if not kept:
        staging.start_replacing()
    failed = (f"{_FAILED}{REJECTS_FILE}", f"{_FAILED}{LINT_FILE}")
    for name in failed if kept else (DATASET_FILE, *failed):
        storage.remove(storage.join(output, name))
    _clear_shards(output, kept)
    # From the note on, what lies in the output is this run's and not one's that died moving.
    for other in _runs(output):
        if other != staging:
            storage.remove(other.root)
    staging.start_moving()

    def move(file: str) -> None:
        source = staging.path(file) if staged is None else staged[file]
        storage.move(source, storage.join(output, file))

    files = (shard.file for split in dataset.splits.values() for shard in split.shards)
    new = (file for file in files if file not in kept)
    list(map_in_order(move, new, threads=STORAGE_THREADS))
    for name in _texts_of_all_tasks() - set(texts):
        storage.remove(storage.join(output, name))  # of the dataset that this one replaces
    for name, text in texts.items():
        _put(staging, output, name, [text.encode()])
    for name in _STREAMED:
        _put(staging, output, name, streams.get(name, ()))
    put_dataset(staging, output, dataset)


def texts_beside(dataset: Dataset, rejects: Iterable[Reject], report: str) -> dict[str, str]:
    """Return the files beside the shards of a converted dataset, in the order of writing."""
    labels = label_files(dataset)
    return {
        **labels,
        REJECTS_FILE: "".join(to_lines(rejects)),
        REPORT_FILE: report,
        CROISSANT_FILE: croissant_text(dataset, labels),
        SCHEMA_FILE: schema_text(dataset),
    }


def _texts_of_all_tasks() -> set[str]:
    own = {name for task in OWN for name in TASKS[task].files(())}
    described = {CROISSANT_FILE, INDEX_FILE, SCHEMA_FILE}
    return {LABELS_FILE, REJECTS_FILE, REPORT_FILE, *described, *own}


def put_dataset(staging: Staging, output: str, dataset: Dataset) -> None:
    """Write ``dataset.json``: the commit mark. Raises: StorageError."""
    write_dataset(staging.root, dataset)
    storage.move(staging.path(DATASET_FILE), storage.join(output, DATASET_FILE))


def leave_failed(output: str, name: str, lines: Iterable[str]) -> str:
    """Write the rejects or the findings that fail a run.

    Returns:
        Where they were written: under ``name``, or with ``failed-`` before it beside a dataset
        that was to be overwritten.
    """
    path = storage.join(output, f"{_FAILED}{name}" if _has_dataset(output) else name)
    with storage.replacing(path) as file:
        for line in lines:
            file.write(line.encode())
    return path


def _has_dataset(output: str) -> bool:
    return storage.exists(storage.join(output, DATASET_FILE))


def count_unfinished(output: str) -> int:
    """Return how many finished shards unfinished runs have left. Raises: StorageError."""
    return sum(staging.count_results() for staging in _runs(output))


def check_appendable(output: str) -> None:
    """Check that no interrupted run was about to commit the first dataset of an output.

    Raises:
        OutputExistsError: a run was.
        StorageError: storage failed.
    """
    if _has_dataset(output):
        return
    if any(run.moving for run in _runs(output)):
        raise OutputExistsError(
            f"{output}: an interrupted run was moving a dataset to its place here; finish it with "
            f"its own command and --resume before you append"
        )


def _check_output(output: str, *, overwrite: bool, append: bool) -> None:
    if overwrite or (append and _has_dataset(output)):
        return
    dead = _runs(output)
    if _has_dataset(output):
        raise OutputExistsError(
            f"{output}: there is a {DATASET_FILE} already; {ways_on(output)}"
            + (" (with --resume if a run was interrupted)" if dead else "")
        )
    # Files without their dataset.json are ours only if a run died while it put them there.
    if any(run.moving or run.replacing for run in dead):
        return
    for name in (LABELS_FILE, REPORT_FILE, *_split_dirs(output)):
        if storage.exists(storage.join(output, name)):
            raise OutputExistsError(
                f"{output}: there is a {name} already; choose another output or --overwrite"
            )


def ways_on(output: str) -> str:
    """Say what can be done about a finished dataset that is in the way."""
    try:
        task = TASKS.get(read_dataset(output).task)
        appendable = task is not None and task.names_payloads
    except SourceError:
        appendable = False
    return f"choose another output{', --append' if appendable else ''} or --overwrite"


@contextmanager
def _naming_removal(output: str, staging: Staging) -> Iterator[None]:
    """Say of a failure that somebody removed the run's files, if that is why it failed."""
    try:
        yield
    except (StorageError, RunnerError) as exc:
        with suppress(StorageError):
            if not storage.exists(staging.lease):
                raise RunnerError(
                    f"{output}: the run's files there were removed while it was at work, by hand "
                    f"or by another run that had taken this one for dead; nothing was committed; "
                    f"run it again"
                ) from exc
        raise


@contextmanager
def _begun(
    output: str, no_use: tuple[type[BaseException], ...]
) -> Iterator[tuple[Staging, list[Staging]]]:
    """Give a staging folder to this process alone, and the folders of runs that died.

    After success all of them are removed, after an error of ``no_use`` the new one; after any
    other they stay for a run that goes on.
    """
    staging = Staging(storage.join(output, STAGING, uuid4().hex[:12]))
    over = [staging]
    try:
        # An output that cannot be written is known now, not after an hour.
        with lease.held(staging.lease):
            # Looking only now: of two runs that begin together, at least one sees the other.
            dead = _dead_runs(output, staging)
            with _naming_removal(output, staging):
                yield staging, dead
        over += dead
    except no_use:
        with suppress(StorageError):  # what ended the run says more
            if not staging.moving:  # else it says whose the files in the output are
                _remove(output, over)
        raise
    _remove(output, over)


def _dead_runs(output: str, staging: Staging) -> list[Staging]:
    """Return the other runs that have not ended well. Raises: OutputBusyError if one lives."""
    others = [other for other in _runs(output) if other != staging]
    for other in others:
        holder = lease.living_holder(other.lease)
        if holder is not None:
            raise OutputBusyError(
                f"{output}: another run writes here ({holder}); wait for it, stop it, or choose "
                f"another output"
            )
    return others


def _runs(output: str) -> list[Staging]:
    root = storage.join(output, STAGING)
    return [Staging(storage.join(root, name)) for name in storage.list_folders(root, "")]


def _remove(output: str, runs: Iterable[Staging]) -> None:
    for run in runs:
        storage.remove(run.root)
    root = storage.join(output, STAGING)
    if not storage.list_dir(root):
        storage.remove(root)


def _put(staging: Staging, output: str, name: str, content: Iterable[bytes]) -> None:
    """Write a file of the output part by part; where there are none, there is no file.

    What a kill leaves half written lies in the staging folder.
    """
    parts = iter(content)
    first = next(parts, None)
    path = storage.join(output, name)
    if first is None:
        storage.remove(path)  # of the dataset that this one replaces
        return
    with storage.replacing(staging.path(name)) as file:
        for part in chain([first], parts):
            file.write(part)
    storage.move(staging.path(name), path)


def _clear_shards(output: str, kept: Collection[str] = ()) -> None:
    """Remove the shards in split folders but those to be kept; other files stay."""
    for folder in _split_dirs(output):
        path = storage.join(output, folder)
        names = [name for name, _ in storage.list_dir(path)]
        old = [name for name in names if is_shard(name) and f"{folder}/{name}" not in kept]
        paths = [storage.join(path, name) for name in old]
        list(map_in_order(storage.remove, paths, threads=STORAGE_THREADS))
        if len(old) == len(names):
            storage.remove(path)


def _split_dirs(output: str) -> list[str]:
    return storage.list_folders(output, SPLIT_PREFIX)
