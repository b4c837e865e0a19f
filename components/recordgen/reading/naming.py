"""Name the record that TensorFlow cannot read: its file, its number and what it is called.

TensorFlow says what is wrong with a record, but not which one it is: ``corrupted record at 12345``
names no file, and a batch of 32 has one message. So the files are read once more after an error,
plainly and in order, and the batches are made again until one fails. Sound data pays nothing.
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

# Records of one look. Those of a look that fails are looked at one by one.
_RECORDS_AT_ONCE = 64

#: What TensorFlow raises of a record. Messages that quote bytes may fail in their own way.
RECORD_ERRORS = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError)

# An error of the user's own functions has no culprit among the records: the search ends.
_SECONDS = 60.0

_MESSAGE_CHARACTERS = 300
_REMEDY = "fix the record, read with on_error='skip', or convert again"

#: Why a record cannot be read whose image cannot.
NO_IMAGE = "its image does not decode"

_OTHER_TYPE = r"Key: (.+?)(?:, Index: \d+)?\.\s+Data types don't match\."

# What TensorFlow says of a record, as a person says it.
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
    """How to find the record that a reading stumbles over.

    Attributes:
        files: the shards.
        stages: returns what selects records, see :func:`recordgen.reading.records.keeping`, and
            what makes a batch of some (string [batch]); called only after an error.
    """

    files: Sequence[str]
    stages: Callable[[], tuple[Keep | None, Callable[..., Any]]]

    def culprit(self) -> RecordError | None:
        """Return the error that names the first record that cannot be read; None: all can be."""
        end = time.monotonic() + _SECONDS
        keep, to_batch = self.stages()
        # Traced once: a batch that is made eagerly would build its inner datasets each time.
        batch = tf.function(to_batch, [tf.TensorSpec([None], tf.string)], autograph=False)
        for path in self.files:
            number = 0
            records = read_records(path)
            while time.monotonic() < end:
                some: list[bytes] = []
                damage: Exception | None = None
                try:
                    # One by one: those before a damaged one are looked at first.
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
    """Return the error of the first of some records that cannot be read, numbered from a start."""
    if not records or reason_why(records, keep, to_batch) is None:
        return None
    for number, record in enumerate(records, start):
        if (reason := reason_why([record], keep, to_batch)) is not None:
            return RecordError(f"{path}: record {number}{called(record)}: {reason}; {_REMEDY}")
    return None


def reason_why(
    records: Sequence[bytes], keep: Keep | None, to_batch: Callable[..., Any]
) -> str | None:
    """Return why a batch of these records cannot be made; None: it can be."""
    try:
        kept = [it for it in records if keep is None or bool(keep(tf.constant(it)))]
        if kept:
            to_batch(tf.constant(kept))
    except RECORD_ERRORS as exc:
        return _reason_of(str(exc), records[0])
    return None


def naming_records(dataset: tf.data.Dataset, search: Search) -> tf.data.Dataset:
    """Let iterations over a dataset fail with an error that names the record.

    What is made of it by further stages (``take``, ``map``) fails as TensorFlow does: see
    :func:`named_errors`.
    """
    setattr(dataset, _SEARCH, search)
    kind: Any = type(dataset)
    dataset.__class__ = _naming(kind)
    return dataset


@contextmanager
def named_errors(*datasets: tf.data.Dataset) -> Iterator[None]:
    """Turn what TensorFlow raises in the block into the error that names the record.

    ``with named_errors(train): model.fit(train)``

    Args:
        *datasets: as :func:`recordgen.train_dataset` and its like return them.

    Raises:
        RecordError: a record of theirs is damaged, or is not what it should be.
    """
    try:
        yield
    except RECORD_ERRORS as exc:
        raise_named(exc, *datasets)
        raise


def raise_named(error: Exception, *datasets: tf.data.Dataset) -> None:
    """Raise the RecordError that names the record of some datasets that cannot be read, if any.

    ``error`` is what TensorFlow raised.
    """
    searches: list[Search] = [getattr(it, _SEARCH) for it in datasets if hasattr(it, _SEARCH)]
    for search in searches:
        found = None
        # If a function of the user's does not work here, their own error says more.
        with suppress(TypeError, ValueError):
            found = search.culprit()
        if found is not None:
            raise found from error


@lru_cache(None)
def _naming(kind: Any) -> type[Any]:
    """Return the class of a dataset, with iterators that name records."""

    def __iter__(self: Any) -> Any:
        found = kind.__iter__(self)
        if tf.executing_eagerly():  # else an iterator of a graph, whose errors come later
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


def called(record: bytes) -> str:
    """Return what a record calls itself: `` (a.jpg)``; empty if it says nothing."""
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
    """Return what TensorFlow says of a record, without bytes of it."""
    try:
        parse_example(record)
    except ValueError:
        return "it is no tf.train.Example"
    for pattern, words in _MEANINGS:
        if found := re.search(pattern, message, re.DOTALL):
            return f"{words.format(*found.groups()):.{_MESSAGE_CHARACTERS}}"
    # Of an error in a graph, the lines before are where the graph was built.
    lines = [line.strip() for line in message.splitlines()]
    said = [line for line in lines if line and not line.startswith(("[[", "File ", "Detected at"))]
    text = re.sub(r"\{\{.*?\}\}|\[Op:\w+\]( name: \S*)?", "", said[-1] if said else "")
    return f"{' '.join(text.split()):.{_MESSAGE_CHARACTERS}}" or "TensorFlow cannot read it"
