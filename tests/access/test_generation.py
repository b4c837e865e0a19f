"""A source reads one generation of its dataset: old records, or an error that says what to do."""

import gzip
import hashlib
import multiprocessing
import os
import pickle
import resource
from collections import Counter

import numpy as np
import pytest

import recordgen
from recordgen.access import shards
from recordgen.core.dataset.manifest import DTYPE, head
from recordgen.core.records import RECORDS
from recordgen.errors import DataError, RecordError, RecordgenError, SourceError
from tests.conftest import changed_manifest, convert_lines, run_python

TEXT = {"task": "text_classification", "shard_mb": 0.002}
SPLIT = "Split-train"


def convert(out, labels, count=60, **options):
    """Convert texts of equal sizes, so that records of two datasets lie at the same places."""
    named = [(labels[n % 2], n) for n in range(count)]
    rows = [f"TRAIN,{label} {n:03} {'word ' * 40},{label}" for label, n in named]
    convert_lines(out.parent, rows, out.name, source=f"{out.name}.csv", **TEXT, **options)


@pytest.fixture
def out(tmp_path):
    """Return a dataset of several shards whose texts begin with their labels."""
    convert(tmp_path / "out", ["ant", "bee"])
    assert len(list((tmp_path / "out" / SPLIT).iterdir())) > 3
    return tmp_path / "out"


def outcomes(pairs):
    """Count the errors by type, and the texts whose class has another name than they begin with."""
    found = Counter()
    for at in range(len(pairs)):
        try:
            text, label = pairs[at]
        except RecordgenError as exc:
            found[type(exc).__name__] += 1
        else:
            found["right" if text.startswith(pairs.class_names[label]) else "wrong"] += 1
    return dict(found)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_no_record_of_a_new_dataset_gets_an_old_class(out, compression):
    """After --overwrite, a shard that is open has its old records; each other one is an error."""
    convert(out, ["ant", "bee"], overwrite=True, compression=compression)
    pairs = recordgen.source(out).pairs()
    assert pairs[0][0].startswith(pairs.class_names[pairs[0][1]])
    [*counts] = [len(list(RECORDS.read(str(p)))) for p in sorted((out / SPLIT).iterdir())]
    convert(out, ["zoo", "cow"], overwrite=True, compression=compression)
    assert outcomes(pairs) == {"right": counts[0], "DataError": 60 - counts[0]}
    with pytest.raises(DataError, match=f"{out}: .*open it again"):
        pairs[59]
    with pytest.raises(DataError):
        list(pairs.batches(16, seed=1))
    assert set(outcomes(recordgen.source(out).pairs())) == {"right"}


def test_a_dataset_that_is_just_being_replaced(out):
    """Without a dataset.json, no shard is opened: it may be of another dataset."""
    pairs = recordgen.source(out).pairs()
    (out / "dataset.json").unlink()
    assert outcomes(pairs) == {"DataError": 60}


@pytest.mark.parametrize("is_link", [True, False])
def test_a_folder_that_is_exchanged(out, is_link):
    """Another dataset at the same path is another generation, however it got there."""
    convert(out.parent / "new", ["zoo", "cow"])
    place = out
    if is_link:
        place = out.parent / "link"
        place.symlink_to(out)
    pairs = recordgen.source(place).pairs()
    assert pairs[0][0].startswith(pairs.class_names[pairs[0][1]])
    if is_link:
        place.unlink()
        place.symlink_to(out.parent / "new")
    else:
        out.rename(out.parent / "old")
        (out.parent / "new").rename(out)
    assert set(outcomes(pairs)) == {"right", "DataError"}


def test_appending_does_no_harm(out):
    """Old shards and old labels stay what they are, also for a process that opens it later."""
    pairs = recordgen.source(out).pairs()
    sent = pickle.dumps(pairs)
    convert_lines(out.parent, ["TRAIN,aardvark,aardvark"], source="more.csv", append=True, **TEXT)
    there = pickle.loads(sent)
    assert len(recordgen.source(out)) == 61
    for each in (pairs, there, pickle.loads(pickle.dumps(there))):
        assert outcomes(each) == {"right": 60}
        assert list(each.class_names) == ["ant", "bee"]
        assert each[59] == pairs[59]


def test_a_process_that_opens_a_new_dataset_says_so(out):
    """The pickle of a source holds its generation: a worker does not mix it with the next one."""
    sent = [pickle.dumps(it) for it in (recordgen.source(out), recordgen.source(out).pairs())]
    recordgen.convert(f"{out}.csv", str(out), overwrite=True, **TEXT)
    assert len(pickle.loads(sent[0])) == 60  # the same records again
    convert(out, ["zoo", "cow"], overwrite=True)
    for each in sent:
        with pytest.raises(DataError, match=f"{out}: .*open it again"):
            pickle.loads(each)


def test_workers_of_a_replaced_dataset(out):
    """A forked worker reads only what was open; a spawned one unpickles nothing, as above."""
    pairs = recordgen.source(out).pairs()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    convert(out, ["zoo", "cow"], overwrite=True)
    worker = context.Process(target=lambda: answers.put(outcomes(pairs)))
    worker.start()
    worker.join(60)
    assert answers.get(timeout=9) == {"DataError": 60}


def rewrite(path):
    """Put the same records in another order at the same places."""
    first, second, *rest = RECORDS.read(str(path))
    assert len(first) == len(second)
    data = b"".join(piece for it in (second, first, *rest) for piece in RECORDS.frame([it]))
    assert len(data) == path.stat().st_size
    with open(path, "r+b") as file:
        file.write(data)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("size", [100, 0, 1 << 20, None])
def test_a_shard_that_is_changed_in_its_place(out, size, is_open):
    """Reading goes on with an error that names file and record; no signal ends the process."""
    source = recordgen.source(out)
    if is_open:
        list(source)
    shard = sorted((out / SPLIT).iterdir())[1]
    first = len(list(RECORDS.read(str(sorted((out / SPLIT).iterdir())[0]))))
    count = len(list(RECORDS.read(str(shard))))
    if size is None:
        rewrite(shard)
    else:
        os.truncate(shard, size)
    os.utime(shard, (1, 1))  # whatever the clock of the file system is
    with pytest.raises(RecordError, match=rf"{shard}: record 1: .*open it again"):
        source[first + 1]
    with pytest.raises(RecordError, match=rf"{shard}: record 0: .*open it again"):
        source[:]
    assert outcomes(source.pairs()) == {"right": 60 - count, "RecordError": count}


def test_a_shard_that_is_cut_while_it_is_read(out):
    """A process that read the shard is not killed, whatever the place of the cut."""
    code = (
        "import sys, os, recordgen\n"
        f"source = recordgen.source({str(out)!r}); source[0]; list(source)\n"
        "for number in range(3, -1, -1):\n"
        f"    os.truncate({str(sorted((out / SPLIT).iterdir())[0])!r}, number * 4096)\n"
        "    try: source[0]\n"
        "    except recordgen.errors.RecordError: print('error')\n"
    )
    done = run_python("-c", code)
    assert (done.returncode, done.stdout.split()) == (0, ["error"] * 4), done.stderr


def test_a_shard_that_is_removed(out):
    """What is open can be read; a file that is gone is an error with its path."""
    source = recordgen.source(out)
    opened = source[0]
    shards = sorted((out / SPLIT).iterdir())
    for shard in shards:
        shard.unlink()
    assert source[0] == opened
    with pytest.raises(SourceError, match=str(shards[-1])):
        source[59]


def test_other_tools_files_that_are_replaced(out):
    """Files without a dataset.json are compared by size and time."""
    (out / "dataset.json").unlink()
    source = recordgen.source(f"{out}/{SPLIT}/*")
    shard = sorted((out / SPLIT).iterdir())[0]
    sent = pickle.dumps(source)
    rewrite(shard)
    os.utime(shard, (1, 1))
    with pytest.raises(RecordError, match=rf"{shard}: record 0: .*open it again"):
        source[0]
    with pytest.raises(DataError, match="open it again"):
        pickle.loads(sent)


def test_a_far_dataset_that_is_replaced(monkeypatch):
    """In an object store, dataset.json is compared for each new shard, and after a time."""
    place = "memory://generation/out"

    def write(number, count):
        rows = [{"number": number, "values": np.zeros(9)} for _ in range(40)]
        recordgen.write(rows, place, shards=count, overwrite=True)

    write(1, 4)
    source = recordgen.source(place)
    assert source[0]["number"] == 1
    write(2, 4)
    with pytest.raises(DataError, match=f"{place}: .*open it again"):
        source[39]
    with pytest.raises(DataError):
        source[5:]
    monkeypatch.setattr(shards, "_FAR_SECONDS", 0)
    with pytest.raises(DataError):
        source[0]
    fresh = recordgen.source(place)
    write(3, 1)
    with pytest.raises(DataError):  # a shard has no such name any more
        fresh[39]


def edit(out, change):
    """Change dataset.json, or rather what it says of the training split."""
    with changed_manifest(out) as values:
        change(values, values["splits"]["train"]["shards"])


def pack(out, data):
    """Replace the first packed shard by other content, of which dataset.json knows the size."""
    shard = sorted((out / SPLIT).iterdir())[0]
    packed = gzip.compress(data)
    shard.write_bytes(packed)

    def known(values, shards):
        shards[0].update(bytes=len(packed))
        values["splits"]["train"]["bytes"] = sum(each["bytes"] for each in shards)

    edit(out, known)
    return shard


@pytest.mark.parametrize(("is_more", "has_index"), [(True, True), (True, False), (False, True)])
def test_a_packed_shard_that_does_not_hold_what_its_index_says(tmp_path, cache, is_more, has_index):
    """Unpacking stops at the bytes that the index lists, and no part of a copy is kept."""
    out = tmp_path / "out"
    recordgen.write([{"text": b"x" * 500}] * 50, out, shards=1, compression="gzip")
    if not has_index:
        edit(out, lambda values, _: values.pop("index"))
    data = gzip.decompress(sorted((out / SPLIT).iterdir())[0].read_bytes())
    shard = pack(out, bytes(64_000_000) if is_more else data[: len(data) // 2])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(RecordError, match=str(shard)):
            recordgen.source(out)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(cache.glob("copies/*"))


def huge(lengths):
    return head(10**12) + lengths.tobytes()


def lying(lengths):
    return head(len(lengths)) + np.full_like(lengths, 2**32 - 1).tobytes()


def moved(lengths):
    """The sum of all lengths stays: only the shards have others."""
    lengths[0] += 1
    lengths[-1] -= 1
    return head(len(lengths)) + lengths.tobytes()


@pytest.mark.parametrize(
    ("forge", "compression"),
    [(huge, "none"), (huge, "gzip"), (lying, "none"), (lying, "gzip"), (moved, "none")],
)
def test_an_index_that_lies(out, forge, compression):
    """An index that dataset.json names fits each shard, not only their sum: else an error."""
    convert(out, ["ant", "bee"], overwrite=True, compression=compression)
    lengths = np.frombuffer((out / "records.npy").read_bytes(), DTYPE, offset=128).copy()
    content = forge(lengths)
    (out / "records.npy").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit(out, lambda values, _: values["index"].update(sha256=digest))
    with pytest.raises(SourceError, match=str(out)):
        recordgen.source(out)


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("count", [10**12, 3])
def test_counts_that_no_shard_has(out, count, has_index):
    """A dataset.json that lists more or fewer records than a shard holds is refused at once."""

    def change(values, shards):
        values["splits"]["train"]["examples"] += count - shards[0]["examples"]
        shards[0]["examples"] = count
        if not has_index:
            del values["index"]

    edit(out, change)
    with pytest.raises(SourceError, match=str(out)):
        recordgen.source(out)
