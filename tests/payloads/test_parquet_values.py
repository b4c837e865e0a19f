"""Values of compressed columns: unpacked once, within a limit, for all threads and processes."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordgen.core.rows.row import Range
from recordgen.errors import PayloadError, SourceError, StorageError
from recordgen.formats.listing import Listing
from recordgen.formats.parquet import Parquet
from recordgen.payloads import parquet_values
from recordgen.payloads.parquet_values import parquet_file, read_value, rows_at_once
from recordgen.storage import ANY_REQUEST
from recordgen.storage import copies as copies_module
from tests.conftest import COMPONENTS, error_of

pytestmark = pytest.mark.outside

VALUES = [os.urandom(900) + bytes([at]) for at in range(40)]
GROUPS = 4


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a compressed file of four row groups, and let copies lie beside it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    table = pa.table({"image": VALUES, "label": ["a"] * len(VALUES)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression="zstd", row_group_size=len(VALUES) // GROUPS)
    return path


@pytest.fixture
def parts(file):
    """Return the ranges of all values, as the format finds them."""
    pictures = Parquet().read(Listing.of(str(file)), file.name)
    parts = [picture.payloads[0]._replace(file=str(file)) for picture in pictures]
    assert {part.values for part in parts} == {"0.0", "1.0", "2.0", "3.0"}
    return [Range.of(part.address) for part in parts]


def copies(file):
    return sorted(path.stat().st_size for path in (file.parent / "temporary").glob("*/*"))


def test_threads_unpack_each_row_group_once(file, parts, monkeypatch):
    """Threads that ask for one row group wait for the same copy."""
    opened = []
    read = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda *a, **more: opened.append(1) or read(*a, **more))
    mixed = sorted(range(len(parts)), key=lambda at: at * 7 % 11)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda at: read_value(parts[at], "1", ANY_REQUEST), mixed))
    assert found == [VALUES[at] for at in mixed]
    assert len(opened) == GROUPS
    assert len(copies(file)) == GROUPS
    assert read_value(parts[0], "2", ANY_REQUEST) == VALUES[0]  # another version of the file
    assert len(opened) == GROUPS + 1


def test_the_footer_is_read_once_for_all_row_groups(file, parts, monkeypatch):
    """Unpacking takes time that grows with the rows, not with row groups times row groups."""
    footers, counted = [], []

    def opened(raw, footer):
        footers.append(footer)
        return parquet_file(raw, footer)

    monkeypatch.setattr(parquet_values, "parquet_file", opened)
    monkeypatch.setattr(copies_module, "_counted", lambda *each: counted.append(each) or (1e9, 0))
    for version in ("1", "1", "2"):
        for at in (0, 10, 20, 30):
            assert read_value(parts[at], version, ANY_REQUEST) == VALUES[at]
    assert (footers.count(None), len(counted)) == (2, 1)


def test_the_least_used_copies_make_room(file, parts, monkeypatch):
    """The cache never holds more than its limit, and all values stay readable."""
    limit = 2 * 10 * len(VALUES[0])
    monkeypatch.setattr(parquet_values, "CACHE_BYTES", limit)
    for at in (0, 10, 20, 30, 0, 35, 15):
        assert read_value(parts[at], "1", ANY_REQUEST) == VALUES[at]
        assert sum(copies(file)) <= limit


PROCESS = """
import multiprocessing
import sys
from recordgen.core.rows.row import Range
from recordgen.payloads.parquet_values import read_value
from recordgen.storage import ANY_REQUEST

def read():
    for address in sys.argv[1:]:
        sys.stdout.buffer.write(read_value(Range.of(address), "1", ANY_REQUEST))

child = multiprocessing.get_context("fork").Process(target=read)
child.start()
child.join()
"""


def test_processes_share_copies_and_remove_their_own(file, parts, monkeypatch):
    """Copies of killed processes go, those of others stay."""
    assert read_value(parts[0], "1", ANY_REQUEST) == VALUES[0]
    [mine] = (file.parent / "temporary").glob("*/*")
    old = mine.with_name("old")
    old.write_bytes(b"left by a killed process")
    os.utime(old, (0, 0))
    command = [sys.executable, "-c", PROCESS, *(part.address for part in parts)]
    monkeypatch.setenv("PYTHONPATH", str(COMPONENTS))
    monkeypatch.setenv("TMPDIR", str(file.parent / "temporary"))
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[0] for process in running] == [b"".join(VALUES)] * 2
    assert list((file.parent / "temporary").glob("*/*")) == [mine]


def test_a_damaged_row_group_is_named(file, parts):
    """Values before the damage stay readable."""
    data = bytearray(file.read_bytes())
    start = pq.ParquetFile(file).metadata.row_group(2).column(0).data_page_offset
    data[start : start + 200] = b"\xff" * 200
    file.write_bytes(data)
    assert read_value(parts[19], "1", ANY_REQUEST) == VALUES[19]
    error = error_of(PayloadError, read_value, parts[29], "1", ANY_REQUEST)
    assert (error.code, "a.parquet: row group 2" in error.message) == ("corrupt", True)


def write_groups(path, *groups):
    """Write each table as a row group, whatever its dictionaries hold."""
    options = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30}
    with pq.ParquetWriter(path, groups[0].schema, write_statistics=False, **options) as writer:
        for group in groups:
            writer.write_table(group)


def table_of(images, labels=None):
    return pa.table({"image": images, "label": labels or ["a"] * len(images)})


def test_images_that_unpack_to_too_much_cost_their_rows(file, monkeypatch):
    """A few bytes of a dictionary may stand for any number of rows: those above the limit go."""
    write_groups(file, table_of([VALUES[0]] * 5000), table_of([VALUES[1]]))
    assert file.stat().st_size < 10_000
    monkeypatch.setattr("recordgen.formats.parquet.CACHE_BYTES", 1_000_000)
    *good, problem = Parquet().read(Listing.of(str(file)), file.name)
    assert len(good) > 1000
    assert (problem.code, "row group 0" in problem.message) == ("too_many_bytes", True)


def test_no_room_in_the_temporary_folder_refuses_the_rows(file, parts, monkeypatch):
    """The values that have room are read; each row of the others is refused, with the remedy."""
    monkeypatch.setattr(parquet_values, "CACHE_BYTES", 5 * len(VALUES[0]))
    for number in (7, 0, 4, 5):
        if number < 5:
            assert read_value(parts[number], "full", ANY_REQUEST) == VALUES[number]
            continue
        error = error_of(PayloadError, read_value, parts[number], "full", ANY_REQUEST)
        assert (error.code, "TMPDIR" in error.message) == ("out_of_memory", True)
    assert sum(copies(file)) == 5 * len(VALUES[0])


# name: columns of a row group that takes some kB in the file, and would take all memory or time
BOMBS = {
    "a page of 160 MB": lambda: table_of([bytes(160 << 20)] * 2),
    "a label of 60 MB for many rows": lambda: table_of(VALUES[:30], ["x" * (60 << 20)] * 30),
    "rows of a few bits": lambda: table_of([VALUES[0]] * 100_001),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_its_row_group(name, file):
    """A row group that unpacks beyond a limit is one reject; the rows before it stay."""
    write_groups(file, table_of([VALUES[0]]), BOMBS[name]())
    first, *others = Parquet().read(Listing.of(str(file)), file.name)
    assert first.uri == "a.parquet/0"
    assert [item.code for item in others] == ["too_many_bytes"]


def test_lists_of_millions_cost_their_row_group(file):
    """Lists of a few bits, and lists of long texts, are not unpacked."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 200, pa.int32()), ["x" * (1 << 20)])
    for values in (pa.array([0] * 3_000_000), texts.cast(pa.string())):
        label = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        write_groups(file, pa.table({"image": [VALUES[0]], "label": label}))
        [problem] = Parquet().read(Listing.of(str(file)), file.name)
        assert problem.code == "too_many_bytes"


def test_large_values_are_held_a_few_at_a_time(file):
    """Rows that share a value of 20 MB are read three at a time, and not sixteen."""
    write_groups(file, table_of([bytes(20_000_000)] * 16))
    with file.open("rb") as raw:
        found = rows_at_once(raw, parquet_file(raw), 0, {"image"}, "image", 16, is_far=False)
    assert found == 3


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def without_rows(*columns):
    """Return a Parquet file whose schema has columns of these names and numbers of children."""
    items = [
        b"\x35\2\x18" + varint(len(name)) + name + b"\x15" + varint(2 * children) + b"\0"
        if children
        else b"\x15\x0c\x25\2\x18" + varint(len(name)) + name + b"\0"
        for name, children in columns
    ]
    footer = b"\x15\4\x19\xfc" + varint(len(items)) + b"".join(items) + b"\x16\0\x19\x0c\0"
    return b"PAR1\x15\0" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


# A schema of 100,000 levels overflows the stack of the library, which ends the process.
SCHEMAS = {
    "deep": [(b"s", 1), *[(b"a", 1)] * 100_000, (b"x", 0)],
    "wide": [(b"s", 20_000), *[(b"image", 0)] * 20_000],
    "fewer columns than it says": [(b"s", 1 << 30), (b"image", 0)],
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_beyond_the_limits_is_refused(name, file):
    """Schemas that are too deep or too wide, or that lie, are errors that name the file."""
    file.write_bytes(without_rows(*SCHEMAS[name]))
    with pytest.raises(SourceError, match=r"a\.parquet"):
        Parquet().detect(Listing.of(str(file)))


def test_a_schema_within_the_limits_is_read(file):
    """Ninety levels of columns are no error."""
    file.write_bytes(without_rows((b"s", 2), (b"image", 0), *[(b"a", 1)] * 90, (b"x", 0)))
    with file.open("rb") as raw:
        assert parquet_file(raw).schema_arrow.names == ["image", "a"]


def test_a_folder_of_others_is_refused(parts):
    """Whoever can write there could give other images."""
    folder = Path(tempfile.gettempdir(), f"recordgen-columns-{os.getuid()}")
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(StorageError, match="TMPDIR"):
        read_value(parts[0], "1", ANY_REQUEST)
