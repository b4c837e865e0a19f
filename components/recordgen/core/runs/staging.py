"""The staging folder of a run, where its launcher and its workers exchange files.

    OUT/.recordgen-staging/RUN/run.json                the lease, :mod:`recordgen.core.runs.lease`
                               plan.json               the plan and its rejects
                               vocabulary.json         the labels, which workers need
                               Split-train/…           finished shards
                               results/train-00000.json   one ShardResult per finished shard
                               facts/train-00000.arrow    facts of its rows for the checks
                               lengths/train-00000     lengths of its records for the index
                               between/…               what a step leaves for later ones: changes in
                                                       rows, settled and planned rows, keys
                               lint/CODE.jsonl         findings about examples
                               about/….json            findings about the dataset as a whole
                               planning/….json         heartbeat of a worker that reads or plans
                               progress/train-00000.json  heartbeat of a worker on a shard
                               error.json              error of a worker
                               moving                  the dataset in OUT is being replaced

Every run has its own folder, so a dead run whose workers still write cannot damage another one.
:mod:`recordgen.core.runs.commit` creates and removes the folders.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import IO, Any, TypeVar

from recordgen import errors, storage
from recordgen.core.dataset.manifest import SPLIT_PREFIX, shard_index
from recordgen.core.dataset.typed import built, parsed_json
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import of_shard, whole, without_empty
from recordgen.core.ordered import STORAGE_THREADS, map_in_order
from recordgen.core.planning.bucket_files import (
    BucketFile,
    ShardOutline,
    encode_bucket,
    planned_rows,
)
from recordgen.core.planning.messages import FindingsFile
from recordgen.core.planning.plan import Plan
from recordgen.core.rows.columns import Columns, packed, unpacked
from recordgen.core.rows.planned import Group
from recordgen.core.shards.rows import PlannedRows
from recordgen.core.shards.task import ShardResult, SplitSum, summed
from recordgen.errors import RecordgenError, RunnerError, StorageError
from recordgen.rejects import Finding, Reject, to_lines

_T = TypeVar("_T")

STAGING = ".recordgen-staging"

#: Seconds between heartbeats in a local staging folder; remote folders get fewer.
LOCAL_HEARTBEAT_SECONDS = 0.5
_REMOTE_HEARTBEAT_SECONDS = 10.0

_PLAN, _VOCABULARY = "plan.json", "vocabulary.json"

#: The files of a plan that all parts of a run share.
PLAN_FILES = (_PLAN, _VOCABULARY)

_SPLIT_PARTS = ("rows", "bytes", "first", "shards")

# Counts of a Plan that go into plan.json.
_COUNTED = ("read", "duplicates", "merged", "adjusted", "dropped", "existing")


class Heartbeat:
    """Writes a worker's counts into a file of the staging folder at intervals, on every runner."""

    def __init__(self, path: str, seconds: float | None = None) -> None:
        self._path = path
        if seconds is None:
            local = storage.is_local(path)
            seconds = LOCAL_HEARTBEAT_SECONDS if local else _REMOTE_HEARTBEAT_SECONDS
        self.seconds = seconds
        self._next = time.monotonic() + self.seconds
        self._total = (0, 0, 0)

    def add(self, *counts: int) -> None:
        """Add to the counts since the start, and report the sums like :meth:`beat`."""
        first, second, third = map(sum, zip(self._total, counts, strict=True))
        self._total = (first, second, third)
        self.beat(*self._total)

    def beat(self, examples: int, rejects: int, size: int) -> None:
        """Report counts if the last report is old enough."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.seconds
            self._write(examples, rejects, size, done=False)

    def finish(self, examples: int, rejects: int, size: int) -> None:
        """Report the final counts."""
        self._write(examples, rejects, size, done=True)

    def _write(self, *counts: Any, done: bool) -> None:
        with suppress(StorageError):  # heartbeats only inform: a run works without them
            storage.write_text(self._path, json.dumps([*counts, done]))


@dataclass(frozen=True)
class StagedPlan:
    """The part of a plan that the launcher needs: sizes, vocabulary, counts, rejects."""

    # By name: planned `rows` and `bytes`; `first`, the number of the first new shard, and `shards`,
    # the number after the last one.
    splits: Mapping[str, Mapping[str, int]]
    vocabulary: Vocabulary
    read: int
    duplicates: int  # rows that repeat another row
    merged: int  # rows that add something to another row's example
    adjusted: Mapping[str, int]  # changes that made rows usable, by kind
    dropped: int  # rows without a split that `missing_split=drop` dropped
    existing: int  # rows whose example is in the dataset that is appended to
    rejects: tuple[Reject, ...]
    findings: tuple[str, ...] = ()  # files that list the changes in rows, in order

    @property
    def rows(self) -> int:
        """Planned rows."""
        return sum(split["rows"] for split in self.splits.values())

    @property
    def shards(self) -> int:
        """Planned shards, without existing ones."""
        return sum(split["shards"] - split["first"] for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
        return sum(split["bytes"] for split in self.splits.values())


@dataclass(frozen=True)
class Staging:
    """The staging folder of one run, shared by workers and launcher."""

    root: str
    # The shortest time between two reports of a worker; by default, as long as suits the storage.
    heartbeat_seconds: float | None = None

    def path(self, *parts: str) -> str:
        """Return a path inside the folder."""
        return storage.join(self.root, *parts)

    @property
    def lease(self) -> str:
        """The path of the lease, see :mod:`recordgen.core.runs.lease`."""
        return self.path("run.json")

    def write_findings(self, findings: Sequence[Finding], number: int) -> FindingsFile:
        """Write changes in rows, in order, as one of the files of these rows."""
        name = self.leave("".join(to_lines(findings)).encode())
        return FindingsFile(findings[0].source, findings[0].line, number, name)

    def read_findings(self, plan: StagedPlan) -> Iterator[Finding]:
        """Yield the changes in rows, by import file and line; one file is in memory at a time."""
        for name in plan.findings:
            data = self.read_left(name)
            with decoding(self.path("between", name)):
                lines = [built(Finding, parsed_json(it)) for it in data.split(b"\n") if it]
            yield from lines

    def write_plan(
        self,
        plan: Plan,
        rejects: Sequence[Reject],
        findings: Iterable[FindingsFile] = (),
    ) -> None:
        """Write the plan for the launcher, and its vocabulary for workers."""
        vocabulary = json.dumps(asdict(plan.vocabulary), ensure_ascii=False)
        storage.write_text(self.path(_VOCABULARY), vocabulary)
        data = {
            "splits": {
                name: {part: getattr(split, part) for part in _SPLIT_PARTS}
                for name, split in plan.splits.items()
            },
            **{name: getattr(plan.counts, name) for name in _COUNTED},
            "rejects": rejects,
            "findings": [item.file for item in findings],
        }
        storage.write_text(self.path(_PLAN), json.dumps(data, ensure_ascii=False))

    def read_plan(self) -> StagedPlan | None:
        """Return the plan, or None while there is none. Raises: RunnerError: it was changed."""
        path = self.path(_PLAN)
        try:
            data = storage.read_bytes(path)
        except FileNotFoundError:
            return None
        vocabulary = self.read_vocabulary()
        with decoding(path):
            found = built(StagedPlan, {**parsed_json(data), "vocabulary": vocabulary})
            for split in found.splits.values():
                if sorted(split) != sorted(_SPLIT_PARTS):
                    raise ValueError(f"splits must have {', '.join(_SPLIT_PARTS)} (got {split})")
            return found

    def read_vocabulary(self) -> Vocabulary:
        """Return the labels of all planned rows.

        Raises: StorageError: they cannot be read; RunnerError: they were changed.
        """
        return read_staged(self.path(_VOCABULARY), partial(built, Vocabulary))

    def digest_of(self, name: str) -> str:
        """Return the sha256 (hex) of a file. Raises: StorageError if it cannot be read."""
        return hashlib.sha256(_read_shared(storage.read_bytes, self.path(name))).hexdigest()

    def leave(self, content: bytes) -> str:
        """Write what one step leaves for later ones; return the file's name."""
        # A unique name: another attempt may see other payload sizes, and write something else.
        name = uuid.uuid4().hex
        storage.write_bytes(self.path("between", name), content)
        return name

    def read_left(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Read such a file, or a part of it. Raises: StorageError if it cannot be read."""
        path = storage.inside(self.path("between"), name)
        if length is None:
            return _read_shared(storage.read_bytes, path)
        return _read_shared(partial(storage.read_range, start=start, length=length), path)

    def read_left_columns(self, name: str, start: int = 0, length: int | None = None) -> Columns:
        """Read packed columns in such a file. Raises: StorageError, RunnerError."""
        return _unpacked(self.read_left(name, start, length), self.path("between", name))

    def write_bucket(self, bucket: int, groups: Mapping[Group, Columns]) -> BucketFile:
        """Write the planned rows of a bucket, by group, for the shards."""
        content, blocks = encode_bucket(groups)
        return BucketFile(bucket, self.leave(content) if content else "", blocks)

    def read_rows(self, outline: ShardOutline) -> PlannedRows:
        """Return the rows of a shard.

        Raises: StorageError: they cannot be read; RunnerError: they were changed.
        """
        files = dict.fromkeys(byte_range.file for byte_range in outline.byte_ranges)
        contents = (self.read_left(*byte_range[:3]) for byte_range in outline.byte_ranges)
        with decoding(self.path("between", ", ".join(files))):
            return PlannedRows(planned_rows(outline, contents))

    def write_result(self, result: ShardResult, index: int) -> None:
        """Write the facts of a shard and the lengths of its records, then its result."""
        facts, shard = packed(without_empty(result.facts)), (result.split, index)
        storage.write_bytes(self._facts_path(*shard), facts)
        storage.write_bytes(self._lengths_path(*shard), result.lengths)
        storage.write_text(self._result_path(*shard), result.to_json())

    def find_result(self, split: str, index: int, fingerprint: str) -> ShardResult | None:
        """Return the result of a shard if there is one and its task has the same fingerprint."""
        try:
            # Another version of Recordgen may have written another kind of result.
            found = _read_result(self._result_path(split, index))
            if found.fingerprint != fingerprint:
                return None
            facts = whole(_read_columns(self._facts_path(split, index)))
            lengths = storage.read_bytes(self._lengths_path(split, index))
        except (OSError, RunnerError, StorageError, ValueError):
            return None  # a crash of the machine may leave an empty file
        found = replace(found, facts=facts, lengths=lengths)
        return found if len(lengths) == 4 * found.shard.examples else None

    def shard_facts(self, file: str) -> Columns:
        """Return the facts of a shard's examples. Raises: StorageError if they cannot be read."""
        split, index = _numbered(file)
        return of_shard(split, file, _read_columns(self._facts_path(split, index)))

    def shard_lengths(self, file: str) -> bytes:
        """Return the lengths of a shard's records. Raises: StorageError if they cannot be read."""
        return _read_shared(storage.read_bytes, self._lengths_path(*_numbered(file)))

    def writing_findings(self, code: str) -> AbstractContextManager[IO[bytes]]:
        """Open the file with all findings about examples of a code for writing."""
        return storage.replacing(self.path("lint", f"{code}.jsonl"))

    def read_lines(self, code: str) -> Iterator[bytes]:
        """Yield the findings about examples of a code, as lines of JSON."""
        try:
            with storage.open_read(self.path("lint", f"{code}.jsonl")) as file:
                yield from file
        except FileNotFoundError:
            return

    def write_about(
        self, name: str, about_all: Mapping[str, Sequence[str]], remarks: Sequence[str]
    ) -> None:
        """Write what a step of the checks found about the dataset as a whole."""
        found = {"about_all": about_all, "remarks": remarks}
        storage.write_text(self.path("about", f"{name}.json"), json.dumps(found))

    def read_about(self) -> tuple[dict[str, list[str]], list[str]]:
        """Return what the checks found about the dataset as a whole, by code, and remarks."""
        about_all: dict[str, list[str]] = {}
        remarks: list[str] = []
        for name, _ in sorted(storage.list_dir(self.path("about"))):
            found = read_staged(self.path("about", name), partial(built, _About))
            remarks += found.remarks
            for code, texts in found.about_all.items():
                about_all.setdefault(code, []).extend(texts)
        return about_all, remarks

    def _facts_path(self, split: str, index: int) -> str:
        return self.path("facts", f"{split}-{index:05d}.arrow")

    def _lengths_path(self, split: str, index: int) -> str:
        return self.path("lengths", f"{split}-{index:05d}")

    def count_results(self) -> int:
        """Return the number of finished shards."""
        return len(self._result_names())

    def read_results(self) -> dict[str, SplitSum]:
        """Return the results of all shards, added up by split, in the order of their indexes.

        Raises: RunnerError: one was changed.
        """
        paths = [self.path("results", name) for name in self._result_names()]
        return summed(map_in_order(_read_result, paths, threads=STORAGE_THREADS))

    def _result_path(self, split: str, index: int) -> str:
        return self.path("results", f"{split}-{index:05d}.json")

    def _result_names(self) -> list[str]:
        names = (name for name, _ in storage.list_dir(self.path("results")))
        return [name for name in names if name.endswith(".json")]

    def start_moving(self) -> None:
        """Record that from now on the output holds parts of an older dataset, or of this run."""
        storage.write_text(self.path("moving"), "")

    @property
    def moving(self) -> bool:
        """Whether the output may hold a part of an older dataset, or shards of this run."""
        return storage.exists(self.path("moving"))

    def write_error(self, error: RecordgenError) -> None:
        """Write a worker's error for the launcher: runners lose the type of an error."""
        data = {"type": type(error).__name__, "message": str(error)}
        storage.write_text(self.path("error.json"), json.dumps(data, ensure_ascii=False))

    def read_error(self) -> RecordgenError | None:
        """Return the error that a worker wrote, if any."""
        path = self.path("error.json")
        try:
            text = storage.read_bytes(path)
        except FileNotFoundError:
            return None
        with decoding(path):
            data = parsed_json(text)
            kind: type[RecordgenError] = getattr(errors, data["type"])
            return kind(data["message"])

    def heartbeat(self, split: str, index: int) -> Heartbeat:
        """Return the heartbeat of a worker on a shard."""
        return Heartbeat(self.path("progress", f"{split}-{index:05d}.json"), self.heartbeat_seconds)

    def planning_heartbeat(self) -> Heartbeat:
        """Return the heartbeat of another worker that reads or plans rows."""
        return Heartbeat(self.path("planning", f"{uuid.uuid4().hex}.json"), self.heartbeat_seconds)

    def read_heartbeats(
        self, finished: dict[str, tuple[int, int, int]], folder: str = "progress"
    ) -> tuple[int, int, int]:
        """Return the sums of heartbeats so far; ``finished`` keeps them by file between calls.

        Of ``progress``, they are examples, rejects and payload bytes; of ``planning``, rows read,
        planned and rejected, where work that a runner repeats counts twice.
        """
        counts = []
        names = [
            name
            for name, _ in storage.list_dir(self.path(folder))
            if name not in finished and name.endswith(".json")
        ]
        paths = [self.path(folder, name) for name in names]
        texts = map_in_order(storage.read_text, paths, threads=STORAGE_THREADS)
        for name, text in zip(names, texts, strict=True):
            examples, rejects, size, done = json.loads(text)
            if done:
                finished[name] = (examples, rejects, size)
            else:
                counts.append((examples, rejects, size))
        counts += finished.values()
        examples, rejects, size = map(sum, zip((0, 0, 0), *counts, strict=True))
        return examples, rejects, size


def _numbered(file: str) -> tuple[str, int]:
    """Return split and number of a shard, given its path inside the output."""
    return file.partition("/")[0].removeprefix(SPLIT_PREFIX), shard_index(file)


@dataclass(frozen=True)
class _About:
    """What a step of the checks found about the dataset as a whole."""

    about_all: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]


def _read_columns(path: str) -> Columns:
    return _unpacked(_read_shared(storage.read_bytes, path), path)


def _unpacked(data: bytes, path: str) -> Columns:
    with decoding(path):
        [columns] = unpacked(data)
        return columns


def _read_result(path: str) -> ShardResult:
    return read_staged(path, ShardResult.of)


def read_staged(path: str, decode: Callable[[Any], _T]) -> _T:
    """Return what a JSON file of a run holds.

    Raises: StorageError: it cannot be read; RunnerError: it was changed.
    """
    data = _read_shared(storage.read_bytes, path)
    with decoding(path):
        return decode(parsed_json(data))


# Errors of code that decodes a value which somebody changed.
_ODD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Decode a file of a run in the block. Raises: RunnerError: it holds something else."""
    try:
        yield
    except _ODD as exc:
        reason = f"{exc} is missing" if isinstance(exc, KeyError) else exc
        raise RunnerError(
            f"{path}: was changed since Recordgen wrote it: {reason}; run the conversion or the "
            f"plan again"
        ) from exc


def _read_shared(read: Callable[[str], _T], path: str) -> _T:
    """Read a file that another process wrote. Raises: StorageError if it is missing."""
    try:
        return read(path)
    except FileNotFoundError as exc:
        raise StorageError(
            f"{path} is not visible on {socket.gethostname()}: launcher and workers need a shared "
            f"output, such as a bucket"
        ) from exc
