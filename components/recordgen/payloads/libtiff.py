"""Notice that libtiff met an error during decoding: Pillow does not report all of them.

After errors in fax codes, libtiff continues, and fills the rest with white. It would print each to
stderr, without the name of a file. Its handler is set through the library that Pillow has loaded.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from PIL import _imaging

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

_thread = threading.local()


@ctypes.CFUNCTYPE(None)  # it ignores its arguments, of which one has no type in ctypes
def _note() -> None:
    _thread.has_error = True


@cache
def _install() -> None:
    with suppress(OSError, AttributeError):  # a Pillow without libtiff, or one that hides it
        ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(_note)


def check_errors(decode: Callable[[], object]) -> None:
    """Decode a TIFF. Raises: PayloadError: libtiff met an error; as ``decode``."""
    _install()
    _thread.has_error = False
    decode()
    if _thread.has_error:
        raise PayloadError(RejectCode.CORRUPT, "the TIFF does not decode to its end")
