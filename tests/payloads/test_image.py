"""The image check: stored images decode in TensorFlow as a person sees them."""

import io
import struct

import numpy as np
import pytest
import simplejpeg
import tensorflow as tf
from PIL import Image, ImageCms, ImageOps, JpegImagePlugin

from benchmarks.bombs import png_chunk as chunk
from recordgen.core.image_settings import MAX_SIDE
from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image
from recordgen.payloads.reencoding import CheckedImage
from tests.conftest import encoded, error_of, exif_of, noise
from tests.payloads.hostile import segment
from tests.payloads.refusals import refusal
from tests.payloads.test_png import header, png
from tests.settings import payload_settings

OPTIONS = payload_settings()
BASE = noise(10, 6).resize((80, 48))
TURNED = exif_of(6)  # needs a turn by 90° to be upright
GLASS = BASE.convert("RGBA")
GLASS.putalpha(noise(80, 48, seed=1).convert("L"))
DEEP = Image.fromarray(np.random.default_rng(2).integers(0, 65536, (48, 80)).astype(np.uint16))

# Files of other formats, which are stored as PNGs.
OTHERS = {
    "gif": encoded(BASE, "GIF"),
    "gray gif": encoded(BASE.convert("L"), "GIF"),
    "animated gif": encoded(BASE, "GIF", save_all=True, append_images=[noise(80, 48, seed=3)]),
    "bmp": encoded(BASE, "BMP"),
    "palette bmp": encoded(BASE.convert("P"), "BMP"),
    "gray bmp": encoded(BASE.convert("L"), "BMP"),
    "32 bit bmp": encoded(GLASS, "BMP"),
    "webp": encoded(BASE, "WEBP"),
    "tiff": encoded(BASE, "TIFF"),
    "lzw tiff": encoded(BASE, "TIFF", compression="tiff_lzw"),
    "jpeg tiff": encoded(BASE, "TIFF", compression="jpeg"),
    "group 3 tiff": encoded(BASE.convert("1"), "TIFF", compression="group3"),
    "group 4 tiff": encoded(BASE.convert("1"), "TIFF", compression="group4"),
    "ppm": encoded(BASE, "PPM"),
    "pgm": encoded(BASE.convert("L"), "PPM"),
    "pbm": encoded(BASE.convert("1"), "PPM"),
}
PALETTE = BASE.convert("P")
CLEAR = encoded(PALETTE, "PNG", transparency=PALETTE.getpixel((0, 0)))

# name: file, stored format, reason for the re-encoding, tolerance in levels of 255
KINDS = {
    "jpeg": (encoded(BASE, "JPEG"), "jpeg", None, 4),
    "gray jpeg": (encoded(BASE.convert("L"), "JPEG"), "jpeg", None, 4),
    "progressive jpeg": (encoded(BASE, "JPEG", progressive=True), "jpeg", None, 4),
    "turned jpeg": (encoded(BASE, "JPEG", exif=TURNED), "jpeg", "exif_orientation", 80),
    "cmyk jpeg": (encoded(BASE.convert("CMYK"), "JPEG", quality=95), "jpeg", "cmyk", 40),
    "png": (encoded(BASE, "PNG"), "png", None, 0),
    "palette png": (encoded(PALETTE, "PNG"), "png", None, 0),
    "transparent palette png": (CLEAR, "png", "alpha", 0),
    "1 bit png": (encoded(BASE.convert("1"), "PNG"), "png", None, 0),
    "opaque rgba png": (encoded(BASE.convert("RGBA"), "PNG"), "png", None, 0),
    "transparent png": (encoded(GLASS, "PNG"), "png", "alpha", 0),
    "gray transparent png": (encoded(GLASS.convert("LA"), "PNG"), "png", "alpha", 0),
    "16 bit png": (encoded(DEEP, "PNG"), "png", "16_bit", 0),
    "turned png": (encoded(BASE, "PNG", exif=TURNED), "png", "exif_orientation", 0),
    "16 bit tiff": (encoded(DEEP, "TIFF"), "png", "16_bit", 0),
    "16 bit pgm": (encoded(DEEP, "PPM"), "png", "16_bit", 0),
    **{name: (data, "png", "format", 0) for name, data in OTHERS.items()},
}


def as_seen(data):
    """Return uint8 [h, w, 3] as a viewer displays it: upright, on white, 8 bit."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode.startswith("I"):
        return np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if "transparency" in image.info or "A" in image.getbands():
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(image.convert("RGB"))


def as_trained(data):
    """Return uint8 [h, w, 3] as a trainer decodes it, inside tf.data."""
    dataset = tf.data.Dataset.from_tensors(data).map(
        lambda item: tf.io.decode_image(item, channels=3, expand_animations=False)
    )
    return next(iter(dataset)).numpy()


@pytest.mark.parametrize("name", KINDS)
def test_trainer_sees_what_a_person_sees(name):
    """TensorFlow decodes what is stored to what a viewer shows; sound files keep their bytes."""
    data, kind, reason, tolerance = KINDS[name]
    stored = check_image(data, OPTIONS)
    assert (stored.format, stored.reencoded) == (kind, reason)
    assert (stored.data == data) == (reason is None)
    seen, trained = as_seen(data), as_trained(stored.data)
    assert trained.shape == seen.shape == (stored.height, stored.width, 3)
    assert np.abs(trained.astype(int) - seen).max() <= tolerance


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("check", ["decode", "header"])
def test_the_longer_side_is_reduced_and_the_shape_kept(name, check):
    """Every kind of file is stored with the requested side, upright and in its shape."""
    data = KINDS[name][0]
    stored = check_image(data, payload_settings(image_size="32max", check=check))
    height, width, _ = as_seen(data).shape
    assert max(stored.height, stored.width) == 32
    why = None if KINDS[name][0].startswith(b"\xff\xd8") and name != "cmyk jpeg" else KINDS[name][2]
    assert stored.reencoded == (why or "image_size")
    assert stored.height / stored.width == pytest.approx(height / width, rel=0.05)
    small = Image.fromarray(as_seen(data)).resize((stored.width, stored.height), Image.LANCZOS)
    difference = np.abs(as_trained(stored.data).astype(int) - np.asarray(small))
    assert difference.mean() < 12


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("size", [(200, 150), (150, 200), (31, 200)])
def test_downscaling_takes_the_best_filter(mode, size):
    """Pixels are those of Lanczos, and JPEGs are decoded no larger than needed."""
    image, options = noise(*size).convert(mode), payload_settings(image_size="50max")
    scale = 50 / max(size)
    target = tuple(max(1, round(side * scale)) for side in size)
    jpeg = encoded(image, "JPEG", quality=92)
    pixels = simplejpeg.decode_jpeg(
        jpeg, "GRAY" if mode == "L" else "RGB", min_width=target[0], min_height=target[1]
    )
    small = Image.fromarray(pixels[:, :, 0] if mode == "L" else pixels).resize(
        target, Image.LANCZOS
    )
    assert check_image(jpeg, options).data == encoded(small, "JPEG", quality=92)
    image = image.resize(target, Image.LANCZOS, reducing_gap=2.0)
    stored = check_image(encoded(noise(*size).convert(mode), "PNG"), options)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(stored.data))), np.asarray(image))


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(10))
def test_each_orientation_is_undone(kind, orientation):
    """Orientations 2 to 8 are undone; 1 is upright, 0 and 9 are invalid (Exif 2.3, 4.6.4)."""
    gradient = Image.linear_gradient("L").resize((64, 32)).convert("RGB")
    data = encoded(gradient, kind, exif=exif_of(orientation), quality=95)
    stored = check_image(data, OPTIONS)
    small = check_image(data, payload_settings(image_size="32max"))
    if orientation in (0, 1, 9):
        assert (stored.data, stored.orientation) == (data, 1)
        return
    assert stored.reencoded == "exif_orientation"
    assert stored.orientation == small.orientation == orientation
    assert (stored.height, stored.width) == as_seen(data).shape[:2]
    assert np.abs(as_trained(stored.data).astype(int) - as_seen(data)).max() <= 6
    assert small.height / small.width == stored.height / stored.width


def test_reencoded_images_have_no_exif_and_no_profile():
    """A reader of the record must not turn the image again, nor change its colours."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for image, kind in ((BASE, "WEBP"), (BASE, "TIFF"), (GLASS, "PNG"), (BASE, "JPEG")):
        data = encoded(image, kind, exif=TURNED, icc_profile=profile)
        found = Image.open(io.BytesIO(check_image(data, OPTIONS).data))
        assert not found.getexif()
        assert "icc_profile" not in found.info


def test_levels_of_a_netpbm_file_are_shares_of_its_highest():
    """Comments may stand between its numbers; 12 bits in two bytes are no 16 bits."""
    header = b"P5 # kind\n#\n2\t1 # size\n"
    for most, levels in ((b"100", b"\x00\x64"), (b"4095", b"\x00\x00\x0f\xff")):
        stored = check_image(header + most + b"\n" + levels, OPTIONS)
        assert [*as_trained(stored.data)[0, :, 0]] == [0, 255]


PHOTO = encoded(noise(200, 150), "JPEG", quality=92)
CMYK = encoded(noise(200, 150).convert("CMYK"), "JPEG", quality=92)
PNG = encoded(noise(200, 150), "PNG")


def overwritten(data, with_bytes):
    """Return data with its middle overwritten."""
    start = len(data) // 2
    return data[:start] + with_bytes + data[start + len(with_bytes) :]


FAX_TIFF = encoded(noise(200, 150).convert("1"), "TIFF", compression="group4")
LZW_TIFF = encoded(noise(200, 150), "TIFF", compression="tiff_lzw")

# name: damaged file, code
REFUSED = {
    "empty": (b"", "empty_file"),
    "text": (b"<html>404</html>", "not_an_image"),
    "cut jpeg": (PHOTO[: len(PHOTO) // 2], "truncated"),
    "jpeg with end markers in its scan": (overwritten(PHOTO, b"\xff\xd9" * 300), "corrupt"),
    "jpeg with zeros in its scan": (overwritten(PHOTO, bytes(600)), "corrupt"),
    "cut png": (PNG[: len(PNG) // 2], "truncated"),
    "png with a flipped bit": (overwritten(PNG, b"\x00"), "corrupt"),
    "png without its end": (PNG[:-12], "truncated"),
    "cmyk jpeg with zeros in its scan": (overwritten(CMYK, bytes(600)), "corrupt"),
    "cut cmyk jpeg": (CMYK[: len(CMYK) // 2], "truncated"),
    "gif without its last two bytes": (encoded(noise(200, 150), "GIF")[:-2], "truncated"),
    "group 4 tiff with ones in its codes": (overwritten(FAX_TIFF, b"\xff" * 9), "corrupt"),
    "lzw tiff with ones in its codes": (overwritten(LZW_TIFF, b"\xff" * 99), "corrupt"),
    "cut gif": (encoded(noise(200, 150), "GIF")[:9000], "truncated"),
    "cut bmp": (encoded(noise(200, 150), "BMP")[:9000], "truncated"),
    "cut webp": (encoded(noise(200, 150), "WEBP")[:900], "corrupt"),
    "webp that ends in its header": (encoded(BASE, "WEBP")[:25], "truncated"),
    "webp of a strange chunk": (encoded(BASE, "WEBP").replace(b"VP8 ", b"VP8?", 1), "corrupt"),
    "tiff that ends in its directory": (b"II*\0\x08\0\0\0", "truncated"),
    "jpeg that ends in a head": (PHOTO[:5], "truncated"),
    "pnm without a maximum": (b"P6\n80 48\n", "truncated"),
    "pnm of no levels": (b"P6\n80 48 0\n" + bytes(9), "corrupt"),
    "pnm of no columns": (b"P6\n0 48 255\n", "corrupt"),
    "pnm of 17 bits": (b"P6\n80 48 65536\n" + bytes(9), "corrupt"),
    "cut ppm": (encoded(BASE, "PPM")[:-1], "truncated"),
    "cut pbm": (encoded(BASE.convert("1"), "PPM")[:-1], "truncated"),
    "pnm that announces much": (b"P6\n99999 99999 255\n", "too_many_pixels"),
    "pnm of letters": (b"P3\n1 1 255\n0 0 0\n", "not_an_image"),
    "float tiff": (encoded(BASE.convert("F"), "TIFF"), "unsupported_pixels"),
    "tiff of 32 bits": (encoded(BASE.convert("I"), "TIFF"), "unsupported_pixels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_image_is_refused_with_its_code_and_prints_nothing(name, capfd):
    """Decoders' own messages do not reach the terminal."""
    data, code = REFUSED[name]
    assert refusal(data) == code
    assert capfd.readouterr() == ("", "")


def cut(data):
    """Return the file without its second half."""
    return data[: len(data) // 2]


HEADER_ONLY = payload_settings(check="header")
SMALL = payload_settings(check="header", image_size="32max")

# file, options with which it must be decoded, also with check=header; its format
DECODED_ANYWAY = [
    (b"\xff\xd8\xff\xe0" + bytes(30), OPTIONS, "JPEG"),
    (cut(PHOTO), OPTIONS, "JPEG"),
    (cut(PHOTO), SMALL, "JPEG"),
    (overwritten(PHOTO, bytes(600)), SMALL, "JPEG"),
    (cut(encoded(noise(200, 150), "TIFF")), HEADER_ONLY, "TIFF"),
    (cut(encoded(noise(200, 150).convert("RGBA"), "PNG")), HEADER_ONLY, "PNG"),
    (cut(encoded(noise(200, 150), "BMP")), OPTIONS, "BMP"),
    (cut(encoded(noise(200, 150), "WEBP")), HEADER_ONLY, "image"),
]


@pytest.mark.parametrize(("data", "options", "kind"), DECODED_ANYWAY, ids=range(8))
def test_a_reencoded_image_is_decoded_whatever_the_check(data, options, kind):
    """The message names the format."""
    assert kind in error_of(PayloadError, check_image, data, options).message


def test_broken_exif_turns_nothing():
    """Metadata that cannot be read change neither the picture nor the check."""
    broken = chunk(b"eXIf", b"garbage, no TIFF header")
    data = encoded(BASE, "PNG")
    stored = check_image(data[:33] + broken + data[33:], OPTIONS)
    assert (stored.format, stored.reencoded) == ("png", None)
    cut = data[:-30]
    assert check_image(cut, payload_settings(check="header")).data == cut


def test_an_image_above_a_limit_is_refused_with_the_option():
    """An image at the limit is accepted; above it, the message names the option."""
    most = payload_settings(limit=f"mb={len(PHOTO) / 1e6},pixels=30000")
    assert check_image(PHOTO, most).data == PHOTO
    assert check_image(PNG, payload_settings(limit="pixels=30000")).data == PNG
    for data, limit, code in (
        (PHOTO, "mb=0.01", "too_many_bytes"),
        (PHOTO, "pixels=29999", "too_many_pixels"),
        (PNG, "pixels=29999", "too_many_pixels"),
    ):
        with pytest.raises(PayloadError, match=f"--limit {limit.split('=')[0]}=") as caught:
            check_image(data, payload_settings(limit=limit))
        assert caught.value.code == code


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_the_longest_side(kind):
    """TensorFlow decodes PNGs of a million pixels on a side and no longer ones."""
    how = {"compression": "group4"} if kind == "TIFF" else {}
    longest, longer = (encoded(Image.new("1", (1, MAX_SIDE + n)), kind, **how) for n in (0, 1))
    assert as_trained(check_image(longest, OPTIONS).data).shape == (1_000_000, 1, 3)
    assert refusal(longer) == "too_many_pixels"
    with pytest.raises(tf.errors.InvalidArgumentError):
        as_trained(encoded(Image.new("1", (1, MAX_SIDE + 1)), "PNG"))


def test_pillows_own_limit():
    """Pillow's limit on pixels is a reject like ours."""
    data = png(header(20_000, 20_000), chunk(b"IDAT"))
    assert refusal(data, limit=f"pixels={10**9}") == "too_many_pixels"
    found = check_image(data, payload_settings(check="none"))
    assert found == CheckedImage(data, "png", None, None)


# file, format and size found with check=none
UNREAD = [
    (PHOTO, ("jpeg", 150, 200)),
    (b"\xff\xd8\xff broken", ("jpeg", None, None)),
    (b"\x89PNG\r\n\x1a\n broken", ("png", None, None)),
    (encoded(BASE, "GIF"), ("gif", 48, 80)),
    (encoded(BASE, "BMP"), ("bmp", 48, 80)),
    (encoded(BASE, "WEBP"), ("", 48, 80)),
    (encoded(BASE, "PNG", exif=TURNED), ("png", 48, 80)),
    (encoded(BASE, "PPM"), ("", 48, 80)),
    (b"not an image", ("", None, None)),
]


@pytest.mark.parametrize(("data", "found"), UNREAD, ids=range(len(UNREAD)))
def test_check_none_reads_headers(data, found):
    """Format and size are found where a header has them, and no pixel is decoded."""
    assert check_image(data, payload_settings(check="none")) == CheckedImage(data, *found)


def tables(data):
    """Return the quantisation tables and the sampling of a JPEG."""
    image = Image.open(io.BytesIO(data))
    return image.quantization, JpegImagePlugin.get_sampling(image)


def test_how_jpegs_are_encoded_again():
    """Turned images keep the file's tables and sampling; CMYK gets 95, downscaled images 92."""
    for sampling in range(3):
        turned = encoded(BASE, "JPEG", exif=TURNED, quality=77, subsampling=sampling)
        assert tables(check_image(turned, OPTIONS).data) == tables(turned)
    cmyk = encoded(BASE.convert("CMYK"), "JPEG", quality=50)
    assert tables(check_image(cmyk, OPTIONS).data) == tables(
        encoded(BASE, "JPEG", quality=95, subsampling=0)
    )
    small = check_image(encoded(BASE, "JPEG", quality=50), payload_settings(image_size="40max"))
    found = small.format, small.reencoded, small.height, small.width
    assert found == ("jpeg", "image_size", 24, 40)
    assert tables(small.data) == tables(encoded(BASE, "JPEG", quality=92))
    gray = check_image(encoded(BASE.convert("L"), "JPEG"), payload_settings(image_size="40max"))
    assert Image.open(io.BytesIO(gray.data)).mode == "L"


# bytes after a JPEG's first marker, whether they turn the image
EXIF = b"Exif\0\0" + TURNED.tobytes().removeprefix(b"Exif\0\0")
SEGMENTS = [
    (segment(0xE1, EXIF), True),
    (segment(0xFE, b"comment") + segment(0xE1, EXIF), True),
    (segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0") + segment(0xE1, EXIF), True),
    (segment(0xE1, EXIF) + segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0"), True),
    (b"\xff\xff" + segment(0xE1, EXIF), True),
    (segment(0xFE, bytes(0x1234)) + segment(0xE1, EXIF), True),
    (segment(0xFE, b"\xff\xe1\0\x40" + EXIF), False),
    (segment(0xE2, EXIF), False),
    (segment(0xE1, b"Exif"), False),
    (segment(0xE1, b"Exif\0\0"), False),
    (segment(0xE1, b"Exif\0\0garbage"), False),
    (b"", False),
]


@pytest.mark.parametrize(("between", "turns"), SEGMENTS, ids=range(len(SEGMENTS)))
def test_exif_turns_an_image_wherever_it_stands(between, turns):
    """Only a whole Exif segment in front of the scan counts."""
    data = encoded(BASE, "JPEG")
    data = data[:2] + between + data[2:]
    stored = check_image(data, OPTIONS)
    assert (stored.reencoded, stored.orientation) == (
        ("exif_orientation", 6) if turns else (None, 1)
    )
    assert Image.open(io.BytesIO(data)).getexif().get(0x0112, 1) == stored.orientation


def test_bmps_of_older_programs():
    """Headers of 16 bits, rows from the top, and bytes behind the pixels are read."""
    plain = encoded(noise(5, 3), "BMP")
    pixels = plain[54:]
    old = b"BM" + struct.pack("<IHHI", 26 + len(pixels), 0, 0, 26)
    old += struct.pack("<IHHHH", 12, 5, 3, 1, 24) + pixels
    upside_down = plain[:22] + struct.pack("<i", -3) + plain[26:]
    expected = as_seen(plain)
    for data, seen in ((old, expected), (plain + b"\0", expected), (upside_down, expected[::-1])):
        np.testing.assert_array_equal(as_trained(check_image(data, OPTIONS).data), seen)
