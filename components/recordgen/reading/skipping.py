"""``on_error``: skip and report records that cannot be read, and read the rest.

A damaged file: TensorFlow stops at the first damage. If fewer records came than the file has, it is
read once more in Python, which continues behind the damage where it can. A file with wrong lengths
is read in Python alone: TensorFlow would die of the first one.

A record of another tool: graphs cannot catch an error, but a dataset can skip an element. So each
batch is made in a dataset of its own; only if that fails, each of its records is tried in Python.
Records that Recordgen has checked are not tried, and cost nothing.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from recordgen.errors import RecordError, RecordgenError
from recordgen.reading.decoding import as_written
from recordgen.reading.naming import NO_IMAGE, reason_why, shown_id, source_id
from recordgen.reading.options import RecordOptions
from recordgen.reading.targets import lookup_table
from recordgen.records.tfrecord import read_around

_log = logging.getLogger(__name__)

# A filter is called for each record, which takes longer than trying this many together.
_SELECTED_AT_ONCE = 64

# Otherwise an endless dataset would search for a sound record forever.
_NOTHING = "no record can be read, and on_error skips them all"

# Assumed number of records in a pass if they were not counted.
ASSUMED_EXAMPLES = 2_000

# Time for finding the numbers of bad records; after it, records are reported without a number.
_SECONDS = 60.0


class Skipping:
    """Skips records that cannot be read, and reports each of them once.

    Args:
        on_error: ``skip``: log a warning with a running count; or the user's function of a text.
        counts: the number of records by file; None if not counted.
        damaged: the files that TensorFlow may not read.
    """

    def __init__(
        self,
        on_error: str | Callable[[str], None],
        counts: Mapping[str, int | None],
        damaged: Collection[str] = (),
    ) -> None:
        self._on_error = None if isinstance(on_error, str) else on_error
        self._counts = counts
        self._damaged = frozenset(damaged)
        self._skipped = 0
        self._reported: set[int | str] = set()
        self._undamaged: set[str] = set()
        self._places: dict[int, str] = {}
        self._unplaced = _places(list(counts))
        self._seconds = _SECONDS
        self._lock = threading.Lock()

    @as_written
    def readable(self, read: Callable[..., tf.data.Dataset], path: tf.Tensor) -> tf.data.Dataset:
        """Return the records of the file at ``path`` (string []), without damaged ones.

        ``read`` reads a file's records up to the first damage; it is not used for damaged files.
        """
        # -1: take all. The second reading starts only if fewer records came than the file has.
        known = {file: -1 if count is None else count for file, count in self._counts.items()}
        counts = lookup_table(known, default=-1)
        rest = tf.data.Dataset.from_generator(
            self._behind_damage, args=(path,), output_signature=tf.TensorSpec((), tf.string)
        )
        allowed = lookup_table({it: -(it not in self._damaged) for it in self._counts}, default=-1)
        first = read(path).take(allowed.lookup(path)).ignore_errors()
        return first.concatenate(rest).take(counts.lookup(path))

    def selected(
        self, keep: Callable[[tf.Tensor], tf.Tensor], records: tf.data.Dataset
    ) -> tf.data.Dataset:
        """Return the records (string []) that ``keep`` selects, without those on which it fails."""

        @as_written
        def select(some: tf.Tensor) -> tf.Tensor:
            return tf.boolean_mask(some, tf.map_fn(keep, some, fn_output_signature=tf.bool))

        return records.batch(_SELECTED_AT_ONCE).map(self.tried(select)).unbatch()

    def tried(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """Return a version of ``make`` that skips the records on which it fails.

        Args:
            make: takes records (string [batch]) and further tensors; returns a batch. If all
                records fail, it is called with none.
        """

        def made(records: tf.Tensor, *more: tf.Tensor) -> Any:
            whole = tf.data.Dataset.from_tensors((records, *more))
            sound = partial(self._sound, make)

            @as_written
            def without_bad(records: tf.Tensor, *more: tf.Tensor) -> Any:
                kept = tf.numpy_function(sound, [records, *more], tf.string)
                return tf.ensure_shape(kept, [None]), *more

            # The second element is made only if the whole batch fails.
            both = whole.concatenate(whole.map(without_bad))
            return both.map(make).ignore_errors().take(1).get_single_element()

        found: Callable[..., Any] = as_written(made)
        return found

    def sound(self, make: Callable[..., Any]) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function that drops from records (string [batch]) those ``make`` fails on."""
        tried = self.tried(as_written(lambda records: (records, make(records))))
        found: Callable[[tf.Tensor], tf.Tensor] = as_written(lambda records: tried(records)[0])
        return found

    def _sound(self, make: Callable[..., Any], records: Any, *more: Any) -> Any:
        """Return the records (array of bytes) that can be read; report the others."""
        return np.array([it for it in records if self._is_sound(make, it, more)], object)

    def _is_sound(self, make: Callable[..., Any], record: bytes, more: Sequence[Any]) -> bool:
        # Run eagerly: a tf.function would wait for threads that wait for this call.
        reason = reason_why([record], None, lambda one: make(one, *more))
        if reason is None:
            return True
        name = source_id(record)
        if self._on_error is not None and reason == NO_IMAGE and name:
            self._on_error(name)
            return False
        with self._lock:
            place = self._place(record)
        self._report(hash(record), f"{place}{shown_id(record)}: {reason}")
        return False

    def _place(self, record: bytes) -> str:
        """Return a record's file and number as text; ``a record`` if the time is over."""
        key, end = hash(record), time.monotonic() + self._seconds
        while key not in self._places and time.monotonic() < end:
            found = next(self._unplaced, None)
            if found is None:
                break
            self._places[found[0]] = found[1]
        self._seconds = max(0.0, end - time.monotonic())
        return self._places.get(key, "a record")

    def _behind_damage(self, path: bytes) -> Iterator[bytes]:
        """Yield the sound records that TensorFlow did not read; report the lost records."""
        name = path.decode()
        if name in self._undamaged:
            return
        damage, sound = "", 0
        try:
            for number, found in enumerate(read_around(name)):
                if not isinstance(found, RecordError):
                    sound += 1
                    if damage or name in self._damaged:
                        yield found
                elif not damage:
                    damage = f"record {number}: {str(found).removeprefix(f'{name}: ')}"
        except (OSError, RecordgenError) as exc:
            damage = damage or str(exc).removeprefix(f"{name}: ")
        count = self._counts[name]
        if damage or count is not None:
            lost = "records" if count is None else f"{count - sound} of {count} records"
            damage = damage or "it changed while it was read"
            self._report(name, f"{name}: {lost} lost: {damage}")
        else:
            self._undamaged.add(name)

    def _report(self, key: int | str, text: str) -> None:
        if self._on_error is not None:
            self._on_error(text)
            return
        with self._lock:
            if key in self._reported:
                return  # in an earlier epoch
            self._reported.add(key)
            self._skipped += 1
            _log.warning("skipped %d: %s", self._skipped, text)


def _places(files: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the hash of each record, and its file and number as text."""
    for path in files:
        with suppress(OSError, RecordgenError):
            for number, found in enumerate(read_around(path)):
                if isinstance(found, bytes):
                    yield hash(found), f"{path}: record {number}"


def ending(
    batches: tf.data.Dataset, examples: int | None, options: RecordOptions
) -> tf.data.Dataset:
    """Make an endless dataset fail when no record of a whole pass can be read.

    Args:
        batches: batches without their bad records; some may be empty.
        examples: records in a pass; None if unknown, then 2,000 are assumed.
        options: the user's options.
    """
    if options.passes is not None:
        return batches
    # Between two sound records there may be all other records of two passes.
    most = 2 * math.ceil((examples or ASSUMED_EXAMPLES) / options.batch_size) + 1

    @as_written
    def count(empty: tf.Tensor, *parts: Any) -> Any:
        empty = tf.where(has_examples(*parts), tf.constant(0, tf.int64), empty + 1)
        tf.debugging.assert_less_equal(empty, tf.constant(most, tf.int64), _NOTHING)
        return empty, parts if len(parts) > 1 else parts[0]

    return batches.scan(tf.constant(0, tf.int64), count)


def has_examples(*parts: Any) -> tf.Tensor:
    """Return (bool []) whether a batch has any example."""
    first = tf.nest.flatten(parts)[0]
    if isinstance(first, tf.RaggedTensor):
        return first.nrows() > 0
    shape = first.dense_shape if isinstance(first, tf.SparseTensor) else tf.shape(first)
    return shape[0] > 0
