"""Records → batches of images and labels, as ``tf.data``."""

from recordgen.reading.datasets import (
    eval_dataset,
    input_fn,
    load,
    reading_plan,
    steps_per_epoch,
    train_dataset,
)
from recordgen.reading.decoding import decode_images
from recordgen.reading.entities import token_lookup
from recordgen.reading.examples import read
from recordgen.reading.options import Augmentation, EntityOptions, ReadOptions, RecordOptions
from recordgen.reading.parsing import parsing_spec
from recordgen.reading.shards import ShardFile, ShardSet, find_shards

__all__ = [
    "Augmentation",
    "EntityOptions",
    "ReadOptions",
    "RecordOptions",
    "ShardFile",
    "ShardSet",
    "decode_images",
    "eval_dataset",
    "find_shards",
    "input_fn",
    "load",
    "parsing_spec",
    "read",
    "reading_plan",
    "steps_per_epoch",
    "token_lookup",
    "train_dataset",
]
