"""A source is a random-access data source of Grain."""

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
    """Grain sees each example once, in the same order each time."""
    options = grain.ReadOptions(num_threads=threads)
    found = seen(shuffled(numbers).batch(32).to_iter_dataset(options))
    assert sorted(found) == list(range(1000))
    assert found == seen(shuffled(numbers).batch(32).to_iter_dataset(options))
