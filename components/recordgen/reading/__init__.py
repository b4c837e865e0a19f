"""Records → batches of images and labels, as ``tf.data``."""

from recordgen.reading.datasets import eval_dataset, train_dataset
from recordgen.reading.parsing import decode_images, parsing_spec
from recordgen.reading.shards import ShardSet, find_shards, steps_per_epoch

__all__ = [
    "ShardSet",
    "decode_images",
    "eval_dataset",
    "find_shards",
    "parsing_spec",
    "steps_per_epoch",
    "train_dataset",
]
