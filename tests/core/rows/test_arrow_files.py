"""Parquet and Arrow data from elsewhere: no code runs, and what does not fit is refused."""

import io
import pickle
from contextlib import suppress

import pyarrow as pa
import pytest
from pyarrow import parquet

from recordgen.core.rows.columns import packed, read_parquet, read_streams
from tests.conftest import convert_lines, encoded, noise, run_python, write_file

SCHEMA = pa.schema({"name": pa.string(), "size": pa.int64(), "parts": pa.list_(pa.int64())})
TABLE = pa.table({"name": ["a"], "size": [1], "parts": [[1, 2]]}, SCHEMA)
PICKLED = "arrow.py_extension_type"


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def with_type(field, name, description=b""):
    """Return a field with an extension type, as its file declares it."""
    said = {b"ARROW:extension:name": name.encode(), b"ARROW:extension:metadata": description}
    return field.with_metadata(said)


def with_pickle(table, ran):
    """Return a table whose first column has a type that creates the file ``ran``."""
    first, *others = table.schema
    first = with_type(first, PICKLED, pickle.dumps(Payload(ran)))
    return pa.Table.from_arrays(table.columns, schema=pa.schema([first, *others]))


def to_bytes(table):
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


DOORS = """
import sys
from recordgen.cli import main

[source, output] = sys.argv[1:]
print(main(["report", output]))
print(main(["diff", output, output]))
print(main(["convert", source, output, "--append"]))
"""


def test_a_dataset_that_would_run_code(tmp_path):
    """Each command refuses the file, and nothing is unpickled."""
    (tmp_path / "a.png").write_bytes(encoded(noise(8, 8), "PNG"))
    output = convert_lines(tmp_path, ["TRAIN,a.png,cat"])
    facts = parquet.read_table(output / "examples.parquet")
    ran = tmp_path / "ran"
    (output / "examples.parquet").write_bytes(to_bytes(with_pickle(facts, ran)))
    done = run_python("-c", DOORS, str(tmp_path / "labels.csv"), str(output))
    assert done.stdout.split() == ["1"] * 3, done
    assert not ran.exists()
    assert done.stderr.count(PICKLED) == 3, done.stderr


def test_an_arrow_stream_that_would_run_code(tmp_path):
    """It is an error, and nothing is unpickled."""
    path = write_file(tmp_path / "stream", packed(with_pickle(TABLE, tmp_path / "ran")))
    code = (
        "import sys; from recordgen.core.rows.columns import read_streams\n"
        "try: list(read_streams(open(sys.argv[1], 'rb').read()))\n"
        "except ValueError as exc: print(exc)"
    )
    assert PICKLED in run_python("-c", code, str(path)).stdout
    assert not (tmp_path / "ran").exists()


@pytest.mark.once
def test_columns_that_an_earlier_version_lacks_are_null_and_others_are_ignored():
    """An earlier version may lack columns that it allows to, and may have columns that are gone."""
    more = TABLE.append_column("more", pa.array([1]))
    assert read_parquet(io.BytesIO(to_bytes(more)), SCHEMA) == TABLE
    older = io.BytesIO(to_bytes(TABLE.select(["parts", "name"])))
    expected = pa.table({"name": ["a"], "size": [None], "parts": [[1, 2]]}, SCHEMA)
    assert read_parquet(older, SCHEMA, added=["size", "name"]) == expected
    with pytest.raises(ValueError, match="Parquet"):
        read_parquet(older, SCHEMA, added=["name"])


@pytest.mark.once
def test_streams_are_read_one_after_the_other():
    """One file may hold streams of several schemas, or none; the last one closes it."""
    others = pa.table({"more": [1.5]})
    data = packed(TABLE) + packed(others)
    file = io.BytesIO(data)
    tables = read_streams(file)
    assert [(next(tables), file.closed) for _ in range(2)] == [(TABLE, False), (others, True)]
    assert list(read_streams(data)) == [TABLE, others]
    assert list(read_streams(b"")) == []


class Registered(pa.ExtensionType):
    """A type that this process knows, so that Arrow makes it."""

    def __init__(self):
        super().__init__(pa.string(), "my.type")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


@pytest.fixture(params=[True, False], ids=["known", "unknown"])
def typed(request):
    """A table whose first column has an extension type."""
    column = pa.ExtensionArray.from_storage(Registered(), TABLE["name"].combine_chunks())
    if request.param:
        pa.register_extension_type(Registered())
    yield TABLE.set_column(0, "name", column)
    if request.param:
        pa.unregister_extension_type("my.type")


@pytest.mark.once
def test_extension_types_are_refused(typed):
    """In streams and files, by the name of the column."""
    with pytest.raises(ValueError, match=r"name.*my\.type"):
        list(read_streams(packed(typed)))
    with pytest.raises(ValueError, match=r"name.*my\.type"):
        read_parquet(io.BytesIO(to_bytes(typed)), SCHEMA)


def _fields(*fields):
    arrays = [pa.nulls(1, field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


NAME, SIZE, PARTS = SCHEMA
INNER = pa.list_(with_type(pa.field("item", pa.int64()), "other.type"))

MISFITS = [
    _fields(NAME, SIZE, pa.field("parts", INNER)),
    _fields(NAME, SIZE),
    _fields(NAME, NAME, SIZE, PARTS),
    _fields(pa.field("name", pa.list_(pa.string())), SIZE, PARTS),
    pa.table({name: ["x"] for name in SCHEMA.names}),
    TABLE.set_column(0, "name", pa.array([b"\xff"]).view(pa.string())),
]


@pytest.mark.once
@pytest.mark.parametrize("table", MISFITS, ids=range(len(MISFITS)))
def test_a_table_of_another_schema_is_a_value_error(table):
    """Other columns and types are refused."""
    with pytest.raises(ValueError, match="Parquet"):
        read_parquet(io.BytesIO(to_bytes(table)), SCHEMA)


@pytest.mark.once
def test_a_damaged_file_is_a_value_error():
    """Wherever a file is cut or changed, it is read or refused, and no other error comes."""
    whole = to_bytes(TABLE)
    cut = [whole[:end] for end in range(0, len(whole), 7)]
    changed = [whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :] for at in range(len(whole))]
    for data in cut + changed:
        with suppress(ValueError):
            read_parquet(io.BytesIO(data), SCHEMA)
    for data in cut:
        with pytest.raises(ValueError, match="Parquet"):
            read_parquet(io.BytesIO(data), SCHEMA)


def test_a_changed_offset_is_damage():
    """An offset that leads beyond its buffer would be followed anywhere: the process would die."""
    data = bytearray(packed(pa.table({"name": ["a", "bc", "d"]})))
    at = data.index((3).to_bytes(4, "little") + (4).to_bytes(4, "little"))
    data[at + 4 : at + 8] = (1 << 29).to_bytes(4, "little")
    with pytest.raises(ValueError, match="damaged columns"):
        list(read_streams(bytes(data)))
