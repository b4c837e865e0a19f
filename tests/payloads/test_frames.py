"""Files with several pictures: the first is stored, and the others are counted."""

import io
import struct

import pytest
from PIL import Image

from benchmarks.bombs import png_chunk as chunk
from recordgen.payloads.check import check_image
from recordgen.payloads.opening import MAX_PAGES, tiff_header
from tests.conftest import encoded, noise
from tests.settings import payload_settings

OPTIONS = payload_settings()
PICTURES = [noise(20, 12, seed=seed) for seed in range(3)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", ["TIFF", "GIF", "PNG", "WEBP"])
def test_pictures_are_counted_and_the_first_is_stored(kind, count):
    """The stored picture is the first one, whatever follows it."""
    data = encoded(PICTURES[0], kind, save_all=True, append_images=PICTURES[1:count])
    stored = check_image(data, OPTIONS)
    assert stored.frames == count
    assert check_image(encoded(PICTURES[0], kind), OPTIONS).frames == 1
    if kind != "WEBP":
        pixels = Image.open(io.BytesIO(stored.data)).convert("RGB").tobytes()
        first = Image.open(io.BytesIO(encoded(PICTURES[0], kind))).convert("RGB").tobytes()
        assert pixels == first


@pytest.mark.parametrize("kind", ["JPEG", "BMP"])
def test_formats_of_one_picture_are_not_counted(kind):
    """JPEG and BMP have no number of frames."""
    assert check_image(encoded(noise(48, 48), kind), OPTIONS).frames is None


def directories(*numbers, order="<", next_of_last=0):
    """Return a TIFF with only directories of these short numbers."""
    data = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    for place, found in enumerate(numbers):
        end = len(data) + 2 + 12 * len(found) + 4
        data += struct.pack(order + "H", len(found))
        for tag, value in found.items():
            data += struct.pack(order + "HHIHxx", tag, 3, 1, value)
        data += struct.pack(order + "I", next_of_last if place == len(numbers) - 1 else end)
    return data


@pytest.mark.parametrize("order", ["<", ">"])
def test_copies_and_masks_are_no_pages(order):
    """Reduced copies and masks of a TIFF are not counted, other directories are."""
    page, size = {}, {256: 20, 257: 12}
    for other, count in (
        ({254: 0, **size}, 2),
        ({254: 2, **size}, 2),
        ({254: 1, **size}, 1),
        ({254: 4, **size}, 1),
        ({254: 5, **size}, 1),
        ({255: 3, **size}, 2),
        ({255: 2, **size}, 1),
        (size, 2),
    ):
        assert tiff_header(directories(page, other, order=order)).frames == count
    assert tiff_header(directories({254: 1}, size, order=order)).frames == 1


def test_damaged_lists_of_pages():
    """A circle ends where it started, and a list that leaves the file at its last page."""
    assert tiff_header(directories({}, next_of_last=8)).frames == 1
    assert tiff_header(directories({}, {}, next_of_last=8)).frames == 2
    assert tiff_header(directories({}, next_of_last=1 << 20)).frames == 1
    assert tiff_header(directories({}, {})[:-3]).frames == 2
    assert tiff_header(directories(*[{}] * (MAX_PAGES + 1))).frames == MAX_PAGES


# body, count
COUNTS = [
    (struct.pack(">II", 0, 0), 1),
    (struct.pack(">II", 1 << 31, 0), 1),
    (struct.pack(">II", (1 << 31) - 1, 0), (1 << 31) - 1),
    (b"\0\0", 1),
]


@pytest.mark.parametrize(("body", "count"), COUNTS)
def test_a_damaged_count_of_frames_is_ignored(body, count):
    """An APNG of no, too many or cut frames counts as one picture."""
    plain = encoded(PICTURES[0], "PNG")
    assert check_image(plain[:33] + chunk(b"acTL", body) + plain[33:], OPTIONS).frames == count
