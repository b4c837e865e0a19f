"""The records of a split as a sequence of examples."""

from __future__ import annotations

import operator
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from recordgen import storage
from recordgen.access.batches import BatchedSequence
from recordgen.access.files import Range, open_file, read_ranges
from recordgen.access.index import lengths_of, remedy
from recordgen.access.parse import Values, parse
from recordgen.access.shards import Place, find_shards
from recordgen.access.values import Reader, as_array, as_text, by_kind, reader_of
from recordgen.core.dataset.manifest import EXAMPLES, Dataset
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.ordered import default_threads
from recordgen.core.records import RECORDS
from recordgen.core.records.format import LengthError
from recordgen.core.task.stored import is_image, stored_features
from recordgen.errors import RecordError, SourceError
from recordgen.features import VIDEO_URI, FeatureSpec
from recordgen.storage.copies import CACHE_BYTES

# Records below this size are mostly work in Python.
_SMALL_RECORD_BYTES = 16_000

#: Values by feature name.
Example: TypeAlias = dict[str, Any]


class Records(BatchedSequence):
    """The records of a split as values; :class:`recordgen.access.source.Source` describes them.

    Each record's checksum is compared. It is read by several threads and forked processes at the
    same time; pickled, it is its place and its split.
    """

    def __init__(self, place: Place, split: str = TRAIN, *, cache_bytes: int | None = None) -> None:
        self._made_of = (_absolute(place), split, cache_bytes)
        shards = find_shards(self._made_of[0], split)
        if damage := next((file.damage for file in shards.files if file.damage), ""):
            raise RecordError(damage)
        shards.check_numbers()
        known = shards.dataset
        self.dataset: Dataset | None = known
        self.split = shards.split
        self.features: Mapping[str, FeatureSpec] = {} if known is None else stored_features(known)
        self.class_names: Sequence[str] = () if known is None else known.labels
        is_text = known is not None and known.task != EXAMPLES
        self._readers = self.readers(self.features, is_text=is_text)
        self._paths = [file.path for file in shards.files]
        lengths = lengths_of(shards)
        # Where each file's records begin among all, and where each record ends in its file.
        self._firsts = [0, *accumulate(map(len, lengths))]
        self._ends = [np.cumsum(RECORDS.frame_bytes(each.astype(np.int64))) for each in lengths]
        size = sum(int(ends[-1]) for ends in self._ends if len(ends))
        is_small = size < _SMALL_RECORD_BYTES * len(self) and all(
            map(storage.is_local, self._paths)
        )
        self.threads = 1 if is_small else default_threads()
        limit = CACHE_BYTES if cache_bytes is None else cache_bytes
        self._files = [
            open_file(file, int(ends[-1]) if len(ends) else 0, limit)
            for file, ends in zip(shards.files, self._ends, strict=True)
        ]
        has_index = shards.parts and shards.parts[0][1].index
        changed = "it was changed since it was opened; open it again"
        self._remedy = remedy(shards.parts[0][0]) if has_index else changed

    def __reduce__(self) -> Any:
        place, split, cache_bytes = self._made_of
        kind = type(self)
        limited = kind if cache_bytes is None else partial(kind, cache_bytes=cache_bytes)
        return limited, (place, split)

    def __repr__(self) -> str:
        # The same records have the same text at any place: Grain compares it in checkpoints.
        name = "files" if self.dataset is None else self.dataset.digest[:16]
        return f"recordgen.Source({name}, {self.split or 'all'}, {len(self)} records)"

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, index: Any) -> Any:
        """Return an example, or a list of them. Raises: IndexError, and as :meth:`records`."""
        return self.read(index)

    def read(
        self,
        index: Any,
        readers: Mapping[str, Reader] | None = None,
        to_item: Callable[[Example], Any] | None = None,
    ) -> Any:
        """Return an example or a list of them, as ``[index]``.

        Args:
            index: a number, a slice, or several numbers.
            readers: of the features to read, see :meth:`readers`; None: all.
            to_item: turns an example into what is returned; ValueError: the record is damaged.
        """
        if isinstance(index, slice):
            index = range(len(self))[index]
        is_one = not hasattr(index, "__iter__")
        indexes = [index] if is_one else list(index)
        used = self._readers if readers is None else readers
        found = []
        for at, record in zip(indexes, self.records(indexes), strict=True):
            try:
                values = parse(record, used or None)
                example = _read(values, used) if used else by_kind(values)
                found.append(example if to_item is None else to_item(example))
            except ValueError as exc:
                raise self._damaged(*self._place(at), exc) from exc
        return found[0] if is_one else found

    def readers(self, specs: Mapping[str, FeatureSpec], *, is_text: bool) -> dict[str, Reader]:
        """Return the readers of features; with ``is_text``, bytes are text, images and paths."""
        known = self.dataset
        inexact = () if known is None else known.inexact
        base = storage.join(known.folder, "") if known is not None and known.folder else ""
        return {
            name: reader_of(
                spec,
                as_bytes=_as_bytes(name, base) if is_text else bytes,
                is_inexact=name in inexact,
            )
            for name, spec in specs.items()
        }

    def records(self, indexes: Sequence[int]) -> list[memoryview]:
        """Return serialised examples; remote ones are requested at the same time.

        Raises:
            IndexError: there is no such record.
            RecordError: a record is damaged.
            SourceError: the index is stale.
            OSError, StorageError: a file cannot be read.
        """
        places = [self._place(index) for index in indexes]
        ranges = []
        for file, number in places:
            ends = self._ends[file]
            start = int(ends[number - 1]) if number else 0
            ranges.append(Range(self._files[file], start, int(ends[number])))
        frames = zip(read_ranges(ranges), places, strict=True)
        return [self._unframed(frame, *place) for frame, place in frames]

    def _place(self, index: int) -> tuple[int, int]:
        """Return the number of a record's file, and the record's number in it."""
        at = operator.index(index)
        count = len(self)
        if not -count <= at < count:
            raise IndexError(f"there are {count} records (got the index {at})")
        at %= count
        file = bisect_right(self._firsts, at) - 1
        return file, at - self._firsts[file]

    def _unframed(self, frame: memoryview, file: int, number: int) -> memoryview:
        try:
            return RECORDS.unframed(frame)
        except LengthError as exc:
            raise SourceError(
                f"{self._paths[file]}: record {number} is not where the index says; {self._remedy}"
            ) from exc
        except ValueError as exc:
            raise self._damaged(file, number, exc) from exc

    def _damaged(self, file: int, number: int, reason: object) -> RecordError:
        return RecordError(f"{self._paths[file]}: record {number}: {reason}")


def _absolute(place: Place) -> Any:
    """Return a place that means the same in another process."""
    if not isinstance(place, str | os.PathLike):
        return [_absolute(each) for each in place] if isinstance(place, Iterable) else place
    path = storage.normal(os.fspath(place))
    return os.path.abspath(storage.local_path(path)) if storage.is_local(path) else path


def _read(values: Mapping[str, Values], readers: Mapping[str, Reader]) -> Example:
    found = {}
    for name, read in readers.items():
        try:
            found[name] = read(values.get(name, ()))
        except ValueError as exc:
            raise ValueError(f"feature {name!r}: {exc}") from exc
    return found


def _as_bytes(name: str, folder: str) -> Callable[[memoryview], Any]:
    """Return how one value of a feature is read; paths of videos start in the folder, if any."""
    if name == VIDEO_URI and folder:
        return lambda view: storage.resolve(as_text(view), folder)
    return as_array if is_image(name) else as_text
