"""Collect libtiff's errors during decoding, which Pillow does not report.

Pillow decodes compressed TIFFs with libtiff. libtiff prints errors to stderr, without a file name.
After errors in fax codes and in JPEGs inside a TIFF it continues, and fills the rest with white or
gray. Its handlers are set through the library that Pillow is linked with.
"""

from __future__ import annotations

import ctypes
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from PIL import _imaging

# C's types.
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_INT, _UINT32, _SIZE = ctypes.c_int, ctypes.c_uint32, ctypes.c_ssize_t

# module, format, arguments of the format
_HANDLER = ctypes.CFUNCTYPE(None, _TEXT, _TEXT, _POINTER)

# file, user data, module, format, arguments; returns 1 to skip the global handler
_FILE_HANDLER = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _TEXT, _TEXT, _POINTER)

# libtiff 4.5 and newer: function, type of its result, types of its arguments
_OF_FILES = {
    "TIFFOpenOptionsAlloc": (_POINTER, []),
    "TIFFOpenOptionsFree": (None, [_POINTER]),
    "TIFFOpenOptionsSetErrorHandlerExtR": (None, [_POINTER, _FILE_HANDLER, _POINTER]),
    "TIFFOpenOptionsSetWarningHandlerExtR": (None, [_POINTER, _FILE_HANDLER, _POINTER]),
    "TIFFFdOpenExt": (_POINTER, [_INT, _TEXT, _TEXT, _POINTER]),
    "TIFFCleanup": (None, [_POINTER]),
    "TIFFIsTiled": (_INT, [_POINTER]),
    "TIFFNumberOfStrips": (_UINT32, [_POINTER]),
    "TIFFNumberOfTiles": (_UINT32, [_POINTER]),
    "TIFFStripSize": (_SIZE, [_POINTER]),
    "TIFFTileSize": (_SIZE, [_POINTER]),
    "TIFFReadEncodedStrip": (_SIZE, [_POINTER, _UINT32, _POINTER, _SIZE]),
    "TIFFReadEncodedTile": (_SIZE, [_POINTER, _UINT32, _POINTER, _SIZE]),
}

_MESSAGE_BYTES = 300

_collected = threading.local()


@contextmanager
def libtiff_errors() -> Iterator[list[str]]:
    """Collect libtiff's errors in this thread while the block runs."""
    _install()
    found: list[str] = []
    _collected.messages = found
    try:
        yield found
    finally:
        del _collected.messages


def first_fault(data: bytes, most_bytes: int) -> str | None:
    """Decode a TIFF strip by strip and return libtiff's first error or warning about its pixels.

    Args:
        data: the file.
        most_bytes: larger strips are not decoded.

    Returns:
        The message; None if there is no fault or if this libtiff is too old.
    """
    library = _library()
    if library is None:
        return None
    found: list[str] = []

    def collect(_: int, __: int, ___: bytes, form: bytes, values: int) -> int:
        found.append(_text(form, values))
        return 1

    handler = _FILE_HANDLER(collect)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        settings = library.TIFFOpenOptionsAlloc()
        library.TIFFOpenOptionsSetErrorHandlerExtR(settings, handler, None)
        library.TIFFOpenOptionsSetWarningHandlerExtR(settings, handler, None)
        opened = library.TIFFFdOpenExt(file.fileno(), b"image", b"r", settings)
        library.TIFFOpenOptionsFree(settings)
        if not opened:
            return found[0] if found else None
        found.clear()  # messages about the directory are mostly about unknown tags
        try:
            _read_all(library, opened, most_bytes, found)
        finally:
            library.TIFFCleanup(opened)  # unlike TIFFClose, it does not close the file
    return found[0] if found else None


def _read_all(library: Any, opened: int, most_bytes: int, found: list[str]) -> None:
    """Decode strips or tiles until one has a fault."""
    is_tiled = library.TIFFIsTiled(opened)
    size = library.TIFFTileSize(opened) if is_tiled else library.TIFFStripSize(opened)
    if not 0 < size <= most_bytes:
        return
    count = library.TIFFNumberOfTiles(opened) if is_tiled else library.TIFFNumberOfStrips(opened)
    read = library.TIFFReadEncodedTile if is_tiled else library.TIFFReadEncodedStrip
    pixels = ctypes.create_string_buffer(size)
    for number in range(count):
        read(opened, number, pixels, size)
        if found:
            return


@cache
def _library() -> Any:
    """Return libtiff with its per-file functions declared; None if it lacks them."""
    try:
        # Pillow's module exposes the symbols of the libraries that it is linked with.
        library = ctypes.CDLL(_imaging.__file__)
        for name, (result, arguments) in _OF_FILES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library


@cache
def _install() -> object:
    """Install an error handler in libtiff, and return it: it must live as long as the process."""
    try:
        set_handler = ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler
    except (OSError, AttributeError):
        return None  # a Pillow without libtiff, or one that hides it
    set_handler.restype = _HANDLER
    set_handler.argtypes = [_HANDLER]
    before: Any = None

    def collect(module: bytes | None, form: bytes, values: int | None) -> None:
        messages: list[str] | None = getattr(_collected, "messages", None)
        if messages is not None:
            messages.append(_text(form, values))
        elif before:  # other code's TIFF
            before(module, form, values)

    handler = _HANDLER(collect)
    before = set_handler(handler)
    return handler


def _text(form: bytes, values: int | None) -> str:
    """Format a C message from its format and its va_list."""
    text = ctypes.create_string_buffer(_MESSAGE_BYTES)
    ctypes.CDLL(None).vsnprintf(text, _MESSAGE_BYTES, form, ctypes.c_void_p(values))
    return text.value.decode(errors="replace")
