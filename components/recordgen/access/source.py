"""``source``: the records of a split as a sequence, for any trainer."""

from __future__ import annotations

import operator
import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from recordgen import storage
from recordgen.access import batches as in_batches
from recordgen.access.batches import stacked
from recordgen.access.files import CACHE_BYTES, RandomFile, Wanted, open_file, read_ranges
from recordgen.access.index import lengths_of, remedy
from recordgen.access.parse import Values, parse
from recordgen.access.shards import ShardSet, find_shards
from recordgen.access.values import Reader, as_array, as_text, by_kind, reader_of
from recordgen.core.dataset.manifest import EXAMPLES, Dataset
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.records import RECORDS
from recordgen.core.records.format import LengthError
from recordgen.core.task.stored import is_image, stored_features
from recordgen.errors import RecordError, SourceError
from recordgen.features import VIDEO_URI, FeatureSpec

if TYPE_CHECKING:
    from recordgen.access.images import Images

Place: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

#: Values by feature name.
Example: TypeAlias = dict[str, Any]


def source(place: Place, split: str = TRAIN, *, cache_bytes: int = CACHE_BYTES) -> Source:
    """Return the records of a split as a sequence of dicts, for PyTorch, JAX and Grain.

    ``source("out", "train")[7]`` → ``{"image/encoded": uint8 [n], "image/class/label": 3, …}``

    Args:
        place: an output folder, an Examples uri or a ``dataset.json``, or several; or patterns of
            TFRecord files, whose lengths are read once and remembered in the user's cache folder.
        split: the split's name; patterns name it themselves.
        cache_bytes: limit for the copies of gzip shards, and of files on web servers, in the user's
            cache folder.

    Raises:
        SourceError: there is no dataset, or no file matches, or ``records.npy`` is stale.
        DataError: several datasets number their labels differently.
        RecordError: a file is truncated or damaged.
        StorageError: storage failed.
    """
    return Source(place, split, cache_bytes=cache_bytes)


class Source(Sequence[Example]):
    """The records of a split: ``len(source)``, ``source[7]``, ``source[1:9]``, ``source[[3, 1]]``.

    Each record's checksum is compared. It is read by several threads and forked processes at the
    same time; pickled, it is its place and its split.

    Numbers are NumPy scalars, arrays and lists NumPy arrays; text is str, and the bytes of images
    are uint8 [n] that share the file's memory. A whole number that records may lack is a float with
    NaN. Examples from Python have bytes as they were. Other tools' records have an array for each
    feature.

    Attributes:
        dataset: the content of ``dataset.json``; None for other tools' files.
        split: the split's name; None for other tools' files.
        features: the specs of the features by name; empty for other tools' files.
        class_names: the labels, in the order of their numbers.
    """

    def __init__(self, place: Place, split: str = TRAIN, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._made_of = (_absolute(place), split, cache_bytes)
        shards = find_shards(self._made_of[0], split)
        _check(shards)
        self.dataset: Dataset | None = shards.dataset
        self.split = shards.split
        known = shards.dataset
        self.features: Mapping[str, FeatureSpec] = {} if known is None else stored_features(known)
        self.class_names: Sequence[str] = () if known is None else known.labels
        self._readers = _readers(self.features, known)
        self._paths = [file.path for file in shards.files]
        lengths = lengths_of(shards)
        # Where each file's records begin among all, and where each record ends in its file.
        self._firsts = [0, *accumulate(map(len, lengths))]
        self._ends = [np.cumsum(RECORDS.frame_bytes(each.astype(np.int64))) for each in lengths]
        sizes = [int(ends[-1]) if len(ends) else 0 for ends in self._ends]
        self._files: list[RandomFile] = [
            open_file(file, size, cache_bytes)
            for file, size in zip(shards.files, sizes, strict=True)
        ]
        self._remedy = (
            remedy(shards.parts[0][0])
            if shards.parts and shards.parts[0][1].index
            else "it was changed since it was opened; open it again"
        )

    def __reduce__(self) -> Any:
        place, split, cache_bytes = self._made_of
        if cache_bytes == CACHE_BYTES:
            return source, (place, split)
        return partial(source, cache_bytes=cache_bytes), (place, split)

    def __repr__(self) -> str:
        # The same records have the same text at any place: Grain compares it in checkpoints.
        name = "files" if self.dataset is None else self.dataset.digest[:16]
        return f"recordgen.Source({name}, {self.split or 'all'}, {len(self)} records)"

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> list[Example]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return an example, or a list of them. Raises: IndexError, and as :meth:`records`."""
        return self.read(index, None)

    def __getitems__(self, indexes: Sequence[int]) -> list[Example]:
        """Return several examples; PyTorch calls it with the indexes of a batch."""
        return self._examples(indexes, None)

    def read(self, index: Any, names: Collection[str] | None) -> Any:
        """Return an example or a list of them, as ``[index]``, with only some features."""
        if isinstance(index, slice):
            return self._examples(range(len(self))[index], names)
        if isinstance(index, Iterable):
            return self._examples(list(index), names)
        return self._examples([index], names)[0]

    def records(self, indexes: Sequence[int]) -> list[memoryview]:
        """Return serialised examples; remote ones are requested at the same time.

        Raises:
            IndexError: there is no such record.
            RecordError: a record is damaged.
            SourceError: the index is stale.
            OSError, StorageError: a file cannot be read.
        """
        places = [self._place(index) for index in indexes]
        wanted = []
        for file, number in places:
            ends = self._ends[file]
            start = int(ends[number - 1]) if number else 0
            wanted.append(Wanted(self._files[file], start, int(ends[number]) - start))
        return [
            self._unframed(frame, *place)
            for frame, place in zip(read_ranges(wanted), places, strict=True)
        ]

    def place(self, index: int) -> tuple[str, int]:
        """Return the file of a record, and its number in it, from 0. Raises: IndexError."""
        file, number = self._place(index)
        return self._paths[file], number

    def batch(self, indexes: Sequence[int]) -> dict[str, Any]:
        """Return examples as one dict: numbers and arrays of one shape are stacked."""
        found: dict[str, Any] = stacked(self._examples(indexes, None))
        return found

    def batches(
        self,
        batch_size: int,
        *,
        seed: int | None = None,
        shard: tuple[int, int] = (0, 1),
        start: int = 0,
        drop_remainder: bool = False,
        threads: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the examples of one pass in batches, made by threads ahead of time.

        Numbers and arrays of one shape are stacked; other values are lists.

        Args and Raises: as :func:`recordgen.access.batches.batches`.
        """
        return in_batches.batches(
            self,
            batch_size,
            seed=seed,
            shard=shard,
            start=start,
            drop_remainder=drop_remainder,
            threads=threads,
        )

    def images(
        self,
        size: int | tuple[int, int] | None = None,
        *,
        resize: str = "stretch",
        method: str = "bilinear",
        dtype: str = "uint8",
    ) -> Images:
        """Return the decoded images with their labels or boxes: :class:`recordgen.access.Images`.

        Args:
            size: height and width in pixels, or one number for a square; None: as stored.
            resize: ``stretch``, ``fit`` (with black bars) or ``center_crop``.
            method: ``bilinear``, antialiased; or ``area``, the pixels of ``recordgen.load``.
            dtype: ``uint8`` from 0 to 255, or ``float32`` from 0 to 1.

        Raises:
            UsageError: an argument is wrong, or the records have no images.
        """
        from recordgen.access.images import Images

        return Images(self, size, resize=resize, method=method, dtype=dtype)

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

    def _examples(self, indexes: Sequence[int], names: Collection[str] | None) -> list[Example]:
        found = []
        for index, record in zip(indexes, self.records(indexes), strict=True):
            try:
                found.append(self._example(parse(record, names), names))
            except ValueError as exc:
                raise self._damaged(*self._place(index), exc) from exc
        return found

    def _example(self, values: Mapping[str, Values], names: Collection[str] | None) -> Example:
        if not self._readers:
            return {name: by_kind(each) for name, each in values.items()}
        found = {}
        for name, read in self._readers.items():
            if names is None or name in names:
                try:
                    found[name] = read(values.get(name, ()))
                except ValueError as exc:
                    raise ValueError(f"feature {name!r}: {exc}") from exc
        return found

    def _damaged(self, file: int, number: int, reason: object) -> RecordError:
        return RecordError(f"{self._paths[file]}: record {number}: {reason}")


def _absolute(place: Place) -> Any:
    """Return a place that means the same in another process."""
    if not isinstance(place, str | os.PathLike):
        return [_absolute(each) for each in place] if isinstance(place, Iterable) else place
    path = storage.normal(os.fspath(place))
    return os.path.abspath(storage.local_path(path)) if storage.is_local(path) else path


def _check(shards: ShardSet) -> None:
    """Raise the error of files that cannot be read."""
    for file in shards.files:
        if file.damage:
            raise RecordError(file.damage)
    shards.check_numbers()


def _readers(features: Mapping[str, FeatureSpec], dataset: Dataset | None) -> dict[str, Reader]:
    is_text = dataset is not None and dataset.task != EXAMPLES
    inexact = () if dataset is None else dataset.inexact

    def as_bytes(name: str) -> Callable[[memoryview], Any]:
        if not is_text:
            return bytes
        if name == VIDEO_URI and dataset is not None and dataset.folder:
            base = storage.join(dataset.folder, "")
            return lambda view: storage.resolve(as_text(view), base)
        return as_array if is_image(name) else as_text

    return {
        name: reader_of(spec, as_bytes=as_bytes(name), is_inexact=name in inexact)
        for name, spec in features.items()
    }
