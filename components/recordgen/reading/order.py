"""Random order and random numbers that depend only on a seed.

``Dataset.shuffle`` and ``Dataset.random`` combine their seed with the global seed of
``tf.random.set_seed``. Here TensorFlow's ops get both seeds directly. Without a seed, TensorFlow's
own rules apply.
"""

from __future__ import annotations

import tensorflow as tf

# TensorFlow's default global seed: a seed gives the same order as in ``Dataset.shuffle`` without
# ``tf.random.set_seed``.
_GLOBAL_SEED = 87654321

# TensorFlow's seeds have 31 bits.
_SEEDS = 2**31 - 1


def shuffled(dataset: tf.data.Dataset, buffer: int, seed: int | None) -> tf.data.Dataset:
    """Shuffle with a buffer of ``buffer`` elements, in a new order in each iteration."""
    if seed is None:
        return dataset.shuffle(buffer)
    flat = tf.nest.flatten(dataset.element_spec)
    # Ragged and sparse tensors are variants.
    variants = tf.TensorSpec(None, tf.variant)
    specs = [spec if isinstance(spec, tf.TensorSpec) else variants for spec in flat]
    variant = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=buffer,
        seed=_GLOBAL_SEED,
        seed2=seed % _SEEDS,
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        reshuffle_each_iteration=True,
        output_types=[spec.dtype for spec in specs],
        output_shapes=[spec.shape for spec in specs],
    )
    found = tf.data.experimental.from_variant(variant, dataset.element_spec)
    # A variant does not keep the tables and variables of earlier functions alive.
    found.shuffled_from = dataset
    return found


def random_numbers(seed: int | None) -> tf.data.Dataset:
    """Return an endless dataset of random numbers (int64 []), new in each iteration."""
    if seed is None:
        return tf.data.Dataset.random(rerandomize_each_iteration=True)
    spec = tf.TensorSpec((), tf.int64)
    variant = tf.raw_ops.RandomDatasetV2(
        seed=_GLOBAL_SEED,
        seed2=seed % _SEEDS,
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        rerandomize_each_iteration=True,
        output_types=[spec.dtype],
        output_shapes=[spec.shape],
    )
    return tf.data.experimental.from_variant(variant, spec)
