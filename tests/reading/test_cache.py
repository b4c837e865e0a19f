import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, train_dataset
from recordgen.core.allowance import memory_limit
from recordgen.reading import Tuning, reading_plan
from recordgen.reading.memory import free_memory

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
def test_the_second_epoch_needs_no_shards_and_has_new_changes(copy, size, stage):
    """Whatever is cached, shards are read once, and each epoch has its own random changes."""
    assert reading_plan(str(copy), cache="memory", **size).cache.stage == stage
    options = dict(epochs=2, columns=["image/source_id"], tuning=ORDERED) | size
    light = dict(brightness=0.1, contrast=0.1)
    dataset = iter(train_dataset(copy, cache="memory", augment=light, **options))
    first = by_id(next(dataset) for _ in range(8))
    remove_shards(copy)
    second = by_id(dataset)
    assert len(first) == 40
    assert first.keys() == second.keys()
    assert all(first[name] != second[name] for name in first)


@STAGES
def test_a_cache_changes_no_bit_and_no_order(pets, size, stage):
    """Batches from a cache are those without one, in each epoch."""
    plain = [images.numpy() for images, _ in eval_dataset(pets, split="train", **LARGE)]
    dataset = eval_dataset(pets, split="train", cache="memory", **size)
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


def test_a_predicate_selects_what_is_cached(pets):
    """Each pass has the selected examples."""
    options = dict(only=lambda record: record["image/class/label"] > 1, **SMALL)
    dataset = eval_dataset(pets, cache="memory", **options)
    plain = [labels.numpy().tolist() for _, labels in eval_dataset(pets, **options)]
    assert [[labels.numpy().tolist() for _, labels in dataset] for _ in range(2)] == [plain] * 2
