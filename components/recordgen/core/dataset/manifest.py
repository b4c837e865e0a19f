"""The manifest ``dataset.json``, and the names of all files in an output.

OUT/Split-train/data_tfrecord-00000-of-00008   Split-* folders contain only shards
OUT/dataset.json                               written last: the commit mark
OUT/labels.txt                                 line number (from 0) = image/class/label
OUT/rejects.jsonl                              one line per rejected row
OUT/findings.jsonl                             one line per change in another row
OUT/lint.jsonl                                 one line per finding of the checks
OUT/examples.parquet                           one row per example: its source and its record
OUT/records.npy                                the length of each record
OUT/report.html, croissant.json, schema.pbtxt  for people and other tools: :mod:`recordgen.exports`
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from recordgen import storage
from recordgen.core.dataset.counts import RowCounts, Shard, Split
from recordgen.core.dataset.vocabulary import Vocabulary, labels_digest, parse_labels
from recordgen.core.image_settings import Encoding
from recordgen.core.ordered import map_in_order
from recordgen.errors import RecordError, SourceError
from recordgen.features import LIST_DTYPES, RAW_DTYPES, FeatureSpec
from recordgen.messages import Shown
from recordgen.version import __version__

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_T = TypeVar("_T")

# Types of values that have no parts, as errors name them; whole numbers are stored in 64 bits.
_NAMES = {str: "a text", int: "a whole number", float: "a number"}
_NAMES |= {bool: "true or false", bytes: "bytes"}
_NUMBERS = range(-(1 << 63), 1 << 63)


def built(kind: type[_T], data: Any, name: str = "") -> _T:
    """Return the dataclass or named tuple of a JSON object, or of the list of a named tuple.

    An instance gets the types of its fields checked. ``name`` is for messages.

    Raises:
        ValueError: a value has another type, or is a whole number that its field does not allow.
        TypeError: a field without a default is missing, or there are others.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # types are hashable
    is_tuple = issubclass(kind, tuple)
    if isinstance(data, kind):
        data = {key: getattr(data, key) for key in hints}
    elif is_tuple and isinstance(data, list):
        data = dict(zip(hints, data, strict=True))
    _expect(isinstance(data, Mapping), data, name, "a list" if is_tuple else "an object")
    known = {key: _built(data[key], hints[key], key) for key in hints if key in data}
    return kind(**{**data, **known})


@lru_cache(256)
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _built(value: Any, hint: Any, name: str) -> Any:
    """Build a value of a type; of several ones, of the first unless the value shows another."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        of = tuple if isinstance(value, list) else type(value)
        fitting = [kind for kind in inside if (get_origin(kind) or kind) is of]
        return _built(value, (fitting or inside)[0], name)
    if hint is Any or hint is types.NoneType:
        return value
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return built(hint, value, name)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _expect(isinstance(value, Mapping), value, name, "an object")
        return dict(zip(value, _all_built(value.values(), inside[1], name), strict=True))
    if origin is not tuple:
        return _all_built([value], hint, name)[0]
    _expect(isinstance(value, list | tuple), value, name, "a list")
    if inside[1:] == (...,):
        return tuple(_all_built(value, inside[0], name))
    _expect(len(value) == len(inside), value, name, f"a list of {len(inside)}")
    return tuple(map(_built, value, inside, repeat(name)))


def _all_built(values: Collection[Any], hint: Any, name: str) -> list[Any]:
    """Build values of one type: a vocabulary may have a million labels."""
    is_limited = get_origin(hint) is Annotated
    if not is_limited and hint not in _NAMES:
        return [_built(value, hint, name) for value in values]
    kind, allowed = get_args(hint) if is_limited else (hint, _NUMBERS)
    expected = f"{_NAMES[kind]}, at least {allowed[0]}" if kind is int else _NAMES[kind]
    for value in values:
        is_right = type(value) is kind and (kind is not int or value in allowed)
        _expect(is_right, value, name, expected)
    return list(values)


def parsed_json(data: bytes) -> Any:
    r"""Return the value of a JSON file.

    Raises: ValueError: it is no JSON in UTF-8, or ``\ud800``, half of a character, is in a text.
    """
    value = json.loads(data)
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _expect(is_so: bool, value: Any, name: str, expected: str) -> None:
    if not is_so:
        raise ValueError(f"{name} must be {expected} (got {value!r:.80})")


FORMAT = "recordgen/1"
#: The task of examples that were written from Python.
EXAMPLES = "examples"
DATASET_FILE = "dataset.json"
LABELS_FILE = "labels.txt"
REJECTS_FILE = "rejects.jsonl"
FINDINGS_FILE = "findings.jsonl"
LINT_FILE = "lint.jsonl"
EXAMPLES_FILE = "examples.parquet"
INDEX_FILE = "records.npy"
REPORT_FILE = "report.html"

#: The file of a copy in another format that says what it is a copy of.
COPY_FILE = ".recordgen-export.json"

# The options that say the columns of a table: declared ones, and detected ones.
_COLUMN_OPTIONS = ("schema", "table")
SPLIT_PREFIX = "Split-"

#: Names of splits, which are also names of folders.
SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def split_dir(split: str) -> str:
    """Return the folder of ``split`` inside an output: ``train`` → ``Split-train``."""
    return f"{SPLIT_PREFIX}{split}"


def shard_file(split: str, index: int, count: int, compression: str) -> str:
    """Return a shard's path inside an output: ``Split-train/data_tfrecord-00000-of-00008``."""
    suffix = ".gz" if compression == "gzip" else ""
    return f"{split_dir(split)}/data_tfrecord-{index:05d}-of-{count:05d}{suffix}"


def shard_place(file: str) -> tuple[str, int]:
    """Return the split of a shard and its number there, given its path inside an output."""
    folder, _, name = file.partition("/data_tfrecord-")
    return folder.removeprefix(SPLIT_PREFIX), int(name.partition("-")[0])


def is_shard(name: str) -> bool:
    """Return whether a file in a split's folder has the name of a shard."""
    return _SHARD_NAME.fullmatch(name) is not None


_SHARD_NAME = re.compile(r"data_tfrecord-\d{5,}-of-\d{5,}(\.gz)?", re.ASCII)

# Recorded options that readers use as text.
_TEXT_OPTIONS = frozenset(
    ("check", "columns", "encode", "format", "image_root", "schema", "split", "table", "vocabulary")
)

_OMITTED_IF_EMPTY = (
    *("features", "folder", "source_folder", "lint", "inexact", "index", "objects", "keypoints"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dataset(Shown):
    """The content of ``dataset.json``.

    Attributes:
        task: the task, a name of :data:`recordgen.tasks.TASKS`; or ``examples`` if they were
            written from Python.
        recordgen_version: the version that wrote it.
        source: the import files as they were named.
        seed: the seed of order and splits.
        options: the options that affected the output.
        compression: compression of the shards, ``none`` or ``gzip``.
        label_kind: ``text`` or ``integer`` (:mod:`recordgen.core.dataset.vocabulary`), or ``none``.
        labels: the vocabulary; a label's number is its index. The file also holds
            ``labels_digest``, the sha256 (hex) of ``labels.txt``: equal digests, equal numbers.
        splits: by name, in the order train, eval, test, without empty splits.
        rows: counts of all rows.
        reencoded: re-encoded images by reason.
        warnings: warnings for the user.
        digest: sha256 (hex) over the shards' digests and names: equal digests, equal records.
        features: specs of the stored features by name; empty for images.
        inexact: the features of whole numbers that float32 cannot hold.
        folder: folder where relative ``video/uri`` start; empty if records name no files.
        source_folder: the way from the output to the folder where relative paths in ``source``
            start; empty if there are none, or no such way.
        lint: findings in ``lint.jsonl`` by code.
        index: the ``file`` with the length of each record, its number of ``records`` and its
            ``sha256``; empty if there is none. It is not part of the digest.
        objects: names of :data:`recordgen.features.OBJECTS` that records have.
        keypoints: the ``names`` of the keypoints of objects, and ``flip_idx``: for each keypoint
            the number of the one that it becomes in a mirrored image; empty without keypoints.
    """

    task: str
    recordgen_version: str
    source: tuple[str, ...]
    seed: int
    options: Mapping[str, Any]
    compression: str
    label_kind: str
    labels: tuple[str, ...]
    splits: Mapping[str, Split]
    rows: RowCounts
    reencoded: Mapping[str, int]
    warnings: tuple[str, ...]
    digest: str
    features: Mapping[str, FeatureSpec] = field(default_factory=dict)
    folder: str = ""
    source_folder: str = ""
    lint: Mapping[str, int] = field(default_factory=dict)
    inexact: tuple[str, ...] = ()
    index: Mapping[str, Any] = field(default_factory=dict)
    objects: tuple[str, ...] = ()
    keypoints: Mapping[str, Any] = field(default_factory=dict)

    @property
    def examples(self) -> int:
        """Examples in all splits."""
        return sum(split.examples for split in self.splits.values())

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of all splits, in their order."""
        return tuple(shard for split in self.splits.values() for shard in split.shards)

    @property
    def description(self) -> Mapping[str, Any]:
        """What its records mean: task, labels, names of keypoints, and options that say columns."""
        options = {name: self.options.get(name) for name in _COLUMN_OPTIONS}
        return {
            "task": self.task,
            "labels": list(self.labels),
            "keypoints": dict(self.keypoints),
            "options": {name: value for name, value in options.items() if value},
        }

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The labels and their numbers, or None if there are none."""
        return Vocabulary(self.label_kind, self.labels) if self.labels else None

    @property
    def labels_digest(self) -> str:
        """The sha256 (hex) of the vocabulary; see :func:`labels_digest`."""
        return labels_digest(self.labels)

    @property
    def bytes(self) -> int:
        """Bytes of all shards."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def encoding(self) -> Encoding:
        """The format of stored images."""
        return Encoding.of(self.options.get("encode"))

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``dataset.json``."""
        values: dict[str, Any] = {"format": FORMAT}
        for name, value in asdict(self).items():
            values[name] = value
            if name == "labels" and self.labels:
                values["labels_digest"] = self.labels_digest
        values["features"] = {name: spec.to_json() for name, spec in self.features.items()}
        for name in _OMITTED_IF_EMPTY:
            if not values[name]:
                del values[name]
        return values

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dataset:
        """Build a dataset from the parsed ``dataset.json``.

        Raises: ValueError: the format is not ``recordgen/1``, or the labels were changed.
        """
        values = _in_format(data)
        digest = values.pop("labels_digest", None)
        if digest not in (None, labels_digest(values["labels"])):
            raise ValueError("labels_digest does not match labels: one of them was changed")
        values["features"] = {
            name: FeatureSpec.from_json(spec) for name, spec in values.get("features", {}).items()
        }
        found = built(cls, values)
        found.check_values()
        return found

    def check_values(self) -> None:
        """Raise ValueError if a person or a program changed the file so that readers would fail."""
        _ = self.encoding
        _expect_one_of("compression", self.compression, ("none", "gzip"))
        _expect_one_of("label_kind", self.label_kind, ("text", "integer", "none"))
        for name, value in self.options.items():
            items = value if isinstance(value, list) else [value]
            if not all(isinstance(item, str | int | float | None) for item in items):
                raise ValueError(f"option {name!r:.80} must be a text, a number or a list of texts")
            if name in _TEXT_OPTIONS and not isinstance(value, str):
                raise ValueError(f"option {name} must be a text (got {value!r:.80})")
        for name, spec in self.features.items():
            _expect_one_of(f"dtype of {name!r:.80}", spec.dtype, (*LIST_DTYPES, *RAW_DTYPES))
            if min(spec.shape or (0,)) < 0:
                raise ValueError(f"shape of {name!r:.80} must be at least 0 (got {spec.shape})")
        index = {name: type(value) for name, value in self.index.items()}
        if index and (index != _OF_INDEX or self.index["file"] != INDEX_FILE):
            raise ValueError(f"index must have {', '.join(_OF_INDEX)} (got {self.index!r:.80})")
        for name, split in self.splits.items():
            if not SPLIT_NAME.fullmatch(name):
                raise ValueError(
                    f"the name of a split must be letters and digits (got {name!r:.80})"
                )
            split.check_values(name)


_OF_INDEX = {"file": str, "records": int, "sha256": str}


def _in_format(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a ``dataset.json`` of any version until this one, in its form.

    The one place that knows older forms: ``tests/versions`` holds a dataset of each.

    Raises: ValueError: the format is another one.
    """
    values = dict(data)
    if (found := values.pop("format", None)) != FORMAT:
        raise ValueError(f"format must be {FORMAT!r} (got {found!r:.80})")
    values.pop("psnr", None)  # version 0.1.0 measured what encoding loses
    return values


def written_elsewhere(data: Any) -> str:
    """Return the remedy if another version wrote JSON that this one cannot read, else ""."""
    version = data.get("recordgen_version", __version__) if isinstance(data, dict) else __version__
    return "" if version == __version__ else f"read it with recordgen {version!s:.80}, its writer; "


def _expect_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)} (got {value!r:.80})")


def write_dataset(root: str, dataset: Dataset) -> None:
    """Write ``dataset.json`` under ``root``. Call this last: the file is the commit mark."""
    storage.write_text(storage.join(root, DATASET_FILE), dataset_text(dataset))


def dataset_text(dataset: Dataset) -> str:
    """Return the content of ``dataset.json`` as it is written."""
    return json.dumps(dataset.to_json(), indent=2, ensure_ascii=False) + "\n"


def read_dataset(
    root: str | os.PathLike[str], context: storage.RequestContext = storage.ANY_REQUEST
) -> Dataset:
    """Read the dataset in ``root`` (an output, an Examples uri, or a ``dataset.json``).

    ``context`` limits the requests if a file from elsewhere names ``root``.

    Raises: SourceError: there is no ``dataset.json``, or Recordgen did not write it.
    """
    root = storage.normal(os.fspath(root))
    path = storage.join(output_of(root), DATASET_FILE)
    data = None
    try:
        data = parsed_json(storage.read_bytes(path, context=context))
        return Dataset.from_json(data)
    except FileNotFoundError as exc:
        raise SourceError(
            f"{root}: no {DATASET_FILE} here: the path is wrong, this is no Recordgen output, or a "
            f"run did not finish; convert {root} first, or name the files of other tools' "
            f"records: {storage.join(root, '*')}"
        ) from exc
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as exc:
        reason = f"{exc} is missing" if isinstance(exc, KeyError) else exc
        raise SourceError(
            f"{path}: not a {FORMAT} {DATASET_FILE}: {reason}; {written_elsewhere(data)}restore "
            f"the file, or convert again"
        ) from exc


def output_of(place: str) -> str:
    """Return the folder of a dataset, given it or the path of its ``dataset.json``."""
    return place.removesuffix(DATASET_FILE) if place.split("/")[-1] == DATASET_FILE else place


def has_dataset(root: str) -> bool:
    """Return whether a folder or URL has a ``dataset.json``. Raises: StorageError."""
    return storage.is_file(storage.join(root, DATASET_FILE))


def holds_dataset(place: str) -> bool:
    """Return whether a place is a finished output, or names a ``dataset.json``."""
    return output_of(place) != place or has_dataset(place)


def is_output(entries: Sequence[tuple[str, bool]]) -> bool:
    """Return whether a folder with these entries, of :func:`storage.list_dir`, is an output.

    Other programs' files are named ``dataset.json``, too, but lie beside no folders of splits.
    """
    has_splits = any(name.startswith(SPLIT_PREFIX) for name, _ in entries)
    return has_splits and (DATASET_FILE, False) in entries


def read_vocabulary(path: str) -> Vocabulary | None:
    """Read the labels of a ``labels.txt``, an output or a ``dataset.json``; None if it has none.

    Raises: SourceError: it cannot be read; DataError: a line of the file is empty, or repeated.
    """
    if has_dataset(output_of(path)):
        return read_dataset(path).vocabulary
    try:
        return parse_labels(storage.read_text(path), path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as exc:
        raise SourceError(
            f"{path}: no {LABELS_FILE} and no output is here; give vocabulary a file with a label "
            f"in each line, or the folder of an earlier output"
        ) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}") from exc


# --- records.npy: the length of each record, so that readers find any record at once --------------

# uint32 [records] in NumPy's format: the shards in the order of dataset.json, and their records in
# the order of the file.

#: uint32 [records]
Lengths: TypeAlias = "npt.NDArray[np.uint32]"

#: Returns the lengths of the records of a shard, given its file: uint32, little-endian.
LengthsOf: TypeAlias = "Callable[[str], bytes]"

#: How lengths are stored, on every machine.
DTYPE, ITEM_BYTES = "<u4", 4

# Lengths that are in memory together, in bytes.
_BYTES_AT_ONCE = 16 << 20

#: The beginning of a file in NumPy's format 1.0: magic, version, bytes of the head that follows.
HEAD_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00" + (HEAD_BYTES - 10).to_bytes(2, "little")


def write_index(path: str, dataset: Dataset, lengths_of: LengthsOf) -> Dataset:
    """Write the index of a dataset, and return the dataset with the name of its index.

    ``lengths_of`` is called for each shard, in threads; memory holds the lengths of some shards.
    """
    digest = hashlib.sha256()
    parts = map_in_order(
        lambda shard: lengths_of(shard.file),
        dataset.shards,
        threads=storage.threads([path]),
        bytes_of=lambda shard: ITEM_BYTES * shard.examples,
        max_bytes=_BYTES_AT_ONCE,
    )
    with storage.replacing(path) as out:
        beginning = head(dataset.examples)
        digest.update(beginning)
        out.write(beginning)
        for shard, part in zip(dataset.shards, parts, strict=True):
            if len(part) != ITEM_BYTES * shard.examples:
                raise RecordError(
                    f"{shard.file}: {len(part)} bytes of lengths, but {shard.examples} records; "
                    f"convert again"
                )
            digest.update(part)
            out.write(part)
    found = {"file": INDEX_FILE, "records": dataset.examples, "sha256": digest.hexdigest()}
    return replace(dataset, index=found)


def head(records: int) -> bytes:
    """Return what a file begins with: the same bytes with every version of NumPy."""
    text = f"{{'descr': '{DTYPE}', 'fortran_order': False, 'shape': ({records},), }}"
    return _MAGIC + text.encode().ljust(HEAD_BYTES - len(_MAGIC) - 1) + b"\n"


def decoded(content: bytes) -> Lengths:
    """Return the lengths in a file. Raises: ValueError: it holds something else."""
    count = max(0, len(content) - HEAD_BYTES) // ITEM_BYTES
    if content[:HEAD_BYTES] != head(count) or len(content) != index_bytes(count):
        raise ValueError(f"it does not hold lengths of records ({DTYPE} [n])")
    import numpy as np  # who reads dataset.json does not need it

    return np.frombuffer(content, DTYPE, count, HEAD_BYTES)


def index_bytes(records: int) -> int:
    """Return the size of an index."""
    return HEAD_BYTES + ITEM_BYTES * records


def by_shard(dataset: Dataset) -> Iterator[tuple[str, int, int]]:
    """Yield each shard's file, the number of its first record, and that after its last one."""
    end = 0
    for shard in dataset.shards:
        start, end = end, end + shard.examples
        yield shard.file, start, end
