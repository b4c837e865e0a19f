"""Plan a reading from the shards, the options, and the free memory.

    ShardSet + ReadOptions ─plan_reading─▶ ReadPlan

The plan decides which files this worker opens, how many at a time, how many records are held for
shuffling, and what is cached. ``print(plan)`` shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recordgen.access.generation import Generation
from recordgen.access.shards import ShardFile, ShardSet
from recordgen.errors import DataError, UsageError
from recordgen.messages import listed
from recordgen.reading.classes import (
    PART_MODES,
    ClassPlan,
    check_image_options,
    has_several_labels,
    labelled_examples,
    plan_classes,
    plan_task,
)
from recordgen.reading.memory import (
    CachePlan,
    block_length_of,
    cycle_length_of,
    plan_cache,
    read_buffer_of,
    record_bytes_of,
    shuffle_buffer_of,
)
from recordgen.reading.options import AUTOTUNE, LabelOptions, ReadOptions, RecordOptions


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records of one file.

    Attributes:
        file: the file's index in the list of files.
        start: the index of the first record.
        count: the number of records.
    """

    file: int
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The decisions made before the first record is read.

    Attributes:
        files: the shard files that this worker opens.
        pieces: the worker's records of these files; () for all.
        turn: (index, count): the worker takes every ``count``-th selected record; None: all.
        examples: examples of this worker in one pass; None if unknown.
        cycle_length: files that are read at the same time.
        block_length: consecutive records of one file.
        read_buffer: bytes of a file that are read ahead of its records; 0: each record by itself.
        shuffle_buffer: records that are held for shuffling; 0: no shuffling.
        cache: what is cached.
        task: the task; "" for records of any kind.
        classes: the classes of labelled examples.
        is_checked: whether Recordgen wrote the records and decoded every payload.
        packed: the files that are compressed although their names do not end with ``.gz``.
        generation: shows whether the files were replaced; None if that cannot be known.
    """

    files: tuple[str, ...]
    pieces: tuple[Piece, ...]
    turn: tuple[int, int] | None
    examples: int | None
    cycle_length: int
    block_length: int
    read_buffer: int
    shuffle_buffer: int
    cache: CachePlan | None
    task: str
    classes: ClassPlan | None
    is_checked: bool
    packed: tuple[str, ...] = ()
    generation: Generation | None = None

    def __str__(self) -> str:
        count = "an unknown number of" if self.examples is None else f"{self.examples:,}"
        open_files = "AUTOTUNE" if self.cycle_length == AUTOTUNE else self.cycle_length
        lines = [
            f"files     {len(self.files)}, {open_files} at a time",
            f"examples  {count}",
            f"shuffle   {f'buffer of {self.shuffle_buffer:,}' if self.shuffle_buffer else 'no'}",
            f"cache     {self.cache or 'no'}",
        ]
        if self.pieces:
            lines.append(f"worker    {len(self.pieces)} files, whole or in part")
        if self.turn is not None:
            lines.append("worker    every {1}th selected record, from the {0}th".format(*self.turn))
        return "\n".join(lines)


def plan_reading(shards: ShardSet, options: ReadOptions) -> ReadPlan:
    """Plan how images are read.

    Raises:
        UsageError: an option does not fit the data.
        DataError: nothing is left to read, or a label is outside the vocabulary.
    """
    is_checked = shards.dataset is not None and shards.dataset.options.get("check") == "decode"
    task = plan_task(shards, options)
    check_image_options(shards, options, task)
    return plan_labelled(shards, options, task, is_checked)


def plan_texts(shards: ShardSet, options: LabelOptions) -> ReadPlan:
    """Plan how labelled texts are read. Raises: as :func:`plan_reading`."""
    return plan_labelled(shards, options, plan_task(shards, options), True)


def plan_labelled(shards: ShardSet, options: LabelOptions, task: str, is_checked: bool) -> ReadPlan:
    """Plan how labelled examples of a task are read. Raises: as :func:`plan_reading`."""
    classes = plan_classes(shards, options, task)
    files = [file for file in shards.files if _may_hold(file, classes)]
    examples = _wanted_examples(shards, task, classes, options)
    if not files or examples == 0:
        raise DataError(_nothing_left(shards, options))
    return _plan(shards, files, examples, options, is_checked, task, classes)


def plan_records(
    shards: ShardSet, options: RecordOptions, classes: ClassPlan | None = None
) -> ReadPlan:
    """Plan how records of any kind are read. Raises: as :func:`plan_reading`."""
    examples = shards.examples
    if classes is not None and classes.filters:
        examples = sum(classes.counts.values()) if classes.counts is not None else None
    if options.predicate is not None:
        examples = None
    files = [file for file in shards.files if file.examples != 0]
    if not files:
        raise DataError(f"{shards.files[0].path}: no record in {len(shards.files)} files")
    return _plan(shards, files, examples, options, True, classes=classes)


def _plan(
    shards: ShardSet,
    files: list[ShardFile],
    examples: int | None,
    options: RecordOptions,
    is_checked: bool,
    task: str = "",
    classes: ClassPlan | None = None,
) -> ReadPlan:
    shards.check_files(files)
    by_label = all(file.label is not None for file in files)
    filters = options.predicate is not None or (classes is not None and classes.filters)
    counts = [file.examples for file in files if file.examples is not None]
    mine = files
    pieces: tuple[Piece, ...] = ()
    turn = None
    if options.shard[1] > 1 and (filters or len(counts) < len(files)):
        # Which records are selected, or how many there are, is known only when all are read.
        turn = options.shard
        examples = None if examples is None else len(range(turn[0], examples, turn[1]))
    elif options.shard[1] > 1:
        # With shards by label, whole files would give each worker different classes.
        share = even_share if by_label else consecutive_share
        found = share(counts, *options.shard)
        mine = [files[piece.file] for piece in found]
        pieces = tuple(replace(piece, file=place) for place, piece in enumerate(found))
        examples = sum(piece.count for piece in pieces)
    if examples == 0:
        raise UsageError(
            f"shard={options.shard}: nothing is left for this worker; use fewer workers"
        )
    record_bytes = record_bytes_of(mine)
    is_mixed = shards.dataset is not None and not by_label
    cache = plan_cache(options, examples, record_bytes)
    return ReadPlan(
        files=tuple(file.path for file in mine),
        pieces=pieces,
        turn=turn,
        examples=examples,
        cycle_length=cycle_length_of(options, len(mine), by_label or turn is not None),
        block_length=1 if by_label else block_length_of(record_bytes),
        read_buffer=read_buffer_of(mine, record_bytes),
        shuffle_buffer=shuffle_buffer_of(options, examples, record_bytes, cache, is_mixed),
        cache=cache,
        task=task,
        classes=classes,
        is_checked=is_checked and shards.dataset is not None,
        packed=tuple(file.path for file in mine if file.is_gzip),
        generation=shards.generation,
    )


def consecutive_share(counts: Sequence[int], index: int, workers: int) -> list[Piece]:
    """Return a worker's share of few files: whole files, and at most two in part.

    All workers compute it from the same counts, without communication. Their shares are disjoint,
    hold every record, and differ by one record at most: of files with 5, 5 and 5 records, worker 0
    of 2 reads file 0 and records 0–1 of file 1.

    The files are divided as if they were one, so all workers together open at most
    ``len(counts) + workers - 1`` files.
    """
    total = sum(counts)
    first, end = index * total // workers, (index + 1) * total // workers
    pieces = []
    before = 0
    for file, count in enumerate(counts):
        start, stop = max(first - before, 0), min(end - before, count)
        if start < stop:
            pieces.append(Piece(file, start, stop - start))
        before += count
    return pieces


def even_share(counts: Sequence[int], index: int, workers: int) -> list[Piece]:
    """Return a share of every file, for files with one class each.

    The workers' parts of a file differ by one record at most. The workers take the remaining
    records in turn, so that the whole shares also differ by one record at most.
    """
    pieces = []
    before = 0
    for file, count in enumerate(counts):
        place = (index - before) % workers
        size, odd = divmod(count, workers)
        mine = size + (place < odd)
        if mine:
            pieces.append(Piece(file, place * size + min(place, odd), mine))
        before += count
    return pieces


def _may_hold(file: ShardFile, classes: ClassPlan) -> bool:
    """Return whether a file may hold an example to read."""
    if file.examples == 0 or file.label is None:
        return file.examples != 0
    if file.label == "":
        return classes.mode is None and classes.wanted is None
    return classes.wanted is None or file.label in classes.wanted


def _wanted_examples(
    shards: ShardSet, task: str, classes: ClassPlan, options: LabelOptions
) -> int | None:
    if options.predicate is not None:
        return None
    if classes.counts is None:
        return None if classes.filters else shards.examples
    if classes.mode in PART_MODES or (classes.mode is None and classes.wanted is None):
        return shards.examples
    if not has_several_labels(task) or sum(map(bool, classes.counts.values())) <= 1:
        return sum(classes.counts.values())
    # An example may have several of the classes.
    return labelled_examples(shards, task) if classes.wanted is None else None


def _nothing_left(shards: ShardSet, options: LabelOptions) -> str:
    where = f"split {shards.split!r}" if shards.split else shards.files[0].path
    if options.labels is not None:
        there = listed(sorted(shards.labels or {}))
        return f"{where} has no example of [{listed(sorted(options.labels))}]; it has [{there}]"
    if shards.examples:
        return (
            f"{where} has no labelled example ({shards.examples} unlabelled); "
            f"label_mode=None reads them"
        )
    return f"{where} has no examples"
