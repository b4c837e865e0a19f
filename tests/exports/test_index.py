"""``export index`` repairs an index; ``export dali`` writes one as text for other readers."""

import json
from pathlib import Path

import numpy as np
import pytest

import recordgen
from recordgen.cli import main
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.exports import ExportOptions, Output
from recordgen.exports.index import Dali, Index


@pytest.fixture
def out(tmp_path):
    recordgen.write([{"x": np.arange(n)} for n in range(1, 21)], tmp_path / "out", shards=3)
    return tmp_path / "out"


def test_the_index_is_written_again(out, capsys):
    """After an index was changed or lost, the command gives the bytes of the conversion."""
    files = [out / "records.npy", out / "dataset.json"]
    before = [file.read_bytes() for file in files]
    np.save(files[0], np.zeros(3, np.uint32))
    with pytest.raises(SourceError):
        recordgen.source(out)
    assert main(["export", "index", str(out)]) == 0
    assert str(files[0]) in capsys.readouterr().out
    assert [file.read_bytes() for file in files] == before


def test_an_older_output_gets_an_index(out):
    manifest = out / "dataset.json"
    values = json.loads(manifest.read_text())
    stored = values.pop("index")
    manifest.write_text(json.dumps(values))
    (out / "records.npy").unlink()
    Index().export(str(out), ExportOptions())
    assert json.loads(manifest.read_text())["index"] == stored
    assert len(recordgen.source(out)) == 20


def test_shards_with_other_records_need_a_conversion(out):
    """An index must not hide that records were lost."""
    shard = min(out.glob("Split-train/*"))
    records = list(RECORDS.read(str(shard)))
    with shard.open("wb") as file:
        file.writelines(piece for record in records[:-1] for piece in RECORDS.frame([record]))
    with pytest.raises(RecordError, match=str(shard)):
        Index().export(str(out), ExportOptions())


def test_offsets_for_dali(out):
    """Each line has the place of a frame: of its length, its record and their checksums."""
    files = Dali().export(str(out), ExportOptions()).files
    shards = Output.open(out).dataset.shards
    assert files == [f"{out}/dali/{shard.file}.idx" for shard in shards]
    for path, shard in zip(files, shards, strict=True):
        data = (out / shard.file).read_bytes()
        places = [tuple(map(int, line.split())) for line in Path(path).read_text().splitlines()]
        assert sum(size for _, size in places) == len(data)
        found = [data[offset + 12 : offset + size - 4] for offset, size in places]
        assert found == list(RECORDS.read(str(out / shard.file)))
        assert all(parse_example(record) for record in found)
    assert len(recordgen.source(out)) == 20  # the folders of shards hold nothing else


def test_gzip_shards_have_no_offsets(tmp_path):
    recordgen.write([{"x": 1}], tmp_path / "out", compression="gzip")
    with pytest.raises(UsageError, match="gzip"):
        Dali().export(str(tmp_path / "out"), ExportOptions())
