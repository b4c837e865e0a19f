"""Lines that TensorFlow writes about itself when records are read, and that no user can act on."""

from __future__ import annotations

import atexit
import glob
import os
import sys
from functools import cache
from typing import Any

import tensorflow as tf

from recordgen.core.interpreter import without_lines

# TensorFlow says once which buffer the first file of a process is read with, given or not.
_BUFFER = r"(I\d{4} \d\d:|\d{4}-\d\d-\d\d .*: I ).*/?tf_record_dataset_op\.cc"
_HEADER = r"WARNING: All log messages before absl::InitializeLog\(\)"

# It calls this an error on every machine without a GPU.
_NO_GPU = r"E\d{4} \d\d:.*failed call to cuInit"
_GPUS = ("/dev/nvidia*", "/dev/dxg")


def quiet_reading() -> None:
    """Hide these lines from now on, unless ``TF_CPP_MIN_LOG_LEVEL`` is set; other lines stay."""
    if tf.executing_eagerly() and "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
        _say_it_once()
    _end_quietly()


@cache
def _say_it_once() -> None:
    has_gpu = any(map(glob.glob, _GPUS))
    with without_lines((_BUFFER, _HEADER, *(() if has_gpu else (_NO_GPU,)))):
        none = tf.constant([], tf.string)
        tf.raw_ops.TFRecordDataset(filenames=none, compression_type="", buffer_size=0)


@cache
def _end_quietly() -> None:
    """Hide errors of TensorFlow 2.16 at exit, where functions of datasets outlive its modules."""

    def ignore() -> None:
        show = sys.unraisablehook

        def hook(found: Any) -> None:
            if getattr(found.object, "__qualname__", "") != "AtomicFunction.__del__":
                show(found)

        sys.unraisablehook = hook

    atexit.register(ignore)
