"""Find the shard files to read, and what ``dataset.json`` says about them.

A :class:`Generation` shows that files are still those that were opened.
"""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from recordgen import storage
from recordgen.access.counting import is_cheap, lengths_in, read_lengths_in, state_of
from recordgen.core.dataset import manifest, splits
from recordgen.core.dataset.counts import ImageStats, Split
from recordgen.core.dataset.joining import are_renumbered, join_datasets
from recordgen.core.dataset.manifest import DATASET_FILE, EXAMPLES, Dataset, Lengths, by_shard
from recordgen.core.limits import MAX_INFLATION
from recordgen.core.records import RECORDS
from recordgen.errors import DataError, FileTooLargeError, RecordError, SourceError, UsageError
from recordgen.messages import listed

# --- the generation of a dataset ------------------------------------------------------------------

# A replaced dataset has files of the same names, but their numbers may mean other classes. A
# dataset that was appended to still has the old shards, and its labels begin with the old ones.

#: What is wrong with a dataset that was replaced.
REPLACED = "this dataset was replaced by another one since it was opened; open it again"

# Requests by name reach whatever has the name now: dataset.json is compared again after this time.
_FAR_SECONDS = 10.0


@dataclass
class Generation:
    """A dataset as it was opened.

    Whoever replaces a dataset removes its ``dataset.json`` before the first shard. So a shard that
    was opened before that file changed belongs to this generation.
    """

    root: str
    digests: Mapping[str, str]  # of each shard, by its path
    labels: Sequence[str]
    _state: str = field(default="", compare=False)  # of dataset.json when it was last compared
    # When a far file was compared, by its path.
    _compared: dict[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, root: str, dataset: Dataset) -> Generation:
        """Return the generation of a dataset that is open now."""
        return cls(root, digests_of(root, dataset), dataset.labels)

    def check(self, path: str) -> None:
        """Check that a shard that is open is of this generation.

        Raises: DataError: another dataset replaced it; StorageError: storage failed.
        """
        try:
            state = state_of(storage.join(self.root, DATASET_FILE))
            if state == self._state:
                return
            now = manifest.read_dataset(self.root)
        except (OSError, SourceError) as exc:  # it is being replaced, or was removed
            raise DataError(f"{self.root or '.'}: {REPLACED}") from exc
        digests = digests_of(self.root, now)
        is_same = digests.get(path) == self.digests[path]
        if not is_same or now.labels[: len(self.labels)] != self.labels:
            raise DataError(f"{self.root or '.'}: {REPLACED}")
        if digests.items() >= self.digests.items():  # else each shard is compared
            self._state = state

    def check_far(self, path: str) -> None:
        """As :meth:`check`, once for each file and again after ten seconds."""
        now = time.monotonic()
        if now - self._compared.get(path, -_FAR_SECONDS) >= _FAR_SECONDS:
            self.check(path)
            self._compared[path] = now


def digests_of(root: str, dataset: Dataset) -> Mapping[str, str]:
    """Return the digest of each shard by its path."""
    return {storage.join(root, shard.file): shard.digest for shard in dataset.shards}


# --- the shards of a split ------------------------------------------------------------------------

#: A dataset, several of them, or patterns of files.
Place: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class ShardFile:
    """One shard file.

    Attributes:
        examples: the number of records; None if not counted.
        bytes: its size; None if unknown.
        label: the label that all examples share, "" if they have none; None if mixed or unknown.
        digest: of its records, from ``dataset.json``; "" if unknown.
        is_gzip: whether it is compressed although its name does not end with ``.gz``.
        damage: the error message if the file is known to be damaged; else empty.
        is_missing: whether there is no such file, though ``dataset.json`` lists it.
        version: of a local file: its size and time of modification when it was found; else "".
    """

    path: str
    examples: int | None = None
    bytes: int | None = None
    label: str | None = None
    digest: str = ""
    is_gzip: bool = False
    damage: str = ""
    is_missing: bool = False
    version: str = ""

    @property
    def is_packed(self) -> bool:
        """Whether it is compressed."""
        return self.is_gzip or self.path.endswith(".gz")


class Token(NamedTuple):
    """What shows in another process whether it finds files of the same generation.

    Attributes:
        files: the number of files of each dataset.
        labels: the number of labels.
        digest: of the files and the labels.
    """

    files: tuple[int, ...]
    labels: int
    digest: str

    @classmethod
    def of(cls, datasets: Sequence[Sequence[ShardFile]], labels: Sequence[str]) -> Token:
        """Return the token of the files of each dataset, and of the labels."""
        # The digest of our shards: a copy on another machine has another time.
        states = [it.digest or (it.path, it.bytes, it.version) for it in chain(*datasets)]
        digest = hashlib.sha256(repr((states, labels)).encode()).hexdigest()
        return cls(tuple(map(len, datasets)), len(labels), digest[:32])


@dataclass(frozen=True, slots=True)
class ShardSet:
    """The shards of one split.

    Attributes:
        files: the shard files, in their order.
        split: the split's name; None for files that match patterns.
        dataset: the ``dataset.json`` that lists them, or several joined into one; None for other
            tools' files.
        renumbered: whether several datasets store different numbers for a label, so that numbers
            follow from the labels' texts.
        is_whole: whether these are all shards of the split; else only shards by label are counted.
        parts: the datasets that list the files, each with its folder.
    """

    files: tuple[ShardFile, ...]
    split: str | None = None
    dataset: Dataset | None = None
    renumbered: bool = False
    is_whole: bool = True
    parts: tuple[tuple[str, Dataset], ...] = ()

    def check_numbers(self) -> None:
        """Check that one number means one label in all files. Raises: DataError."""
        if self.renumbered:
            raise DataError(
                f"{self.files[0].path} and {self.files[-1].path} number their labels differently; "
                f"convert each with --vocabulary of the one before, or all of them together"
            )

    def check_files(self, files: Sequence[ShardFile]) -> None:
        """Check the files to read.

        Raises: SourceError: one is missing; RecordError: one is damaged.
        """
        if missing := [posixpath.split(file.path) for file in files if file.is_missing]:
            raise SourceError(
                f"{missing[0][0]}: no such regular file, though {DATASET_FILE} lists it: "
                f"{listed([name for _, name in missing], str)}; convert again, name the other "
                f"files, or, if each file has one label, read other labels with only=[…]"
            )
        damage = next((file.damage for file in files if file.damage), "")
        if damage:
            raise RecordError(damage)

    @property
    def examples(self) -> int | None:
        """The number of records in all files; None if a file was not counted."""
        counts = [file.examples for file in self.files if file.examples is not None]
        return sum(counts) if len(counts) == len(self.files) else None

    @property
    def token(self) -> Token:
        """What :meth:`as_of` compares."""
        labels = self.dataset.labels if self.dataset is not None else ()
        return Token.of(self._by_dataset(), labels)

    def as_of(self, token: Token) -> ShardSet:
        """Return the files and labels of a token, without those that were appended since.

        Raises: DataError: another dataset replaced them.
        """
        if self.token == token:
            return self
        known = self.dataset
        if known is not None:
            known = replace(known, labels=known.labels[: token.labels])
        files = [of[:n] for of, n in zip(self._by_dataset(), token.files, strict=False)]
        if Token.of(files, known.labels if known is not None else ()) != token:
            folders = [root or "." for root, _ in self.parts] or [self.files[0].path]
            raise DataError(f"{listed(folders, str)}: {REPLACED}")
        return replace(self, files=tuple(chain.from_iterable(files)), dataset=known)

    @property
    def generation(self) -> Generation | None:
        """What shows whether they were replaced; None if they are not one local dataset."""
        if len(self.parts) != 1 or not all(file.digest for file in self.files):
            return None
        [(root, known)] = self.parts
        return Generation.of(root, known) if storage.is_local(root) else None

    def _by_dataset(self) -> list[Sequence[ShardFile]]:
        """Return the files of each dataset."""
        digests = [digests_of(root, dataset) for root, dataset in self.parts]
        found = [[file for file in self.files if file.path in of] for of in digests]
        return [*found] or [self.files]

    @property
    def _stats(self) -> Split | None:
        if self.dataset is None or self.split is None:
            return None
        return self.dataset.splits[self.split]

    @property
    def images(self) -> ImageStats | None:
        """Properties that all images share; None if unknown."""
        return self._stats.images if self._stats is not None else None

    @property
    def may_be_raw(self) -> bool:
        """Whether images may be stored as raw pixels, which have no header with a size."""
        return self.dataset is not None and self.dataset.encoding.pixels != ""

    @property
    def labels(self) -> dict[str, int] | None:
        """Labelled examples by class; None if unknown."""
        if self._stats is None or self.dataset is None or self.dataset.label_kind == "none":
            return None
        if self.is_whole:
            return dict(self._stats.labels)
        counts: Counter[str] = Counter()
        for file in self.files:
            if file.label is None:
                return None
            counts[file.label] += file.examples or 0
        return {label: count for label, count in counts.items() if label}

    @property
    def unlabelled(self) -> int:
        """Examples without a label in the whole split, according to ``dataset.json``."""
        return self._stats.unlabelled if self._stats is not None else 0


def find_shards(source: Place, split: str) -> ShardSet:
    """Return the shards of ``split``.

    ``"out"`` → the files and counts of ``out/dataset.json``;
    ``["out/Split-train/*"]`` → the same, from the ``dataset.json`` next to the split's folder;
    ``["out/1/Split-train/*", "out/2/Split-train/*"]`` or ``["out/1", "out/2"]`` → files of both;
    ``"others/train-*.tfrecord.gz"`` → the matching files, without counts.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``, or several of them; or file
            patterns (TFX's ``fn_args.train_files``), which need no ``split``.
        split: the split's name, such as ``train``, or another word for it, such as ``val``.

    Raises:
        SourceError: there is no dataset, or no file matches.
        SplitNotFoundError: the dataset has no such split.
    """
    if not isinstance(split, str):
        raise UsageError(f"split must be a split's name (got {split!r})")
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        if not isinstance(source, Iterable):
            raise UsageError(f"source must be a path, or several patterns (got {source!r})")
        paths = [storage.normal(os.fspath(path)) for path in source]
        if paths and all(map(manifest.holds_dataset, paths)):
            return _split_of([_read(path) for path in paths], split)
        return _named(paths)
    source = storage.normal(source)
    # The name of a file or folder may look like a pattern.
    is_plain = _MAGIC.isdisjoint(source) or storage.is_file(source) or storage.list_dir(source)
    if not is_plain:
        return _named([source])
    if manifest.holds_dataset(source):
        return _split_of([_read(source)], split)
    if folders := storage.list_folders(source, manifest.SPLIT_PREFIX):
        there = [name.removeprefix(manifest.SPLIT_PREFIX) for name in folders]
        folder = manifest.split_dir(splits.find_split(source, split, there))
        return _named([storage.join(glob.escape(source), folder, "*")])
    if posixpath.basename(source.rstrip("/")).startswith(manifest.SPLIT_PREFIX):
        return _named([storage.join(glob.escape(source), "*")])
    if not storage.list_files(source):
        manifest.read_dataset(source)  # raises an error that says what is missing
    return _named([source])


def _with_damage(file: ShardFile) -> ShardFile:
    """Check a local shard's size, so that a truncated file is found before training starts."""
    if not storage.is_local(file.path):
        return file
    try:
        info = storage.info(file.path)
    except (FileNotFoundError, IsADirectoryError):  # the latter also for a pipe
        return replace(file, is_missing=True)
    damage = (
        f"{file.path}: {info.size:,} bytes, but {DATASET_FILE} says {file.bytes:,}: it was cut or "
        f"changed after it was written; convert again"
    )
    version = f"{info.size}:{info.version}"
    return replace(file, version=version, damage="" if info.size == file.bytes else damage)


def _named(patterns: list[str]) -> ShardSet:
    # A pattern that was made from a uri with a slash at the end has two slashes.
    single = [re.sub(r"(?<!:)/{2,}", "/", pattern) for pattern in patterns]
    files = list(dict.fromkeys(f for pattern in single for f in storage.list_files(pattern)))
    if not files:
        raise SourceError(f"no shard matches {listed(patterns, str) or 'an empty list'}")
    found = _find_datasets(files)
    if found and (known := _known(files, found)):
        return known
    vocabularies = {dataset.labels for _, dataset in found}
    if len(vocabularies) > 1:
        raise DataError(
            f"{listed([root for root, _ in found], str)} number their labels differently, and the "
            f"files are not one whole split of each; name whole splits, or convert them together"
        )
    packed = _packed(files)
    found_files = (ShardFile(file, is_gzip=file in packed) for file in files)
    return ShardSet(tuple(map(_counted, found_files)))


def _packed(files: Sequence[str]) -> frozenset[str]:
    """Return the files that are compressed although their names do not say so.

    Each local file is opened, but only the first in an object store, where that takes a request.
    """
    unnamed = [file for file in files if not file.endswith(".gz")]
    local = [file for file in unnamed if storage.is_local(file)]
    remote = [file for file in unnamed if not storage.is_local(file)]
    packed = [file for file in local if RECORDS.is_gzip(file)]
    return frozenset([*packed, *(remote if remote and RECORDS.is_gzip(remote[0]) else [])])


def _find_datasets(files: Sequence[str]) -> list[tuple[str, Dataset]]:
    """Return the datasets (root, content) whose Split folders hold the files."""
    folders = dict.fromkeys(map(posixpath.dirname, files))
    there = (posixpath.split(folder) for folder in folders)
    roots = dict.fromkeys(root for root, name in there if name.startswith(manifest.SPLIT_PREFIX))
    return [_read(root) for root in roots if manifest.holds_dataset(root)]


def _known(files: Sequence[str], found: Sequence[tuple[str, Dataset]]) -> ShardSet | None:
    """Return the shards if the files are shards of one split in each dataset; else None.

    Examples of several datasets that were written from Python must also have the same features.
    """
    if any(each.task == EXAMPLES and each.features != found[0][1].features for _, each in found):
        return None
    left = set(files)
    splits = []
    for root, dataset in found:
        for name, split in dataset.splits.items():
            if named := left & {storage.join(root, shard.file) for shard in split.shards}:
                splits.append(name)
                left -= named
    if left or len(splits) != len(found) or len(set(splits)) > 1:
        return None
    whole = _split_of(found, splits[0])
    named_files = tuple(file for file in whole.files if file.path in files)
    return replace(whole, files=named_files, is_whole=len(named_files) == len(whole.files))


def _read(path: str) -> tuple[str, Dataset]:
    """Return the folder and content of a dataset; ``path`` is the folder or ``dataset.json``."""
    return manifest.output_of(path), manifest.read_dataset(path)


def _split_of(found: Sequence[tuple[str, Dataset]], split: str) -> ShardSet:
    """Return the shards of a split of one dataset, or of several that are read as one.

    If one of several datasets lacks the split, its labels are numbered nevertheless.
    """
    dataset = join_datasets(found)
    roots = ", ".join(root or "." for root, _ in found)
    split = splits.find_split(roots, split, list(dataset.splits))
    files = tuple(
        ShardFile(storage.join(root, it.file), it.examples, it.bytes, it.label, it.digest)
        for root, each in found
        if split in each.splits
        for it in each.splits[split].shards
        if it.examples
    )
    renumbered = are_renumbered(dataset.labels, [each for _, each in found])
    checked = tuple(map(_with_damage, files))
    return ShardSet(checked, split, dataset, renumbered, parts=tuple(found))


def _counted(file: ShardFile) -> ShardFile:
    if not storage.is_local(file.path):
        return file
    info = storage.info(file.path)
    file = replace(file, version=f"{info.size}:{info.version}")
    if not is_cheap(file.path):
        return file
    try:
        count = len(lengths_in(file.path))
    except RecordError as exc:
        return replace(file, damage=str(exc))
    return replace(file, examples=count, bytes=info.size)


# --- lengths of records: from ``records.npy``, or by one pass over the files ----------------------

#: What to do about an index that does not fit its shards.
STALE_REMEDY = "restore records.npy from a copy of the dataset, or write it again"


def lengths_of(shards: ShardSet) -> list[Lengths]:
    """Return the lengths of the records of each file.

    Files without an index are read once; the user's cache folder keeps the result.

    Raises:
        SourceError: an index does not belong to its dataset.
        RecordError: a file is damaged.
        FileNotFoundError, StorageError: storage failed.
    """
    known: dict[str, Lengths] = {}
    for root, dataset in shards.parts:
        if dataset.index:
            known |= _stored(root, dataset)
    return [_fitting(file, known) for file in shards.files]


def _fitting(file: ShardFile, known: Mapping[str, Lengths]) -> Lengths:
    """Return the lengths of the records of a file, which take as many bytes as it has.

    Raises: SourceError: they do not.
    """
    found = known[file.path] if file.path in known else lengths_in(file.path)
    size = int(RECORDS.frame_bytes(found.astype(np.int64)).sum())
    fits = file.bytes is None or (
        size <= MAX_INFLATION * file.bytes if file.is_packed else size == file.bytes
    )
    if not fits or file.examples not in (None, len(found)):
        what_to_do = STALE_REMEDY if file.path in known else "convert again"
        raise SourceError(
            f"{file.path}: {len(found):,} records of {size:,} bytes do not fit a file of "
            f"{file.bytes or 0:,} bytes with {file.examples} records; {what_to_do}"
        )
    return found


def lengths_there(root: str, dataset: Dataset) -> manifest.LengthsOf:
    """Return what reads the lengths of a shard of a finished dataset: from its index if it fits.

    Raises:
        StorageError: storage failed. The function raises it, too, and RecordError: a shard is
            damaged.
    """
    known: Mapping[str, Lengths] = {}
    with suppress(SourceError):  # there is no index, or it is stale
        known = _stored(root, dataset)

    def lengths_of_shard(file: str) -> bytes:
        path = storage.join(root, file)
        return (known[path] if path in known else read_lengths_in(path)).tobytes()

    return lengths_of_shard


def _stored(root: str, dataset: Dataset) -> Mapping[str, Lengths]:
    """Return the lengths of each shard, by its path. Raises: SourceError: the index is stale."""
    path = storage.join(root, manifest.INDEX_FILE)
    try:
        [least] = RECORDS.frame_bytes(np.zeros(1, np.int64)).tolist()
        inflation = MAX_INFLATION if dataset.compression == "gzip" else 1
        for shard in dataset.shards:  # before an array is made
            if least * shard.examples > inflation * shard.bytes:
                raise ValueError(f"{shard.file} cannot hold {shard.examples:,} records")
        content = storage.read_bytes(path, manifest.index_bytes(dataset.examples))
        if hashlib.sha256(content).hexdigest() != dataset.index["sha256"]:
            raise ValueError("it is not the index that dataset.json names")
        found = manifest.decoded(content)
        if len(found) != dataset.examples:
            raise ValueError(f"it has {len(found)} lengths, for {dataset.examples} records")
    except (OSError, ValueError, KeyError, FileTooLargeError) as exc:
        reason = "no such file" if isinstance(exc, FileNotFoundError) else exc
        raise SourceError(f"{path}: {reason}; {STALE_REMEDY}") from exc
    return {storage.join(root, file): found[start:end] for file, start, end in by_shard(dataset)}
