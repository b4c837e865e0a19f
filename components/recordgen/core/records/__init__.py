"""Features → TFRecords, without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from recordgen.core.records.tfrecord import TfRecords

    #: The format of every file of records.
    RECORDS: TfRecords

#: A serialised record, or a framed one, in pieces: joining large pieces would copy them.
Record: TypeAlias = Sequence[bytes]

# Arrow's type stubs, if installed, differ from version to version.
RecordColumn: TypeAlias = Any  # pa.BinaryArray


class LengthError(ValueError):
    """No record of the expected length begins here."""


def __getattr__(name: str) -> Any:
    # Modules that need only numbers or features must not load the checksums' library.
    if name != "RECORDS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recordgen.core.records.tfrecord import TfRecords

    globals()[name] = TfRecords()
    return globals()[name]
