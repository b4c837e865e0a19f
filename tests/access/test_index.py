"""``records.npy`` has the length of every record, however the dataset was written."""

import hashlib
import time
from pathlib import Path

import numpy as np
import pytest

import recordgen
from recordgen import parts
from recordgen.core.dataset import manifest
from recordgen.core.dataset.manifest import decoded, head, read_dataset
from recordgen.core.records import RECORDS
from tests.conftest import changed_manifest
from tests.deaths import DEATHS, convert_and_die

SPLITS = ("TEST", "TRAIN", "TRAIN")
TEXTS = "".join(f"{SPLITS[n % 3]},{'text ' * (n + 1)},{'ab'[n % 2]}\n" for n in range(60))
OPTIONS = {"task": "text_classification", "shard_mb": 0.002}


def examples(count):
    return [{"values": np.arange(n)} for n in range(1, count + 1)]


def converted(source, out):
    recordgen.convert(source, out, **OPTIONS)


def gzipped(source, out):
    recordgen.convert(source, out, compression="gzip", **OPTIONS)


def a_table(source, out):
    """Records of tables come in Arrow columns, not one by one."""
    Path(source).write_text("x,y\n" + "".join(f"{n},{'cd'[n % 2] * n}\n" for n in range(90)))
    recordgen.convert(source, out, task="tabular", shard_mb=0.001)


def resumed(source, out):
    convert_and_die(DEATHS["after five shards"], source, out, **OPTIONS)
    assert recordgen.convert(source, out, resume=True, **OPTIONS).kept_shards


def appended(source, out):
    """New shards of a split follow its old ones, so their lengths move apart."""
    lines = Path(source).read_text().splitlines(keepends=True)
    more = Path(source).with_name("more.csv")
    Path(source).write_text("".join(lines[:30]))
    more.write_text("".join(lines[30:]))
    recordgen.convert(source, out, **OPTIONS)
    recordgen.convert(str(more), out, append=True, **OPTIONS)


def appended_without_an_index(source, out):
    """An older output has none: its shards are read."""
    recordgen.convert(source, out, **OPTIONS)
    with changed_manifest(out) as values:
        del values["index"]
    (out / "records.npy").unlink()
    Path(source).write_text("TRAIN,another text,a\n")
    recordgen.convert(source, out, append=True, **OPTIONS)


def in_parts(source, out):
    parts.plan(source, out, 2, **OPTIONS)
    for part in (1, 0):
        parts.work(out, part)
    parts.commit(out)


def written(source, out):
    recordgen.write(examples(9), out, shards=4)


def written_twice(source, out):
    recordgen.write(examples(9), out, split="test", compression="gzip")
    recordgen.write(examples(5), out, split="train", compression="gzip")
    recordgen.write(examples(7), out, split="test", compression="gzip", overwrite=True)


WRITERS = [
    *(converted, gzipped, a_table, resumed, appended, appended_without_an_index),
    *(in_parts, written, written_twice),
]


@pytest.mark.parametrize("make", WRITERS)
def test_lengths_of_all_records(make, tmp_path):
    """The file has the length of each record, in the order of dataset.json, which names it."""
    source, out = tmp_path / "texts.csv", tmp_path / "out"
    source.write_text(TEXTS)
    make(str(source), out)
    dataset = read_dataset(out)
    assert len(dataset.shards) > 1
    expected = [len(record) for s in dataset.shards for record in RECORDS.read(str(out / s.file))]
    assert len(set(expected)) > 3
    content = (out / "records.npy").read_bytes()
    found = np.load(out / "records.npy")
    assert found.tolist() == expected
    assert found.dtype == np.dtype("<u4")
    digest = hashlib.sha256(content).hexdigest()
    assert dataset.index == {"file": "records.npy", "records": dataset.examples, "sha256": digest}


def test_the_same_bytes_with_every_numpy():
    """NumPy's own head of a file has changed; the digest in dataset.json must not."""
    content = head(2) + np.array([1, 2**32 - 1], "<u4").tobytes()
    text = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }"
    numbers = b"\1\0\0\0\xff\xff\xff\xff"
    assert content == b"\x93NUMPY\x01\x00\x76\x00" + f"{text:117}\n".encode() + numbers
    assert decoded(content).tolist() == [1, 2**32 - 1]


def test_lengths_of_few_shards_are_in_memory(tmp_path, monkeypatch):
    """Threads read few shards ahead of what they write."""
    source = tmp_path / "texts.csv"
    source.write_text(TEXTS)
    monkeypatch.setattr(manifest, "_BYTES_AT_ONCE", 1)
    converted(source, tmp_path / "out")
    dataset, reading, most = read_dataset(tmp_path / "out"), [], []

    def lengths_of(file):
        reading.append(file)
        time.sleep(0.01)
        most.append(len(reading))
        reading.remove(file)
        [examples] = (shard.examples for shard in dataset.shards if shard.file == file)
        return bytes(manifest.ITEM_BYTES * examples)

    manifest.write_index(str(tmp_path / "records.npy"), dataset, lengths_of)
    assert most == [1] * len(dataset.shards)
    assert len(most) > 5
