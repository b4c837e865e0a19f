"""The first picture of a GIF is stored as a PNG; damage that hides pixels of it is found."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from recordgen.payloads.check import check_image
from tests.payloads.refusals import refusal
from tests.settings import payload_settings

OPTIONS = payload_settings()
GRAYS = bytes(range(12))  # a palette with four colours
COMMENT = b"\x21\xfe\x02hi\x01!\0"
CODE_BITS = 2
CLEAR, END = 4, 5  # LZW's special codes, with CODE_BITS + 1 bits like all others


def header(width=4, height=4, flags=0x81, palette=GRAYS):
    """Return signature, screen descriptor and global palette."""
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + palette


def lzw(codes, bits=CODE_BITS):
    """Return a stream of codes with ``bits`` + 1 bits each, the lowest bit first."""
    stream = int("".join(f"{code:0{bits + 1}b}" for code in reversed(codes)), 2)
    return stream.to_bytes(-(-len(codes) * (bits + 1) // 8), "little")


def pixels(count):
    """Return the codes of this many pixels; the table is cleared before codes grow longer."""
    return [code for at in range(count) for code in ((CLEAR, 1) if at % 2 == 0 else (1,))]


def blocks(stream):
    """Return a stream in sub-blocks, without the empty last one."""
    parts = (stream[at : at + 255] for at in range(0, len(stream), 255))
    return b"".join(bytes([len(part)]) + part for part in parts)


def frame(stream, width=4, height=4, *, code_bits=CODE_BITS, flags=0, palette=b""):
    """Return an image descriptor and its data."""
    descriptor = struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, flags)
    return descriptor + palette + bytes([code_bits]) + blocks(stream) + b"\0"


FULL = lzw([*pixels(16), END])
STILL = header() + frame(FULL) + b";"


def pixels_of(data):
    """Return the stored picture of a GIF, uint8 [h, w, 3]."""
    stored = check_image(data, OPTIONS)
    assert (stored.format, stored.reencoded) == ("png", "format")
    return np.asarray(Image.open(io.BytesIO(stored.data)).convert("RGB"))


# name: file whose structure is damaged, code
REFUSED = {
    "an unknown block": (header() + COMMENT + b"\x2d;", "corrupt"),
    "an empty block for one": (header() + frame(FULL) + b"\0;", "corrupt"),
    "no columns": (header() + frame(FULL, 0, 4) + b";", "corrupt"),
    "no rows": (header() + frame(FULL, 4, 0) + b";", "corrupt"),
    "9 code bits": (header() + frame(FULL, code_bits=9) + b";", "corrupt"),
    "no frame": (header() + COMMENT + b";", "corrupt"),
    "a second frame that is cut": (header() + frame(FULL) * 2, "truncated"),
    **{
        f"{size} of {len(STILL)} bytes": (STILL[:size], "truncated")
        for size in range(6, len(STILL))
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_gif_is_refused_with_its_code(name):
    """Blocks are followed to the trailer, whether Pillow reads them or not."""
    data, code = REFUSED[name]
    assert refusal(data) == code


@pytest.mark.parametrize("bits", range(1, 9))
def test_codes_of_1_to_8_bits_are_read(bits):
    """Codes and palettes of every size that the format has are decoded."""
    clear, palette = 1 << bits, GRAYS[3:6] * (1 << bits)
    stream = lzw([clear, 0, clear, 0, clear, 0, clear, 0, clear + 1], bits)
    whole = header(2, 2, 0x80 | bits - 1, palette) + frame(stream, 2, 2, code_bits=bits) + b";"
    own = header(2, 2, 0, b"")
    own += frame(stream, 2, 2, code_bits=bits, flags=0x80 | bits - 1, palette=palette) + b";"
    for data in (whole, own):
        assert (pixels_of(data) == list(GRAYS[3:6])).all()


def control(transparent):
    """Return a graphic control extension that makes a colour transparent."""
    return b"\x21\xf9\4\1\0\0" + bytes([transparent]) + b"\0"


EMPTY = b"\x21\xfe\0"
SIX_ROWS = frame(lzw([*pixels(24), END]), 4, 6)

# name: GIF whose first frame has one colour, which decoders take for different pictures; its height
UNUSUAL = {
    "an empty comment before the frame": (header() + EMPTY + frame(FULL) + b";", 4),
    "an empty comment behind the frame": (header() + frame(FULL) + EMPTY + b";", 4),
    "a second frame that is larger": (header() + frame(FULL) + SIX_ROWS + b";", 4),
    "a frame larger than its canvas": (header() + SIX_ROWS + b";", 6),
    "a canvas larger than its frame": (header(4, 6) + frame(FULL) + b";", 6),
    "two controls": (header() + control(1) + control(2) + frame(FULL) + b";", 4),
    "a control behind the frame": (header() + frame(FULL) + control(1) + SIX_ROWS + b";", 4),
    "codes after the last pixel": (header() + frame(lzw([*pixels(20), END, END])) + b";", 4),
    "no end code": (header() + frame(lzw(pixels(16))) + b";", 4),
    "bytes behind the trailer": (STILL + b"more", 4),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_the_first_frame_on_its_canvas_is_stored(name):
    """The picture of a GIF is its first frame, as browsers show it."""
    data, height = UNUSUAL[name]
    found = pixels_of(data)
    assert found.shape == (height, 4, 3)
    assert (found[:4] == list(GRAYS[3:6])).all()


def test_transparent_pixels_show_white():
    """The transparent colour of the last control before the frame counts."""
    assert (pixels_of(header() + control(1) + frame(FULL) + b";") == 255).all()


_WIDE = 400  # more data than Pillow reads in one piece
# An extension's label, length (152) and data; behind a frame's last block, Pillow takes its
# introducer for the length of another block and the rest for codes.
_CODES_IN_AN_EXTENSION = b"!" + lzw([CLEAR, 1, 1] * 411)[:154] + b"\0"

# name: file whose first frame ends before its last pixel
UNFINISHED = {
    "an end code before the last pixel": header() + frame(lzw([*pixels(15), END])) + b";",
    "too few codes": header() + frame(lzw(pixels(12))) + b";",
    "no codes": header() + frame(b"") + b";",
    "more codes behind the end code": (
        header(_WIDE, _WIDE)
        + frame(lzw([*pixels(1000), END, *pixels(_WIDE * _WIDE)]), _WIDE, _WIDE)
        + b";"
    ),
    "codes in an extension": (
        header() + frame(lzw(pixels(16)[:16])) + _CODES_IN_AN_EXTENSION + b";"
    ),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_frames_that_end_early_are_refused(name):
    """No pixel is taken from bytes that are none of the frame."""
    assert refusal(UNFINISHED[name]) in ("truncated", "corrupt")
