"""The records of a split as a sequence of examples."""

from __future__ import annotations

import operator
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordgen import storage
from recordgen.access.batches import BatchedSequence
from recordgen.access.files import ChangedError, Range, open_file, read_ranges
from recordgen.access.parse import Steps, Values, parse
from recordgen.access.shards import (
    STALE_REMEDY,
    Generation,
    Place,
    Token,
    digests_of,
    find_shards,
    lengths_of,
)
from recordgen.core.dataset.manifest import EXAMPLES, Dataset
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.ordered import default_threads
from recordgen.core.records import RECORDS, LengthError
from recordgen.core.task.annotation import is_image, stored_features
from recordgen.errors import RecordError, RecordgenError, SourceError, UsageError, check_type
from recordgen.features import RAW_DTYPES, VIDEO_URI, FeatureSpec
from recordgen.storage.copies import CACHE_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt


# --- the values of a feature → what a source returns: NumPy values, text, bytes -------------------


#: Returns the value of a feature. Raises ValueError: the record has something else.
Reader = Callable[[Values], Any]

_KINDS: Mapping[str, np.dtype[Any]] = {"int64": np.dtype(np.int64), "float32": np.dtype(np.float32)}


def reader_of(
    spec: FeatureSpec, *, as_bytes: Callable[[Any], Any], is_inexact: bool = False
) -> Reader:
    """Return the reader of a feature.

    Scalars become NumPy scalars, text or bytes, arrays and lists NumPy arrays (of objects for text
    and bytes). A whole number that records may lack becomes a float with NaN, a float64 if it
    ``is_inexact``; the reader raises OverflowError if that cannot hold it.
    """
    if spec.dtype in RAW_DTYPES:
        return _raw(spec)
    is_bytes = spec.dtype == "bytes"
    stored: Any = bytes if is_bytes else _KINDS[spec.dtype]
    dtype = np.dtype(np.float64 if is_inexact else np.float32) if spec.has_gaps else stored
    one = as_bytes if is_bytes else dtype.type
    one = _exact if is_inexact and spec.has_gaps else one
    has_default = isinstance(spec.default, bytes) if is_bytes else spec.default is not None

    def scalar(values: Values) -> Any:
        if len(values) == 1 and getattr(values, "dtype", bytes) == stored:
            return one(values[0])
        if not len(values) and has_default:
            return one(spec.default)
        return one(_one(_of_kind(values, stored)))

    def array(values: Values) -> Any:
        found = _of_kind(values, stored)
        several = _objects(list(map(one, found))) if is_bytes else np.array(found, dtype)
        return several if spec.shape is None else several.reshape(spec.shape)

    return scalar if spec.shape == () else array


def as_array(view: memoryview) -> npt.NDArray[np.uint8]:
    """Return bytes as an array that shares their memory."""
    return np.frombuffer(view, np.uint8)


def as_text(view: memoryview) -> str:
    """Return bytes as text."""
    return str(view, "utf-8", "replace")


def by_kind(values: Values) -> Any:
    """Return the values of a feature without a spec: an array of numbers or bytes objects.

    Those of a feature list are a list of arrays.
    """
    if isinstance(values, Steps):
        return list(map(by_kind, values))
    return (
        np.array(values) if isinstance(values, np.ndarray) else _objects(list(map(bytes, values)))
    )


def _exact(number: Any) -> np.float64:
    """Return a number as float64. Raises: OverflowError: it would be another one."""
    found = np.float64(number)
    if not np.isnan(found) and int(found) != int(number):
        raise OverflowError(
            f"float with NaN cannot hold {number}; use load(columns=…) or read(feature_spec=…)"
        )
    return found


def _raw(spec: FeatureSpec) -> Reader:
    stored = np.dtype(spec.dtype).newbyteorder("<")

    def read(values: Values) -> Any:
        found = np.frombuffer(_one(_of_kind(values, bytes)), stored)
        return found.astype(spec.dtype).reshape(spec.shape or ())

    return read


def _one(values: Any) -> Any:
    if len(values) != 1:
        raise ValueError(f"one value is expected (got {len(values) or 'none'})")
    return values[0]


def _of_kind(values: Values, kind: Any) -> Any:
    """Return values if they are bytes or have a dtype; an empty list has any kind."""
    found: Any = values.dtype if isinstance(values, np.ndarray) else bytes
    if found != kind and len(values):
        words = ["bytes" if each is bytes else each for each in (kind, found)]
        raise ValueError("values of {} are expected (got {})".format(*words))
    return values


def _objects(items: list[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(items), object)
    found[:] = items
    return found


# --- records --------------------------------------------------------------------------------------


# Records below this size are mostly work in Python.
_SMALL_RECORD_BYTES = 16_000

#: Values by feature name.
Example: TypeAlias = dict[str, Any]
ToItem: TypeAlias = Callable[[Example], Any]
Readers: TypeAlias = Mapping[str, Reader]


class Records(BatchedSequence[Example]):
    """The records of a split as values; :class:`recordgen.access.source.Source` describes them.

    Each record's checksum is compared. It is read by several threads and forked processes at the
    same time; pickled, it is its place, its split, and what shows whether it was replaced.
    """

    def __init__(
        self,
        place: Place,
        split: str = TRAIN,
        *,
        cache_bytes: int | None = None,
        token: Token | None = None,
    ) -> None:
        """Open a split; with a ``token``, as the process did that pickled it."""
        shards = find_shards(_absolute(place), split)
        if token is not None:
            shards = shards.as_of(token)
        self._made_of = (_absolute(place), split, cache_bytes, shards.token)
        shards.check_files(shards.files)
        shards.check_numbers()
        known = shards.dataset
        self.dataset: Dataset | None = known
        self.split = shards.split
        self.features: Mapping[str, FeatureSpec] = {} if known is None else stored_features(known)
        self.class_names: Sequence[str] = () if known is None else known.labels
        is_text = known is not None and known.task != EXAMPLES
        self._readers = self.readers(self.features, is_text=is_text)
        self.paths = [file.path for file in shards.files]
        lengths = lengths_of(shards)
        ends = [np.cumsum(RECORDS.frame_bytes(each.astype(np.int64))) for each in lengths]
        sizes = [int(each[-1]) if len(each) else 0 for each in ends]
        # Where each file's records begin among all, and where each record ends in its file.
        self._firsts = [0, *accumulate(map(len, lengths))]
        self._ends = memoryview(np.concatenate([np.zeros(0, np.int64), *ends]))
        is_near = all(map(storage.is_local, self.paths))
        is_small = sum(sizes) < _SMALL_RECORD_BYTES * len(self)
        self.threads = 1 if is_near and is_small else default_threads()
        limit = CACHE_BYTES if cache_bytes is None else cache_bytes
        check_type(Real, "a number of bytes", cache_bytes=limit)
        generations = {
            path: generation
            for root, dataset in shards.parts
            for generation in [Generation.of(root, dataset)]
            for path in digests_of(root, dataset)
        }
        self._files = [
            open_file(file, size, generations.get(file.path), cache_bytes=limit)
            for file, size in zip(shards.files, sizes, strict=True)
        ]
        self._remedy = "it was changed since it was opened; open it again"
        if shards.parts and shards.parts[0][1].index:
            self._remedy = STALE_REMEDY

    def __reduce__(self) -> Any:
        place, split, cache_bytes, token = self._made_of
        return partial(type(self), cache_bytes=cache_bytes, token=token), (place, split)

    def __repr__(self) -> str:
        # The same records have the same text at any place: Grain compares it in checkpoints.
        name = "files" if self.dataset is None else self.dataset.digest[:16]
        return f"recordgen.Source({name}, {self.split or 'all'}, {len(self)} records)"

    def __len__(self) -> int:
        return self._firsts[-1]

    def read(
        self, index: Any, readers: Readers | None = None, to_item: ToItem = lambda example: example
    ) -> Any:
        """Return an example or a list of them, as ``[index]``.

        Args:
            index: a number, a slice, or several numbers.
            readers: of the features to read, see :meth:`readers`; None: all.
            to_item: turns an example into what is returned; ValueError: the record is damaged.

        Raises:
            IndexError: there is no such record.
            TypeError: an index is no number.
            RecordError: a record is damaged.
            SourceError: the index is stale.
            UsageError: a float with NaN cannot hold a whole number.
            OSError, StorageError: a file cannot be read.
        """
        used = self._readers if readers is None else readers
        if not is_several(index):
            return self._item(index, self._frames([index])[0], used, to_item)
        indexes = list(range(len(self))[index] if isinstance(index, slice) else index)
        if np.asarray(indexes).dtype == bool:  # as numbers, they would be 0 and 1
            raise TypeError("expected numbers of records, such as numpy.flatnonzero(mask)")
        frames = zip(indexes, self._frames(indexes), strict=True)
        return [self._item(at, frame, used, to_item) for at, frame in frames]

    def readers(self, specs: Mapping[str, FeatureSpec], *, is_text: bool) -> Readers:
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

    def _frames(self, indexes: Sequence[int]) -> list[bytes]:
        """Return the bytes of records in their files; remote ones are requested at the same time.

        Raises: as :meth:`read`, but nothing that is about the content of records.
        """
        ranges = list(map(self._range, indexes))
        try:
            return ranges[0].file.read(ranges) if len(ranges) == 1 else read_ranges(ranges)
        except ChangedError as exc:
            at = next(at for at, it in zip(indexes, ranges, strict=True) if it.file is exc.file)
            raise RecordError(f"{self._named(at)}: {exc}") from exc

    def _item(self, index: int, frame: bytes, readers: Readers, to_item: ToItem) -> Any:
        try:
            start, stop = RECORDS.place_in(frame)
        except ValueError as exc:
            raise self._damage(index, frame, exc) from exc
        try:
            values = parse(frame, readers or None, start, stop)
            used = readers or dict.fromkeys(values, by_kind)
            return to_item(_read(values, used))
        except OverflowError as exc:
            raise UsageError(f"{self._named(index)}: {exc}") from exc
        except ValueError as exc:
            raise RecordError(f"{self._named(index)}: {exc}") from exc

    def _range(self, index: int) -> Range:
        """Return where a record's frame is. Raises: IndexError."""
        at = operator.index(index)
        count = self._firsts[-1]
        if not -count <= at < count:
            raise IndexError(f"there are {count:,} records (got the index {at})")
        at %= count
        file = bisect_right(self._firsts, at) - 1
        start = self._ends[at - 1] if at > self._firsts[file] else 0
        return Range(self._files[file], start, self._ends[at])

    def _damage(self, index: int, frame: bytes, reason: ValueError) -> RecordgenError:
        """Return the error of a frame that is not the record. Raises: as :meth:`read`."""
        self._range(index).file.confirm()  # else the error is that another dataset is there
        # The head of a record of another length: the index is that of other records.
        if isinstance(reason, LengthError) and RECORDS.is_mine(frame):
            return SourceError(f"{self._named(index)}: stale index; {self._remedy}")
        return RecordError(f"{self._named(index)}: {reason}; convert again")

    def _named(self, index: int) -> str:
        """Return the path of a record's file, and its number there."""
        at = operator.index(index) % len(self)
        file = bisect_right(self._firsts, at) - 1
        return f"{self.paths[file]}: record {at - self._firsts[file]}"


def is_several(index: Any) -> bool:
    """Return whether an index is a slice or several numbers."""
    are_numbers = hasattr(index, "__iter__") and getattr(index, "ndim", 1) > 0
    return are_numbers or isinstance(index, slice)


def _absolute(place: Place) -> Any:
    """Return a place that means the same in another process."""
    if not isinstance(place, str | os.PathLike):
        return [_absolute(each) for each in place] if isinstance(place, Iterable) else place
    return storage.absolute(storage.normal(os.fspath(place)))


def _read(values: Mapping[str, Values], readers: Readers) -> Example:
    found = {}
    try:
        for name, read in readers.items():
            found[name] = read(values.get(name, ()))
    except OverflowError as exc:
        raise OverflowError(f"feature {name!r}: {exc}") from exc
    except ValueError as exc:
        raise ValueError(f"feature {name!r}: {exc}") from exc
    return found


def _as_bytes(name: str, folder: str) -> Callable[[memoryview], Any]:
    """Return how one value of a feature is read; paths of videos start in the folder, if any."""
    if name == VIDEO_URI and folder:
        return lambda view: storage.resolve(as_text(view), folder)
    return as_array if is_image(name) else as_text
