"""The files of a plan, opened by TensorFlow: their records, whole or a piece.

TensorFlow allocates whatever a length says, and dies if that is more than there is. So all lengths
are checked first, once for each version of the files. Compressed files are not checked, because
TensorFlow's memory grows with what it unpacks, and neither are files in object stores, where each
record would take a request.
"""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import tensorflow as tf

from recordgen.access.counting import is_cheap, remembered
from recordgen.access.generation import REPLACED, Written
from recordgen.access.shards import ShardSet
from recordgen.core.dataset.manifest import DATASET_FILE, LABELS_FILE
from recordgen.core.ordered import map_in_order
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError, RecordgenError
from recordgen.reading.decoding import as_written
from recordgen.reading.options import RecordOptions
from recordgen.reading.plan import ReadPlan
from recordgen.reading.targets import lookup_table

_log = logging.getLogger(__name__)

# On a cold disk, looking for the next record is a wait.
_THREADS = 16


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


def slices_of(plan: ReadPlan) -> tuple[Any, ...]:
    """Return the arguments of :func:`read_piece`, each as a list over the files."""
    if not plan.pieces:
        return (list(plan.files),)
    starts = [piece.start for piece in plan.pieces]
    counts = [piece.count for piece in plan.pieces]
    return list(plan.files), tf.constant(starts, tf.int64), tf.constant(counts, tf.int64)


def _unchanged(written: Written, path: tf.Tensor) -> tf.Tensor:
    """Return ``path`` (string []); fail if another dataset replaced its file.

    It is part of the function that opens a file: one more stage would cost each pass 20 ms.
    """
    paths, digests = zip(*written.digests.items(), strict=True)
    digest = tf.boolean_mask(tf.constant(digests), tf.constant(paths) == path)
    manifest = tf.io.read_file(f"{written.folder}{DATASET_FILE}")
    pattern = tf.strings.join(["(?s).*", tf.strings.reduce_join(digest), ".*"])
    is_same = tf.strings.regex_full_match(manifest, pattern)
    if written.labels:
        names = tf.io.read_file(f"{written.folder}{LABELS_FILE}")
        is_same &= tf.strings.substr(names, 0, len(written.labels)) == written.labels
    message = f"{written.folder.rstrip('/')}: {REPLACED}"
    # The raw op: tf.debugging.Assert would build two more functions.
    checked = tf.raw_ops.Assert(condition=is_same, data=[message])
    with tf.control_dependencies([checked]):
        return tf.identity(path)


@as_written
def read_piece(
    damaged: DamagedFiles | None,
    read: Callable[[tf.Tensor], tf.data.Dataset],
    written: Written | None,
    path: tf.Tensor,
    start: tf.Tensor | None = None,
    count: tf.Tensor | None = None,
) -> tf.data.Dataset:
    """Return serialised records (string []) of the shard at ``path`` (string []).

    With ``start`` and ``count`` (int64 []) only the records of a
    :class:`recordgen.reading.plan.Piece`, whose count includes damaged records.
    """
    path = path if written is None else _unchanged(written, path)
    records = read(path) if damaged is None else damaged.readable(read, path)
    return records if start is None else records.skip(start).take(count)


def read_file(plan: ReadPlan, path: tf.Tensor) -> tf.data.Dataset:
    """Return the serialised records of the file at ``path``, packed or not."""
    is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
    if plan.packed:
        is_gzip |= tf.reduce_any(path == tf.constant(plan.packed))
    compression = tf.where(is_gzip, "GZIP", "")
    # The op: tf.data.TFRecordDataset has a stage for many files, through which each record goes.
    records = tf.raw_ops.TFRecordDataset(
        filenames=path, compression_type=compression, buffer_size=plan.read_buffer
    )
    return tf.data.experimental.from_variant(records, tf.TensorSpec((), tf.string))


def with_lengths_checked(plan: ReadPlan, shards: ShardSet, options: RecordOptions) -> ReadPlan:
    """Return a plan that names all files whose records have wrong lengths.

    Raises: RecordError: there is such a file, and damaged records are not skipped.
    """
    if shards.dataset is None:
        return plan  # other tools' files were counted, or are not checked
    found = _damages([file for file in plan.files if file not in plan.damaged])
    if found and not options.skips:
        raise RecordError(next(iter(found.values())))
    return replace(plan, damaged=(*plan.damaged, *found)) if found else plan


def _damages(paths: Sequence[str]) -> dict[str, str]:
    """Return the error messages of files whose records have wrong lengths, by path."""
    cheap = [path for path in paths if is_cheap(path)]
    if not cheap:
        return {}

    def check_all() -> int:
        return len(list(map_in_order(RECORDS.check_lengths, cheap, threads=_THREADS)))

    try:
        remembered(cheap, "lengths", check_all)
    except RecordError:
        return {path: message for path in cheap if (message := _damage(path))}
    return {}


def _damage(path: str) -> str:
    try:
        RECORDS.check_lengths(path)
    except RecordError as exc:
        return str(exc)
    return ""


@cache
def end_quietly() -> None:
    """Hide errors of TensorFlow 2.16 at exit, where functions of datasets outlive its modules."""

    def ignore() -> None:
        show = sys.unraisablehook

        def hook(found: Any) -> None:
            if getattr(found.object, "__qualname__", "") != "AtomicFunction.__del__":
                show(found)

        sys.unraisablehook = hook

    atexit.register(ignore)
