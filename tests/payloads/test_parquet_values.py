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

from recordgen.core.rows.ranges import Range
from recordgen.errors import PayloadError, SourceError, StorageError
from recordgen.formats.listing import Listing
from recordgen.formats.parquet import Parquet
from recordgen.payloads import parquet_values
from recordgen.payloads.parquet_values import read_value
from recordgen.storage import ANY_REQUEST
from tests.conftest import COMPONENTS

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
    parts = [picture.payload._replace(file=str(file)) for picture in pictures]
    assert {part.values for part in parts} == {"0.0", "1.0", "2.0", "3.0"}
    return [Range.of(part.address) for part in parts]


def copies(file):
    return sorted(path.stat().st_size for path in (file.parent / "temporary").glob("*/*"))


def test_threads_unpack_each_row_group_once(file, parts, monkeypatch):
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


def test_the_least_used_copies_make_room(file, parts, monkeypatch):
    limit = 2 * 10 * len(VALUES[0])
    monkeypatch.setattr(parquet_values, "CACHE_BYTES", limit)
    for at in (0, 10, 20, 30, 0, 35, 15):
        assert read_value(parts[at], "1", ANY_REQUEST) == VALUES[at]
        assert sum(copies(file)) <= limit


PROCESS = """
import multiprocessing
import sys
from recordgen.core.rows.ranges import Range
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
    with pytest.raises(PayloadError, match=r"a\.parquet: row group 2") as refused:
        read_value(parts[29], "1", ANY_REQUEST)
    assert refused.value.code == "corrupt"


def test_a_bomb_stops_the_run(file, monkeypatch):
    """A few bytes of a dictionary may stand for any number of rows."""
    table = pa.table({"image": [VALUES[0]] * 5000, "label": ["a"] * 5000})
    pq.write_table(table, file, compression="zstd")
    assert file.stat().st_size < 10_000
    monkeypatch.setattr("recordgen.formats.parquet.CACHE_BYTES", 1_000_000)
    with pytest.raises(SourceError, match=r"a\.parquet: .*row group 0"):
        list(Parquet().read(Listing.of(str(file)), file.name))


def test_a_folder_of_others_is_refused(parts):
    """Whoever can write there could give other images."""
    folder = Path(tempfile.gettempdir(), f"recordgen-columns-{os.getuid()}")
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(StorageError, match="TMPDIR"):
        read_value(parts[0], "1", ANY_REQUEST)
