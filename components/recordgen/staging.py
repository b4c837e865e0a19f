"""The staging folder of a run, and the commit that makes its content the output.

    OUT/.recordgen-staging/RUN/run.json                the version that runs
                               plan.json               the plan and its rejects
                               vocabulary.json         the labels, which workers need
                               Split-train/…           finished shards
                               results/train-00000.json   one ShardResult per finished shard
                               progress/train-00000.json  how far a worker is
                               error.json              why a worker gave up

Nothing outside this folder changes before :func:`commit`, and ``dataset.json`` is written last:
a run that dies leaves nothing that looks finished, and with ``overwrite`` the old dataset until
the new one is complete. Every run has a folder of its own, so that workers of one that died, but
still write, do no harm. What is left of it tells the next run that the last one died.
"""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from recordgen import errors, storage
from recordgen.dataset import (
    DATASET_FILE,
    LABELS_FILE,
    REJECTS_FILE,
    SPLIT_PREFIX,
    Dataset,
    Shard,
    write_dataset,
)
from recordgen.errors import OutputExistsError, RecordgenError, StorageError
from recordgen.labels import Vocabulary
from recordgen.planning import Plan
from recordgen.rows import Reject
from recordgen.shards import ShardResult
from recordgen.version import __version__

STAGING = ".recordgen-staging"
FAILED_REJECTS_FILE = "failed-rejects.jsonl"

# Object stores answer in tens of milliseconds, so ask for many files at once.
_STORAGE_THREADS = 32

_LOCAL_HEARTBEAT_SECONDS = 0.5
_REMOTE_HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True)
class StagedPlan:
    """What the planning step left for the launcher: sizes, vocabulary, counts, rejects.

    Attributes:
        splits: by name: planned ``rows``, ``bytes`` and ``shards``.
        vocabulary: labels of all planned rows.
        read: rows in the import files.
        duplicates: rows that say what another row says.
        dropped: rows left out for want of a split.
        rejects: rows rejected while planning.
    """

    splits: Mapping[str, Mapping[str, int]]
    vocabulary: Vocabulary
    read: int
    duplicates: int
    dropped: int
    rejects: tuple[Reject, ...]

    @property
    def rows(self) -> int:
        """Rows that were planned."""
        return sum(split["rows"] for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
        return sum(split["bytes"] for split in self.splits.values())


@dataclass(frozen=True)
class Staging:
    """The paths and records of one run's staging folder; workers and the launcher share it."""

    root: str

    def path(self, *parts: str) -> str:
        """Return a path inside the folder."""
        return storage.join(self.root, *parts)

    def write_plan(self, plan: Plan, rejects: Sequence[Reject]) -> None:
        """Leave the plan for the launcher, and its vocabulary for workers."""
        vocabulary = json.dumps(asdict(plan.vocabulary), ensure_ascii=False)
        storage.write_text(self.path("vocabulary.json"), vocabulary)
        data = {
            "splits": {
                name: {"rows": split.rows, "bytes": split.bytes, "shards": split.shards}
                for name, split in plan.splits.items()
            },
            "read": plan.read,
            "duplicates": plan.duplicates,
            "dropped": plan.dropped,
            "rejects": rejects,
        }
        storage.write_text(self.path("plan.json"), json.dumps(data, ensure_ascii=False))

    def read_plan(self) -> StagedPlan | None:
        """Return the plan, or None while there is none."""
        try:
            data = json.loads(storage.read_text(self.path("plan.json")))
        except FileNotFoundError:
            return None
        rejects = tuple(Reject(*item) for item in data.pop("rejects"))
        return StagedPlan(vocabulary=self.read_vocabulary(), rejects=rejects, **data)

    def read_vocabulary(self) -> Vocabulary:
        """Return the labels of all planned rows.

        Raises:
            StorageError: they are not there, though the plan is made.
        """
        path = self.path("vocabulary.json")
        try:
            data = json.loads(storage.read_text(path))
        except FileNotFoundError as exc:
            raise StorageError(
                f"{path} is not to be seen from {socket.gethostname()}: launcher and workers need "
                f"an output that they share, such as a bucket"
            ) from exc
        return Vocabulary(data["kind"], tuple(data["names"]), tuple(data["warnings"]))

    def write_result(self, result: ShardResult, index: int) -> None:
        """Leave what became of a shard."""
        name = f"{result.split}-{index:05d}.json"
        storage.write_text(self.path("results", name), result.to_json())

    def read_results(self) -> list[ShardResult]:
        """Return what became of all shards, by split and index."""
        names = [name for name, _ in storage.list_dir(self.path("results"))]
        paths = [self.path("results", name) for name in names if name.endswith(".json")]
        with ThreadPoolExecutor(_STORAGE_THREADS) as pool:
            return list(map(ShardResult.from_json, pool.map(storage.read_text, paths)))

    def write_error(self, error: RecordgenError) -> None:
        """Leave the reason for which a worker gives up: runners lose an error's type."""
        data = {"type": type(error).__name__, "message": str(error)}
        storage.write_text(self.path("error.json"), json.dumps(data, ensure_ascii=False))

    def read_error(self) -> RecordgenError | None:
        """Return the reason that a worker left, if any."""
        try:
            data = json.loads(storage.read_text(self.path("error.json")))
        except FileNotFoundError:
            return None
        kind: type[RecordgenError] = getattr(errors, data["type"])
        return kind(data["message"])

    def heartbeat(self, split: str, index: int) -> Heartbeat:
        """Return the heartbeat of the worker on a shard."""
        return Heartbeat(self.path("progress", f"{split}-{index:05d}.json"))

    def read_heartbeats(self, finished: dict[str, tuple[int, int, int]]) -> tuple[int, int, int]:
        """Return (examples, rejects, payload bytes) of all shards so far.

        Args:
            finished: counts of finished shards by file, kept from call to call.
        """
        counts = []
        for name, _ in storage.list_dir(self.path("progress")):
            if name in finished or not name.endswith(".json"):
                continue
            examples, rejects, size, done = json.loads(
                storage.read_text(self.path("progress", name))
            )
            if done:
                finished[name] = (examples, rejects, size)
            else:
                counts.append((examples, rejects, size))
        counts += finished.values()
        return (
            sum(count[0] for count in counts),
            sum(count[1] for count in counts),
            sum(count[2] for count in counts),
        )


class Heartbeat:
    """Says now and then how far a worker is, in a file: it works from any process or machine."""

    def __init__(self, path: str) -> None:
        self._path = path
        local = storage.is_local(path)
        self._seconds = _LOCAL_HEARTBEAT_SECONDS if local else _REMOTE_HEARTBEAT_SECONDS
        self._next = time.monotonic() + self._seconds

    def beat(self, examples: int, rejects: int, size: int) -> None:
        """Report counts if the last report is old enough."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._seconds
            self._write(examples, rejects, size, done=False)

    def finish(self, examples: int, rejects: int, size: int) -> None:
        """Report the final counts."""
        self._write(examples, rejects, size, done=True)

    def _write(self, *counts: Any, done: bool) -> None:
        storage.write_text(self._path, json.dumps([*counts, done]))


def open_staging(output: str, *, overwrite: bool) -> Staging:
    """Return a new, empty staging folder in ``output``; those of runs that died are removed.

    Raises:
        OutputExistsError: the output holds a dataset and ``overwrite`` was not asked for, or
            files of our names that no run of ours left.
        StorageError: the output cannot be written.
    """
    staging_root = storage.join(output, STAGING)
    died = storage.exists(staging_root)
    # Files without their dataset.json are ours only if a run died while it moved them.
    ours = (DATASET_FILE,) if died else (DATASET_FILE, LABELS_FILE, *_split_dirs(output))
    for name in () if overwrite else ours:
        if storage.exists(storage.join(output, name)):
            raise OutputExistsError(
                f"{output}: there is a {name} already; choose another output or --overwrite"
            )
    storage.remove(staging_root)
    staging = Staging(storage.join(staging_root, uuid.uuid4().hex[:12]))
    # An output that cannot be written is known now, not after an hour.
    storage.write_text(staging.path("run.json"), json.dumps({"recordgen": __version__}) + "\n")
    return staging


def commit(staging: Staging, output: str, dataset: Dataset, rejects: Iterable[Reject]) -> None:
    """Move the shards to their places, write what stands beside them, ``dataset.json`` last.

    What an older run left is removed first, its commit mark before all else; other files stay.
    """
    for name in (DATASET_FILE, FAILED_REJECTS_FILE, *_split_dirs(output)):
        storage.remove(storage.join(output, name))

    def move(shard: Shard) -> None:
        storage.move(staging.path(shard.file), storage.join(output, shard.file))

    shards = [shard for split in dataset.splits.values() for shard in split.shards]
    with ThreadPoolExecutor(_STORAGE_THREADS) as pool:
        list(pool.map(move, shards))
    labels = "".join(f"{label}\n" for label in dataset.labels)
    storage.write_text(storage.join(output, LABELS_FILE), labels)
    _write_rejects(storage.join(output, REJECTS_FILE), rejects)
    write_dataset(output, dataset)
    storage.remove(storage.join(output, STAGING))


def abandon(output: str, rejects: Iterable[Reject]) -> str:
    """End a run whose data is no good: remove its staging folder, keep its rejects.

    Returns:
        Where the rejects were written: ``rejects.jsonl``, or ``failed-rejects.jsonl`` beside a
        dataset that was to be overwritten.
    """
    kept = storage.exists(storage.join(output, DATASET_FILE))
    path = storage.join(output, FAILED_REJECTS_FILE if kept else REJECTS_FILE)
    _write_rejects(path, rejects)
    storage.remove(storage.join(output, STAGING))
    return path


def _write_rejects(path: str, rejects: Iterable[Reject]) -> None:
    lines = (json.dumps(item._asdict(), ensure_ascii=False) + "\n" for item in rejects)
    storage.write_text(path, "".join(lines))


def _split_dirs(output: str) -> list[str]:
    return storage.list_folders(output, SPLIT_PREFIX)
