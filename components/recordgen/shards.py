"""Shards: the unit of work. One worker turns the rows of one shard into one file.

``write_shard(task) -> ShardResult`` is all that a runner has to carry. Threads fetch, check and
serialise; the calling thread writes in the task's order, so the bytes do not depend on timing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from recordgen import features, storage
from recordgen.dataset import Shard, shard_file
from recordgen.errors import PayloadError, UnknownSchemeError
from recordgen.example import serialize_example
from recordgen.labels import Vocabulary
from recordgen.options import ConvertOptions
from recordgen.payloads.image import check_image, check_size
from recordgen.planning import PlannedRow
from recordgen.rows import Reject, RejectCode, Row
from recordgen.tfrecord import HashingFile, compressed, frame

# Payloads held at once: enough to keep the threads busy while the writer waits for the oldest,
# and a bound in bytes whatever the payloads' size.
_IN_FLIGHT_PER_THREAD = 8
_IN_FLIGHT_BYTES = 64_000_000

#: Called now and then with (examples, rejects, payload bytes) of the shard so far.
OnProgress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class ShardTask:
    """The rows of one shard, in the order in which they are written."""

    split: str
    index: int
    count: int
    rows: tuple[PlannedRow, ...]

    def file(self, compression: str) -> str:
        """Return the shard's path inside the output."""
        return shard_file(self.split, self.index, self.count, compression)


@dataclass(frozen=True)
class ShardResult:
    """What became of a ShardTask.

    Attributes:
        split: the split's name.
        shard: file, examples, bytes and sha256 (no bytes and no sha256 if only checked).
        labels: examples by label.
        drawn: examples whose split was drawn.
        reencoded: images whose bytes were not passed through, by reason.
        rejects: rows whose payload was refused.
    """

    split: str
    shard: Shard
    labels: Mapping[str, int]
    drawn: int
    reencoded: Mapping[str, int]
    rejects: tuple[Reject, ...]

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ShardResult:
        """Parse what :meth:`to_json` gave."""
        values: dict[str, Any] = json.loads(text)
        values["shard"] = Shard(**values["shard"])
        values["rejects"] = tuple(Reject(*item) for item in values["rejects"])
        return cls(**values)


class _Record(NamedTuple):
    """One framed record, ready to write, and what the result says of it."""

    frame: bytes
    label: str | None
    drawn: bool
    reencoded: str | None


def default_threads() -> int:
    """Return one thread per core and one more: decoders release the interpreter's lock."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 4


def write_shard(
    task: ShardTask,
    target: str,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Write one shard under the folder ``target``.

    The file is written under another name and renamed: it is there whole or not at all, and a
    second attempt replaces it with the same bytes.

    Raises:
        StorageError: storage failed; says nothing about the data.
    """
    tally = _Tally(on_progress)
    file = task.file(options.compression)
    with storage.replacing(storage.join(target, file)) as raw:
        sink = HashingFile(raw)
        with compressed(sink, options.compression) as write:
            for item in tally.count(_records(task.rows, vocabulary, options)):
                write(item.frame)
    shard = Shard(file, tally.examples, sink.bytes, sink.sha256())
    return tally.result(task.split, shard)


def check_shard(
    task: ShardTask,
    *,
    vocabulary: Vocabulary,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> ShardResult:
    """Do all that :func:`write_shard` does, but write nothing."""
    tally = _Tally(on_progress)
    for _ in tally.count(_records(task.rows, vocabulary, options)):
        pass
    shard = Shard(task.file(options.compression), tally.examples, 0, "")
    return tally.result(task.split, shard)


class _Tally:
    """Counts what passes on its way to the file, and keeps the rejects aside."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.examples = 0
        self._bytes = 0
        self._drawn = 0
        self._labels: Counter[str] = Counter()
        self._reencoded: Counter[str] = Counter()
        self._rejects: list[Reject] = []
        self._on_progress = on_progress

    def count(self, items: Iterable[tuple[PlannedRow, _Record | Reject]]) -> Iterator[_Record]:
        for row, item in items:
            self._bytes += row.bytes
            if isinstance(item, Reject):
                self._rejects.append(item)
            else:
                self.examples += 1
                self._drawn += item.drawn
                if item.label is not None:
                    self._labels[item.label] += 1
                if item.reencoded is not None:
                    self._reencoded[item.reencoded] += 1
                yield item
            if self._on_progress is not None:
                self._on_progress(self.examples, len(self._rejects), self._bytes)

    def result(self, split: str, shard: Shard) -> ShardResult:
        return ShardResult(
            split,
            shard,
            dict(sorted(self._labels.items())),
            self._drawn,
            dict(sorted(self._reencoded.items())),
            tuple(self._rejects),
        )


def _records(
    rows: Sequence[PlannedRow], vocabulary: Vocabulary, options: ConvertOptions
) -> Iterator[tuple[PlannedRow, _Record | Reject]]:
    """Yield each row's record or reject, in the rows' order, with a bounded number in flight."""

    def load(row: PlannedRow) -> _Record | Reject:
        try:
            return _record(row, vocabulary, options)
        except PayloadError as exc:
            return Reject(row.source, row.line, row.uri, exc.code, exc.message)

    threads = options.threads or default_threads()
    waiting = iter(rows)
    in_flight: deque[tuple[PlannedRow, Future[_Record | Reject]]] = deque()
    bytes_in_flight = 0
    with ThreadPoolExecutor(threads, thread_name_prefix="recordgen") as pool:
        try:
            upcoming = next(waiting, None)
            while upcoming is not None or in_flight:
                room = len(in_flight) < threads * _IN_FLIGHT_PER_THREAD and (
                    not in_flight or bytes_in_flight < _IN_FLIGHT_BYTES
                )
                if upcoming is not None and room:
                    in_flight.append((upcoming, pool.submit(load, upcoming)))
                    bytes_in_flight += upcoming.bytes
                    upcoming = next(waiting, None)
                    continue
                row, future = in_flight.popleft()
                item = future.result()
                bytes_in_flight -= row.bytes
                yield row, item
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _record(row: PlannedRow, vocabulary: Vocabulary, options: ConvertOptions) -> _Record:
    data = fetch(row.uri, row.source)
    image = check_image(data, options)
    record = serialize_example(
        {
            features.IMAGE_ENCODED: image.data,
            features.IMAGE_FORMAT: image.format.encode(),
            features.IMAGE_HEIGHT: image.height,
            features.IMAGE_WIDTH: image.width,
            features.IMAGE_SOURCE_ID: row.uri.encode(),
            features.IMAGE_SHA256: hashlib.sha256(image.data).hexdigest().encode(),
            features.IMAGE_CLASS_TEXT: None if row.label is None else row.label.encode(),
            features.IMAGE_CLASS_LABEL: None if row.label is None else vocabulary.index(row.label),
        }
    )
    return _Record(frame(record), row.label, row.drawn, image.reencoded)


def fetch(uri: str, source: str) -> bytes:
    """Return the bytes of the payload that a row names.

    Raises:
        PayloadError: there is none, or it may not be read.
        StorageError: storage failed.
    """
    path = storage.resolve(uri, source)
    with _refusals(path):
        return storage.read_bytes(path)


def payload_size(row: Row, options: ConvertOptions) -> int | PayloadError:
    """Return a payload's size in bytes, or why it is refused.

    Raises:
        StorageError: storage failed.
    """
    path = storage.resolve(row.uri, row.source)
    try:
        with _refusals(path):
            size = storage.size(path)
        if size == 0:
            raise PayloadError(RejectCode.EMPTY_FILE.value, "the file is empty (0 bytes)")
        check_size(size, options)
    except PayloadError as exc:
        return exc
    return size


def content_key(row: Row) -> bytes | PayloadError:
    """Return the sha256 of a payload, or why it is refused. Raises: StorageError."""
    try:
        return hashlib.sha256(fetch(row.uri, row.source)).digest()
    except PayloadError as exc:
        return exc


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Turn "not there" and "may not" into refusals of the payload."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise PayloadError(RejectCode.MISSING_FILE.value, f"no such file: {path}") from exc
    except PermissionError as exc:
        raise PayloadError(RejectCode.PERMISSION_DENIED.value, f"may not read {path}") from exc
    except UnknownSchemeError as exc:
        raise PayloadError(RejectCode.UNKNOWN_SCHEME.value, str(exc)) from exc
    except IsADirectoryError as exc:
        message = f"expected a regular file: {path}"
        raise PayloadError(RejectCode.NOT_A_FILE.value, message) from exc
