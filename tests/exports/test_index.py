"""``export index`` repairs an index."""

import json

import numpy as np
import pytest

import recordgen
from recordgen.cli import main
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError, SourceError
from recordgen.exports import ExportOptions
from recordgen.exports.index import Index


@pytest.fixture
def out(tmp_path):
    recordgen.write([{"x": np.arange(n)} for n in range(1, 21)], tmp_path / "out", shards=3)
    return tmp_path / "out"


def test_the_index_is_written_again(out, capsys):
    """After an index was changed or lost, or never made, it has the bytes of the conversion."""
    files = [out / "records.npy", out / "dataset.json"]
    before = [file.read_bytes() for file in files]
    np.save(files[0], np.zeros(3, np.uint32))
    with pytest.raises(SourceError):
        recordgen.source(out)
    assert main(["export", "index", str(out)]) == 0
    assert str(files[0]) in capsys.readouterr().out
    assert [file.read_bytes() for file in files] == before
    manifest = json.loads(before[1])
    del manifest["index"]
    files[1].write_text(json.dumps(manifest))
    files[0].unlink()
    assert main(["export", "index", str(out)]) == 0
    assert [file.read_bytes() for file in files] == before
    assert len(recordgen.source(out)) == 20


def test_shards_with_other_records_need_a_conversion(out):
    """An index must not hide that records were lost."""
    shard = min(out.glob("Split-train/*"))
    records = list(RECORDS.read(str(shard)))
    with shard.open("wb") as file:
        file.writelines(piece for record in records[:-1] for piece in RECORDS.frame([record]))
    with pytest.raises(RecordError, match=str(shard)):
        Index().export(str(out), ExportOptions())
