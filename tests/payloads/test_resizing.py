"""How options change stored pictures: first the geometry, then the bytes."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image

from recordgen.core.image_settings import ImageSizing
from recordgen.errors import PayloadError, UsageError
from recordgen.options import make_options
from recordgen.payloads.check import check_image
from recordgen.payloads.header import stored_image
from recordgen.payloads.reencoding import Placed, View, place
from tests.conftest import encoded, noise
from tests.settings import payload_settings

STRETCH = {"image_size": "40x60"}
FIT = {"image_size": "40x60", "resize": "fit"}
CROP = {"image_size": "40x60", "resize": "center_crop"}

# options, (width, height) of the picture, window, inner size, canvas, view
PLACED = [
    ({}, (200, 100), (0, 0, 200, 100), (200, 100), (200, 100), (0, 0, 1, 1)),
    ({"image_size": "50max"}, (200, 100), (0, 0, 200, 100), (50, 25), (50, 25), (0, 0, 1, 1)),
    ({"image_size": "200max"}, (200, 100), (0, 0, 200, 100), (200, 100), (200, 100), (0, 0, 1, 1)),
    ({"image_size": "50max"}, (1000, 3), (0, 0, 1000, 3), (50, 1), (50, 1), (0, 0, 1, 1)),
    ({"image_size": "50short"}, (200, 100), (0, 0, 200, 100), (100, 50), (100, 50), (0, 0, 1, 1)),
    ({"image_size": "50short"}, (1000, 50), (0, 0, 1000, 50), (1000, 50), (1000, 50), (0, 0, 1, 1)),
    (STRETCH, (200, 100), (0, 0, 200, 100), (60, 40), (60, 40), (0, 0, 1, 1)),
    # Each side separately: neither is enlarged.
    (STRETCH, (30, 100), (0, 0, 30, 100), (30, 40), (30, 40), (0, 0, 1, 1)),
    (FIT, (240, 80), (0, 0, 240, 80), (60, 20), (60, 40), (0, -0.5, 1, 2)),
    (FIT, (90, 60), (0, 0, 90, 60), (60, 40), (60, 40), (0, 0, 1, 1)),
    # A smaller picture keeps its scale and gets the shape.
    (FIT, (10, 20), (0, 0, 10, 20), (10, 20), (30, 20), (-1, 0, 3, 1)),
    (CROP, (240, 80), (60, 0, 120, 80), (60, 40), (60, 40), (0.25, 0, 0.5, 1)),
    (CROP, (30, 60), (0, 20, 30, 20), (30, 20), (30, 20), (0, 1 / 3, 1, 1 / 3)),
]


@pytest.mark.parametrize(("options", "size", "window", "inner", "canvas", "view"), PLACED)
def test_geometry_of_a_picture(options, size, window, inner, canvas, view):
    """Window, inner size and canvas follow from the option, and the view from them."""
    placed = place(size, payload_settings(**options))
    assert placed == Placed(size, window, inner, canvas)
    assert placed.view == pytest.approx(View(*view))
    assert placed.is_changed == (canvas != size)


def test_no_picture_is_enlarged():
    """For each option and size, no side grows and none vanishes."""
    sides = (1, 2, 7, 39, 40, 41, 59, 60, 61, 200)
    for options in (STRETCH, FIT, CROP, {"image_size": "40short"}, {"image_size": "40max"}):
        for size in itertools.product(sides, sides):
            placed = place(size, payload_settings(**options))
            assert all(inner >= 1 for inner in placed.inner)
            assert all(a <= b for a, b in zip(placed.inner, placed.window[2:], strict=True))
            assert all(a <= b for a, b in zip(placed.inner, placed.canvas, strict=True))
            assert all(a <= b for a, b in zip(placed.least_size(), size, strict=True))


# options, message of the error
CONTRADICTIONS = [
    {"resize": "fit"},
    {"resize": "fit", "image_size": "9max"},
    {"image_size": "9", "check": "none"},
    {"encode": "png", "check": "none"},
    {"encode": "raw", "check": "none"},
    *({"encode": given} for given in ("raw:jpeg", "png:80", "keep:101", "jpeg:0", "gif", "9:jpeg")),
    *({"image_size": given} for given in ("9x", "0x9", "9x9x3", "0max", "9min", "-1", (9, 9, 9))),
]


@pytest.mark.parametrize("options", CONTRADICTIONS, ids=str)
def test_contradicting_options_are_an_error_that_names_one(options):
    """Options that exclude each other or have no meaning are refused at once."""
    with pytest.raises(UsageError, match=next(iter(options))):
        payload_settings(**options)


@pytest.mark.parametrize("given", ["224x320", " 224X320 ", "224×320", (224, 320), [224, 320]])
def test_every_spelling_of_a_size_is_recorded_alike(given):
    """Each spelling of a size is recorded as one."""
    options = make_options({"image_size": given})
    assert options.recorded()["image_size"] == "224x320"
    assert options.image_size == ImageSizing("shape", 224, 320)
    for square in (224, "224"):
        assert str(payload_settings(**{"image_size": square}).image_size) == "224x224"


def test_options_are_recorded_in_one_spelling():
    """Options of images are recorded as they are documented."""
    given = {"image_size": "8x8", "resize": "fit", "encode": "mixed:jpeg:70"}
    recorded = make_options(given).recorded()
    assert {name: recorded[name] for name in given} == given


PHOTO, PNG = encoded(noise(80, 48), "JPEG"), encoded(noise(80, 48), "PNG")
GRAY = encoded(noise(80, 48).convert("L"), "JPEG")
CLEAR = encoded(noise(80, 48).convert("RGBA").resize((80, 48)), "WEBP", lossless=True)


# file, options, stored format and reason, width and height
STORED = [
    (PHOTO, {"encode": "jpeg"}, "jpeg", None, (80, 48)),
    (PHOTO, {"encode": "png"}, "png", "encode", (80, 48)),
    (PNG, {"encode": "png"}, "png", None, (80, 48)),
    (PNG, {"encode": "jpeg"}, "jpeg", "encode", (80, 48)),
    (CLEAR, {"encode": "jpeg"}, "jpeg", "format", (80, 48)),
    (PHOTO, {"encode": "raw"}, "raw", "encode", (80, 48)),
    (PNG, {"encode": "raw", "image_size": "24short"}, "raw", "image_size", (40, 24)),
    (CLEAR, {"encode": "mixed:jpeg"}, "raw", "format", (80, 48)),
    (PNG, {"image_size": "24short"}, "png", "image_size", (40, 24)),
    (PHOTO, {"image_size": "24short", "encode": "png"}, "png", "image_size", (40, 24)),
    (PNG, {"image_size": "24x24", "encode": "jpeg"}, "jpeg", "image_size", (24, 24)),
    (PHOTO, {"image_size": "48x80", "resize": "fit"}, "jpeg", None, (80, 48)),
    (GRAY, {"image_size": "24x24", "resize": "fit"}, "jpeg", "image_size", (24, 24)),
    (CLEAR, {"image_size": "48short"}, "png", "format", (80, 48)),
]


@pytest.mark.parametrize("check", ["decode", "header"])
@pytest.mark.parametrize(
    ("data", "options", "kind", "reason", "size"), STORED, ids=range(len(STORED))
)
def test_unchanged_files_keep_their_bytes(data, options, kind, reason, size, check):
    """Bytes change only for a reason, which is recorded."""
    stored = check_image(data, payload_settings(**{**options, "check": check}))
    assert (stored.format, stored.reencoded, stored.width, stored.height) == (kind, reason, *size)
    assert (stored.data == data) == (reason is None)
    if kind == "raw":
        assert len(stored.data) == 3 * size[0] * size[1]
    else:
        image = Image.open(io.BytesIO(stored.data))
        assert (image.format, image.size, len(image.getbands())) == (
            kind.upper(),
            size,
            1 if data is GRAY else 3,
        )
        assert reason is None or not image.info.get("exif")


def test_quality_applies_to_images_encoded_because_of_an_option():
    """A higher quality makes larger files; 92 is the default."""
    sizes = [
        len(check_image(PNG, payload_settings(encode=f"jpeg{quality}")).data)
        for quality in (":40", "", ":92", ":98")
    ]
    assert sizes[0] < sizes[1] == sizes[2] < sizes[3]


def test_a_picture_too_large_for_its_format_is_refused():
    """A side beyond a format's limit is refused; resizing helps."""
    data, most = encoded(Image.new("RGB", (65_501, 2)), "PNG"), 65_500
    with pytest.raises(PayloadError, match=f"{most:,}"):
        check_image(data, payload_settings(encode="jpeg"))
    assert check_image(data, payload_settings(encode="jpeg", image_size=f"{most}max")).width == most


def test_large_images_are_not_stored_raw_in_a_mixture():
    """A mixture stores pixels raw only up to 256 by 256."""
    data, mixed = encoded(noise(300, 256), "PNG"), {"encode": "mixed"}
    assert check_image(data, payload_settings(**mixed)).data == data
    assert check_image(data, payload_settings(**{**mixed, "image_size": "256"})).format == "raw"
    assert check_image(data, payload_settings(**{**mixed, "image_size": "256x257"})).format == "png"


def test_raw_pixels_are_shown_as_a_png():
    """Raw bytes become a picture if height and width fit; otherwise they stay bytes."""
    record = {
        "image/encoded": [noise(5, 3).tobytes()],
        "image/format": [b"raw"],
        "image/height": [3],
        "image/width": [5],
    }
    image = stored_image(record)
    assert image is not None
    assert image[1] == "png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(image[0]))), np.asarray(noise(5, 3)))
    for odd in ({"image/height": [4]}, {"image/width": []}, {"image/width": [b"x"]}):
        assert stored_image({**record, **odd}) == (record["image/encoded"][0], "")
    assert stored_image({**record, "image/encoded": []}) is None
    assert stored_image({**record, "image/encoded": [b""], "image/height": [0]}) == (b"", "")
    column = {f"day/{name.partition('/')[2]}": values for name, values in record.items()}
    assert stored_image(column, "day/encoded") == image
