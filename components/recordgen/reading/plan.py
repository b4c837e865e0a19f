"""Plan a reading from the shards, the options, and the free memory.

    ShardSet + ReadOptions ─plan_reading─▶ ReadPlan

The plan decides which files this worker opens, how many at a time, how many records are held for
shuffling, and what is cached. ``print(plan)`` shows it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from recordgen import storage
from recordgen.access.shards import Generation, ShardFile, ShardSet
from recordgen.core.allowance import GROUP, memory_of_group, memory_of_machine
from recordgen.core.facts import BOXES, MASKS
from recordgen.core.task.task import SEVERAL
from recordgen.errors import DataError, UsageError, did_you_mean
from recordgen.messages import listed, megabytes
from recordgen.reading.options import (
    AUTO,
    AUTOTUNE,
    BALANCED,
    MEMORY,
    LabelOptions,
    ReadOptions,
    RecordOptions,
)
from recordgen.registry import OF_OTHER_RECORDS, TASKS

# --- what a reading holds: open files, bytes read ahead, records to shuffle, and a cache ----------

# A cache has decoded images, if all of them fit and are not cropped at random; else stored records,
# if they fit, which are decoded in each epoch; else nothing.

#: The stages that can be kept.
RECORDS, IMAGES, NOTHING = "records", "images", "nothing"

_WHAT = {
    RECORDS: "records as stored, before they are decoded",
    IMAGES: "decoded images (uint8), before they are augmented",
}

# Memory that shuffling may take. Recordgen's shards are already shuffled, others may be sorted.
_SHUFFLE_BYTES = 64_000_000
_FOREIGN_SHUFFLE_BYTES = 256_000_000

_MAX_SHUFFLE_RECORDS = 16_384
_MIN_SHUFFLE_BATCHES = 2

# With one class per file, more open files mix better, but tf.data opens three times as many ahead,
# each with a buffer of 256 kB.
_OPEN_SHARDS = 32

# Consecutive records of one file: handing over each by itself costs more than reading it, but
# tf.data holds two such blocks of every open file.
_BLOCK_RECORDS = 16
_BLOCK_BYTES = 2_000_000

# Each open file has a buffer. Large records of local files cost less without it, because it is one
# more copy. In object stores each read is a request.
_READ_BUFFER_BYTES = 256 * 1024
_UNBUFFERED_RECORD_BYTES = 64 * 1024

# Assumed size of a record that was not measured.
_UNKNOWN_RECORD_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class CachePlan:
    """A cache of the examples of one plan.

    Attributes:
        stage: ``records`` as stored; decoded ``images`` of the returned size, unless crops are
            random; ``nothing``, because nothing fits.
        path: the file; "" for memory.
        bytes: the size of the cache; None if unknown. With ``nothing``: the size of the records.
        room: how many bytes the cache may take.
    """

    stage: str
    path: str
    bytes: int | None
    room: float = math.inf

    @property
    def keeps_images(self) -> bool:
        """Whether decoded images are kept."""
        return self.stage == IMAGES

    def __str__(self) -> str:
        size = "of unknown size" if self.bytes is None else megabytes(self.bytes)
        if self.stage == NOTHING:
            return f"nothing: the records need {size}, and a cache may take {megabytes(self.room)}"
        return f"{_WHAT[self.stage]}, {size} in {self.path or 'memory'}"


def plan_cache(
    options: RecordOptions, examples: int | None, record_bytes: float | None
) -> CachePlan | None:
    """Plan a cache; what is None is unknown. Returns: None without a cache."""
    if options.cache is None:
        return None
    path = "" if options.cache == MEMORY else storage.normal(os.fspath(options.cache))
    # Do not plan by a disk's free space: it changes while the cache is written, and a different
    # plan would need a different file. The model and the shuffle buffer need half of the memory.
    room = options.tuning.cache_bytes or (math.inf if path else free_memory() // 2)
    if isinstance(options, ReadOptions) and examples is not None and not options.draws_pixels:
        decoded = examples * 3 * math.prod(options.image_size)
        if decoded <= room:
            return CachePlan(IMAGES, path, decoded, room)
    stored = None if examples is None or record_bytes is None else int(examples * record_bytes)
    return CachePlan(RECORDS if stored is None or stored <= room else NOTHING, path, stored, room)


def record_bytes_of(files: Sequence[ShardFile]) -> float | None:
    """Return the mean size of a record; None if unknown."""
    known = [(f.bytes, f.examples) for f in files if f.bytes is not None and f.examples]
    count = sum(examples for _, examples in known)
    return sum(size for size, _ in known) / count if count else None


def cycle_length_of(options: RecordOptions, files: int, is_fixed: bool) -> int:
    """Return the number of files that are read at the same time."""
    if options.tuning.cycle_length != AUTOTUNE:
        return min(options.tuning.cycle_length, files)
    if not options.shuffle or files == 1:
        return 1  # one file after the other keeps the order of the shards
    # Workers that take turns must see one order, but AUTOTUNE's depends on the machine.
    return min(files, _OPEN_SHARDS) if is_fixed else AUTOTUNE


def block_length_of(record_bytes: float | None) -> int:
    """Return the number of consecutive records of one file."""
    return max(1, min(_BLOCK_RECORDS, int(_BLOCK_BYTES / (record_bytes or _UNKNOWN_RECORD_BYTES))))


def read_buffer_of(files: Sequence[ShardFile], record_bytes: float | None) -> int:
    """Return the bytes of a file that are read ahead; 0: each record by itself."""
    is_large = record_bytes is not None and record_bytes >= _UNBUFFERED_RECORD_BYTES
    is_local = all(storage.is_local(file.path) for file in files)
    return 0 if is_large and is_local else _READ_BUFFER_BYTES


def shuffle_buffer_of(
    options: RecordOptions,
    examples: int | None,
    record_bytes: float | None,
    cache: CachePlan | None,
    is_mixed: bool,
) -> int:
    """Return how many records are held for shuffling; 0: no shuffling."""
    if not options.shuffle:
        return 0
    if options.tuning.shuffle_buffer != AUTO:
        return int(options.tuning.shuffle_buffer)
    each = record_bytes or _UNKNOWN_RECORD_BYTES
    if cache is not None and examples is not None and cache.stage != NOTHING:
        if not cache.path:
            return examples  # they are in memory anyway, so the buffer only holds references
        if cache.keeps_images and cache.bytes is not None:
            each = cache.bytes / examples
    room = _SHUFFLE_BYTES if is_mixed else _FOREIGN_SHUFFLE_BYTES
    fitting = int(room / each)
    wanted = max(_MIN_SHUFFLE_BATCHES * options.batch_size, min(fitting, _MAX_SHUFFLE_RECORDS))
    return wanted if examples is None else max(1, min(wanted, examples))


def free_memory(machine: str = "/proc/meminfo", group: str = GROUP) -> int:
    """Return the free memory of the machine, or of the control group if it is less, in bytes."""
    free = [max(0, most - taken) for most, taken in memory_of_group(group)]
    return min([_free_of_machine(machine), *free])


def _free_of_machine(path: str) -> int:
    try:
        values = dict(line.split(":", 1) for line in Path(path).read_text().splitlines())
        return 1024 * int(values["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux
        return memory_of_machine()


# --- the task and the classes ---------------------------------------------------------------------

#: The label modes of boxes and of masks.
BOX_MODE, MASK_MODE = "boxes", "masks"

#: Images are read whatever classes their parts have.
PART_MODES = (BOX_MODE, MASK_MODE)

# Options that do not apply to boxes, to masks, whose pixels have the numbers of labels.txt, and to
# labels of whole images.
_UNFIT = {
    BOXES: ("label_mode", "weights"),
    MASKS: ("label_mode", "weights", "vocabulary", "only", "boxes", "padding"),
    "": ("boxes", "padding"),
}


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """The classes that are read, and how they are numbered and encoded.

    Attributes:
        mode: ``int``, ``binary``, ``categorical``, ``multi_hot`` or None; or one of
            :data:`PART_MODES`.
        names: the classes in their order; None if unknown.
        numbers: the number of each stored label, -1 for a skipped label; None: as stored.
        by_text: whether numbers are looked up by text, because stored numbers may differ.
        wanted: the only labels that are read, sorted; None: all.
        filters: whether each record must be checked, because some are skipped.
        counts: examples of each class that is read; None if unknown.
    """

    mode: str | None
    names: tuple[str, ...] | None
    numbers: tuple[int, ...] | None
    by_text: bool
    wanted: tuple[str, ...] | None
    filters: bool
    counts: Mapping[str, int] | None


def has_boxes(task: str) -> bool:
    """Return whether examples of a task have boxes."""
    return BOXES in TASKS[task].facts


def has_several_labels(task: str) -> bool:
    """Return whether an example of a task may have more than one label."""
    return TASKS[task].labelling == SEVERAL


def plan_task(shards: ShardSet, options: LabelOptions) -> str:
    """Return the task in ``dataset.json``, or else the given task, or that of other records."""
    dataset = shards.dataset
    # recordgen.write does not record a task.
    written = dataset.task if dataset is not None and not dataset.features else None
    return written or (OF_OTHER_RECORDS if options.task == AUTO else options.task)


def check_image_options(shards: ShardSet, options: ReadOptions, task: str) -> None:
    """Check that every option fits this task of images. Raises: UsageError."""
    what = next((each for each in (BOXES, MASKS) if each in TASKS[task].facts), "")
    given = {each.name for each in fields(options) if getattr(options, each.name) != each.default}
    if callable(options.only):
        given -= {"only"}
    if what == MASKS and options.label_mode is None:
        given -= {"label_mode"}  # the images alone
    for name in _UNFIT[what]:
        if name in given:
            raise UsageError(
                f"{name} does not apply to {what or 'labels of whole images'} ({task}); remove it"
                + (", or give another task" if shards.dataset is None else "")
            )
    if what == MASKS and shards.renumbered:
        raise UsageError(
            "the datasets number their classes differently, and masks hold the numbers; convert "
            "the later ones with --vocabulary and the labels.txt of the first"
        )


def plan_classes(shards: ShardSet, options: LabelOptions, task: str) -> ClassPlan:
    """Plan which classes of a task's examples are read, and their numbers.

    Raises:
        UsageError: there is no such class, or the number of classes is unknown.
        DataError: a class of the data is not in ``vocabulary``.
    """
    mode: str | None = options.label_mode
    if has_boxes(task):
        mode = BOX_MODE
    elif MASKS in TASKS[task].facts:
        mode = mode and MASK_MODE
    elif mode == AUTO:
        mode = "multi_hot" if has_several_labels(task) else "int"
    counts = shards.labels
    vocabulary = None if options.vocabulary is None else tuple(options.vocabulary)
    wanted = None if options.labels is None else tuple(sorted(set(options.labels)))
    if wanted is not None and vocabulary is not None:
        _known_classes("only", wanted, vocabulary)
    known = shards.dataset
    if known is None or known.label_kind == "none":
        names = vocabulary
        check_mode(mode, names)
        # An image is read even if it has no box of the classes in ``labels``.
        filters = mode not in PART_MODES and (mode is not None or wanted is not None)
        return ClassPlan(mode, names, None, vocabulary is not None, wanted, filters, None)

    stored = known.labels
    if wanted is not None:
        _known_classes("only", wanted, stored)
    chosen = set(stored if wanted is None else wanted)
    read = [name for name in (stored if counts is None else counts) if name in chosen]
    names = stored if vocabulary is None else vocabulary
    if outside := [name for name in read if name not in set(names)]:
        given = f"[{listed(names)}]"
        raise DataError(
            f"label {outside[0]!r} of {shards.split} is not in the vocabulary {given}; add it, or "
            f"exclude it with only={given}"
        )
    check_mode(mode, names)
    numbers = None
    if not shards.renumbered and (wanted is not None or vocabulary is not None):
        place = {name: number for number, name in enumerate(names)}
        numbers = tuple(place.get(name, -1) if name in chosen else -1 for name in stored)
    all_labelled = labelled_examples(shards, task) == shards.examples
    is_all = mode in PART_MODES or (wanted is None and (mode is None or all_labelled))
    is_sorted = all(file.label is not None for file in shards.files)
    filters = not (is_all or is_sorted)
    of_class = None if counts is None else {name: counts[name] for name in read}
    return ClassPlan(mode, names, numbers, shards.renumbered, wanted, filters, of_class)


def check_mode(mode: str | None, names: Sequence[str] | None) -> None:
    """Check that labels of these classes can be encoded in a mode.

    Raises: UsageError: the number of classes is unknown, or does not fit the mode.
    """
    if names is None and mode in ("categorical", "multi_hot"):
        raise UsageError(
            f"label_mode={mode!r} needs the number of classes, and no dataset.json lists them; "
            f"give vocabulary=[…]"
        )
    if names is not None and mode == "binary" and len(names) != 2:
        raise UsageError(
            f"label_mode='binary' needs two classes (got {len(names)}: [{listed(names)}]); "
            f"use 'int' or 'categorical'"
        )


def labelled_examples(shards: ShardSet, task: str) -> int | None:
    """Return the number of examples with a label; None if unknown."""
    if shards.labels is None or shards.examples is None:
        return None
    if has_several_labels(task):
        return shards.examples - shards.unlabelled
    return sum(shards.labels.values())


def class_weights(weights: str | Mapping[str, float], classes: ClassPlan) -> tuple[float, ...]:
    """Return the weight of each class, in the order of ``classes.names``.

    ``balanced``, 30 cats and 10 dogs → ``(40 / (2 · 30), 40 / (2 · 10))``: scikit-learn's rule.

    Raises: UsageError: counts or names are unknown, or a class has no weight.
    """
    if classes.names is None or (weights == BALANCED and classes.counts is None):
        raise UsageError(
            "weights need a dataset.json that counts the classes; without one, give vocabulary=[…] "
            "and a weight for each class"
        )
    if isinstance(weights, str):
        counts = {name: count for name, count in (classes.counts or {}).items() if count}
        total = sum(counts.values())
        given = {name: total / (len(counts) * count) for name, count in counts.items()}
        return tuple(given.get(name, 0.0) for name in classes.names)
    _known_classes("weights", weights, classes.names)
    read = classes.names if classes.counts is None else tuple(classes.counts)
    if missing := [name for name in read if name not in weights]:
        raise UsageError(f"weights must have one for each class (none for [{listed(missing)}])")
    return tuple(float(weights.get(name, 0.0)) for name in classes.names)


def _known_classes(name: str, given: Collection[str], known: Sequence[str]) -> None:
    there = set(known)
    for label in given:
        if label not in there:
            hint = did_you_mean(label, known, f"; there are [{listed(known)}]")
            raise UsageError(f"{name}: no class {label!r}{hint}")


# --- files, memory and a cache --------------------------------------------------------------------


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


def plan_records(shards: ShardSet, options: RecordOptions) -> ReadPlan:
    """Plan how records of any kind are read. Raises: as :func:`plan_reading`."""
    examples = shards.examples if options.predicate is None else None
    files = [file for file in shards.files if file.examples != 0]
    if not files:
        raise DataError(f"{shards.files[0].path}: no record in {len(shards.files)} files")
    return _plan(shards, files, examples, options, True)


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
