"""Faults that giflib refuses are found in GIFs; accepted GIFs decode in TensorFlow."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Sequence

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from benchmarks import mutants
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads.gif import GifFrame, read_gif
from recordgen.payloads.image import check_image
from tests.conftest import encoded, noise

OPTIONS = ConvertOptions()
GRAYS = bytes(range(12))  # a palette with four colours
COMMENT = b"\x21\xfe\x02hi\x01!\0"
CODE_BITS = 2
CLEAR, END = 4, 5  # LZW's special codes, with CODE_BITS + 1 bits like all others


def header(width: int = 4, height: int = 4, flags: int = 0x81, palette: bytes = GRAYS) -> bytes:
    """Return signature, screen descriptor and global palette."""
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + palette


def lzw(codes: Sequence[int], bits: int = CODE_BITS) -> bytes:
    """Return a stream of codes with ``bits`` + 1 bits each, the lowest bit first."""
    stream = sum(code << place * (bits + 1) for place, code in enumerate(codes))
    return stream.to_bytes(-(-len(codes) * (bits + 1) // 8), "little")


def pixels(count: int) -> list[int]:
    """Return the codes of this many pixels; the table is cleared before codes grow longer."""
    return [code for at in range(count) for code in ((CLEAR, 1) if at % 2 == 0 else (1,))]


def blocks(stream: bytes) -> bytes:
    """Return a stream in sub-blocks, without the empty last one."""
    parts = (stream[at : at + 255] for at in range(0, len(stream), 255))
    return b"".join(bytes([len(part)]) + part for part in parts)


def frame(
    stream: bytes,
    width: int = 4,
    height: int = 4,
    *,
    code_bits: int = CODE_BITS,
    flags: int = 0,
    palette: bytes = b"",
) -> bytes:
    """Return an image descriptor and its data."""
    descriptor = struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, flags)
    return descriptor + palette + bytes([code_bits]) + blocks(stream) + b"\0"


FULL = lzw([*pixels(16), END])
STILL = header() + frame(FULL) + b";"


def tf_frames(data: bytes) -> int:
    """Return how many frames TensorFlow decodes: it skips all frames after a damaged one."""
    try:
        return len(tf.io.decode_gif(data))
    except tf.errors.InvalidArgumentError:
        return 0


def test_frames() -> None:
    """Sizes, code sizes and blocks are found between palettes and extensions of any length."""
    long = bytes(range(1, 256)) * 3
    data = b"".join(
        [
            header(300, 513, 0xF0, bytes(6)),
            COMMENT,
            frame(b"abc", 300, 2, code_bits=8),
            b"\x21\xf9\x04\0\0\0\0\0",
            frame(long, 1, 513, code_bits=1, flags=0x87, palette=bytes(768)),
            frame(b"", 65535, 65535, flags=0x47),
            b";behind the trailer",
        ]
    )
    assert read_gif(data).frames == [
        GifFrame(300, 2, 8, b"\x03abc"),
        GifFrame(1, 513, 1, b"".join(b"\xff" + long[:255] for _ in range(3))),
        GifFrame(65535, 65535, 2, b""),
    ]
    assert read_gif(header(flags=0x01, palette=b"") + b";").frames == []


def test_palettes() -> None:
    """Flags give the length of the global and the local palette; giflib agrees."""
    for size in range(8):
        palette = bytes(3 << size + 1)
        whole = header(flags=0x80 | size, palette=palette) + frame(FULL) + b";"
        own = header(flags=size, palette=b"")
        own += frame(FULL, flags=0x80 | size, palette=palette) + b";"
        for data in (whole, own):
            assert read_gif(data).frames == [GifFrame(4, 4, 2, blocks(FULL))]
            assert tf_frames(data) == 1


_CODES = (
    "the GIF has a frame of {}×{} pixels with codes of {} bits (expected at least 1×1, and 1 to 8 "
    "bits)"
)

# name: file, code, message
REFUSED = {
    "an unknown block": (
        header() + COMMENT + b"\x2d;",
        "corrupt",
        "the GIF has a block of unknown kind (0x2d at byte 33)",
    ),
    "an empty block for one": (
        header() + frame(FULL) + b"\0;",
        "corrupt",
        f"the GIF has a block of unknown kind (0x00 at byte {len(STILL) - 1})",
    ),
    "no palette": (
        header(flags=0x01, palette=b"") + frame(FULL) + b";",
        "corrupt",
        "the GIF has no palette, so its colours are unknown",
    ),
    "no columns": (header() + frame(FULL, 0, 4) + b";", "corrupt", _CODES.format(0, 4, 2)),
    "no rows": (header() + frame(FULL, 4, 0) + b";", "corrupt", _CODES.format(4, 0, 2)),
    "no code bits": (
        header() + frame(FULL, code_bits=0) + b";",
        "corrupt",
        _CODES.format(4, 4, 0),
    ),
    "9 code bits": (header() + frame(FULL, code_bits=9) + b";", "corrupt", _CODES.format(4, 4, 9)),
    **{
        f"{size} of {len(STILL)} bytes": (
            STILL[:size],
            "truncated",
            "the GIF ends before its trailer",
        )
        for size in range(4, len(STILL))
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_giflib_would_refuse(name: str) -> None:
    """Each fault of the blocks has its code and message."""
    data, code, message = REFUSED[name]
    with pytest.raises(PayloadError) as caught:
        read_gif(data)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize("bits", range(12))
def test_code_bits(bits: int) -> None:
    """Codes of 1 to 8 bits are read, as in giflib, which also accepts size 0."""
    clear = 1 << bits
    stream = lzw([clear, 0, clear, 0, clear, 0, clear, 0, clear + 1], bits)
    data = header(2, 2) + frame(stream, 2, 2, code_bits=bits) + b";"
    assert tf_frames(data) == (bits <= 8)
    if 1 <= bits <= 8:
        assert check_image(data, OPTIONS).data == data
    else:
        with pytest.raises(PayloadError, match=f"codes of {bits} bits"):
            check_image(data, OPTIONS)


# A graphic control extension; its flag 1 makes a colour transparent.
def control(transparent: int) -> bytes:
    return b"\x21\xf9\4\1\0\0" + bytes([transparent]) + b"\0"


EMPTY = b"\x21\xfe\0"
SIX_ROWS = frame(lzw([*pixels(24), END]), 4, 6)

# name: GIF whose first frame has one colour, which decoders take for different pictures
UNUSUAL = {
    "an empty comment before the frame": header() + EMPTY + frame(FULL) + b";",
    "an empty comment behind the frame": header() + frame(FULL) + EMPTY + b";",
    "a second frame that is larger": header() + frame(FULL) + SIX_ROWS + b";",
    "a frame larger than its canvas": header() + SIX_ROWS + b";",
    "a canvas larger than its frame": header(4, 6) + frame(FULL) + b";",
    "two controls": header() + control(1) + control(2) + frame(FULL) + b";",
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_gifs_are_encoded_again(name: str) -> None:
    """The stored picture is the first frame on its canvas."""
    stored = check_image(UNUSUAL[name], OPTIONS)
    assert (stored.format, stored.reencoded) == ("png", "gif")
    seen = tf.io.decode_image(stored.data, channels=3, expand_animations=False).numpy()
    assert seen.shape == (stored.height, stored.width, 3)
    assert (seen[:4] == list(GRAYS[3:6])).all()


def test_usual_gifs() -> None:
    """Controls and comments with data, and smaller frames behind the first, keep the bytes."""
    small = frame(lzw([*pixels(4), END]), 2, 2)
    for data in (STILL, header() + COMMENT + control(3) + frame(FULL) + control(1) + small + b";"):
        assert check_image(data, OPTIONS).data == data
        assert tf.io.decode_image(data, expand_animations=False).shape == (4, 4, 3)


_WIDE = 400  # more data than Pillow reads in one piece
# An extension's label, length (152) and data; behind a frame's last block, Pillow takes its
# introducer for the length of another block and the rest for codes.
_CODES_IN_AN_EXTENSION = b"!" + lzw([CLEAR, 1, 1] * 411)[:154] + b"\0"

# name: file whose frame ends before its last pixel, whether Pillow detects it
UNFINISHED = {
    "an end code before the last pixel": (header() + frame(lzw([*pixels(15), END])) + b";", True),
    "too few codes": (header() + frame(lzw(pixels(12))) + b";", True),
    "no codes": (header() + frame(b"") + b";", True),
    "a second frame of too few": (header() + frame(FULL) + frame(lzw(pixels(12))) + b";", True),
    "more codes behind the end code": (
        header(_WIDE, _WIDE)
        + frame(lzw([*pixels(1000), END, *pixels(_WIDE * _WIDE)]), _WIDE, _WIDE)
        + b";",
        False,
    ),
    "codes in an extension": (
        header() + frame(lzw(pixels(16)[:16])) + _CODES_IN_AN_EXTENSION + b";",
        False,
    ),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_frames_that_end_early(name: str) -> None:
    """Such frames are refused, as by giflib; Pillow fills some with the following bytes."""
    data, pillow_sees = UNFINISHED[name]
    with Image.open(io.BytesIO(data)) as image:
        if pillow_sees:
            with pytest.raises(OSError, match="truncated"):
                [image.seek(frame) or image.load() for frame in range(image.n_frames)]
        else:
            image.load()
    assert tf_frames(data) == name.startswith("a second")
    with pytest.raises(PayloadError) as caught:
        check_image(data, OPTIONS)
    assert (caught.value.code, caught.value.message) == (
        "corrupt",
        "the GIF does not decode to its end: not enough image data",
    )


def test_more_codes_than_pixels() -> None:
    """Codes after the last pixel are accepted, and so is a stream without an end code."""
    for codes in (pixels(16), [*pixels(20), END], [*pixels(16), END, END]):
        data = header() + frame(lzw(codes)) + b";"
        assert tf_frames(data) == 1
        assert check_image(data, OPTIONS).data == data


def test_frames_with_too_many_pixels() -> None:
    """A frame may exceed the canvas; the limit applies to each frame, before decoding."""
    data = header() + frame(FULL) + frame(b"", 65535, 65535) + b";"
    with pytest.raises(PayloadError, match="65535×65535 = 4,294,836,225") as caught:
        check_image(data, OPTIONS)
    assert caught.value.code == "too_many_pixels"


SMALL = noise(5, 3).resize((20, 12))
FILES = [
    STILL,
    encoded(SMALL, "GIF"),
    encoded(SMALL, "GIF", interlace=0),
    encoded(SMALL.convert("1"), "GIF", comment=b"hello"),
    encoded(
        SMALL, "GIF", save_all=True, append_images=[noise(20, 12), SMALL], disposal=2, duration=9
    ),
]
DAMAGE = st.sampled_from(list(mutants.DAMAGE.values()))


@given(st.sampled_from(FILES), st.lists(DAMAGE, min_size=1, max_size=2), st.randoms())
@settings(max_examples=3 * settings().max_examples)
def test_what_is_accepted_decodes(
    data: bytes, damage: list[mutants.Change], draw: random.Random
) -> None:
    """With any damage, a GIF is refused, or keeps its bytes and TensorFlow reads it."""
    for change in damage:
        data = change(data, draw) if len(data) > 2 else data
    try:
        stored = check_image(data, OPTIONS)
    except PayloadError:
        return
    decoded = tf.io.decode_image(stored.data, channels=3, expand_animations=False)
    assert decoded.shape == (stored.height, stored.width, 3)
