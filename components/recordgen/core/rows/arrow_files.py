"""Read Arrow and Parquet data that may come from elsewhere; all reads of the package pass here.

A file may declare columns of an extension type, and Arrow lets the type's class read the file's
description of it. PyArrow before 14.0.1 registers a class of its own that unpickles the description
and so runs any code in it (CVE-2023-47248); TFX 1.16 needs PyArrow 10. Recordgen writes no
extension types, so it refuses all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from typing import IO, Any

import pyarrow as pa
from pyarrow import parquet

from recordgen.messages import shortened

_PICKLED = "arrow.py_extension_type"
_IS_EXTENSION = b"ARROW:extension:name"


def read_parquet(
    file: IO[bytes],
    schema: Any,
    names: Collection[str] | None = None,
    *,
    added: Collection[str] = (),
    group: int | None = None,
) -> Any:
    """Return the columns of a Parquet file, with the types of ``schema``.

    Args:
        file: the file, at its start.
        schema: a ``pyarrow.Schema``.
        names: the wanted columns; those that the file does not have are missing in the result. By
            default, the file must have all columns of ``schema``; others are of earlier versions.
        added: columns that earlier versions of the file do not have; by default, they are null.
        group: the wanted row group; None: all rows.

    Raises: ValueError: the file is damaged, or has columns of other types.
    """
    forbid_pickled_types()
    try:
        opened = parquet.ParquetFile(file)
        _check_types(opened.schema_arrow)
        there = opened.schema_arrow.names
        wanted = [name for name in (schema.names if names is None else names) if name in there]
        missing = [] if names is not None else [n for n in schema.names if n not in wanted]
        if not {*missing} <= {*added}:
            raise ValueError("it has other columns")
        # Threads that read a Python file wait for the interpreter's lock, and the thread that meets
        # the damage may hold it while it waits for them.
        groups = range(opened.num_row_groups) if group is None else [group]
        found = opened.read_row_groups(groups, wanted, use_threads=False).select(wanted)
        found.validate(full=True)
        found = found.cast(pa.schema([schema.field(name) for name in wanted]))
        for name in missing:
            field = schema.field(name)
            found = found.append_column(field, pa.nulls(len(found), field.type))
        return found if names is not None else found.select(schema.names)
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        ValueError,
        RuntimeError,
    ) as exc:
        reason = shortened(" ".join(str(exc).split()), 300)
        raise ValueError(f"not a Parquet file of this version: {reason}") from exc


def count_groups(file: IO[bytes]) -> int:
    """Return the number of row groups of a Parquet file. Raises: ValueError: it is none."""
    forbid_pickled_types()
    try:
        return int(parquet.ParquetFile(file).num_row_groups)
    except (pa.ArrowException, OSError) as exc:
        raise ValueError(f"not a Parquet file: {exc}") from exc


def read_streams(data: bytes | memoryview) -> Iterator[Any]:
    """Yield the table of each Arrow stream in concatenated data. Raises: ValueError."""
    forbid_pickled_types()
    file = pa.BufferReader(data)
    while file.tell() < len(data):
        try:
            stream = pa.ipc.open_stream(file)
            _check_types(stream.schema)
            table = stream.read_all()
            table.validate(full=True)  # a changed offset or index would be followed anywhere
        except (pa.ArrowException, OSError) as exc:
            raise ValueError(f"damaged columns: {exc}") from exc
        yield table


@cache
def forbid_pickled_types() -> None:
    """Make this process refuse pickled types, as the package ``pyarrow_hotfix`` does.

    Later versions of PyArrow unpickle nothing, but warn or do not know the type.
    """
    with suppress(pa.ArrowKeyError):  # not registered, or another thread is faster
        pa.unregister_extension_type(_PICKLED)
    with suppress(pa.ArrowKeyError):
        pa.register_extension_type(_Forbidden(pa.null(), _PICKLED))


class _Forbidden(pa.ExtensionType):
    """Takes the place of the type that unpickles."""

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Any:
        raise ValueError(f"a column has the type {_PICKLED}, which could run code")


def _check_types(schema: Any) -> None:
    """Check that no column has an extension type. Raises: ValueError."""
    for field in schema:
        if name := _extension_in(field):
            raise ValueError(f"the column {field.name!r:.80} has the extension type {name!r:.80}")


def _extension_in(field: Any) -> str:
    """Return the name of an extension type in a field or in the fields below it, or ""."""
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name)
    if name := (field.metadata or {}).get(_IS_EXTENSION):
        return str(name, "utf-8", "replace")
    inner = [kind.field(at) for at in range(kind.num_fields)]
    return next(filter(None, map(_extension_in, inner)), "")
