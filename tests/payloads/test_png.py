"""Faults that libpng refuses are found in PNGs; every valid PNG is accepted."""

import itertools
import random
import struct
import zlib

import pytest
import tensorflow as tf

from benchmarks.bombs import png_chunk as chunk
from recordgen.errors import PayloadError
from recordgen.payloads.png import check_png
from tests.conftest import error_of
from tests.payloads.refusals import by_name, refusal

# Adam7 pass of each pixel in a square of eight by eight (PNG, section 8.2).
ADAM7 = ("16462646", "7" * 8, "56" * 4, "7" * 8, "3646" * 2, "7" * 8, "56" * 4, "7" * 8)

# colour type: samples per pixel, and allowed bit depths
COLOURS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}


def header(width=3, height=2, depth=8, colour=0, *rest):
    """Return IHDR; ``rest``: compression, filter and interlace methods."""
    fields = (width, height, depth, colour, *(rest or (0, 0, 0)))
    return chunk(b"IHDR", struct.pack(">IIBBBBB", *fields))


def pixels(size):
    """Return IDAT with this many bytes of pixel data."""
    return chunk(b"IDAT", zlib.compress(bytes(size)))


def png(*chunks):
    """Return a PNG with these chunks and an end chunk."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IEND")


def data_bytes(width, height, bits, interlace):
    """Return the size of an image's pixel data, counted pixel by pixel."""
    total = 0
    for number in "1234567" if interlace else "0":
        for y in range(height):
            row = (ADAM7[y % 8][x % 8] if interlace else "0" for x in range(width))
            in_pass = sum(found == number for found in row)
            total += 1 + (in_pass * bits + 7) // 8 if in_pass else 0
    return total


@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_png_needs_all_of_its_pixel_data(colour, interlace):
    """For each colour, depth and size, one byte less is ``truncated``."""
    samples, depths = COLOURS[colour]
    palette = chunk(b"PLTE", bytes(6)) if colour == 3 else b""
    sizes = [*itertools.product(range(1, 10), repeat=2), (40, 3), (3, 40)]
    for depth, (width, height) in itertools.product(depths, sizes):
        head = header(width, height, depth, colour, 0, 0, interlace)
        expected = data_bytes(width, height, samples * depth, interlace)
        check_png(png(head, palette, pixels(expected)))
        error = error_of(PayloadError, check_png, png(head, palette, pixels(expected - 1)))
        assert error.code == "truncated"
        assert f"{expected - 1} of {expected}" in error.message


def test_pixel_data_may_continue_in_the_next_chunk():
    """The stream may be divided anywhere, and ends before the rest of a chunk."""
    stream = zlib.compress(bytes(range(256)) * 12000)  # more than is inflated in one piece
    parts = [chunk(b"IDAT", stream[at : at + 1000]) for at in range(0, len(stream), 1000)]
    check_png(png(header(3071, 1000), *parts))
    check_png(png(header(3071, 999), *parts))
    with pytest.raises(PayloadError, match="3072000"):
        check_png(png(header(3072, 1000), *parts))
    check_png(png(header(), chunk(b"IDAT"), pixels(8), chunk(b"IDAT", b"behind the stream's end")))
    parts = [chunk(b"IDAT", stream[at : at + 1]) for at in range(len(stream) - 9, len(stream))]
    check_png(png(header(3071, 1000), chunk(b"IDAT", stream[:-9]), *parts))


def window(stream, bits):
    """Return a zlib stream that announces a window of 256 << bits bytes (RFC 1950, 2.2)."""
    first = bits << 4 | 8
    return bytes([first, 31 - first * 256 % 31]) + stream[2:]


def test_a_small_window_is_accepted_and_a_reference_before_it_refused():
    """A zlib stream may announce any window that it keeps to."""
    noise = random.Random(0).randbytes(299)
    rows = b"".join(b"\0" + noise for _ in range(4))  # each row repeats the one 300 bytes before
    stream = zlib.compress(rows)
    for bits in range(8):
        data = png(header(299, 4), chunk(b"IDAT", window(stream, bits)))
        if bits:
            check_png(data)
        else:
            assert refusal(data, check_png) == "corrupt"
        assert bool(bits) == is_read(data)


def is_read(data):
    """Return whether TensorFlow decodes a file."""
    try:
        return bool(tf.io.decode_png(data, channels=3).shape)
    except tf.errors.InvalidArgumentError:
        return False


STREAM = zlib.compress(bytes(8))
TEXT = chunk(b"tEXt", b"Comment\0x")

SPLIT = [chunk(b"IDAT", STREAM[:5]), TEXT, chunk(b"IDAT", STREAM[5:])]
LATE_PALETTE = (pixels(8), chunk(b"PLTE", bytes(6)))

# Files that libpng refuses, by their codes.
TRUNCATED = {
    "no checksum of pixels": png(header(), chunk(b"IDAT", STREAM[:-4])),
    "half a checksum of pixels": png(header(), chunk(b"IDAT", STREAM[:-1])),
}
CORRUPT = {
    "a wrong checksum of pixels": png(header(), chunk(b"IDAT", STREAM[:-1] + b"x")),
    "a second header": png(header(), header(), pixels(8)),
    "a second header behind the pixels": png(header(), pixels(8), header()),
    "a palette behind the pixels": png(header(3, 2, 8, 3), *LATE_PALETTE),
    "two palettes for colours": png(
        header(3, 2, 8, 2), *[chunk(b"PLTE", bytes(3))] * 2, pixels(20)
    ),
    "an unknown critical chunk": png(header(), pixels(8), chunk(b"ABcd")),
    **{
        f"a name with {byte!r}": png(header(), chunk(b"te" + byte + b"t"), pixels(8))
        for byte in (b"\0", b"0", b"@", b"[", b"`", b"{", b"\xe9")
    },
    "a chunk between pixels": png(header(), *SPLIT),
}
STRUCTURES = by_name(truncated=TRUNCATED, corrupt=CORRUPT)


def test_structures_that_libpng_accepts():
    """Text around the pixels and data behind the stream are read by TensorFlow, too."""
    for data in (
        png(header(), TEXT, pixels(8), TEXT),
        png(header(), pixels(12)),
        png(header(), chunk(b"IDAT", STREAM + b"behind")),
    ):
        check_png(data)
        assert is_read(data)


def test_too_many_pixel_data():
    """Some surplus is accepted, megabytes are not."""
    check_png(png(header(), pixels(1_000_000)))
    with pytest.raises(PayloadError):
        check_png(png(header(), pixels(3_000_000)))


PALETTES = [chunk(b"PLTE", bytes(3)), chunk(b"PLTE", bytes(6))]

# Files that the standard forbids: file, code
REFUSED = STRUCTURES | by_name(
    truncated={
        "no pixels": png(header()),
        "no end": png(header(), pixels(8))[:-12],
        "half an end": png(header(), pixels(8))[:-1],
        "half a chunk": png(header(), pixels(8))[:-20],
    },
    corrupt={
        "no chunk but the end": png(),
        "another chunk first": png(chunk(b"tEXt", bytes(13)), header(), pixels(8)),
        "a long header": png(chunk(b"IHDR", bytes(14))),
        "a colour type": png(header(3, 2, 8, 5), pixels(8)),
        "a depth": png(header(3, 2, 4, 2), pixels(20)),
        "compression": png(header(3, 2, 8, 0, 1, 0, 0), pixels(8)),
        "filter": png(header(3, 2, 8, 0, 0, 1, 0), pixels(8)),
        "interlace": png(header(3, 2, 8, 0, 0, 0, 2), pixels(8)),
        "no palette": png(header(3, 2, 8, 3), pixels(8)),
        "two palettes": png(header(3, 2, 8, 3), *PALETTES, pixels(8)),
        **{
            f"palette of {size}": png(
                header(3, 2, 8, colour), chunk(b"PLTE", bytes(size)), pixels(20)
            )
            for size, colour in ((0, 3), (4, 3), (771, 3), (0, 2), (5, 2))
        },
        "another stream": png(header(), chunk(b"IDAT", b"no zlib")),
        "a checksum": png(header(), pixels(8))[:-1] + b"x",
    },
)


@pytest.mark.parametrize("name", REFUSED)
def test_a_png_that_libpng_refuses_is_refused_with_its_code(name):
    """TensorFlow does not read them either."""
    data, code = REFUSED[name]
    assert name not in STRUCTURES or not is_read(data)
    assert refusal(data, check_png) == code


def test_palettes_and_unknown_chunks_are_accepted():
    """Palettes of 1 to 256 colours, ancillary chunks and bytes behind the end are no fault."""
    for size, colour, length in ((3, 3, 8), (768, 3, 8), (6, 2, 20), (768, 6, 26)):
        check_png(png(header(3, 2, 8, colour), chunk(b"PLTE", bytes(size)), pixels(length)))
    check_png(png(header(), chunk(b"teSt", b"x"), pixels(8), chunk(b"tEXt")) + b"behind the end")
