"""The staging folder of a run, where its launcher and its workers exchange files.

    OUT/.recordgen-staging/RUN/run.json                the lease, :mod:`recordgen.core.runs.lease`
                               plan.json               the plan, which names files in between/
                               Split-train/…           finished shards
                               results/train-00000.result  a finished shard: its ShardResult in a
                                                       line, lengths of its records, facts
                               results/checks.json     what the checks have found
                               results/error.json      error of a worker
                               results/dataset.json    the dataset whose commit has begun
                               between/…               what a step leaves for later ones: rejects,
                                                       changes in rows, settled and planned rows,
                                                       shards of a part, keys, findings; little of
                                                       it travels in the message instead
                               progress/train-00000.shard  heartbeat of a worker on a shard
                               progress/….rows         of one that reads or plans rows

Every run has its own folder, so a dead run whose workers still write cannot damage another one.
:mod:`recordgen.core.runs.commit` creates and removes the folders, and stages the files that will
lie beside the shards. :mod:`recordgen.core.runs.lease` adds two kinds of files.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from typing import IO, Any, TypeVar

from recordgen import errors, storage
from recordgen.core import progress
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.lint import Found
from recordgen.core.dataset.manifest import built, has_dataset, parsed_json, shard_place
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import of_shard, whole, without_empty
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.plan import (
    CHANGES,
    BucketFile,
    Plan,
    ShardOutline,
    encode_bucket,
    planned_rows,
)
from recordgen.core.rows.columns import Columns, packed, read_streams
from recordgen.core.rows.row import Group
from recordgen.core.shards import PlannedRows, ShardResult, SplitSum, summed
from recordgen.errors import RecordgenError, RunnerError, StorageError
from recordgen.rejects import Finding, Reject

_T = TypeVar("_T")

STAGING = ".recordgen-staging"

#: Seconds between heartbeats in a local staging folder; remote folders get fewer.
LOCAL_HEARTBEAT_SECONDS = 0.5
_REMOTE_HEARTBEAT_SECONDS = 10.0

_PLAN, _FOUND, _ERROR = "plan.json", "results/checks.json", "results/error.json"

# The number of bytes of the lengths of records, which come before the facts about their rows.
_SIZE_BYTES = 8

_RESULT = ".result"

#: Kinds of heartbeats: of workers on shards, and of those that read or plan rows.
SHARD_FILES, ROW_FILES = ".shard", ".rows"

# What a step leaves in at most so many bytes is its name, after this word: two requests less.
_IN_NAME, _DATA = 8 << 10, "data:"

# Files that this process has written and does not read again: how many, of how many bytes at most.
_REMEMBERED, _REMEMBERED_BYTES = 256, 64 << 10

_SPLIT_PARTS = ("rows", "bytes", "first", "shards")

# Counts of a Plan that go into plan.json.
_COUNTED = ("read", "duplicates", "merged", "adjusted", "dropped", "existing")


class Heartbeat:
    """Writes a worker's counts into a file of the staging folder at intervals, on every runner."""

    def __init__(self, path: str, seconds: float | None = None) -> None:
        self._path = path
        usual = LOCAL_HEARTBEAT_SECONDS if storage.is_local(path) else _REMOTE_HEARTBEAT_SECONDS
        self.seconds = usual if seconds is None else seconds
        self._next = time.monotonic() + self.seconds
        self._total: Counter[str] = Counter()

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the counts since the start, and report the sums like :meth:`beat`."""
        self._total.update(counts)
        self.beat(self._total)

    def beat(self, counts: Mapping[str, int]) -> None:
        """Report counts if the last report is old enough."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.seconds
            self._write(counts, is_done=False)

    def finish(self, counts: Mapping[str, int]) -> None:
        """Report the final counts, unless nobody reads any."""
        if self.seconds < math.inf:
            self._write(counts, is_done=True)

    def _write(self, counts: Mapping[str, int], *, is_done: bool) -> None:
        with suppress(StorageError):  # heartbeats only inform: a run works without them
            storage.write_text(self._path, json.dumps([counts, is_done]))


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
    changes: str = ""  # the file that lists the changes in rows; empty if there are none
    line_files: Mapping[str, str] = field(default_factory=dict)  # findings about lines, by code
    outlines: tuple[str, ...] = ()  # files with the shards of each part, in a run in parts

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

    def totals(self, results: Collection[SplitSum] = ()) -> dict[str, int]:
        """Return the counts of a run by the names of :mod:`recordgen.core.progress`.

        Without results, it only planned.
        """
        return {
            progress.ROWS_READ: self.read,
            progress.ROWS_PLANNED: self.rows,
            progress.ROWS_REJECTED: len(self.rejects),
            progress.ROWS_DUPLICATE: self.duplicates,
            progress.ROWS_MERGED: self.merged,
            progress.ROWS_DROPPED: self.dropped,
            progress.ROWS_EXISTING: self.existing,
            progress.EXAMPLES_WRITTEN: sum(each.examples for each in results),
            progress.PAYLOADS_REJECTED: sum(len(each.rejects) for each in results),
            progress.PAYLOAD_BYTES: self.bytes if results else 0,
            progress.SHARD_BYTES: sum(shard.bytes for each in results for shard in each.shards),
        }


class _Remembered(dict[str, Any]):
    """What this process knows of small files that it has written; another process has its own."""

    def __reduce__(self) -> tuple[type[_Remembered], tuple[()]]:
        return _Remembered, ()


@dataclass(frozen=True)
class Staging:
    """The staging folder of one run, shared by workers and launcher."""

    root: str
    # The shortest time between two reports of a worker; by default, as long as suits the storage.
    heartbeat_seconds: float | None = field(default=None, compare=False)
    _written: _Remembered = field(default_factory=_Remembered, compare=False, repr=False)
    _facts: _Remembered = field(default_factory=_Remembered, compare=False, repr=False)

    def path(self, *parts: str) -> str:
        """Return a path inside the folder."""
        return storage.join(self.root, *parts)

    def _write(self, path: str, content: bytes) -> None:
        storage.write_bytes(path, content)
        if len(content) <= _REMEMBERED_BYTES and len(self._written) < _REMEMBERED:
            self._written[path] = content

    def _read(self, path: str) -> bytes:
        content = self._written.get(path)
        return storage.read_bytes(path) if content is None else content

    def _open(self, path: str) -> IO[bytes]:
        content = self._written.get(path)
        return storage.open_read(path) if content is None else io.BytesIO(content)

    def read_json(self, name: str, decode: Callable[[Any], _T]) -> _T:
        """Return what a JSON file of the folder holds.

        Raises: StorageError: it cannot be read; RunnerError: it was changed.
        """
        path = self.path(name)
        data = _read_shared(self._read, path)
        with decoding(path):
            return decode(parsed_json(data))

    def _has(self, name: str) -> bool:
        path = self.path(name)
        return path in self._written or storage.is_file(path)

    @property
    def lease(self) -> str:
        """The path of the lease, see :mod:`recordgen.core.runs.lease`."""
        return self.path("run.json")

    def read_findings(self, plan: StagedPlan) -> Iterator[Finding]:
        """Yield the changes in rows, by import file and line."""
        for line in self.read_lines(plan.changes) if plan.changes else ():
            with decoding(self.path("between", plan.changes)):
                yield built(Finding, parsed_json(line))

    def write_plan(
        self,
        plan: Plan,
        rejects: Sequence[Reject],
        found: Mapping[str, str] | None = None,
        outlines: Sequence[str] = (),
    ) -> None:
        """Write the plan for the launcher, and its vocabulary for workers."""
        data = {
            "splits": {
                name: {part: getattr(split, part) for part in _SPLIT_PARTS}
                for name, split in plan.splits.items()
            },
            "vocabulary": asdict(plan.vocabulary),
            **{name: getattr(plan.counts, name) for name in _COUNTED},
            "rejects": self.leave_json(rejects) if rejects else "",
            "changes": (found or {}).get(CHANGES, ""),
            "line_files": {code: name for code, name in (found or {}).items() if code != CHANGES},
            "outlines": outlines,
        }
        self._write(self.path(_PLAN), json.dumps(data, ensure_ascii=False).encode())

    @property
    def has_plan(self) -> bool:
        """Whether the plan is written; it stays as long as the folder."""
        return self._has(_PLAN)

    def read_plan(self) -> StagedPlan | None:
        """Return the plan, or None while there is none. Raises: RunnerError: it was changed."""
        return self.read_json(_PLAN, self._plan_of) if self.has_plan else None

    def _plan_of(self, values: Any) -> StagedPlan:
        rejects = self.read_left_json(values["rejects"]) if values["rejects"] else []
        found = built(StagedPlan, {**values, "rejects": rejects})
        for split in found.splits.values():
            if sorted(split) != sorted(_SPLIT_PARTS):
                raise ValueError(f"splits must have {', '.join(_SPLIT_PARTS)} (got {split})")
        return found

    def read_vocabulary(self) -> Vocabulary:
        """Return the labels of all planned rows.

        Raises: StorageError: they cannot be read; RunnerError: they were changed.
        """
        return self.read_json(_PLAN, lambda values: built(Vocabulary, values["vocabulary"]))

    def read_outlines(self, part: int) -> list[ShardOutline]:
        """Return the shards of a part. Raises: StorageError; RunnerError: they were changed."""
        name = self.read_json(_PLAN, lambda values: values["outlines"][part])
        return [built(ShardOutline, values) for values in self.read_left_json(name)]

    def plan_digest(self) -> str:
        """Return the sha256 (hex) of the plan. Raises: StorageError if it cannot be read."""
        return hashlib.sha256(_read_shared(storage.read_bytes, self.path(_PLAN))).hexdigest()

    def leave(self, content: bytes) -> str:
        """Write what a step leaves for later ones; return the name of the file, or the content."""
        if len(content) <= _IN_NAME:
            return f"{_DATA}{base64.b64encode(content).decode()}"
        # A unique name: another attempt may see other payload sizes, and write something else.
        name = uuid.uuid4().hex
        storage.write_bytes(self.path("between", name), content)
        return name

    def read_left(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Return what a step has left, or a part of it. Raises: StorageError."""
        if name.startswith(_DATA):
            content = base64.b64decode(name.removeprefix(_DATA))
            return content[start : None if length is None else start + length]
        path = storage.inside(self.path("between"), name)
        if length is None:
            return _read_shared(storage.read_bytes, path)
        return _read_shared(partial(storage.read_range, start=start, length=length), path)

    def leave_json(self, values: Sequence[Any]) -> str:
        """Write a list as such a file, whose name is the sha256 (hex) of its content."""
        content = json.dumps(values, ensure_ascii=False).encode()
        name = hashlib.sha256(content).hexdigest()
        storage.write_bytes(self.path("between", name), content)
        return name

    def read_left_json(self, name: str) -> Any:
        """Read a list in such a file.

        Raises: StorageError: it cannot be read; RunnerError: it was changed.
        """
        data = self.read_left(name)
        with decoding(self.path("between", name)):
            if hashlib.sha256(data).hexdigest() != name:
                raise ValueError("its digest is another one")
            return parsed_json(data)

    def read_left_columns(self, name: str, start: int = 0, length: int | None = None) -> Columns:
        """Read packed columns in such a file. Raises: as :meth:`read_left`."""
        with decoding(self.path("between", name)):
            [columns] = read_streams(self.read_left(name, start, length))
            return columns

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
        """Write the result of a shard, the lengths of its records, and the facts of its rows.

        Raises: ValueError: the facts were read before, and may be read once; StorageError.
        """
        size = len(result.lengths).to_bytes(_SIZE_BYTES, "little")
        head = b"".join((result.to_json().encode(), b"\n", size, result.lengths))
        path = self.path(_result_name(result.split, index))
        parts = map(packed, map(without_empty, result.facts))
        if (first := next(parts, None)) is None:
            raise ValueError(f"{path}: the facts of this shard were read before")
        content, more = head + first, next(parts, None)
        if more is None:
            self._write(path, content)
        else:
            with storage.replacing(path) as file:
                file.writelines(chain((content, more), parts))

    def find_result(self, split: str, index: int, fingerprint: str) -> ShardResult | None:
        """Return the result of a shard if there is one and its task has the same fingerprint."""
        try:
            # Another version of Recordgen may have written another kind of result.
            with self._opened_result(_result_name(split, index)) as (found, content):
                if found.fingerprint != fingerprint:
                    return None
                lengths = _lengths_in(content, found.shard)
                facts = list(map(whole, _facts_in(content, found)))
                return replace(found, lengths=lengths, facts=facts)
        except (OSError, RunnerError, StorageError, ValueError):
            return None  # a crash of the machine may leave an empty file

    def shard_facts(self, file: str) -> Iterator[Columns]:
        """Yield the facts of a shard's examples in parts, the first of which is read already.

        Raises: StorageError: they cannot be read; RunnerError: they were changed.
        """
        split, index = shard_place(file)
        name = _result_name(split, index)
        known = self._facts.get(file)
        parts = iter(known or of_shard(split, file, self._read_facts(name)))
        if known is None and self.path(name) in self._written:
            parts = iter(self._facts.setdefault(file, tuple(parts)))
        return chain([next(parts)], parts)

    def _read_facts(self, name: str) -> Iterator[Columns]:
        with self._opened_result(name) as (result, content):
            _lengths_in(content, result.shard)
            yield from _facts_in(content, result)

    def lengths(self, file: str) -> bytes:
        """Return the lengths of the records of a shard.

        Raises: StorageError: they cannot be read; RunnerError: there are more or fewer.
        """
        with self._opened_result(_result_name(*shard_place(file))) as (found, content):
            return _lengths_in(content, found.shard)

    def _read_result(self, name: str) -> ShardResult:
        with self._opened_result(name) as (found, _):
            return found

    @contextmanager
    def _opened_result(self, name: str) -> Iterator[tuple[ShardResult, IO[bytes]]]:
        """Open the file of a result, which is read; the lengths of the records are next."""
        path = self.path(name)
        with _read_shared(self._open, path) as content, decoding(path):
            yield ShardResult.of(parsed_json(content.readline())), content

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the findings in a file of sorted ones, as lines of JSON."""
        if name.startswith(_DATA):
            yield from map(_without_key, self.read_left(name).splitlines(keepends=True))
            return
        with storage.open_read(storage.inside(self.path("between"), name)) as file:
            yield from map(_without_key, file)

    def write_found(self, found: Found) -> None:
        """Write what the steps of the checks have found."""
        self._write(self.path(_FOUND), json.dumps(asdict(found), ensure_ascii=False).encode())

    def read_found(self) -> Found:
        """Return what the steps of the checks have found: nothing if no step examined anything."""
        return self.read_json(_FOUND, partial(built, Found)) if self._has(_FOUND) else Found()

    def count_results(self) -> int:
        """Return the number of finished shards."""
        return len(self._result_names())

    def read_results(self) -> dict[str, SplitSum]:
        """Return the results of all shards, added up by split, in the order of their indexes.

        Raises: RunnerError: one was changed.
        """
        names = [f"results/{name}" for name in self._result_names()]
        return summed(map_in_order(self._read_result, names, threads=storage.threads([self.root])))

    def _result_names(self) -> list[str]:
        names = (name for name, _ in storage.list_dir(self.results))
        return [name for name in names if name.endswith(_RESULT)]

    @property
    def results(self) -> str:
        """The folder of results, where a ``dataset.json`` shows that its commit has begun."""
        return self.path("results")

    @property
    def moving(self) -> bool:
        """Whether the output holds parts of an older dataset, or of this run, since its commit."""
        return has_dataset(self.results)

    def write_error(self, error: RecordgenError) -> None:
        """Write a worker's error for the launcher: runners lose the type of an error."""
        data = {"type": type(error).__name__, "message": str(error)}
        storage.write_text(self.path(_ERROR), json.dumps(data, ensure_ascii=False))

    def read_error(self) -> RecordgenError | None:
        """Return the error that a worker wrote, if any."""

        def error_of(data: Any) -> RecordgenError:
            kind: type[RecordgenError] = getattr(errors, data["type"])
            return kind(data["message"])

        return self.read_json(_ERROR, error_of) if self._has(_ERROR) else None

    def heartbeat(self, split: str, index: int) -> Heartbeat:
        """Return the heartbeat of a worker on a shard."""
        return self._heartbeat(f"{split}-{index:05d}{SHARD_FILES}")

    def planning_heartbeat(self) -> Heartbeat:
        """Return the heartbeat of another worker that reads or plans rows."""
        return self._heartbeat(f"{uuid.uuid4().hex}{ROW_FILES}")

    def _heartbeat(self, name: str) -> Heartbeat:
        return Heartbeat(self.path("progress", name), self.heartbeat_seconds)

    def read_heartbeats(self, finished: dict[str, Mapping[str, int]], kind: str) -> Counter[str]:
        """Return the sums of heartbeats so far; ``finished`` keeps them by file between calls.

        For :data:`ROW_FILES`, work that a runner repeats counts twice.
        """
        listed = (name for name, _ in storage.list_dir(self.path("progress")))
        names = [name for name in listed if name not in finished and name.endswith(kind)]
        paths = [self.path("progress", name) for name in names]
        sums: Counter[str] = Counter()
        for counts in finished.values():
            sums.update(counts)
        texts = map_in_order(storage.read_text, paths, threads=storage.threads(paths))
        for name, text in zip(names, texts, strict=True):
            counts, is_done = json.loads(text)
            sums.update(counts)
            if is_done:
                finished[name] = counts
        return sums


def _result_name(split: str, index: int) -> str:
    return f"results/{split}-{index:05d}{_RESULT}"


def _without_key(line: bytes) -> bytes:
    """Return a finding without the key that it was sorted by."""
    return line[line.index(b"\t") + 1 :]


def _lengths_in(content: IO[bytes], shard: Shard) -> bytes:
    """Read the lengths of the records of a shard. Raises: ValueError: they are of others."""
    size = 4 * shard.examples
    is_size = int.from_bytes(content.read(_SIZE_BYTES), "little") == size
    if not is_size or len(found := content.read(size)) != size:
        raise ValueError(f"it does not hold lengths of {size:,} bytes")
    return found


def _facts_in(content: IO[bytes], result: ShardResult) -> Iterator[Columns]:
    """Yield the facts of a shard's rows in parts. Raises: ValueError: they are of others."""
    rows = []
    for part in read_streams(content):
        rows.append(len(part))
        yield part
    expected = result.shard.examples + len(result.rejects)
    if not rows or sum(rows) != expected:
        raise ValueError(f"it holds facts of {sum(rows):,} rows instead of {expected:,}")


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
