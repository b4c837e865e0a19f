"""Another record format takes the place of TFRecord without a change elsewhere."""

import gzip
import sys
from itertools import chain

import numpy as np
import pytest

import recordgen
from recordgen.access.counting import lengths_in
from recordgen.core import records
from recordgen.core.dataset.manifest import read_dataset
from recordgen.core.records.example import parse_example
from recordgen.core.records.format import LengthError, RecordFormat
from recordgen.exports.inspection.records import inspect
from recordgen.formats.foreign_formats import of_file


class Lines(RecordFormat):
    """``5:hello`` and a line break: a length in digits, and the record."""

    def frame(self, record):
        return f"{sum(map(len, record))}:".encode(), *record, b"\n"

    def frame_column(self, records):
        return b"".join(chain.from_iterable(self.frame([item]) for item in records.to_pylist()))

    def is_mine(self, head):
        return head.partition(b":")[0].isdigit()

    def read(self, path):
        with (gzip.open if self.is_gzip(path) else open)(path, "rb") as file:
            data = file.read()
        while data:
            length, _, data = data.partition(b":")
            size = int(length)
            yield data[:size]
            data = data[size + 1 :]

    def read_chosen(self, path, indexes):
        wanted = set(indexes)
        return (it for it in enumerate(self.read(path)) if it[0] in wanted)

    def read_around(self, path):
        return self.read(path)

    def read_placed(self, path):
        at = 0
        for record in self.read(path):
            begin = at + len(str(len(record))) + 1
            yield begin, record
            at = begin + len(record) + 1

    def frame_bytes(self, lengths):
        return np.array([len(str(length)) + length + 2 for length in lengths], np.int64)

    def unframed(self, frame):
        length = bytes(frame).partition(b":")[0]
        record = frame[len(length) + 1 : -1]
        if len(record) != int(length):
            raise LengthError("another length")
        return record

    def check_lengths(self, path):
        self.count(path)


@pytest.fixture
def lines(monkeypatch, tmp_path):
    """Put another format in the place of ``RECORDS``, as if the core had defined it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    theirs, ours = records.RECORDS, Lines()
    replace(theirs, ours)
    yield ours
    replace(ours, theirs)  # also in modules that the test imported


def replace(old, new):
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "recordgen" and vars(module).get("RECORDS") is old:
            vars(module)["RECORDS"] = new


IMPORTS = {
    "text_classification": "Text one,good\nText two,bad\nText three,good\n",
    "tabular": "size,colour\n1,red\n2,blue\n3,red\n",
}


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("task", IMPORTS)
def test_a_dataset_in_another_format(lines, tmp_path, task, compression):
    """Shards are written, counted, inspected and verified in the other format."""
    source = tmp_path / "rows.csv"
    source.write_text(IMPORTS[task])
    output = tmp_path / "out"
    options = {"task": task, "compression": compression, "split": "1,0,0"}
    recordgen.convert(str(source), str(output), **options)
    [shard] = read_dataset(str(output)).splits["train"].shards
    path = output / shard.file
    data = path.read_bytes()
    data = gzip.decompress(data) if compression == "gzip" else data
    stored = list(lines.read(str(path)))
    assert data == b"".join(b"%d:%b\n" % (len(record), record) for record in stored)
    assert len(lengths_in(str(path))) == shard.examples == len(stored) == 3
    shown = [set(item.features) for item in inspect(str(output), num=3)]
    assert shown == [set(parse_example(record)) for record in stored]
    written = path.stat()
    recordgen.convert(str(source), str(output), resume=True, **options)
    assert path.stat() == written  # its digest is right, so it stays
    if compression == "none":
        assert of_file(data).name == "a TFRecord file"  # the format says which files are its own


def test_appending_in_another_format(lines, tmp_path):
    """Rows that the dataset holds are read from its shards, and skipped."""
    source, output = tmp_path / "rows.csv", tmp_path / "out"
    options = {"task": "text_classification", "split": "1,0,0"}
    source.write_text(IMPORTS["text_classification"])
    recordgen.convert(str(source), str(output), **options)
    source.write_text(IMPORTS["text_classification"] + "Text four,bad\n")
    recordgen.convert(str(source), str(output), append=True, **options)
    shards = read_dataset(str(output)).splits["train"].shards
    assert [len(list(lines.read(str(output / it.file)))) for it in shards] == [3, 1]


def test_arrays_in_another_format(lines, tmp_path):
    """recordgen.write frames records by the format, too."""
    examples = ({"x": np.array([number], np.int64)} for number in range(5))
    recordgen.write(examples, str(tmp_path / "out"), shards=1)
    [path] = (tmp_path / "out").glob("Split-*/*")
    assert [parse_example(record)["x"] for record in lines.read(str(path))] == [
        [number] for number in range(5)
    ]
    assert len(lengths_in(str(path))) == 5
