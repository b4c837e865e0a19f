"""Keep from the users of our commands what they cannot act on: libraries' talk about themselves.

Google's libraries warn of Python versions and of each other, TensorFlow of drivers that are not
there. Commands call :func:`quiet_libraries` first of all, and those that need TensorFlow then
:func:`load_tensorflow`; importing the package changes nothing.

What stays: errors, and every warning whose cause is not inside of one of these libraries: ours,
those of the user's own code and of other packages. What the user asks for wins: ``-W`` and
``PYTHONWARNINGS``, ``TF_CPP_MIN_LOG_LEVEL``, ``GRPC_VERBOSITY``.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Its logger must be the one that it makes itself: others do not know who called it.
_ABSL = "absl"

_LIBRARIES = (
    _ABSL,
    "apache_beam",
    "gcsfs",
    "google",
    "keras",
    "kfp",
    "kfp_server_api",
    "ml_metadata",
    "tensorboard",
    "tensorflow",
    "tensorflow_data_validation",
    "tensorflow_metadata",
    "tensorflow_model_analysis",
    "tensorflow_serving",
    "tensorflow_transform",
    "tf_keras",
    "tfx",
    "tfx_bsl",
)

# What these log as an error is raised as well, and reported then.
_TWICE = ("apache_beam", "gcsfs")

# What absl's C++ logging writes before it is set up, by level: "I0000 00:00:1795266568.853320 …".
_ABSL_LINES = (
    re.compile(rb"(I\d{4} \d\d:|WARNING: All log messages before absl::InitializeLog\(\))"),
    re.compile(rb"W\d{4} \d\d:"),
    re.compile(rb"E\d{4} \d\d:"),
)

# In PYTHONWARNINGS, which worker processes read, a module stands for itself alone.
_WARNING_MODULES = ("google.api_core._python_version_support", "google.cloud.aiplatform.models")


def quiet_libraries() -> None:
    """Silence libraries in this process and its children; call it before they are imported."""
    # 3 is needed against what TensorFlow calls errors when it is loaded ("Unable to register cuFFT
    # factory"); what really fails is raised in Python.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for name in set(_LIBRARIES) - {_ABSL}:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in _TWICE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if sys.warnoptions:
        return
    ignored = (f"ignore::FutureWarning:{module}" for module in _WARNING_MODULES)
    os.environ.setdefault("PYTHONWARNINGS", ",".join(ignored))
    warnings.filterwarnings("ignore", module=rf"({'|'.join(_LIBRARIES)})(\.|\Z)")
    # The compiler's, about text in a file that nobody has compiled before, know only its path.
    warnings.filterwarnings("ignore", category=SyntaxWarning, module=r".*[/\\]site-packages[/\\]")


def load_tensorflow() -> None:
    """Import TensorFlow without the lines that ``TF_CPP_MIN_LOG_LEVEL`` says nobody wants.

    Its newer versions write some of them whatever that variable says, straight to the process's
    stderr. All other lines follow when it is loaded. What is logged through absl from then on is
    shown from errors up.

    Raises:
        ImportError: it is not there, or broken.
    """
    with _without_lines(_ABSL_LINES[: _unwanted_levels()]):
        importlib.import_module("tensorflow")
    import absl.logging

    absl.logging.set_verbosity(absl.logging.ERROR)


def _unwanted_levels() -> int:
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    return int(level) if level.isdecimal() else 0


@contextmanager
def _without_lines(patterns: tuple[re.Pattern[bytes], ...]) -> Iterator[None]:
    """Hold back what is written to file descriptor 2, then write all lines but some."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            for line in held:
                if not any(pattern.match(line) for pattern in patterns):
                    os.write(2, line)
