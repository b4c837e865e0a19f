"""``on_error="skip"``: read the rest of a damaged file.

TensorFlow stops at the first damage. If fewer records came than the file has, the file is read once
more in Python, which continues behind the damage where it can. A file with wrong lengths is read in
Python alone: TensorFlow would die of the first one. Records that cannot be parsed or decoded are
skipped by ``ignore_errors``, see :mod:`recordgen.reading.records`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping

import tensorflow as tf

from recordgen.core.records import RECORDS
from recordgen.errors import RecordError, RecordgenError
from recordgen.reading.decoding import as_written
from recordgen.reading.targets import lookup_table

_log = logging.getLogger(__name__)


class DamagedFiles:
    """Reads around damage, and reports each damaged file once.

    Args:
        counts: the number of records by file; None if not counted.
        damaged: the files that TensorFlow may not read.
    """

    def __init__(self, counts: Mapping[str, int | None], damaged: Collection[str] = ()) -> None:
        self._counts = counts
        self._damaged = frozenset(damaged)
        self._sound: set[str] = set()
        self._reported: set[str] = set()

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

    def _behind_damage(self, path: bytes) -> Iterator[bytes]:
        """Yield the sound records that TensorFlow did not read; report the lost records."""
        name = path.decode()
        if name in self._sound:
            return
        damage, sound = "", 0
        try:
            for number, found in enumerate(RECORDS.read_around(name)):
                if not isinstance(found, RecordError):
                    sound += 1
                    if damage or name in self._damaged:
                        yield found
                elif not damage:
                    damage = f"record {number}: {str(found).removeprefix(f'{name}: ')}"
        except (OSError, RecordgenError) as exc:
            damage = damage or str(exc).removeprefix(f"{name}: ")
        count = self._counts[name]
        if not damage and count is None:
            self._sound.add(name)
        elif name not in self._reported:
            self._reported.add(name)
            lost = "records" if count is None else f"{count - sound} of {count} records"
            _log.warning("%s: %s lost: %s", name, lost, damage or "it changed while it was read")
