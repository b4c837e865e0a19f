"""Name the record that TensorFlow cannot read: its file, its number and its source id.

TensorFlow says what is wrong with a record, but not which record: ``corrupted record at 12345``
names no file, and a batch of 32 has one message. So after an error :func:`named_errors` reads the
files once more, in order, and makes batches again until one fails. Sound data costs nothing.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen import features
from recordgen.access.shards import REPLACED
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import DataError, RecordError, StorageError
from recordgen.messages.masking import without_secrets

if TYPE_CHECKING:
    from recordgen.reading.records import Keep

# Attribute of datasets.
_SEARCH = "_recordgen_search"

# Records that are tried together; if they fail, each is tried by itself.
_RECORDS_AT_ONCE = 64

#: What TensorFlow raises for a bad record: UnicodeDecodeError if its message quotes bytes.
RECORD_ERRORS = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError)

# Limit of a search: an error of the user's own functions has no bad record to find.
_SECONDS = 60.0

_MESSAGE_CHARACTERS = 300
_READ_CHARACTERS = 2_000  # at the start and at the end of TensorFlow's message
_REMEDY = "convert the files again, which rejects what cannot be read"


@dataclass(frozen=True)
class Search:
    """A search for the records on which a reading fails.

    Attributes:
        stages: returns the function that selects records, see
            :func:`recordgen.reading.records.keeping`, and the function that makes a batch of
            records (string [batch]); called only after an error.
    """

    files: Sequence[str]
    stages: Callable[[], tuple[Keep | None, Callable[..., Any]]]

    def errors(self, seconds: float = math.inf) -> Iterator[RecordError]:
        """Yield an error for each bad record; stop searching after so many seconds."""
        end = time.monotonic() + seconds
        keep, to_batch = self.stages()
        # Trace once: an eager call would build the graph of a batch each time.
        batch = tf.function(to_batch, [tf.TensorSpec([None], tf.string)], autograph=False)
        for path in self.files:
            records = enumerate(_records(path))
            while time.monotonic() < end and (some := list(islice(records, _RECORDS_AT_ONCE))):
                sound = [record for _, record in some if isinstance(record, bytes)]
                is_bad = _reason_why(sound, keep, batch) is not None
                for number, record in some:
                    if not isinstance(record, bytes):
                        yield _damaged(path, number, record)
                    elif is_bad and (reason := _reason_why([record], keep, batch)) is not None:
                        name = f" ({name})" if (name := _source_id(record)) else ""
                        yield RecordError(f"{path}: record {number}{name}: {reason}; {_REMEDY}")


def _records(path: str) -> Iterator[bytes | Exception]:
    """Yield the records of a file up to damage, and the error."""
    try:
        yield from RECORDS.read(path)
    except (RecordError, StorageError, OSError) as exc:
        yield exc


def _reason_why(
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


def searchable(dataset: tf.data.Dataset, search: Search) -> tf.data.Dataset:
    """Let :func:`named_errors` and :func:`bad_records` search the records of a dataset."""
    setattr(dataset, _SEARCH, search)
    return dataset


def bad_records(dataset: tf.data.Dataset) -> Iterator[RecordError]:
    """Yield an error for each record that cannot be read: its file, number and source id.

    It reads all shards once, in order. ``for error in bad_records(data): print(error)``

    Args:
        dataset: a result of :func:`recordgen.input_fn` or a similar function, and no dataset
            derived from it.
    """
    search: Search | None = getattr(dataset, _SEARCH, None)
    return iter(()) if search is None else search.errors()


@contextmanager
def named_errors(*datasets: tf.data.Dataset) -> Iterator[None]:
    """Replace TensorFlow's error in the block by an error that names the record.

    ``with named_errors(train): model.fit(train)``

    Args:
        *datasets: results of :func:`recordgen.train_dataset` and similar functions; the block may
            read datasets derived from them.

    Raises:
        RecordError: a record of the datasets is damaged, or not as expected.
        DataError: another dataset replaced the files.
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
    if found := re.search(f"[^\n\\[]*{re.escape(REPLACED)}", str(error)):
        raise DataError(found[0]) from error
    searches: list[Search] = [getattr(it, _SEARCH) for it in datasets if hasattr(it, _SEARCH)]
    for search in searches:
        bad = None
        # If the user's own function fails here, the original error says more.
        with suppress(TypeError, ValueError):
            bad = next(search.errors(_SECONDS), None)
        if bad is not None:
            raise bad from error


def _damaged(path: str, number: int, damage: Exception) -> RecordError:
    reason = damage.strerror if isinstance(damage, OSError) else None
    said = (reason or str(damage)).removeprefix(f"{path}: ")
    return RecordError(f"{path}: record {number}: {said}; restore the file, or {_REMEDY}")


def _source_id(record: bytes) -> str:
    """Return a record's source id, without secrets; empty if it has none."""
    try:
        values = parse_example(record)
    except ValueError:
        return ""
    for name in features.SOURCE_IDS:
        for value in values.get(name, ()):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            return without_secrets(text)
    return ""


def _reason_of(message: str, record: bytes) -> str:
    """Return TensorFlow's message about a record as one line, without bytes of the record."""
    try:
        parse_example(record)
    except ValueError:
        return "it is no tf.train.Example"
    # Names in the message may come from anyone, and may be long.
    if len(message) > 2 * _READ_CHARACTERS:
        message = f"{message[:_READ_CHARACTERS]}\n{message[-_READ_CHARACTERS:]}"
    _, mark, rest = message.partition("Summarized data: b'")
    first, _, more = rest.partition("\n")
    data, quote, _ = first.rpartition("'")
    if mark and quote:
        return f"{data} {more.partition(chr(10))[0]}"[:_MESSAGE_CHARACTERS]
    # The last line has the error; in a graph, the lines before say where the graph was built.
    lines = [line.strip() for line in message.splitlines()]
    said = [line for line in lines if line and not line.startswith(("[[", "File ", "Detected at"))]
    text = re.sub(r"\{\{.*?\}\}|\[Op:\w+\]( name: \S*)?", "", said[-1] if said else "")
    return f"{' '.join(text.split()):.{_MESSAGE_CHARACTERS}}" or "TensorFlow cannot read it"
