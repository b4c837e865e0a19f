"""What a reading holds: open files, bytes read ahead, records to shuffle, and a cache.

A cache has decoded images, if all of them fit and are not cropped at random; else stored records,
if they fit, which are decoded in each epoch; else nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recordgen import storage
from recordgen.access.shards import ShardFile
from recordgen.core.allowance import GROUP, memory_of_group, memory_of_machine
from recordgen.messages import megabytes
from recordgen.reading.options import AUTO, AUTOTUNE, MEMORY, ReadOptions, RecordOptions

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
        if cache.stage == IMAGES and cache.bytes is not None:
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
