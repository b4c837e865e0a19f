import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen.core.dataset.counts import ImageStats
from recordgen.errors import UsageError
from recordgen.reading import decode_images
from recordgen.reading.decoding import ImageDecoder, image_sizes
from tests.conftest import encoded, noise

RESIZES = ("stretch", "fit", "center_crop", "random_crop")


def photo(height, width):
    """Return pixels like those of a photo: smooth colours, and light with waves and edges."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    light = np.sin(30 * x * y) + np.sin(25 * (x + y)) + (x > 0.4) + (y > x)
    pixels = np.stack([np.sin(5 * x + 3 * y), np.cos(6 * y), np.sin(4 * x)], -1) + light[..., None]
    return np.uint8(255 * (pixels - pixels.min()) / np.ptp(pixels))


def jpeg(height, width, quality=95):
    return encoded(Image.fromarray(photo(height, width)), "JPEG", quality=quality)


def ramp(height, width, kind):
    """Return an image whose red grows from left to right and whose green grows downwards."""
    y, x = np.mgrid[:height, :width] + 0.5
    pixels = np.round(np.stack([255 * x / width, 255 * y / height, 0 * x], -1))
    more = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    return encoded(Image.fromarray(np.uint8(pixels)), kind, **more)


def full(data, size=None):
    """Decode a whole image as TensorFlow does, and resize it with antialiasing."""
    pixels = tf.cast(tf.io.decode_jpeg(data, channels=3), tf.float32)
    return (pixels if size is None else tf.image.resize(pixels, size, antialias=True)).numpy()


def difference(found, expected):
    return float(np.abs(np.asarray(found) - np.asarray(expected)).mean())


# resize, size of the image (target: 10×20), index of the ratio in 1, 2, 4, 8
SCALES = [
    ("stretch", (10, 20), 0),
    ("stretch", (19, 400), 0),
    ("stretch", (20, 39), 0),
    ("stretch", (20, 40), 1),
    ("stretch", (39, 400), 1),
    ("stretch", (40, 80), 2),
    ("stretch", (79, 159), 2),
    ("stretch", (80, 160), 3),
    ("center_crop", (40, 80), 2),
    ("fit", (40, 20), 2),
    ("fit", (39, 39), 1),
    ("fit", (5, 160), 3),
]


@pytest.mark.parametrize(("resize", "size", "place"), SCALES)
def test_scale(resize, size, place):
    """The ratio is the largest at which the image covers the size; with ``fit``, one side of it."""
    assert int(ImageDecoder((10, 20), resize).ratio_index(tf.constant(size))) == place


@pytest.mark.parametrize("times", [1, 1.5, 2, 3, 4, 6, 8, 12, 20])
def test_large_images_look_as_if_decoded_whole(times):
    """Decoding at a smaller scale hardly changes the pixels."""
    height, width = int(48 * times), int(64 * times)
    data = jpeg(height, width)
    found = ImageDecoder((48, 64)).decode(tf.constant([data]))
    assert found.shape == (1, 48, 64, 3)
    assert difference(found[0], full(data, (48, 64))) < 2  # of 255
    sizes = tf.constant([[height, width]], tf.int64)
    np.testing.assert_array_equal(ImageDecoder((48, 64)).decode(tf.constant([data]), sizes), found)


def shares(old, new):
    """Return the share of each new pixel that each old one covers: [new, old]; rows sum to 1."""
    edges = np.arange(new + 1)[:, None] * old / new
    ends = np.minimum(edges[1:], np.arange(1, old + 1))
    return np.clip(ends - np.maximum(edges[:-1], np.arange(old)), 0, None) * new / old


@pytest.mark.parametrize(
    "size",
    # the target is 24x32: equal, slightly larger, much larger, smaller, one side of each
    [(24, 32), (25, 33), (31, 63), (47, 35), (100, 999), (5, 7), (24, 100), (60, 9)],
    ids=str,
)
def test_a_smaller_pixel_is_the_mean_of_what_it_covers(size):
    """Made smaller, a pixel is the mean of those it covers."""
    pixels = np.asarray(noise(size[1], size[0]))
    rows, columns = (shares(old, min(old, new)) for old, new in zip(size, (24, 32), strict=True))
    means = np.einsum("ih,hwc,jw->ijc", rows, pixels, columns)
    data = encoded(Image.fromarray(pixels), "PNG")
    found = ImageDecoder((24, 32)).decode(tf.constant([data]))
    np.testing.assert_allclose(found[0], tf.image.resize(means, (24, 32)), atol=0.501)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("side", [336, 440, 500, 670, 880, 900])
def test_fine_patterns_turn_gray(kind, side):
    """A checkerboard of single pixels becomes gray at a smaller size, whatever the factor.

    Sampling only some of its pixels would give a noise of 40 levels.
    """
    board = np.indices((side, side)).sum(0) % 2 * 255
    more = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    data = encoded(Image.fromarray(np.uint8(board)), kind, **more)
    assert np.abs(decode_images(tf.constant([data]), (224, 224)) * 255 - 127.5).mean() < 15


@pytest.mark.parametrize("size", [(48, 64), (200, 170), (33, 47), (7, 300)])
@pytest.mark.parametrize("sized", [True, False], ids=["known size", "size read"])
def test_exact_equals_tensorflows_own_functions_to_the_last_bit(size, sized):
    """The exact decoder does what TensorFlow's functions do."""
    data = jpeg(*size, quality=80)
    sizes = tf.constant([size], tf.int64) if sized else None
    found = ImageDecoder((48, 64), decoder="exact").decode(tf.constant([data]), sizes)
    np.testing.assert_array_equal(found[0], full(data, (48, 64)))


@pytest.mark.parametrize("decoder", ["fast", "exact"])
@pytest.mark.parametrize("times", [1, 2, 5, 9])
def test_center_crop_is_cut_from_the_middle(times, decoder):
    """A center crop keeps the middle square at any scale."""
    height, width = 40 * times, 90 * times
    data = jpeg(height, width)
    found = ImageDecoder((40, 40), "center_crop", decoder).decode(tf.constant([data]))
    left = (width - height) // 2
    window = full(data)[:, left : left + height]
    expected = tf.image.resize(window, (40, 40), antialias=True)
    assert difference(found[0], expected) < (3 if decoder == "fast" else 0.01)


@pytest.mark.parametrize("decoder", ["fast", "exact"])
def test_random_crop_is_a_window(decoder):
    """A random crop is a window of the image, of a random place, and nothing else.

    The corners of a ramp show it: at least 8 % of the area, stretched by a third at most.
    """
    data = tf.constant([ramp(240, 320, "JPEG")] * 40)
    crop = ImageDecoder((30, 40), "random_crop", decoder)
    found = crop.decode(data, None, tf.constant([1, 2], tf.int64)).numpy()
    red, green = found[..., 0] / 255, found[..., 1] / 255
    widths = (red[:, :, -1] - red[:, :, 0]).mean(1) * 40 / 39
    heights = (green[:, -1] - green[:, 0]).mean(1) * 30 / 29
    areas, shapes = widths * heights, widths / heights
    assert areas.min() > 0.06
    assert areas.max() < 1.03
    assert areas.max() - areas.min() > 0.4
    assert shapes.min() > 0.75 * 0.93
    assert shapes.max() < 4 / 3 * 1.07
    assert np.ptp(red[:, 0, 0]) > 0.2


# size of a white image, its rows and columns in a target of 20×30
FITTED = [
    ((40, 40), slice(0, 20), slice(5, 25)),
    ((10, 60), slice(7, 12), slice(0, 30)),
    ((20, 30), slice(0, 20), slice(0, 30)),
    ((200, 30), slice(0, 20), slice(13, 16)),
]


@pytest.mark.parametrize(("size", "rows", "columns"), FITTED)
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_fit_shows_the_undistorted_image_in_the_middle_of_black(size, rows, columns, kind):
    """For wide, high and exact shapes."""
    white = encoded(Image.new("RGB", size[::-1], "white"), kind)
    found = ImageDecoder((20, 30), "fit").decode(tf.constant([white]))[0].numpy()
    expected = np.zeros((20, 30, 3))
    expected[rows, columns] = 255
    np.testing.assert_allclose(found, expected, atol=1)


@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize(
    ("kind", "decoder", "levels", "is_prepared"),
    [("JPEG", "fast", 3, False), ("JPEG", "exact", 3, True), ("PNG", "fast", 1, True)],
)
def test_views_say_where_pixels_come_from(kind, levels, decoder, resize, is_prepared):
    """Each pixel of a ramp shows the place that the view gives, whatever the scale."""
    height, width = 24, 32
    for size in [(24, 32), (23, 37), (61, 90), (107, 131), (101, 420), (207, 263), (391, 523)]:
        data, sizes = tf.constant([ramp(*size, kind)] * 4), tf.constant([size] * 4)
        stats = ImageStats({kind.lower(): 4}, (size[0],) * 2, (size[1],) * 2)
        decoding = ImageDecoder((height, width), resize, decoder, stats if is_prepared else None)
        seed = tf.constant([1, 2], tf.int64)
        found = decoding.decode(data, tf.cast(sizes, tf.int64), seed).numpy() / 255
        views = decoding.views(data, sizes, seed).numpy()
        for image, (top, left, high, wide) in zip(found, views, strict=True):
            for channel, start, extent, side in ((1, top, high, 0), (0, left, wide, 1)):
                along = image[..., channel] if side == 0 else image[..., channel].T
                before = (np.arange(len(along)) + 0.5) / len(along) * extent
                # At an edge, the pixels beyond it are missing for the interpolation.
                half = 0.51 / size[side]
                is_inside = (before > half) & (before < extent - half)
                is_inside &= (start + before > half) & (start + before < 1 - half)
                place = along[is_inside].max(1)  # the maximum ignores black bars
                a_quarter_pixel = 0.25 * extent / len(along)
                np.testing.assert_allclose(
                    place, (start + before)[is_inside], atol=a_quarter_pixel + levels / 255
                )


def kinds():
    """Return one image of every kind with the same pixels, and the pixels that it decodes to."""
    color = Image.fromarray(photo(48, 64))
    gray = color.convert("L")
    as_gray = np.asarray(gray.convert("RGB"))
    alpha, white = color.convert("RGBA"), Image.new("L", color.size, 255)
    return [
        # kind of file, its bytes, its pixels
        ("JPEG", encoded(color, "JPEG", quality=100, subsampling=0), np.asarray(color)),
        ("gray JPEG", encoded(gray, "JPEG", quality=100), as_gray),
        ("progressive", encoded(gray, "JPEG", quality=100, progressive=True), as_gray),
        ("PNG", encoded(color, "PNG"), np.asarray(color)),
        ("gray PNG", encoded(gray, "PNG"), as_gray),
        ("PNG with alpha", encoded(alpha, "PNG"), np.asarray(color)),
        ("palette PNG", encoded(gray.convert("P"), "PNG"), as_gray),
        ("GIF", encoded(gray, "GIF"), as_gray),
        ("animated GIF", encoded(gray, "GIF", save_all=True, append_images=[white]), as_gray),
        ("BMP", encoded(color, "BMP"), np.asarray(color)),
    ]


@pytest.mark.parametrize(("decoder", "sized"), [("fast", True), ("fast", False), ("exact", False)])
@pytest.mark.parametrize("image_size", [(48, 64), (24, 32)])
def test_formats_and_depths_may_be_mixed_in_a_batch(decoder, sized, image_size):
    """Each kind of file has its own pixels, beside any other."""
    names, data, pixels = zip(*kinds(), strict=True)
    sizes = tf.constant([(48, 64)] * len(data), tf.int64) if sized else None
    found = ImageDecoder(image_size, decoder=decoder).decode(tf.constant(data), sizes)
    for name, image, expected in zip(names, found, pixels, strict=True):
        small = tf.image.resize(tf.cast(expected, tf.float32), image_size, antialias=True)
        assert difference(image, small) < 4, name


@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("decoder", ["fast", "exact"])
def test_images_of_one_pixel_row_or_column_are_resized(resize, decoder):
    """No side of any length is too small."""
    sizes = [(1, 1), (1, 1000), (1000, 1), (2, 3), (3, 2), (17, 13), (640, 5)]
    color = (200, 100, 50)
    images = [
        encoded(Image.new("RGB", (width, height), color), kind, **more)
        for height, width in sizes
        for kind, more in (("PNG", {}), ("JPEG", {"quality": 100, "subsampling": 0}))
    ]
    known = tf.constant([size for size in sizes for _ in range(2)], tf.int64)
    seed = tf.constant([3, 4], tf.int64)
    for given in (None, known):
        found = ImageDecoder((6, 9), resize, decoder).decode(tf.constant(images), given, seed)
        assert found.shape == (len(images), 6, 9, 3)
        if resize == "fit":  # the bars are black; the image is where it is brightest
            found = tf.reduce_max(found, (1, 2), keepdims=True)
        np.testing.assert_allclose(found, tf.broadcast_to(color, found.shape), atol=3)


@pytest.mark.parametrize("resize", ["stretch", "fit", "center_crop"])
@pytest.mark.parametrize("decoder", ["fast", "exact"])
def test_a_batch_decodes_as_its_images_do(resize, decoder):
    """Neighbours and known sizes do not change pixels."""
    sizes = [(48, 64), (24, 32), (96, 128), (100, 30), (24, 32)]
    data = [jpeg(*size) for size in sizes]
    decode = ImageDecoder((24, 32), resize, decoder).decode
    together = decode(tf.constant(data), tf.constant(sizes, tf.int64))
    for number, (item, size) in enumerate(zip(data, sizes, strict=True)):
        alone = decode(tf.constant([item]), tf.constant([size], tf.int64))[0]
        unknown = decode(tf.constant([item]))[0]
        np.testing.assert_allclose(together[number], alone, atol=1e-3)
        np.testing.assert_allclose(together[number], unknown, atol=1e-3)


# sizes of all images; the target is 24×32: ready, one scale, several, very wide, small
STATISTICS = [
    ("fast", [(24, 32), (24, 32)]),
    ("fast", [(96, 128), (100, 140)]),
    ("fast", [(30, 40), (96, 128)]),
    ("fast", [(24, 400), (30, 500)]),
    ("fast", [(5, 6), (9, 4)]),
    ("exact", [(30, 40), (96, 128)]),
]


@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize(("decoder", "sizes"), STATISTICS, ids=str)
def test_statistics_of_the_images_do_not_change_pixels(resize, decoder, sizes):
    """Faster ways for known sizes give the same pixels."""
    heights, widths = zip(*sizes, strict=True)
    ranges = (min(heights), max(heights)), (min(widths), max(widths))
    stats = ImageStats({"jpeg": len(sizes)}, *ranges)
    data = tf.constant([jpeg(*size) for size in sizes])
    seed = tf.constant([7, 8], tf.int64)
    known = tf.constant(sizes, tf.int64)
    prepared = ImageDecoder((24, 32), resize, decoder, stats).decode(data, known, seed)
    plain = ImageDecoder((24, 32), resize, decoder).decode(data, None, seed)
    np.testing.assert_allclose(prepared, plain, atol=1e-3)


@pytest.mark.parametrize("data", [b"", b"\xff", b"nothing", jpeg(20, 20)[:100], b"\x89PNG\r\n"])
def test_bytes_that_are_no_image_are_an_error(data):
    """One bad image fails its batch with TensorFlow's error."""
    good = jpeg(20, 20)
    decoder = ImageDecoder((4, 5))
    with pytest.raises(tf.errors.InvalidArgumentError):
        decoder.decode(tf.constant([good, data]))


def test_sizes_are_read_from_images_of_every_kind():
    """Height and width come from the header."""
    _, data, _ = zip(*kinds(), strict=True)
    assert image_sizes(tf.constant(data)).numpy().tolist() == [[48, 64]] * len(data)


def test_decode_images_returns_rgb_from_0_to_1():
    """White is 1, and bars are black."""
    white = encoded(Image.new("RGB", (9, 7), "white"), "PNG")
    np.testing.assert_allclose(decode_images(tf.constant([white]), (3, 4)), np.ones((1, 3, 4, 3)))
    bars = decode_images(tf.constant([white]), (7, 18), resize="fit").numpy()
    assert bars.max() == pytest.approx(1)
    assert not bars[0, :, :4].any()


def test_decode_images_takes_a_batch_of_bytes():
    """A list of bytes is a batch; anything else is our error."""
    data = jpeg(4, 6)
    assert decode_images([data], 4).shape == (1, 4, 4, 3)
    for wrong in (data, None, [1], np.zeros(3), [[data]], tf.constant(data)):
        with pytest.raises(UsageError):
            decode_images(wrong, 4)
