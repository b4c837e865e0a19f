"""Batches of tokens and tags: padded, masked, complete, and sorted by length when shuffled."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

import recordgen
from recordgen.reading import Tuning

LENGTHS = {"train": 103, "eval": 11}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Texts of 1 to 40 tokens; every third token is a city."""
    folder = tmp_path_factory.mktemp("entities")
    draw = np.random.default_rng(0)
    for split, count in LENGTHS.items():
        lines = [[], []]
        for number in range(count):
            length = int(draw.integers(1, 41))
            lines[0].append(" ".join(f"{split}{number}.{place}" for place in range(length)))
            tags = ("O" if place % 3 else "B-city" for place in range(length))
            lines[1].append(" ".join(tags))
        (folder / f"{split}_sentences.txt").write_text("\n".join(lines[0]) + "\n")
        (folder / f"{split}_labels.txt").write_text("\n".join(lines[1]) + "\n")
    output = str(folder / "out")
    recordgen.convert(f"{folder}/*sentences.txt", output, task="text_entities", shard_mb=0.02)
    return output


def texts(batch):
    """Check that mask and tags agree with the tokens of a batch; return the tokens of each text."""
    inputs, tags = batch[:2]
    tokens, mask = inputs["tokens"].numpy(), inputs["mask"].numpy()
    assert tokens.shape == mask.shape == tags.shape
    np.testing.assert_array_equal(mask, tokens != b"")
    np.testing.assert_array_equal(tags, np.where(mask, np.arange(mask.shape[1]) % 3 == 0, -1))
    return [tuple(row[kept]) for row, kept in zip(tokens, mask, strict=True)]


def all_texts(data):
    return [text for batch in data for text in texts(batch)]


def test_evaluation_keeps_the_order(out):
    """Evaluation has the order of the records, padded to the longest text."""
    data = recordgen.eval_dataset(out, batch_size=4, columns=["text", "entity/start"])
    batches = list(data)
    assert [len(batch[1]) for batch in batches] == [4, 4, 3]
    found = all_texts(data)
    stored = list(recordgen.read(out, split="eval"))
    assert found == [tuple(values["tokens"].numpy()) for values in stored]
    for inputs, _, extras in batches:
        assert inputs["tokens"].shape[1] == max(len(t.split()) for t in extras["text"].numpy())
        assert extras["entity/start"].row_lengths().numpy().min() >= 1


# padding, drop_remainder, examples in one pass
PASSES = [("auto", False, 103), ("auto", True, 100), ("longest", True, 100), ((8, 32), False, 103)]


@pytest.mark.parametrize(("padding", "drop_remainder", "examples"), PASSES)
def test_a_pass_has_every_text_once_in_the_promised_batches(out, padding, drop_remainder, examples):
    """A pass has every text once, in as many batches as promised."""
    options = {"padding": padding, "tuning": Tuning(drop_remainder=drop_remainder), "seed": 1}
    data = recordgen.train_dataset(out, batch_size=4, **options)
    batches = list(data)
    steps = recordgen.steps_per_epoch(out, 4, **options)
    assert len(batches) == steps == int(data.cardinality())
    assert all(len(tags) == 4 for _, tags in batches[:-1])
    found = Counter(text for batch in batches for text in texts(batch))
    assert len(found) == found.total() == examples
    if padding == (8, 16, 32):
        for batch in batches:
            longest = max(map(len, texts(batch)))
            assert batch[1].shape[1] == next((b for b in padding if b >= longest), longest)


def test_texts_of_like_length_come_together(out):
    """Without regard to lengths there is more padding; order and batches differ between passes."""

    def padding(**options):
        data = recordgen.train_dataset(out, batch_size=8, seed=2, **options)
        return sum(int(tf.reduce_sum(tf.cast(~inputs["mask"], tf.int32))) for inputs, _ in data)

    assert padding() * 4 < padding(padding="longest")
    data = recordgen.train_dataset(out, batch_size=8, seed=2)
    first, second = all_texts(data), all_texts(data)
    assert sorted(first) != first != second
    assert all_texts(recordgen.train_dataset(out, batch_size=8, seed=2)) == first
    lengths = [len(text) for text in first[::8]]
    assert sorted(lengths) != lengths  # batches of short texts do not all come first


def test_training_does_not_leave_out_the_longest(out):
    """Dropped remainders are not always the longest texts."""
    longest = max(map(len, all_texts(recordgen.train_dataset(out, batch_size=1))))
    missing, tuning = 0, Tuning(drop_remainder=True)
    for seed in range(6):
        data = recordgen.train_dataset(out, batch_size=50, seed=seed, tuning=tuning)
        missing += longest not in map(len, all_texts(data))
    assert missing < 3


def test_a_sequence_length_fixes_every_shape(out):
    """A number as padding cuts and pads all texts to it."""

    def only(values):
        return tf.size(values["tokens"]) > 20

    options = dict(only=only, tuning=Tuning(drop_remainder=True))
    data = recordgen.train_dataset(out, batch_size=4, padding=12, **options)
    assert [spec.shape for spec in tf.nest.flatten(data.element_spec)] == [(4, 12)] * 3
    found = all_texts(data)
    assert {len(text) for text in found} == {12}
    assert len(found) == 4 * recordgen.steps_per_epoch(out, 4, **options)


def test_workers_share_the_texts(out):
    """The shares of workers are disjoint and complete."""
    how = [dict(split="train", batch_size=4, shard=(index, 3)) for index in range(3)]
    parts = [all_texts(recordgen.eval_dataset(out, **each)) for each in how]
    assert sorted(map(len, parts))[0] > 0
    assert len(set().union(*parts)) == sum(map(len, parts)) == 103
