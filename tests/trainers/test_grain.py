"""A source is a random-access data source of Grain, with exact checkpoints."""

from itertools import chain

import grain
import numpy as np
import pytest

import recordgen


def seen(batches):
    return list(chain.from_iterable(batch["number"].tolist() for batch in batches))


def shuffled(numbers):
    return grain.MapDataset.source(recordgen.source(numbers)).seed(1).shuffle()


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_each_example_once(numbers, threads):
    options = grain.ReadOptions(num_threads=threads)
    found = seen(shuffled(numbers).batch(32).to_iter_dataset(options))
    assert sorted(found) == list(range(1000))
    assert found == seen(shuffled(numbers).batch(32).to_iter_dataset(options))


def test_whole_batches_of_shuffled_numbers_are_the_same_examples(numbers):
    source = recordgen.source(numbers)
    indexes = grain.MapDataset.range(len(source)).seed(1).shuffle().batch(32)
    options = grain.ReadOptions(num_threads=4)
    found = seen(indexes.map(source.batch).to_iter_dataset(options))
    assert sorted(found) == list(range(1000))


def test_an_epoch_goes_on_where_it_stopped(numbers):
    """A state of some bytes is enough for another process."""
    iterator = iter(shuffled(numbers).batch(32).to_iter_dataset(grain.ReadOptions(num_threads=4)))
    for _ in range(7):
        next(iterator)
    state = iterator.get_state()
    rest = seen(iterator)
    again = iter(shuffled(numbers).batch(32).to_iter_dataset())
    again.set_state(state)
    assert seen(again) == rest
    assert len(rest) == 1000 - 7 * 32
    assert len(repr(state)) < 1000


def test_grains_loader(numbers):
    """DataLoader with IndexSampler: shards, checkpoints and worker processes."""

    def loader(shard, workers=0):
        sampler = grain.samplers.IndexSampler(
            1000, grain.sharding.ShardOptions(shard, 2), shuffle=True, num_epochs=1, seed=2
        )
        return grain.DataLoader(
            data_source=recordgen.source(numbers), sampler=sampler, worker_count=workers
        )

    shares = [[int(each["number"]) for each in loader(shard)] for shard in range(2)]
    assert sorted(chain.from_iterable(shares)) == list(range(1000))
    iterator = iter(loader(0))
    first = [int(next(iterator)["number"]) for _ in range(100)]
    again = iter(loader(0))
    again.set_state(iterator.get_state())
    assert first + [int(each["number"]) for each in again] == shares[0]


def test_batches_of_images(photos):
    images = recordgen.source(photos).images(32)
    pixels, labels = grain.MapDataset.source(images).batch(16)[0]
    expected, numbers = images.batch(range(16))
    np.testing.assert_array_equal(pixels, expected, strict=True)
    np.testing.assert_array_equal(labels, numbers)
