import itertools
import json
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, load, train_dataset
from tests.preloaded import WITH_TENSORFLOW
from tests.reading.conftest import case_name, ids, pet, write_records

SIZE = dict(batch_size=6, image_size=(4, 6))
SEEDED = dict(seed=1, epochs="endless", augment=dict(flip=True, crop=0.3))


def load_train(source, **options):
    """Return the part ``train`` of :func:`load`."""
    return load(source, **options)["train"]


def values(iterator, batches):
    """Return the next batches as arrays."""
    some = itertools.islice(iterator, batches)
    return [[part.numpy() for part in tf.nest.flatten(batch)] for batch in some]


# read, options
ITERATORS = [
    (eval_dataset, {}),
    (eval_dataset, dict(cache="memory")),
    (train_dataset, SEEDED),
    (train_dataset, dict(**SEEDED, cache="memory")),
    (train_dataset, dict(**SEEDED, resize="random_crop")),
    (train_dataset, dict(**SEEDED, only=["cat", "dog"], label_mode="categorical")),
    (load_train, SEEDED),
]


@pytest.mark.parametrize(("read", "options"), ITERATORS, ids=case_name)
def test_a_restored_iterator_goes_on(pets, tmp_path, read, options):
    """A restored iterator, or one that skips, gives the batches that were to follow exactly."""
    iterator = iter(read(pets, **SIZE, **options))
    values(iterator, 2)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    expected = values(iterator, 14)
    restored = iter(read(pets, **SIZE, **options))
    tf.train.Checkpoint(iterator=restored).restore(path).assert_consumed()
    assert len(expected) == (2 if read is eval_dataset else 14)
    for again in (restored, iter(read(pets, **SIZE, **options).skip(2))):
        tf.nest.map_structure(np.testing.assert_array_equal, expected, values(again, 14))


def test_foreign_records_continue(tmp_path):
    """Iterators of other tools' records can be saved."""
    source = write_records(tmp_path / "a.rec", map(pet, range(40)))
    options = dict(**SIZE, seed=1, epochs="endless", columns=["image/source_id"])
    iterator = iter(train_dataset(source, **options))
    ids(iterator, 2)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    restored = iter(train_dataset(source, **options))
    tf.train.Checkpoint(iterator=restored).restore(path)
    assert ids(restored, 10) == ids(iterator, 10)


# Prints the first batches, and the batches after a checkpoint.
GO_ON = textwrap.dedent("""
    import json, sys
    import tensorflow as tf
    from recordgen import train_dataset
    source, path = json.loads(sys.argv[1])
    new, restored = (
        iter(train_dataset(
            source, batch_size=6, image_size=(4, 6), seed=1, epochs="endless",
            columns=["image/source_id"], augment=dict(flip=True, crop=0.3),
        ))
        for _ in range(2)
    )
    tf.train.Checkpoint(iterator=restored).restore(path)

    def following(iterator):
        found = []
        for _ in range(9):
            images, _, extras = next(iterator)
            names = map(bytes.decode, extras["image/source_id"].numpy())
            found.append([float(tf.reduce_sum(images)), *names])
        return found

    print(json.dumps([following(new), following(restored)]))
""")


@pytest.mark.slow
def test_a_new_process_goes_on(pets, tmp_path):
    """A new process goes on where the saved one stopped."""
    options = dict(**SIZE, **SEEDED, columns=["image/source_id"])
    tf.random.set_seed(5)  # has no effect: the other process does not set it
    iterator = iter(train_dataset(pets, **options))

    def following(count):
        return [
            [float(tf.reduce_sum(images)), *map(bytes.decode, extras["image/source_id"].numpy())]
            for images, _, extras in itertools.islice(iterator, count)
        ]

    beginning = following(9)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    rest = following(9)
    done = WITH_TENSORFLOW.run("-c", GO_ON, json.dumps([pets, path]))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [beginning, rest]
