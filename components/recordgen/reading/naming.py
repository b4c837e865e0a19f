"""Name the record that TensorFlow cannot read: its file, its number and its source id.

TensorFlow says what is wrong with a record, but not which record: ``corrupted record at 12345``
names no file, and a batch of 32 has one message. So after an error the files are read once more,
in order, and batches are made again until one fails. Sound data costs nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen import features
from recordgen.errors import RecordError, StorageError
from recordgen.masking import without_secrets
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_records

if TYPE_CHECKING:
    from recordgen.reading.records import Keep

_IDS = (features.IMAGE_SOURCE_ID, features.TEXT_SOURCE_ID, features.VIDEO_SOURCE_ID)

# Attributes of datasets, and of their iterators.
_SEARCH, _DATASET = "_recordgen_search", "_recordgen_dataset"

# Records that are tried together; if they fail, each is tried by itself.
_RECORDS_AT_ONCE = 64

#: What TensorFlow raises for a bad record: UnicodeDecodeError if its message quotes bytes.
RECORD_ERRORS = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError)

# Limit of a search: an error of the user's own functions has no bad record to find.
_SECONDS = 60.0

_MESSAGE_CHARACTERS = 300
_READ_CHARACTERS = 2_000  # at the start and at the end of TensorFlow's message
_REMEDY = "fix the record, read with on_error='skip', or convert again"

#: The reason for a record whose image cannot be decoded.
NO_IMAGE = "its image does not decode"

_OTHER_TYPE = r"Key: (.+?)(?:, Index: \d+)?\.\s+Data types don't match\."

# TensorFlow's messages about a record, and plain English for each.
_MEANINGS = (
    (r"Feature: (.+?) \(data type: (\w+)\) is required but", "it has no feature {0!r} ({1})"),
    (
        rf"{_OTHER_TYPE} Expected type: (\w+), Actual type: (\w+)",
        "its feature {0!r} holds {2}, and {1} is expected",
    ),
    (
        r"Key: (.+?)[.,]\s.*?[Nn]umber of \w+ values != expected\.\s+[Vv]alues size: (\d+)"
        r" but output shape: (\S+)",
        "its feature {0!r} holds {1} values, and {2} are expected",
    ),
    (
        rf"{_OTHER_TYPE} Data type: (\w+) but expected type: (\w+)",
        "its feature {0!r} holds {1}, and {2} is expected",
    ),
    (r"Decode\w*(?:Image|Jpeg)|ExtractJpegShape|nknown image|nvalid (?:JPEG|PNG|GIF)", NO_IMAGE),
    (r"assertion failed: ([^\n]*)", "{0}"),
    (r"Summarized data: b'([^\n]*)'(?:\n([^\n]*))?", "{0} {1}"),
)


@dataclass(frozen=True)
class Search:
    """A search for the record on which a reading fails.

    Attributes:
        files: the shards.
        stages: returns the function that selects records, see
            :func:`recordgen.reading.records.keeping`, and the function that makes a batch of
            records (string [batch]); called only after an error.
        check: called when an iteration begins, to raise an error if the files were replaced.
    """

    files: Sequence[str]
    stages: Callable[[], tuple[Keep | None, Callable[..., Any]]]
    check: Callable[[], object] = bool  # does nothing

    def culprit(self) -> RecordError | None:
        """Return the error that names the first bad record; None if there is none."""
        end = time.monotonic() + _SECONDS
        keep, to_batch = self.stages()
        # Trace once: an eager call would build the inner datasets of a batch each time.
        batch = tf.function(to_batch, [tf.TensorSpec([None], tf.string)], autograph=False)
        for path in self.files:
            number = 0
            records = read_records(path)
            while time.monotonic() < end:
                some: list[bytes] = []
                damage: Exception | None = None
                try:
                    # extend keeps the records before a damaged one, which are checked first.
                    some.extend(islice(records, _RECORDS_AT_ONCE))
                except (RecordError, StorageError, OSError) as exc:
                    damage = exc
                if found := _first_bad(path, number, some, keep, batch):
                    return found
                number += len(some)
                if damage is not None:
                    return _damaged(path, number, damage)
                if len(some) < _RECORDS_AT_ONCE:
                    break
        return None


def _first_bad(
    path: str,
    start: int,
    records: Sequence[bytes],
    keep: Keep | None,
    to_batch: Callable[..., Any],
) -> RecordError | None:
    """Return the error of the first bad record; the first record has the number ``start``."""
    if not records or reason_why(records, keep, to_batch) is None:
        return None
    for number, record in enumerate(records, start):
        if (reason := reason_why([record], keep, to_batch)) is not None:
            return RecordError(f"{path}: record {number}{shown_id(record)}: {reason}; {_REMEDY}")
    return None


def reason_why(
    records: Sequence[bytes], keep: Keep | None, to_batch: Callable[..., Any]
) -> str | None:
    """Return why no batch can be made of these records; None if it can."""
    try:
        kept = [it for it in records if keep is None or bool(keep(tf.constant(it)))]
        if kept:
            to_batch(tf.constant(kept))
    except RECORD_ERRORS as exc:
        return _reason_of(str(exc), records[0])
    return None


def naming_records(dataset: tf.data.Dataset, search: Search) -> tf.data.Dataset:
    """Make iterations over a dataset fail with an error that names the record.

    Datasets derived from it (``take``, ``map``) fail with TensorFlow's error; for these see
    :func:`named_errors`.
    """
    setattr(dataset, _SEARCH, search)
    kind: Any = type(dataset)
    dataset.__class__ = _naming(kind)
    return dataset


@contextmanager
def named_errors(*datasets: tf.data.Dataset) -> Iterator[None]:
    """Replace TensorFlow's error in the block by an error that names the record.

    ``with named_errors(train): model.fit(train)``

    Args:
        *datasets: results of :func:`recordgen.train_dataset` and similar functions.

    Raises:
        RecordError: a record of the datasets is damaged, or not as expected.
    """
    try:
        yield
    except RECORD_ERRORS as exc:
        raise_named(exc, *datasets)
        raise


def raise_named(error: Exception, *datasets: tf.data.Dataset) -> None:
    """Raise a RecordError that names the first bad record of the datasets, if there is one.

    ``error`` is the error that TensorFlow raised.
    """
    searches: list[Search] = [getattr(it, _SEARCH) for it in datasets if hasattr(it, _SEARCH)]
    for search in searches:
        found = None
        # If the user's own function fails here, the original error says more.
        with suppress(TypeError, ValueError):
            found = search.culprit()
        if found is not None:
            raise found from error


@lru_cache(None)
def _naming(kind: Any) -> type[Any]:
    def __iter__(self: Any) -> Any:
        getattr(self, _SEARCH).check()
        found = kind.__iter__(self)
        if tf.executing_eagerly():  # in a graph, errors are raised later
            of: Any = type(found)
            found.__class__ = _naming_iterator(of)
            setattr(found, _DATASET, self)
        return found

    return type(kind.__name__, (kind,), {"__iter__": __iter__})


@lru_cache(None)
def _naming_iterator(kind: Any) -> type[Any]:
    def __next__(self: Any) -> Any:
        with named_errors(getattr(self, _DATASET)):
            return kind.__next__(self)

    return type(kind.__name__, (kind,), {"__next__": __next__})


def _damaged(path: str, number: int, damage: Exception) -> RecordError:
    reason = damage.strerror if isinstance(damage, OSError) else None
    said = (reason or str(damage)).removeprefix(f"{path}: ")
    return RecordError(
        f"{path}: record {number}: {said}; restore the file, read with on_error='skip', or "
        f"convert again"
    )


def shown_id(record: bytes) -> str:
    """Return a record's source id for a message: `` (a.jpg)``; empty if it has none."""
    return f" ({name})" if (name := source_id(record)) else ""


def source_id(record: bytes) -> str:
    """Return a record's source id, without secrets; empty if it has none."""
    try:
        values = parse_example(record)
    except ValueError:
        return ""
    for name in _IDS:
        for value in values.get(name, ()):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            return without_secrets(text)
    return ""


def _reason_of(message: str, record: bytes) -> str:
    """Return TensorFlow's message about a record as a short reason, without bytes of the record."""
    try:
        parse_example(record)
    except ValueError:
        return "it is no tf.train.Example"
    # The names in it may come from anyone, and may repeat words of the patterns.
    if len(message) > 2 * _READ_CHARACTERS:
        message = f"{message[:_READ_CHARACTERS]}\n{message[-_READ_CHARACTERS:]}"
    for pattern, words in _MEANINGS:
        if found := re.search(pattern, message, re.DOTALL):
            return f"{words.format(*found.groups()):.{_MESSAGE_CHARACTERS}}"
    # The last line has the error; in a graph, the lines before say where the graph was built.
    lines = [line.strip() for line in message.splitlines()]
    said = [line for line in lines if line and not line.startswith(("[[", "File ", "Detected at"))]
    text = re.sub(r"\{\{.*?\}\}|\[Op:\w+\]( name: \S*)?", "", said[-1] if said else "")
    return f"{' '.join(text.split()):.{_MESSAGE_CHARACTERS}}" or "TensorFlow cannot read it"
