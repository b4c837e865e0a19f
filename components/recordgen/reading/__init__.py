"""Records → batches of examples, as ``tf.data``, by TensorFlow without Keras.

Keras, which ``import tensorflow`` imports at its end if it is there, takes two fifths of that time
with the packages that it looks for (pandas, scikit-learn, IPython). ``tf.keras`` and
``import keras`` load it when a program uses it.
"""

import sys
import threading

from recordgen.errors import MissingPackageError


class _WithoutKeras:
    """A finder for which Keras is missing in the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Leave a module to other finders. Raises: ModuleNotFoundError: it is part of Keras."""
        if name in ("keras.src", "tf_keras.src") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is imported when it is used", name=name)


def _import_tensorflow() -> None:
    finder = _WithoutKeras()
    sys.meta_path.insert(0, finder)
    try:
        import tensorflow  # noqa: F401
    finally:
        sys.meta_path.remove(finder)


try:
    # Another thread could import Keras meanwhile, which needs all of TensorFlow.
    if "keras" not in sys.modules and threading.active_count() == 1:
        _import_tensorflow()
    from recordgen.access.shards import find_shards as find_shards
    from recordgen.reading.datasets import eval_dataset as eval_dataset
    from recordgen.reading.datasets import input_fn as input_fn
    from recordgen.reading.datasets import reading_plan as reading_plan
    from recordgen.reading.datasets import steps_per_epoch as steps_per_epoch
    from recordgen.reading.datasets import train_dataset as train_dataset
    from recordgen.reading.decoding import decode_images as decode_images
    from recordgen.reading.examples import read as read
    from recordgen.reading.loading import load as load
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
