"""Records → batches of images or texts and labels, as ``tf.data``."""

from recordgen.reading.datasets import (
    eval_dataset,
    input_fn,
    load,
    reading_plan,
    steps_per_epoch,
    train_dataset,
)
from recordgen.reading.decoding import decode_images
from recordgen.reading.examples import read
from recordgen.reading.naming import named_errors
from recordgen.reading.options import (
    Augmentation,
    EntityOptions,
    LabelOptions,
    ReadOptions,
    RecordOptions,
    TextOptions,
)
from recordgen.reading.parsing import parsing_spec
from recordgen.reading.shards import ShardFile, ShardSet, find_shards
from recordgen.reading.tuning import Tuning
from recordgen.reading.vectorization import text_vectorization, token_lookup
from recordgen.reading.words import split_words

__all__ = [
    "Augmentation",
    "EntityOptions",
    "LabelOptions",
    "ReadOptions",
    "RecordOptions",
    "ShardFile",
    "ShardSet",
    "TextOptions",
    "Tuning",
    "decode_images",
    "eval_dataset",
    "find_shards",
    "input_fn",
    "load",
    "named_errors",
    "parsing_spec",
    "read",
    "reading_plan",
    "split_words",
    "steps_per_epoch",
    "text_vectorization",
    "token_lookup",
    "train_dataset",
]
