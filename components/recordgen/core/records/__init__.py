"""Features → TFRecords, without TensorFlow.

example.py   features → a serialized ``tf.train.Example``
format.py    interface of a record format: frame, write, read, count
tfrecord.py  the one record format: TFRecord
writer.py    frames → a file, compressed or not
boxes.py     boxes of an example
float32.py   numbers as float32 features store them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordgen.core.records.format import RecordFormat

    #: The format of every file of records.
    RECORDS: RecordFormat


def __getattr__(name: str) -> Any:
    # Modules that need only numbers or features must not load the checksums' library.
    if name != "RECORDS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recordgen.core.records.tfrecord import TfRecords

    globals()[name] = TfRecords()
    return globals()[name]
