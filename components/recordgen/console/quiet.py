"""Hide messages of libraries that users of our commands cannot act on.

Google's libraries warn of Python versions and of each other, TensorFlow of missing drivers. Each
command first calls :func:`quiet_libraries`; ``recordgen`` then calls :func:`load_arrow`, and
commands that need TensorFlow :func:`load_tensorflow`. Importing the package changes nothing.

Errors stay, and so do all warnings of Recordgen, of the user's code and of other packages. The
user's own settings win: ``-W`` and ``PYTHONWARNINGS``, ``TF_CPP_MIN_LOG_LEVEL``,
``GRPC_VERBOSITY``.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

_ALIVE_SECONDS = 5.0

# Absl must create its own logger: no other kind knows the caller of a log function.
_ABSL = "absl"

LIBRARIES = (
    "PIL",  # warns of images that the check rejects anyway, or of metadata that no decoder reads
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

# These log errors that they also raise, and that are reported then.
_TWICE = ("apache_beam", "gcsfs")

# In PYTHONWARNINGS, which worker processes read, a module does not include its submodules.
_WARNING_MODULES = {
    "google.api_core._python_version_support": "FutureWarning",
    "google.cloud.aiplatform.models": "FutureWarning",
    "PIL.Image": "Warning",
    "PIL.TiffImagePlugin": "Warning",
}
_WORKER_WARNINGS = ",".join(f"ignore::{kind}:{name}" for name, kind in _WARNING_MODULES.items())


def quiet_libraries() -> None:
    """Silence libraries in this process and its children; call it before they are imported."""
    # Level 3 hides messages that TensorFlow logs as errors while it loads ("Unable to register
    # cuFFT factory"); real failures are raised in Python.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    for name in set(LIBRARIES) - {_ABSL}:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in _TWICE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if sys.warnoptions:
        return
    os.environ.setdefault("PYTHONWARNINGS", _WORKER_WARNINGS)
    _ignore_warnings()


def _ignore_warnings() -> None:
    warnings.filterwarnings("ignore", module=rf"({'|'.join(LIBRARIES)})(\.|\Z)")
    # SyntaxWarnings from first-time compilation carry a file path, not a module name.
    warnings.filterwarnings("ignore", category=SyntaxWarning, module=r".*[/\\]site-packages[/\\]")


def load_arrow() -> None:
    """Import Arrow, and tell it that there is no pandas, unless the program has imported it.

    Arrow asks once whether values are those of pandas, and imports it for that, which takes as long
    as all of Recordgen. After this, it takes values of pandas for Python's own, such as NaN for a
    number, so only processes without code of other packages may call it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    unusable = ModuleType("pandas")
    vars(unusable)["__version__"] = "0"
    hidden = dict.fromkeys(("pandas", "pyarrow.pandas_compat"), unusable)
    sys.modules.update(hidden)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the version
            pa.array(())
    finally:
        for name in hidden:
            del sys.modules[name]


@contextmanager
def waiting(what: str, say: Callable[[str], object]) -> Iterator[None]:
    """Say every five seconds, until the block ends, what it does: ``loading TFX … 10 s``."""
    from recordgen.core.ordered import beside  # whoever only imports Recordgen does not wait

    since = time.monotonic()

    def report(ended: threading.Event) -> None:
        while not ended.wait(_ALIVE_SECONDS):
            say(f"{what} … {time.monotonic() - since:.0f} s")

    with beside(report):
        yield


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Hide warnings of libraries about themselves while the block imports them."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            _ignore_warnings()
        yield


def load_tensorflow() -> None:
    """Import TensorFlow; afterwards, absl shows only errors.

    Raises: ImportError: TensorFlow is not installed (MissingPackageError), or broken.
    """
    try:
        importlib.import_module("tensorflow")
    except ImportError as exc:
        from recordgen.errors import MissingPackageError  # importing the package needs none

        raise MissingPackageError.of(exc, "this") or exc from exc
    import absl.logging

    absl.logging.set_verbosity(absl.logging.ERROR)
