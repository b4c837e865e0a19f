"""What is stored of unusual pixels, compared with decoders other than Pillow and by hand.

docs/stored-images.md has the decision about each kind.
"""

import itertools
import struct
import zlib

import av
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from benchmarks.bombs import png_chunk as chunk
from recordgen.payloads.check import check_image
from tests.conftest import encoded
from tests.payloads import hostile
from tests.payloads.refusals import refusal
from tests.payloads.test_png import header
from tests.payloads.test_png import png as png_of
from tests.settings import payload_settings

OPTIONS = payload_settings()
WIDTH, HEIGHT = 13, 7


def noise(shape, levels, seed=0):
    """Return whole numbers from 0 to ``levels`` - 1, with both ends."""
    found = np.random.default_rng(seed).integers(0, levels, shape).astype(np.uint16)
    found.flat[:2] = 0, levels - 1
    return found


def stored(data, reason="format"):
    """Return the stored picture as TensorFlow decodes it: uint8 [h, w, 3]."""
    image = check_image(data, OPTIONS)
    assert (image.format, image.reencoded) == ("png", reason)
    return tf.io.decode_image(image.data, channels=3, expand_animations=False).numpy()


def by_ffmpeg(data, codec, layout):
    """Return the pixels of a file as FFmpeg decodes it."""
    [frame] = av.CodecContext.create(codec, "r").decode(av.Packet(data))
    return frame.to_ndarray(format=layout)


def gray(levels):
    """Return gray levels as RGB."""
    return np.repeat(np.asarray(levels, np.uint8)[:, :, None], 3, axis=2)


# --- TIFF -----------------------------------------------------------------------------------------


def packed(values, bits):
    """Return rows of samples with ``bits`` bits, the highest first."""
    found = (values[:, :, None] >> np.arange(bits)[::-1] & 1).astype(np.uint8)
    return np.packbits(found.reshape(len(values), -1), axis=1).tobytes()


def tiff(values, bits, order="<", photometric=1):
    """Return a gray TIFF."""
    pixels = values.astype(order + "u2").tobytes() if bits == 16 else packed(values, bits)
    height, width = values.shape
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 8}
    tags |= {277: 1, 278: height, 279: len(pixels)}
    entries = b"".join(struct.pack(order + "HHIHxx", tag, 3, 1, tags[tag]) for tag in tags)
    magic = b"II*\0" if order == "<" else b"MM\0*"
    directory = struct.pack(order + "H", len(tags)) + entries + bytes(4)
    return magic + struct.pack(order + "I", 8 + len(pixels)) + pixels + directory


@pytest.mark.parametrize(("bits", "order"), [(16, "<"), (16, ">"), (12, "<")])
def test_the_high_8_bits_are_stored(bits, order):
    """Of 12 and 16 bits, in both byte orders."""
    values = noise((HEIGHT, WIDTH), 1 << bits)
    data = tiff(values, bits, order)
    np.testing.assert_array_equal(stored(data, "16_bit"), gray(values >> bits - 8))
    np.testing.assert_array_equal(by_ffmpeg(data, "tiff", f"gray{bits}le"), values)


@pytest.mark.parametrize(("bits", "highest"), [(16, 4_095), (12, 255)])
def test_levels_of_which_hardly_any_is_left_are_refused(bits, highest):
    """12 bits in 16, as of X-rays, would become 16 levels; a black picture is one."""
    values = noise((HEIGHT, WIDTH), highest + 1)
    assert refusal(tiff(values, bits)) == "unsupported_pixels"
    for kept in (values * 0, values + 1):
        np.testing.assert_array_equal(stored(tiff(kept, bits), "16_bit"), gray(kept >> bits - 8))


@pytest.mark.parametrize(
    ("order", "bits", "photometric"),
    [(">", 12, 1), ("<", 10, 1), (">", 14, 1), ("<", 12, 0), ("<", 16, 0), (">", 16, 0)],
)
def test_other_deep_tiffs_are_refused(order, bits, photometric):
    """Depths that Pillow does not know, and deep samples of which 0 is white."""
    data = tiff(noise((HEIGHT, WIDTH), 1 << bits), bits, order, photometric)
    assert refusal(data) == "unsupported_pixels"


def planar(planes, bits, *, deflated):
    """Return a TIFF of uint [planes, h, w] in separate planes."""
    count, height, width = planes.shape
    kind = "<u2" if bits == 16 else "u1"
    bodies = [plane.astype(kind).tobytes() for plane in planes]
    if deflated:
        bodies = [zlib.compress(body) for body in bodies]
    ends = np.cumsum([0, *map(len, bodies)])
    lists = {258: [bits] * count, 273: (ends[:-1] + 8).tolist(), 279: [*map(len, bodies)]}
    if count in (2, 4):
        lists[338] = [2]  # the last plane is alpha
    single = {256: width, 257: height, 259: 8 if deflated else 1, 262: 2 if count > 2 else 1}
    tags = {**{tag: [value] for tag, value in single.items()}, **lists}
    tags |= {277: [count], 278: [height], 284: [2]}
    data, entries = b"".join(bodies), []
    for tag, values in sorted(tags.items()):
        body = struct.pack(f"<{len(values)}I", *values)
        if len(values) > 1:  # they follow the planes
            body, data = hostile.number(8 + len(data)), data + body
        entries.append((tag, 4, len(values), body))
    return hostile.tiff(entries, data)


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_separate_planes_are_read_or_refused(count, bits, deflated):
    """What Pillow reads wrongly is a reject; the rest has the right levels and transparency."""
    planes = noise((count, HEIGHT, WIDTH), 1 << bits)
    data = planar(planes, bits, deflated=deflated)
    if count == 2 or (bits == 16 and not deflated):
        assert refusal(data) == "unsupported_pixels"
        return
    levels = np.moveaxis(planes >> bits - 8, 0, 2)
    reason = "16_bit" if bits == 16 else "format"
    if count == 3:
        np.testing.assert_array_equal(stored(data, reason), levels)
    else:
        colours, alpha = levels[..., :3].astype(float), levels[..., 3:] / 255
        difference = stored(data, reason) - (colours * alpha + 255 * (1 - alpha))
        assert np.abs(difference).max() <= 1


# --- PNG ------------------------------------------------------------------------------------------


def png(samples, depth, transparent=()):
    """Return a PNG of gray or RGB samples, with a transparent colour if one is given."""
    height, width = samples.shape[:2]
    rows = (
        row.astype(">u2").tobytes() if depth == 16 else packed(row.reshape(1, -1), depth)
        for row in samples
    )
    kind = 2 if samples.ndim == 3 else 0
    colour = struct.pack(f">{len(transparent)}H", *transparent)
    body = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return png_of(
        header(width, height, depth, kind), *([chunk(b"tRNS", colour)] if colour else []), body
    )


# depth of a gray PNG, its transparent level
LEVELS = [(depth, level) for depth in (1, 2, 4) for level in range(1 << depth)]
LEVELS += [(depth, level) for depth in (8, 16) for level in (0, 7, 200, (1 << depth) - 1)]


@pytest.mark.parametrize(("depth", "level"), LEVELS)
def test_only_pixels_of_the_transparent_level_show_white(depth, level):
    """At every depth, the next level is opaque."""
    most = (1 << depth) - 1
    values = noise((HEIGHT, WIDTH), 1 << depth)
    values[3, 3:5] = level, level ^ 1  # the same, nearly the same
    data = png(values, depth, (level,))
    levels = values >> 8 if depth == 16 else values * (255 // most)
    levels = np.where(values == level, 255, levels)
    np.testing.assert_array_equal(stored(data, "16_bit" if depth == 16 else "alpha"), gray(levels))
    others = np.array([[level ^ 1, most - level]])
    opaque = check_image(png(others, depth, (level,)), OPTIONS)
    assert opaque.reencoded == ("16_bit" if depth == 16 else None)
    if depth in (8, 16):  # FFmpeg ignores the others
        seen = by_ffmpeg(data, "png", "rgba64be" if depth == 16 else "rgba")
        np.testing.assert_array_equal(seen[..., 3] == 0, values == level)


def test_all_channels_of_the_transparent_colour_must_match():
    """A colour that differs by one bit is not transparent; with 16 bits it cannot be told."""
    values = noise((HEIGHT, WIDTH, 3), 256)
    colour = values[3, 3].copy()
    values[::2, 1] = colour
    for place, change in itertools.product(range(3), (1, 128)):
        values[place, 2 + (change > 1)] = colour
        values[place, 2 + (change > 1), place] ^= change  # nearly the same
    data = png(values, 8, tuple(map(int, colour)))
    is_clear = (values == colour).all(axis=2)
    assert is_clear.sum() == 1 + len(values[::2])
    levels = np.where(is_clear[:, :, None], 255, values)
    np.testing.assert_array_equal(stored(data, "alpha"), levels)
    np.testing.assert_array_equal(by_ffmpeg(data, "png", "rgba")[..., 3] == 0, is_clear)
    assert refusal(png(values * 256, 16, tuple(map(int, colour)))) == "unsupported_pixels"


@pytest.mark.parametrize(
    "kind",
    {
        b"tEXt": b"Comment\0" + b"x" * 3_000_000,
        b"zTXt": b"Comment\0\0" + zlib.compress(bytes(3_000_000)),
        b"iTXt": b"Comment\0\1\0\0\0" + zlib.compress(b"x" * 3_000_000),
        b"iCCP": b"profile\0\0" + zlib.compress(bytes(3_000_000)),
    }.items(),
    ids=lambda item: item[0].decode(),
)
def test_large_texts_and_profiles_are_no_reason_to_refuse(kind):
    """Megabytes of text or profile change no pixel."""
    plain = encoded(Image.fromarray(noise((HEIGHT, WIDTH, 3), 256).astype(np.uint8)))
    data = plain[:33] + chunk(*kind) + plain[33:]
    assert check_image(data, OPTIONS).data == data
    expected = tf.io.decode_png(plain).numpy()
    np.testing.assert_array_equal(tf.io.decode_png(data).numpy(), expected)
    small = check_image(data, payload_settings(image_size="5max"))
    assert small.data == check_image(plain, payload_settings(image_size="5max")).data


def test_transparency_behind_the_pixels_is_ignored():
    """Decoders read the colour only in front of the pixels."""
    plain = encoded(Image.fromarray(noise((HEIGHT, WIDTH), 256).astype(np.uint8)))
    data = plain[:-12] + chunk(b"tRNS", b"\0\7") + chunk(b"IEND")
    assert check_image(data, OPTIONS).data == data


# --- BMP ------------------------------------------------------------------------------------------


def bmp(bits, compression, body, *, header=40, extra=b"", colours=0):
    """Return a BMP; ``extra`` are masks behind the header, or its further fields."""
    extra += bytes(4 << bits) if bits <= 8 else b""  # a palette
    size, start = len(body), 14 + 40 + len(extra)
    fields = (header, WIDTH, HEIGHT, 1, bits, compression, size, 0, 0, colours, 0)
    head = b"BM" + struct.pack("<IHHI", start + size, 0, 0, start)
    return head + struct.pack("<IiiHHIIiiII", *fields) + extra + body


def test_alpha_shows_white_unless_it_is_zero_everywhere():
    """An alpha channel of zeros is unused, as browsers take it."""
    masks = struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000) + bytes(52)
    body = bytes([10, 20, 30, 0, 40, 50, 60, 255]) * (WIDTH * HEIGHT)
    pixels = stored(bmp(32, 3, body[: WIDTH * HEIGHT * 4], extra=masks, header=108))
    assert {tuple(pixel) for pixel in pixels.reshape(-1, 3)} == {(255, 255, 255), (60, 50, 40)}
    clear = bmp(32, 3, bytes([10, 20, 30, 0]) * (WIDTH * HEIGHT), extra=masks, header=108)
    assert (stored(clear) == [30, 20, 10]).all()


# bits, compression, colours, code
BITMAPS = [
    (8, 1, 0, "unsupported_pixels"),
    (4, 2, 0, "unsupported_pixels"),
    (24, 4, 0, "corrupt"),
    (8, 0, 2, "unsupported_pixels"),  # Pillow takes bytes for bits
    (32, 3, 0, "corrupt"),  # unknown fields
    (48, 0, 0, "corrupt"),
]


@pytest.mark.parametrize(("bits", "compression", "colours", "code"), BITMAPS)
def test_unknown_bitmaps_are_refused(bits, compression, colours, code):
    """What Pillow decodes otherwise than browsers, or not at all, is stored by no guess."""
    data = bmp(
        bits, compression, bytes(4000), extra=struct.pack("<3I", 0, 0xFFFFFF, 4), colours=colours
    )
    assert refusal(data) == code
