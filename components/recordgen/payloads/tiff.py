"""What a TIFF's directory says before it is decoded, and what libtiff says while it is.

TIFF Revision 6.0, section 2.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from PIL import _imaging

from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

#: Strips or tiles that a TIFF may have: Pillow decodes each by itself.
MAX_STRIPS = 100_000

_STRIP_OFFSETS, _TILE_OFFSETS = 273, 324

# magic: byte order, where the offset of the directory stands and its type; types of the number of
# entries, and of an entry: tag, type, count
_LAYOUTS = {
    b"II*\0": ("<", 4, "I", "H", "HHI", 12),
    b"MM\0*": (">", 4, "I", "H", "HHI", 12),
    b"II+\0": ("<", 8, "Q", "Q", "HHQ", 20),
    b"MM\0+": (">", 8, "Q", "Q", "HHQ", 20),
}

# A libtiff handler: module, format, arguments of the format.
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
_MESSAGE_BYTES = 300

_heard = threading.local()


def check_strips(data: bytes) -> None:
    """Check how many strips or tiles the first image of a TIFF has.

    Raises:
        PayloadError: there are too many.
    """
    layout = _LAYOUTS.get(data[:4])
    if layout is None:
        return
    order, place, offset, number, entry, entry_bytes = layout
    try:
        [at] = struct.unpack_from(order + offset, data, place)
        [entries] = struct.unpack_from(order + number, data, at)
        at += struct.calcsize(order + number)
        for start in range(at, at + entry_bytes * min(entries, 1 << 16), entry_bytes):
            tag, _, count = struct.unpack_from(order + entry, data, start)
            if tag in (_STRIP_OFFSETS, _TILE_OFFSETS) and count > MAX_STRIPS:
                raise PayloadError(
                    RejectCode.TOO_MANY_PARTS,
                    f"a TIFF may have at most {MAX_STRIPS:,} strips or tiles (got {count:,}); save "
                    f"it again with larger ones",
                )
    except struct.error:
        return  # Pillow says what is wrong with the directory


@contextmanager
def libtiff_errors() -> Iterator[list[str]]:
    """Collect what libtiff reports as errors in this thread while the block runs.

    By default it prints them, and of fax codes it goes on and fills the row with white.
    """
    _install()
    found: list[str] = []
    _heard.messages = found
    try:
        yield found
    finally:
        del _heard.messages


@cache
def _install() -> object:
    """Make libtiff hand over its errors; return what must live as long as it does."""
    try:
        # The symbols of the libraries that Pillow's module is linked with can be found through it.
        library = ctypes.CDLL(_imaging.__file__)
        set_handler = library.TIFFSetErrorHandler
        write = ctypes.CDLL(None).vsnprintf
    except (OSError, AttributeError):
        return None  # a Pillow without libtiff, or one that hides it
    set_handler.restype = _HANDLER
    set_handler.argtypes = [_HANDLER]
    before: Any = None

    def hear(module: bytes | None, form: bytes, values: int | None) -> None:
        messages: list[str] | None = getattr(_heard, "messages", None)
        if messages is None:  # somebody else's TIFF
            if before:
                before(module, form, values)
            return
        text = ctypes.create_string_buffer(_MESSAGE_BYTES)
        write(text, _MESSAGE_BYTES, form, ctypes.c_void_p(values))
        messages.append(text.value.decode(errors="replace"))

    handler = _HANDLER(hear)
    before = set_handler(handler)
    return handler
