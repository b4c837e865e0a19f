"""``recordgen.source``: each record once, at any place, by any number of readers."""

import hashlib
import multiprocessing
import os
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest

import recordgen
from recordgen.access import files
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.errors import RecordError, SourceError, UsageError
from tests.conftest import changed_manifest, convert_lines, encoded, flip_bit, noise, run_python
from tests.golden import SAMPLES
from tests.opened import opened


@pytest.fixture
def out(tmp_path):
    """Return an output of 100 examples in four shards; ``number`` has the place of each."""
    rows = [{"number": n, "values": np.arange(n, dtype=np.float32)} for n in range(100)]
    recordgen.write(rows, tmp_path / "out", shards=4)
    return tmp_path / "out"


def numbers(examples, name="number"):
    return [int(example[name]) for example in examples]


def stored(output):
    """Return the numbers in the order of the shards."""
    shards = recordgen.read_dataset(output).splits["train"].shards
    paths = (str(output / shard.file) for shard in shards)
    return [parse_example(r)["number"][0] for path in paths for r in RECORDS.read(path)]


def test_a_sequence(out):
    """Indexes, slices and lists are those of the records in their order."""
    source, expected = recordgen.source(out), stored(out)
    assert len(source) == 100
    assert numbers(source) == expected
    assert numbers(source[10:90:7]) == expected[10:90:7]
    assert numbers(source[[3, 1, -2, 3]]) == [expected[at] for at in (3, 1, -2, 3)]
    assert numbers(source[np.array([5])]) == numbers(source.__getitems__([5])) == [expected[5]]
    for mask in ([True, False], np.array([True, False])):
        with pytest.raises(TypeError):
            source[mask]
    for last in (np.int64(-1), np.array(-1)):
        assert int(source[last]["number"]) == expected[-1]
    for wrong in (100, -101):
        with pytest.raises(IndexError):
            source[wrong]
    assert source[7]["values"].tolist() == list(range(expected[7]))


def test_values_of_all_tasks(sample):
    """Every feature has the values that protobuf reads, with the type of its spec."""
    for name in SAMPLES:
        output = sample(name)
        source = recordgen.source(output)
        dataset = recordgen.read_dataset(output)
        paths = [str(output / shard.file) for shard in dataset.splits["train"].shards]
        records = [record for path in paths for record in RECORDS.read(path)]
        assert len(records) == len(source) > 1
        for record, example in zip(records, source, strict=True):
            parsed = parse_example(record)
            assert set(parsed) <= set(example) == set(source.features)
            for feature, spec in source.features.items():
                compare(feature, spec, parsed.get(feature, []), example[feature], dataset.folder)


def compare(name, spec, values, found, folder):
    if spec.shape is None:
        assert isinstance(found, np.ndarray)
        texts = [v.decode() if isinstance(v, bytes) else v for v in values]
        assert found.tolist() == texts
    elif name.endswith("/encoded"):
        assert found.dtype == np.uint8
        assert found.tobytes() == values[0]
    elif spec.dtype == "bytes":
        expected = (values[0] if values else spec.default).decode()
        assert found == (f"{folder}/{expected}" if name == "video/uri" else expected)
    else:
        expected = values[0] if values else spec.default
        assert found.dtype == np.float32 if spec.has_gaps else spec.dtype
        np.testing.assert_equal(float(found), float(np.float32(expected)))


def test_arrays_from_python(tmp_path):
    """Arrays of every type keep type, shape and values; bytes stay bytes."""
    example = {
        "bytes": b"\xff\x00",
        "flags": np.array([[True], [False]]),
        "small": np.array([-1, 2], np.int8),
        "large": np.array([2**64 - 1], np.uint64),
        "half": np.array([[1.5]], np.float16),
        "double": np.array([0.1]),
        "words": [b"a", b"\xfe"],
        "matrix": np.array([[1, -2], [3, 2**62]]),
        "none": np.zeros((0, 3), np.uint8),
    }
    recordgen.write([example, example], tmp_path / "out")
    [found, _] = recordgen.source(tmp_path / "out")
    for name, value in example.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value, strict=True)
    assert (found["bytes"], found["words"].tolist()) == (b"\xff\x00", [b"a", b"\xfe"])


def test_whole_numbers_with_gaps(tmp_path):
    """A missing number is NaN; a number beyond float32's digits keeps them."""
    lines = ["key,small,large", "a,1,16777217", "b,,", "c,3,4"]
    out = convert_lines(tmp_path, lines, task="tabular", split="1,0,0")
    found = {row["key"]: row for row in recordgen.source(out)}
    small, large = ([found[key][name] for key in "abc"] for name in ("small", "large"))
    np.testing.assert_equal(small, [1, np.nan, 3])
    np.testing.assert_equal(large, [16777217, np.nan, 4])
    assert {each.dtype.name for each in (*small, *large)} == {"float32", "float64"}


def test_a_whole_number_that_no_float_holds(tmp_path):
    """Where one is missing, such a number is an error that names a remedy; others are read."""
    lines = ["key,large", f"a,{2**53 + 1}", "b,", f"c,{2**53}"]
    out = convert_lines(tmp_path, lines, task="tabular", split="1,0,0")
    source = recordgen.source(out)
    for items in (source, source.pairs()):
        with pytest.raises(UsageError, match=f"'large'.* {2**53 + 1}; .*columns"):
            list(items)
    keys = [raw["key"] for raw in source.read(slice(None), {})]
    read = {source[at]["large"] for at in range(3) if keys[at] == [b"c"]}
    assert read == {2**53}


def in_process(work):
    source, indexes = work
    return numbers(source[indexes])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_read_each_example_once(out, method):
    """Sources that were used before a fork, or pickled, read the same records."""
    source = recordgen.source(out)
    assert numbers(source[:2]) == stored(out)[:2]
    parts = [list(range(worker, 100, 2)) for worker in range(2)]
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        found = list(pool.map(in_process, [(source, part) for part in parts]))
    assert sorted(chain.from_iterable(found)) == list(range(100))


def test_pickles_are_small(out, monkeypatch):
    """A worker with another working directory finds the same files."""
    monkeypatch.chdir(out.parent)
    data = pickle.dumps(recordgen.source("out"))
    monkeypatch.chdir("/")
    assert len(data) < 250 + len(str(out))
    assert numbers(pickle.loads(data)) == stored(out)
    limited = recordgen.source(out, cache_bytes=7)
    assert pickle.dumps(pickle.loads(pickle.dumps(limited))) == pickle.dumps(limited) != data


def test_the_text_of_a_source(out, tmp_path):
    """Equal records have equal texts wherever they are; others differ. Grain compares them."""
    first = repr(recordgen.source(out))
    shutil.copytree(out, tmp_path / "copy")
    assert repr(recordgen.source(tmp_path / "copy")) == first
    recordgen.write([{"number": 1, "values": [1.0]}] * 100, tmp_path / "copy", overwrite=True)
    assert repr(recordgen.source(tmp_path / "copy")) != first


def test_spans_are_read_one_after_the_other(out, tmp_path):
    """Folders and patterns give the records in the order that they are given in."""
    rows = [{"number": 7, "values": np.ones(n, np.float32)} for n in range(5)]
    recordgen.write(rows, tmp_path / "more", compression="gzip")
    both = [out, tmp_path / "more"]
    for place in (both, [f"{it}/Split-train/*" for it in both]):
        assert numbers(recordgen.source(place)) == stored(out) + [7] * 5


def test_other_tools_files(out, cache):
    """TFRecords without a dataset.json: one pass finds their lengths, which are remembered."""
    for number, path in enumerate(sorted(out.glob("Split-train/*"))):
        shutil.copy(path, out.parent / f"part-{number}.tfrecord")
    with opened() as first:
        source = recordgen.source(str(out.parent / "part-*.tfrecord"))
    assert numbers([{"number": each["number"][0]} for each in source]) == stored(out)
    assert source[5]["values"].dtype == np.float32
    assert len(list((cache / "lengths").iterdir())) == 4
    with opened() as again:
        assert len(recordgen.source(str(out.parent / "part-*.tfrecord"))) == 100
    known, unknown = (sum(p.endswith(".tfrecord") for p in paths) for paths in (again, first))
    assert known < unknown


def framed(path, examples):
    """Write a TFRecord file as other tools do; return its path."""
    with open(path, "wb") as file:
        for example in examples:
            file.writelines(RECORDS.frame(serialize_example(example)))
    return str(path)


def test_other_tools_records_may_lack_features(tmp_path):
    """A batch has the features of all its records, an empty array where a record lacks one."""
    for order in (1, -1):
        path = framed(tmp_path / f"{order}.tfrecord", [{"a": 1}, {"a": 2, "b": 5}][::order])
        [batch] = recordgen.source(path).batches(2)
        assert [list(values) for values in batch["b"]] == [[], [5]][::order]
    image = {"image": encoded(noise(), "PNG")}
    path = framed(tmp_path / "images.tfrecord", [image, {**image, "label": 3}])
    images = recordgen.source(path).images(8)
    assert [int(label) for _, label in images] == [-1, 3]
    path = framed(tmp_path / "later.tfrecord", [image] * 20 + [{**image, "label": 3}])
    with pytest.raises(RecordError, match="record 20: feature 'label'"):
        list(recordgen.source(path).images(8))
    edges = {"min": [0.0, 0.5], "max": [0.5, 1.0]}
    boxes = {f"bbox/{side}{end}": edges[end] for side in "xy" for end in edges}
    boxes |= {"class/label": [1, 2], "is_crowd": [0, 1]}
    boxes = {f"image/object/{name}": values for name, values in boxes.items()}
    path = framed(tmp_path / "boxes.tfrecord", [image] * 20 + [{**image, **boxes}])
    recordgen.write([image] * 2, tmp_path / "written")
    for place, counts in ((path, [0] * 20 + [1]), (tmp_path / "written", [0, 0])):
        images = recordgen.source(place).images(8, task="object_detection", columns="image=image")
        assert [int(objects["count"]) for _, objects in images] == counts


def test_some_shards_of_an_output_keep_types_and_labels(tmp_path):
    """They are read as the whole is, whether they were named or the others deleted."""
    rows = [{"image": np.full((3, 3), n, np.uint8), "label": n} for n in range(8)]
    recordgen.write(rows, tmp_path / "out", shards=4)
    some = sorted(tmp_path.glob("out/Split-train/*"))[1:3]
    found, whole = recordgen.source(some), recordgen.source(tmp_path / "out")
    assert [example["image"].shape for example in found] == [(3, 3)] * 4
    assert numbers(found, "label") == numbers(whole, "label")[2:6]
    assert len(recordgen.source(tmp_path / "out" / "Split-train")) == 8
    some[0].unlink()
    with pytest.raises(SourceError, match=some[0].name):
        recordgen.source(tmp_path / "out")
    assert len(recordgen.source(f"{tmp_path}/out/Split-train/*")) == 6


def test_an_older_output(out, cache):
    """An output without an index is read like other tools' files."""
    with changed_manifest(out) as values:
        del values["index"]
    (out / "records.npy").unlink()
    out = out.rename(out.with_name("a-dataset.json"))
    assert numbers(recordgen.source(out)) == stored(out)
    assert len(list((cache / "lengths").iterdir())) == 4


def remove(index):
    index.unlink()


def shorten(index):
    np.save(index, np.load(index)[:-1])


def alter(index):
    lengths = np.load(index)
    lengths[50] += 1
    np.save(index, lengths)


def spoil(index):
    index.write_bytes(b"something else")


@pytest.mark.parametrize("damage", [remove, shorten, alter, spoil])
def test_a_stale_index_is_an_error(out, damage):
    """An index that does not fit is not used."""
    damage(out / "records.npy")
    with pytest.raises(SourceError, match=rf"{out}/records\.npy"):
        recordgen.source(out)


def test_an_index_of_other_records(out):
    """A record of another length than the index says is an error, not another record."""
    shards = sorted(out.glob("Split-train/*"))
    data = shards[1].read_bytes()
    first = int.from_bytes(data[:8], "little") + 16
    second = int.from_bytes(data[first : first + 8], "little") + 16
    assert first != second
    shards[1].write_bytes(data[first : first + second] + data[:first] + data[first + second :])
    with pytest.raises(SourceError, match=r"records\.npy"):
        list(recordgen.source(out))


def test_an_index_elsewhere(out):
    """A dataset.json from somebody else cannot name another file as its index."""
    shorten(out / "records.npy")
    digest = hashlib.sha256((out / "records.npy").read_bytes()).hexdigest()
    for named, words in (({"sha256": digest}, "lengths, for"), ({"file": "/x"}, "json: .*index")):
        with changed_manifest(out) as values:
            values["index"] |= named
        with pytest.raises(SourceError, match=words):
            recordgen.source(out)


def test_threads_read_more_shards_than_open_files(tmp_path):
    """A file that another thread closes, or opens at the same time, is still the right one."""
    recordgen.write([{"number": n} for n in range(600)], tmp_path / "out", shards=600)
    source = recordgen.source(tmp_path / "out")
    expected = numbers(source)
    before = len(os.listdir("/proc/self/fd"))  # other tests may leave servers and files open
    order = [n * 7 % 600 for n in range(6000)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda at: int(source[at]["number"]), order))
        thirties = (order[at : at + 30] for at in range(0, 6000, 30))
        batches = list(pool.map(lambda some: numbers(source[some]), thirties))
    assert found == list(chain.from_iterable(batches)) == [expected[at] for at in order]
    assert len(os.listdir("/proc/self/fd")) < before + files.OPEN_FILES + 8


@pytest.mark.parametrize("part", ["content", "length"])
def test_a_damaged_record_is_named_and_the_others_are_read(out, part):
    """Damage of content or length costs one record."""
    shard = sorted(out.glob("Split-train/*"))[2]
    *_, last = RECORDS.read(str(shard))
    flip_bit(shard, -6 if part == "content" else -len(last) - 16)
    source = recordgen.source(out)
    expected = stored_around(out)
    with pytest.raises(RecordError, match=rf"{shard}: record 24:"):
        source[74]
    assert numbers(source[:74]) + numbers(source[75:]) == expected


def stored_around(output):
    shards = recordgen.read_dataset(output).splits["train"].shards
    found = (r for s in shards for r in RECORDS.read_around(str(output / s.file)))
    return [parse_example(r)["number"][0] for r in found if isinstance(r, bytes)]


def test_a_truncated_shard_is_named(out):
    """It is found before a record is read."""
    shard = sorted(out.glob("Split-train/*"))[0]
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(RecordError, match=str(shard)):
        recordgen.source(out)


def test_a_record_that_is_no_example(tmp_path):
    """The error names file and record."""
    with open(tmp_path / "a.tfrecord", "wb") as file:
        file.writelines(RECORDS.frame([b"no example"]))
    with pytest.raises(RecordError, match=r"a\.tfrecord: record 0:"):
        recordgen.source(str(tmp_path / "*.tfrecord"))[0]


@pytest.fixture
def packed(tmp_path):
    """Return an output of 100 examples in four gzip shards."""
    rows = [{"number": n, "text": b"x" * 500} for n in range(100)]
    recordgen.write(rows, tmp_path / "packed", shards=4, compression="gzip")
    return tmp_path / "packed"


def test_gzip_shards_are_inflated_once(packed, cache):
    """The first reading inflates packed shards; later sources read the copies."""
    source = recordgen.source(packed)
    assert not (cache / "copies").exists()  # nothing is inflated before it is needed
    assert numbers(source) == stored(packed)
    assert len(list((cache / "copies").iterdir())) == 4
    with opened() as paths:
        assert numbers(recordgen.source(packed)) == numbers(source)
    assert not [path for path in paths if path.endswith(".gz")]


def test_the_cache_of_gzip_shards_is_bounded(packed, cache):
    """The copies that were not used for the longest time make room for others."""
    size = sum(len(record) + 16 for record in RECORDS.read(str(next(packed.glob("Split-*/*")))))
    source = recordgen.source(packed, cache_bytes=int(2.5 * size))
    assert numbers(source) == stored(packed)
    assert numbers(source) == stored(packed)
    assert len(list((cache / "copies").iterdir())) == 2
    with pytest.raises(UsageError, match="cache_bytes"):
        recordgen.source(packed, cache_bytes=size // 2)[0]


def test_a_damaged_gzip_shard(packed, cache):
    """The error names the file, and no part of it stays in the cache."""
    shard = sorted(packed.glob("Split-train/*"))[0]
    flip_bit(shard)
    with pytest.raises(RecordError, match=str(shard)):
        list(recordgen.source(packed))
    assert not list(cache.glob("copies/*"))


def test_batches_of_examples(out):
    """Numbers are stacked; arrays of several lengths stay a list."""
    [*found] = recordgen.source(out).batches(32)
    assert [len(batch["number"]) for batch in found] == [32, 32, 32, 4]
    assert np.concatenate([batch["number"] for batch in found]).tolist() == stored(out)
    assert isinstance(found[0]["values"], list)


def epoch(source, **options):
    return [int(n) for batch in source.batches(8, **options) for n in batch["number"]]


def test_batches_are_shuffled_by_the_seed(out):
    """The order does not depend on the number of threads."""
    source = recordgen.source(out)
    first = epoch(source, seed=1)
    assert sorted(first) == list(range(100))
    assert first == epoch(source, seed=1, threads=5) != epoch(source, seed=2)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_pass_goes_on_where_it_stopped(out, shards):
    """The batches after ``start`` are the same, and those before it are not read."""
    source = recordgen.source(out)
    for index in range(shards):
        options = {"seed": 5, "shard": (index, shards)}
        whole = epoch(source, **options)
        for start in (1, 4, 99):
            assert epoch(source, start=start, **options) == whole[8 * start :]


def test_workers_share_a_pass(out):
    """Together they read each example once; without the last batches, equally many."""
    source = recordgen.source(out)
    shares = [epoch(source, seed=3, shard=(index, 3)) for index in range(3)]
    assert sorted(chain.from_iterable(shares)) == list(range(100))
    equal = [epoch(source, seed=3, shard=(index, 3), drop_remainder=True) for index in range(3)]
    assert [len(share) for share in equal] == [32, 32, 32]
    assert [share[:32] for share in shares] == equal


def test_wrong_arguments(out):
    """Batches refuse impossible shards, starts, sizes and seeds; caches, texts as numbers."""
    with pytest.raises(UsageError, match="1GB"):
        recordgen.source(out, cache_bytes="1GB")
    source = recordgen.source(out)
    for options in (
        *({"shard": (2, 2)}, {"start": -1}, {"shard": (-1, 2)}),
        *({"batch_size": 0}, {"batch_size": "8"}, {"seed": "x"}, {"seed": -1}, {"threads": -1}),
    ):
        with pytest.raises(UsageError):
            source.batches(**{"batch_size": 8, **options})


def test_names_and_records_load_little(sample):
    """The name loads its module, and records load no decoder."""
    code = (
        "import sys; before = set(sys.modules); import recordgen; recordgen.source\n"
        "print(*sorted(set(sys.modules) - before))\n"
        f"recordgen.source({str(sample('image_classification'))!r})[0]\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    named, opened = (set(line.split()) for line in run_python("-c", code).stdout.splitlines())
    ours = {name.removeprefix("recordgen.") for name in named if name.startswith("recordgen.")}
    assert ours == {"version", "access", "access.api", "console", "console.quiet"}
    assert not named & {"numpy", "json", "dataclasses"}
    assert "recordgen.access.source" in opened
    assert not opened & {"PIL", "simplejpeg", "google.protobuf", "ssl", "multiprocessing"}
