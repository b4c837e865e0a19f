"""Faults that giflib refuses are found in GIFs; accepted GIFs decode in TensorFlow."""

import io
import struct

import pytest
import tensorflow as tf
from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image
from recordgen.payloads.gif import GifFrame, read_gif
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


def tf_frames(data):
    """Return how many frames TensorFlow decodes: it skips all frames after a damaged one."""
    try:
        return len(tf.io.decode_gif(data))
    except tf.errors.InvalidArgumentError:
        return 0


def test_frames_are_found_between_palettes_and_extensions():
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


def test_flags_give_the_length_of_palettes():
    for size in range(8):
        palette = bytes(3 << size + 1)
        whole = header(flags=0x80 | size, palette=palette) + frame(FULL) + b";"
        own = header(flags=size, palette=b"")
        own += frame(FULL, flags=0x80 | size, palette=palette) + b";"
        for data in (whole, own):
            assert read_gif(data).frames == [GifFrame(4, 4, 2, blocks(FULL))]
            assert tf_frames(data) == 1


# name: file that giflib refuses, code
REFUSED = {
    "an unknown block": (header() + COMMENT + b"\x2d;", "corrupt"),
    "an empty block for one": (header() + frame(FULL) + b"\0;", "corrupt"),
    "no palette": (header(flags=0x01, palette=b"") + frame(FULL) + b";", "corrupt"),
    "no columns": (header() + frame(FULL, 0, 4) + b";", "corrupt"),
    "no rows": (header() + frame(FULL, 4, 0) + b";", "corrupt"),
    "no code bits": (header() + frame(FULL, code_bits=0) + b";", "corrupt"),
    "9 code bits": (header() + frame(FULL, code_bits=9) + b";", "corrupt"),
    **{
        f"{size} of {len(STILL)} bytes": (STILL[:size], "truncated")
        for size in range(4, len(STILL))
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_gif_that_giflib_refuses_is_refused_with_its_code(name):
    data, code = REFUSED[name]
    with pytest.raises(PayloadError) as caught:
        read_gif(data)
    assert caught.value.code == code


@pytest.mark.parametrize("bits", range(12))
def test_codes_of_1_to_8_bits_are_read(bits):
    clear = 1 << bits
    stream = lzw([clear, 0, clear, 0, clear, 0, clear, 0, clear + 1], bits)
    data = header(2, 2) + frame(stream, 2, 2, code_bits=bits) + b";"
    assert tf_frames(data) == (bits <= 8)
    if 1 <= bits <= 8:
        assert check_image(data, OPTIONS).data == data
    else:
        with pytest.raises(PayloadError) as caught:
            check_image(data, OPTIONS)
        assert caught.value.code == "corrupt"


# A graphic control extension; its flag 1 makes a colour transparent.
def control(transparent):
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
def test_unusual_gifs_are_encoded_again(name):
    stored = check_image(UNUSUAL[name], OPTIONS)
    assert (stored.format, stored.reencoded) == ("png", "gif")
    seen = tf.io.decode_image(stored.data, channels=3, expand_animations=False).numpy()
    assert seen.shape == (stored.height, stored.width, 3)
    assert (seen[:4] == list(GRAYS[3:6])).all()


def test_usual_gifs_keep_their_bytes():
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
def test_frames_that_end_early_are_refused(name):
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
    assert caught.value.code == "corrupt"


def test_codes_after_the_last_pixel_are_accepted():
    for codes in (pixels(16), [*pixels(20), END], [*pixels(16), END, END]):
        data = header() + frame(lzw(codes)) + b";"
        assert tf_frames(data) == 1
        assert check_image(data, OPTIONS).data == data


def test_the_limit_of_pixels_applies_to_each_frame():
    data = header() + frame(FULL) + frame(b"", 65535, 65535) + b";"
    with pytest.raises(PayloadError) as caught:
        check_image(data, OPTIONS)
    assert caught.value.code == "too_many_pixels"
