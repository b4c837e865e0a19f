import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, read, train_dataset
from recordgen.core.allowance import memory_limit
from recordgen.errors import UsageError
from recordgen.reading import Tuning, reading_plan
from recordgen.reading.plan import free_memory
from tests.reading.conftest import ids, pet, write_records

SMALL = dict(batch_size=5, image_size=(4, 6))  # images are smaller than the records
LARGE = dict(batch_size=5, image_size=(40, 60))  # records are smaller than the images
ORDERED = Tuning(deterministic=True)
SMALL_ROOM = dict(tuning=replace(ORDERED, cache_bytes=55_000))
# The stages of caching for the 40 images of split train.
STAGES = pytest.mark.parametrize(
    ("size", "stage"),
    [(LARGE, "images"), (LARGE | SMALL_ROOM, "records")],
    ids=["images", "records"],
)


@pytest.fixture
def copy(pets, tmp_path):
    """A copy of the pets whose files may be removed."""
    return shutil.copytree(pets, tmp_path / "copy")


def remove_shards(folder):
    for path in Path(folder).glob("Split-*/*"):
        path.unlink()


def by_id(batches):
    """Return images by their source ids."""
    return {
        name: image.tobytes()
        for images, _, extras in batches
        for name, image in zip(extras["image/source_id"].numpy(), images.numpy(), strict=True)
    }


@STAGES
@pytest.mark.parametrize("where", ["memory", "file"])
def test_the_second_epoch_needs_no_shards_and_has_new_changes(copy, tmp_path, size, stage, where):
    """Whatever is cached, shards are read once, and each epoch has its own random changes."""
    cache = "memory" if where == "memory" else tmp_path / "kept" / "train"
    assert reading_plan(str(copy), cache=cache, **size).cache.stage == stage
    options = dict(epochs=2, columns=["image/source_id"], tuning=ORDERED) | size
    light = dict(brightness=0.1, contrast=0.1)
    dataset = iter(train_dataset(copy, cache=cache, augment=light, **options))
    first = by_id(next(dataset) for _ in range(8))
    remove_shards(copy)
    second = by_id(dataset)
    assert len(first) == 40
    assert first.keys() == second.keys()
    assert all(first[name] != second[name] for name in first)


@STAGES
def test_a_cache_changes_no_bit_and_no_order(pets, tmp_path, size, stage):
    """Batches from a cache are those without one, in memory and in a file, in each epoch."""
    plain = [images.numpy() for images, _ in eval_dataset(pets, split="train", **LARGE)]
    for cache in ("memory", str(tmp_path / "kept")):
        dataset = eval_dataset(pets, split="train", cache=cache, **size)
        for _ in range(2):
            found = [images.numpy() for images, _ in dataset]
            assert all(np.array_equal(a, b) for a, b in zip(plain, found, strict=True))


@pytest.mark.parametrize("given", [{}, dict(cache="memory", tuning=Tuning(cache_bytes=5_000))])
def test_what_is_not_cached_is_read_again(copy, given, caplog):
    """A cache without room is said in the log, and shards are read in each pass."""
    dataset = eval_dataset(copy, **given, **LARGE)
    assert ("cache: " in caplog.text) == bool(given)
    assert len(list(dataset)) == 4
    remove_shards(copy)
    with pytest.raises(tf.errors.NotFoundError):
        list(dataset)


def test_a_disk_with_less_room_than_the_cache_needs(pets, tmp_path, monkeypatch):
    """A full disk is an error before anything is written; an existing cache needs no more space."""
    monkeypatch.setenv("HOME", str(tmp_path))
    options = dict(split="train", cache="~/kept", **LARGE)
    disk_usage = shutil.disk_usage
    full = disk_usage(tmp_path)._replace(free=1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(UsageError, match=r"0\.0"):
        eval_dataset(pets, **options)
    assert not list(tmp_path.glob("kept*"))
    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    whole = len(list(eval_dataset(pets, **options)))
    assert list(tmp_path.glob("kept*"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    assert len(list(eval_dataset(pets, **options))) == whole


def test_free_memory_is_that_of_the_machine_or_less_of_its_control_group(tmp_path):
    """The smaller of both counts; without either there is a default."""
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:      20 kB\n")
    machine = str(tmp_path / "meminfo")
    assert free_memory(machine, str(tmp_path)) == 20_480
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1\n")
    assert free_memory(machine, str(tmp_path)) == 20_480
    (tmp_path / "memory.max").write_text("10001\n")
    assert free_memory(machine, str(tmp_path)) == 10_000
    assert memory_limit(str(tmp_path)) == 10_001
    assert free_memory(str(tmp_path / "none"), str(tmp_path / "none")) > 100_000_000


OTHERS = [
    dict(image_size=(5, 6)),
    dict(resize="fit"),
    dict(tuning=Tuning(decoder="exact")),
    dict(only=["cat"]),
    dict(vocabulary=["owl", "dog", "cat", "ant"]),
    dict(label_mode="categorical"),
    dict(split="train"),
    dict(shard=(1, 3)),
]


def test_a_file_is_not_used_by_another_reading(pets, tmp_path):
    """Each option that changes batches has a file of its own."""
    cache = str(tmp_path / "kept")
    for other in [{}, *OTHERS]:
        options = {**SMALL, "scale": "uint8", **other}
        plain = list(eval_dataset(pets, **options))
        through = list(eval_dataset(pets, cache=cache, **options))
        assert len(plain) == len(through), other
        for expected, found in zip(plain, through, strict=True):
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_array_equal(a, b, str(other))


def test_a_file_cannot_tell_predicates_apart(pets):
    """Two predicates may have the same name, such as two lambdas, so a file cannot be shared."""
    options = dict(only=lambda record: record["image/class/label"] > 1, **SMALL)
    with pytest.raises(UsageError, match=r"cache.*'memory'"):
        eval_dataset(pets, cache="kept", **options)
    dataset = eval_dataset(pets, cache="memory", **options)
    plain = [labels.numpy().tolist() for _, labels in eval_dataset(pets, **options)]
    assert [[labels.numpy().tolist() for _, labels in dataset] for _ in range(2)] == [plain] * 2


def test_a_replaced_shard_is_read_again(tmp_path):
    """A file of the same size and another time is another version."""
    source, cache = tmp_path / "a.rec", str(tmp_path / "kept")
    spec = {"image/source_id": tf.TensorSpec((), tf.string)}

    def found():
        examples = read(source, feature_spec=spec, cache=cache)
        return [example["image/source_id"].numpy().decode() for example in examples]

    write_records(source, map(pet, range(3)))
    assert found() == ["pet 0", "pet 1", "pet 2"]
    size = source.stat().st_size
    write_records(source, map(pet, range(4, 7)))
    assert source.stat().st_size == size
    os.utime(source, ns=(1, 1))
    assert found() == ["pet 4", "pet 5", "pet 6"]


def test_a_pass_that_was_left_leaves_no_cache(pets, tmp_path):
    """The next reading is complete."""
    options = dict(cache=str(tmp_path / "kept"), columns=["image/source_id"], **SMALL)
    assert len(ids(eval_dataset(pets, **options), 1)) == 5
    plain = ids(eval_dataset(pets, **{**options, "cache": None}))
    assert ids(eval_dataset(pets, **options)) == plain


def test_evaluation_keeps_its_order_from_a_cache_that_a_shuffled_reading_filled(copy, tmp_path):
    """The cache holds the examples in the order of the shards; a second dataset needs no shard."""
    options = dict(**SMALL, split="train", columns=["image/source_id"])
    cached = dict(**options, cache=str(tmp_path / "cache"))
    in_order = ids(eval_dataset(copy, **options))
    assert sorted(ids(train_dataset(copy, **cached))) == sorted(in_order)
    assert ids(eval_dataset(copy, **cached)) == in_order
    waiting = eval_dataset(copy, **cached)
    remove_shards(copy)
    assert ids(waiting) == in_order
