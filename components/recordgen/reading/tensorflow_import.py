"""Import TensorFlow in half of its time: what a program never uses is neither imported nor counted.

Keras, which ``import tensorflow`` imports at its end if it is there, takes two fifths of that time
with the packages that it looks for (pandas, scikit-learn, IPython). ``tf.keras`` and
``import keras`` load it when a program uses it.

A quarter of the rest is Python's search for garbage among the million objects that stay.
"""

from __future__ import annotations

import gc
import sys
import threading

# The parts of Keras that TensorFlow imports, of the version that its environment chooses.
_KERAS = ("keras.src", "tf_keras.src")


def import_tensorflow() -> None:
    """Import TensorFlow, without Keras unless the program has it. Raises: ImportError."""
    # Another thread could import Keras meanwhile, which needs all of TensorFlow.
    is_alone = threading.active_count() == 1
    hidden = _KERAS if is_alone and "keras" not in sys.modules else ()
    is_collecting = gc.isenabled()
    gc.disable()
    # An import of a module that is None there fails (the Python reference, 5.3.1).
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import tensorflow  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
        if is_collecting:
            if not gc.get_freeze_count():  # all objects count as old, and are visited rarely
                gc.freeze()
                gc.unfreeze()
            gc.enable()
