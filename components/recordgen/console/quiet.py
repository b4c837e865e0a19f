"""Hide messages of libraries that users of our commands cannot act on.

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
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from recordgen.errors import MissingPackageError

# Its logger must be the one that it makes itself: others do not know who called it.
_ABSL = "absl"

_Unhandled = TypeVar("_Unhandled")

_LIBRARIES = (
    "PIL",  # of images that the check then refuses, or of metadata that no decoder reads
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
    r"I\d{4} \d\d:|WARNING: All log messages before absl::InitializeLog\(\)",
    r"W\d{4} \d\d:",
    r"E\d{4} \d\d:",
)

# Copies stdin to stderr, without the lines that begin with a pattern.
_FILTER = """
import re, sys
unwanted = re.compile(sys.argv[1].encode())
for line in sys.stdin.buffer:
    if not unwanted.match(line):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
"""

# In PYTHONWARNINGS, which worker processes read, a module stands for itself alone.
_WARNING_MODULES = {
    "google.api_core._python_version_support": "FutureWarning",
    "google.cloud.aiplatform.models": "FutureWarning",
    "PIL.Image": "Warning",
    "PIL.IcoImagePlugin": "Warning",
    "PIL.TiffImagePlugin": "Warning",
}


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
    ignored = (f"ignore::{category}:{module}" for module, category in _WARNING_MODULES.items())
    os.environ.setdefault("PYTHONWARNINGS", ",".join(ignored))
    warnings.filterwarnings("ignore", module=rf"({'|'.join(_LIBRARIES)})(\.|\Z)")
    # SyntaxWarnings from first-time compilation carry a file path, not a module name.
    warnings.filterwarnings("ignore", category=SyntaxWarning, module=r".*[/\\]site-packages[/\\]")


def quiet_after_interrupt() -> None:
    """Hide what threads and finalizers raise once Ctrl-C has ended the work that they belong to.

    Does nothing where Ctrl-C is ignored or somebody else handles it.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if not on_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    interrupted = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    def until_then(hook: Callable[[_Unhandled], object]) -> Callable[[_Unhandled], object]:
        return lambda unhandled: interrupted.is_set() or hook(unhandled)

    threading.excepthook = until_then(threading.excepthook)
    sys.unraisablehook = until_then(sys.unraisablehook)
    signal.signal(signal.SIGINT, interrupt)


def load_tensorflow() -> None:
    """Import TensorFlow without the lines that ``TF_CPP_MIN_LOG_LEVEL`` turns off.

    Its newer versions write some of them whatever that variable says, straight to the process's
    stderr. All other lines appear as they are written, also the last words of an import that aborts
    the process. From then on, absl shows errors only.

    Raises:
        ImportError: it is not there (MissingPackageError), or broken.
    """
    try:
        with _without_lines(_ABSL_LINES[: _unwanted_levels()]):
            importlib.import_module("tensorflow")
    except ImportError as exc:
        raise MissingPackageError.of(exc, "this") or exc from exc
    import absl.logging

    absl.logging.set_verbosity(absl.logging.ERROR)


def _unwanted_levels() -> int:
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    return int(level) if level.isdecimal() else 0


@contextmanager
def _without_lines(patterns: Sequence[str]) -> Iterator[None]:
    """Filter what this process writes to file descriptor 2, line by line.

    Another process filters: it still passes on what this one wrote last if the import aborts it.
    """
    if not patterns:
        yield
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    command = [sys.executable, "-I", "-S", "-c", _FILTER, "|".join(patterns)]
    read_end, write_end = os.pipe()
    with subprocess.Popen(command, stdin=read_end):
        os.close(read_end)
        os.dup2(write_end, 2)
        os.close(write_end)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)  # closes the last write end, so the filter ends
            os.close(stderr)
