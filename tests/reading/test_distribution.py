"""The shares of several workers: disjoint, complete, and on two devices."""

import itertools

import pytest
import tensorflow as tf

from recordgen import eval_dataset, input_fn, read, steps_per_epoch, train_dataset
from recordgen.errors import UsageError
from recordgen.reading import Tuning, find_shards, reading_plan
from tests.conftest import convert_lines, write_noise
from tests.reading.conftest import ids, pet, write_records

SIZE = dict(batch_size=4, image_size=(4, 6))
WITH_IDS = dict(**SIZE, columns=["image/source_id"])


@pytest.fixture(scope="module")
def many_pets(pets_csv, converted):
    """The pets in 1, 3 and 7 shards of unequal size, by the number of shards."""
    found = {}
    for megabytes in (1, 0.014, 0.005):
        out = converted(pets_csv, shard_mb=megabytes)
        found[len(find_shards(out, "train").files)] = out
    return found


def shares_of(source, count, **options):
    """Return the source ids that each of ``count`` workers reads in one epoch."""
    spec = {
        "image/source_id": tf.io.FixedLenFeature((), tf.string),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64),
    }
    found = [read(source, feature_spec=spec, shard=(at, count), **options) for at in range(count)]
    return [[item["image/source_id"].numpy().decode() for item in data] for data in found]


# shares are pieces of files; if records are filtered, workers take turns
SHARES = [
    dict(shuffle=True),
    dict(shuffle=True, seed=1, cache="memory", tuning=Tuning(cycle_length=2)),
    dict(shuffle=True, only=lambda record: record["image/class/label"] != 2),
]


@pytest.mark.parametrize("options", SHARES, ids=["shuffled", "cached", "filtered"])
def test_shares_are_disjoint_complete_and_equal(many_pets, options):
    """Shares differ by one record at most, for more and fewer workers than files."""
    assert set(many_pets) == {1, 3, 7}
    for files, count in ((1, 5), (3, 2), (7, 5)):
        [expected] = shares_of(many_pets[files], 1, **options)
        shares = shares_of(many_pets[files], count, **options)
        assert sorted(itertools.chain(*shares)) == sorted(expected), (files, count)
        sizes = list(map(len, shares))
        assert max(sizes) - min(sizes) <= 1, (files, count)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(("files", "count"), [(1, 2), (5, 2), (5, 7)])
def test_shares_of_foreign_files_are_exact_counted_or_not(tmp_path, files, count, suffix):
    """Files without counts are divided as well as counted ones."""
    sizes = [range(3 * n * n, 3 * (n + 1) ** 2) for n in range(files)]
    written = ((tmp_path / f"{n}.rec{suffix}", map(pet, of)) for n, of in enumerate(sizes))
    paths = [write_records(*each) for each in written]
    workers = shares_of(paths, count, shuffle=True)
    found = list(itertools.chain(*workers))
    assert sorted(found) == sorted(f"pet {n}" for n in range(3 * files**2))
    assert max(map(len, workers)) - min(map(len, workers)) <= 1


@pytest.mark.parametrize(
    ("files", "options", "is_divisible"),
    [(1, dict(seed=1), True), (7, {}, True), (1, {}, False), (7, dict(augment="photo"), False)],
    ids=str,
)
def test_what_a_strategy_divides_is_complete_or_an_error(many_pets, files, options, is_divisible):
    """What TensorFlow divides has each record once, or it refuses."""

    def share(index):
        dataset = train_dataset(many_pets[files], **options, **WITH_IDS)
        specs = tf.nest.flatten(dataset.element_spec)
        variant = tf.raw_ops.AutoShardDataset(
            input_dataset=tf.data.experimental.to_variant(dataset),
            num_workers=2,
            index=index,
            auto_shard_policy=dataset.options().experimental_distribute.auto_shard_policy.value,
            output_types=[spec.dtype for spec in specs],
            output_shapes=[spec.shape for spec in specs],
        )
        return ids(tf.data.experimental.from_variant(variant, dataset.element_spec))

    if not is_divisible:
        with pytest.raises(tf.errors.OpError):
            share(0)
        return
    expected = sorted(ids(eval_dataset(many_pets[files], split="train", **WITH_IDS)))
    assert sorted(share(0) + share(1)) == expected


def test_a_share_is_not_divided_again(pets):
    """A strategy does not divide what a worker's share has divided."""
    for shard, policy in (((0, 1), "FILE"), ((1, 2), "OFF")):
        options = train_dataset(pets, shard=shard, **SIZE).options()
        assert options.experimental_distribute.auto_shard_policy.name == policy


@pytest.mark.parametrize("count", [2, 3])
def test_workers_share_the_files_of_the_requested_classes(pets_by_label, count):
    """Shares of chosen classes are complete, disjoint and equal."""
    options = dict(only=["cat", "dog"], **WITH_IDS)
    whole = ids(eval_dataset(pets_by_label, split="train", only=["cat", "dog"], **WITH_IDS))
    shares = [dict(options, shard=(index, count)) for index in range(count)]
    found = [ids(train_dataset(pets_by_label, **share)) for share in shares]
    assert sorted(itertools.chain(*found)) == sorted(whole)
    sizes = list(map(len, found))
    assert max(sizes) - min(sizes) <= 1


def test_workers_mix_classes(tmp_path):
    """With more classes than open files, the order of the files differs between epochs.

    All workers use the same order: otherwise some records would be read twice and others never.
    """
    names = [f"{number:02d}" for number in range(80)]
    write_noise(tmp_path, names, 4, 4)
    rows = [f"TRAIN,{name}.png,class {int(name) // 2:02d}" for name in names]
    out = convert_lines(tmp_path, rows, shard_by="label")
    options = dict(tuning=Tuning(shuffle_buffer=1, deterministic=True), epochs=2, **WITH_IDS)
    first, second = [], []
    for worker in range(2):
        read = ids(train_dataset(out, shard=(worker, 2), **options))
        first.append(read[:40])
        second.append(read[40:])
        assert first[-1] != sorted(first[-1])
        assert first[-1] != second[-1]
    for epoch in (first, second):
        assert sorted(itertools.chain(*epoch)) == [f"{name}.png" for name in names]


@pytest.mark.parametrize("options", [{}, dict(only=["cat", "owl"])], ids=str)
def test_counts_of_a_worker_match_what_it_reads(pets, options):
    """Plans, steps and cardinality are those of the share."""
    for index in range(3):
        options = options | dict(shard=(index, 3), tuning=Tuning())
        examples = len(ids(train_dataset(pets, **options, **WITH_IDS)))
        assert reading_plan(pets, **options).examples == examples
        for drop, steps in ((False, -(-examples // 4)), (True, examples // 4)):
            options["tuning"] = Tuning(drop_remainder=drop)
            assert len(train_dataset(pets, **options, **WITH_IDS)) == steps
            assert steps_per_epoch(pets, 4, **options) == steps


def test_input_context(pets):
    """The input context gives the share; the batch size is that of all replicas together."""
    found = []
    for worker in range(2):
        context = tf.distribute.InputContext(
            num_input_pipelines=2, input_pipeline_id=worker, num_replicas_in_sync=4
        )
        options = WITH_IDS | dict(split="eval", batch_size=8)
        dataset = input_fn(pets, input_context=context, **options)
        assert max(len(images) for images, *_ in dataset) == 2
        found += ids(dataset)
    assert sorted(found) == sorted(ids(eval_dataset(pets, **WITH_IDS)))
    with pytest.raises(UsageError, match=r"shard.*input_context"):
        input_fn(pets, input_context=context, shard=(0, 2))
