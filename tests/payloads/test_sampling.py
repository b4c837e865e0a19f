"""JPEGs with any sampling factors: what TensorFlow decodes is accepted."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image
from tests.conftest import encoded
from tests.settings import payload_settings

# Codes of sizes 0 to 8 in Huffman's tables for brightness and colours (T.81, K.3.3.1).
CODES = (
    ["00", "010", "011", "100", "101", "110", "1110", "11110", "111110"],
    ["00", "01", "10", "110", "1110", "11110", "111110", "1111110", "11111110"],
)
END_OF_BLOCK = ("1010", "00")


def mosaic(width, height, sampling):
    """Return a JPEG of random blocks with these factors: 0x21 is 2 across, 1 down."""
    jpeg = encoded(Image.new("RGB", (8, 8)), "JPEG", subsampling="4:4:4", quality=90)
    at, scan = jpeg.index(b"\xff\xc0"), jpeg.index(b"\xff\xda")
    head = bytearray(jpeg[: scan + 14])
    head[at + 5 : at + 9] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    head[at + 11 : at + 20 : 3] = bytes(sampling)
    across, down = max(each >> 4 for each in sampling), max(each & 15 for each in sampling)
    random, last, bits = np.random.default_rng(0), [0, 0, 0], ""
    for _ in range(-(-width // (8 * across)) * -(-height // (8 * down))):
        for part, each in enumerate(sampling):
            for _ in range((each >> 4) * (each & 15)):
                level = int(random.integers(-60, 60))
                change, last[part] = level - last[part], level
                size = abs(change).bit_length()
                bits += CODES[part > 0][size]
                if size:
                    bits += f"{change if change > 0 else change + (1 << size) - 1:0{size}b}"
                bits += END_OF_BLOCK[part > 0]
    bits += "1" * (-len(bits) % 8)
    body = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return bytes(head) + body + b"\xff\xd9"


# Of some, simplejpeg refuses the header: 4:1:0, three across, and factors of their own for Cr.
SAMPLINGS = [
    *((0x11, 0x11, 0x11), (0x22, 0x11, 0x11), (0x12, 0x11, 0x11), (0x41, 0x11, 0x11)),
    *((0x42, 0x11, 0x11), (0x31, 0x11, 0x11), (0x14, 0x11, 0x11), (0x24, 0x11, 0x11)),
    *((0x22, 0x11, 0x21), (0x22, 0x21, 0x11), (0x21, 0x12, 0x11), (0x11, 0x21, 0x11)),
]


@pytest.mark.parametrize("check", ["decode", "header", "none"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda each: bytes(each).hex())
def test_what_tensorflow_decodes_is_accepted(sampling, check):
    """Each check accepts it with its size, and keeps its bytes."""
    for width, height in ((40, 24), (331, 257), (9, 1)):
        jpeg = mosaic(width, height, sampling)
        assert tf.io.decode_jpeg(jpeg).shape == (height, width, 3)
        found = check_image(jpeg, payload_settings(check=check))
        assert (found.data, found.format) == (jpeg, "jpeg")
        assert (found.height, found.width) == (height, width)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=lambda each: bytes(each).hex())
def test_resized_as_tensorflow_shows_it(sampling):
    """The stored small picture looks like TensorFlow's decoded one."""
    jpeg = mosaic(320, 256, sampling)
    found = check_image(jpeg, payload_settings(image_size="80max", encode="png"))
    shown = Image.fromarray(tf.io.decode_jpeg(jpeg).numpy()).reduce(4)
    stored = np.asarray(Image.open(io.BytesIO(found.data)))
    assert np.abs(stored.astype(int) - np.asarray(shown)).mean() < 3


@pytest.mark.parametrize("sampling", [(0x22, 0x22, 0x22), (0x44, 0x11, 0x11)])
def test_what_tensorflow_refuses_is_a_reject(sampling):
    """A unit of an interleaved scan has at most ten blocks (T.81, B.2.3)."""
    jpeg = mosaic(40, 24, sampling)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_jpeg(jpeg)
    with pytest.raises(PayloadError):
        check_image(jpeg, payload_settings())


@pytest.mark.parametrize("sampling", SAMPLINGS[4:], ids=lambda each: bytes(each).hex())
def test_one_that_is_cut_is_a_reject(sampling):
    """Sampling that the fast decoder lacks has no laxer check."""
    jpeg = mosaic(331, 257, sampling)
    with pytest.raises(PayloadError):
        check_image(jpeg[: len(jpeg) // 2], payload_settings())
