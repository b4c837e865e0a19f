"""Features → TFRecords, without TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordgen.core.records.tfrecord import TfRecords

    #: The format of every file of records.
    RECORDS: TfRecords


def __getattr__(name: str) -> Any:
    # Modules that need only numbers or features must not load the checksums' library.
    if name != "RECORDS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recordgen.core.records.tfrecord import TfRecords

    globals()[name] = TfRecords()
    return globals()[name]
