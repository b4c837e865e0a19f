"""Records → batches of examples, as ``tf.data``, by TensorFlow without Keras."""

from recordgen.errors import MissingPackageError
from recordgen.reading.tensorflow_import import import_tensorflow

try:
    import_tensorflow()
    from recordgen.access.shards import find_shards as find_shards
    from recordgen.reading.datasets import eval_dataset as eval_dataset
    from recordgen.reading.datasets import input_fn as input_fn
    from recordgen.reading.datasets import load as load
    from recordgen.reading.datasets import reading_plan as reading_plan
    from recordgen.reading.datasets import steps_per_epoch as steps_per_epoch
    from recordgen.reading.datasets import train_dataset as train_dataset
    from recordgen.reading.decoding import decode_images as decode_images
    from recordgen.reading.examples import read as read
    from recordgen.reading.naming import bad_records as bad_records
    from recordgen.reading.naming import named_errors as named_errors
    from recordgen.reading.options import EntityOptions as EntityOptions
    from recordgen.reading.options import LabelOptions as LabelOptions
    from recordgen.reading.options import ReadOptions as ReadOptions
    from recordgen.reading.options import RecordOptions as RecordOptions
    from recordgen.reading.options import Tuning as Tuning
    from recordgen.reading.parsing import parsing_spec as parsing_spec
    from recordgen.reading.words import split_words as split_words
except ImportError as exc:
    raise MissingPackageError.of(exc, "recordgen.reading") or exc from exc
