"""A source is a random-access data source of Grain, with exact checkpoints."""

from itertools import chain

import grain
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
