"""Records whose length is more than there is memory: TensorFlow would end the process."""

import gzip
import os
import re

import pytest

from recordgen import read, write
from recordgen.core.records.tfrecord import frame_head
from recordgen.errors import RecordError
from tests.conftest import changed_manifest, convert_lines, write_noise
from tests.opened import opened
from tests.preloaded import WITH_TENSORFLOW

HUGE = 1 << 40


def forge(output):
    """Make the second of three records huge; ``dataset.json`` agrees with the size of the shard.

    Return a pattern of the message: the shard, and the offset of the record.
    """
    [path] = output.glob("Split-train/*")
    is_packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if is_packed else path.read_bytes()
    offset = 16 + int.from_bytes(data[:8], "little")
    data = data[:offset] + frame_head(HUGE) + data[offset + 12 :]
    path.write_bytes(gzip.compress(data) if is_packed else data)
    with changed_manifest(output) as values:
        split = values["splits"]["train"]
        split["bytes"] = split["shards"][0]["bytes"] = path.stat().st_size
    return f"RecordError.*{path.name}: .* at offset {offset}"


@pytest.fixture
def pets(tmp_path):
    """Three converted images in one shard."""
    write_noise(tmp_path, range(3))
    return convert_lines(tmp_path, [f"TRAIN,{number}.png,cat" for number in range(3)])


def written(output, compression="none"):
    """Three examples of recordgen.write in one shard."""
    examples = [{"n": number} for number in range(3)]
    write(examples, str(output), shards=1, compression=compression)
    return output


def run(*calls):
    """Return the exit code of a process that makes the calls, and their results or errors."""
    lines = [
        "from recordgen import *",
        "from recordgen.errors import RecordgenError",
        "from recordgen.reading import named_errors",
        "def named(data):",
        "    with named_errors(data):",
        "        return len(list(data))",
    ]
    for call in calls:
        lines += ["try:", f"    print({call})", "except RecordgenError as exc:"]
        lines += ["    print(type(exc).__name__, exc)"]
    done = WITH_TENSORFLOW.run("-c", "\n".join(lines))
    return done.returncode, done.stdout.splitlines()


def test_every_door_refuses_it(tmp_path, pets):
    """Each function names the shard and the offset of the record."""
    rows = written(tmp_path / "rows")
    of_rows, of_pets = forge(rows), forge(pets)
    expected = {
        f"read({str(rows)!r}, split='train')": of_rows,
        f"read({str(rows)!r}, split='train', only=lambda row: row['n'] > 0)": of_rows,
        f"load({str(rows)!r})": of_rows,
        f"load({str(pets)!r}, image_size=8)": of_pets,
        f"train_dataset({str(pets)!r}, image_size=8)": of_pets,
        f"train_dataset({str(pets)!r}, image_size=8, shard=(0, 2))": of_pets,
        f"train_dataset({str(pets / 'Split-train' / '*')!r}, image_size=8)": of_pets,
        f"steps_per_epoch({str(pets)!r}, 1)": of_pets,
    }
    returned, found = run(*expected)
    assert returned == 0
    for pattern, said in zip(expected.values(), found, strict=True):
        assert re.match(pattern, said), said


def test_a_compressed_shard(tmp_path):
    """TensorFlow's memory grows with what it unpacks: an error, no signal."""
    rows = written(tmp_path / "rows", "gzip")
    message = forge(rows)
    returned, [said] = run(f"named(read({str(rows)!r}, split='train'))")
    assert returned == 0
    assert re.match(message.replace(": .* at", r": record 1: .* at"), said), said


def test_each_version_is_checked_once(tmp_path, counts_cache):
    """The same file is not looked through again, a changed one is."""
    rows = written(tmp_path / "rows")
    [shard] = rows.glob("Split-train/*")
    with opened() as first:
        read(str(rows), split="train")
    with opened() as again:
        read(str(rows), split="train")
    assert again.count(str(shard)) == first.count(str(shard)) - 1
    before = shard.stat()
    message = forge(rows)
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shard.stat().st_size == before.st_size
    with pytest.raises(RecordError, match=message.removeprefix("RecordError.*")):
        read(str(rows), split="train")
