"""Looks of a picture: the same for one scene in any size and format, cheap for any shape."""

import io
import math

import numpy as np
import pytest
import simplejpeg
from PIL import Image, ImageFilter

from recordgen.measures import pictures
from recordgen.measures.pictures import SIDE, Looks, SmallPicture, bounded, look_at, small_picture
from tests.checks.photos import scene, small_jpeg
from tests.conftest import encoded, peak_of


def gray(pixels):
    return bounded(SmallPicture(pixels.astype(np.uint8), *pixels.shape, 1))


def look_of(picture):
    """Return the looks of one picture."""
    return Looks(*(values[0] for values in look_at([picture])))


@pytest.mark.parametrize(
    ("height", "width", "factor"),
    [(1, 1, 1), (62, 900, 1), (63, 900, 2), (125, 125, 4), (248, 4000, 4), (249, 300, 8)],
)
def test_jpeg_factor_keeps_enough_pixels(height, width, factor):
    """The decoder returns exactly the number of pixels that the factor implies."""
    assert pictures.jpeg_factor(height, width) == factor
    pixels = small_jpeg(encoded(Image.new("L", (width, height), 9), "JPEG")).pixels
    assert pixels.shape == (math.ceil(height / factor), math.ceil(width / factor), 1)
    assert min(pixels.shape[:2]) >= min(SIDE, height, width)


def test_thumbnail_averages_what_each_pixel_covers():
    """By area, also where pixels are divided."""
    rows = np.arange(48) * 4
    look = look_of(gray(np.repeat(rows[:, None], 32, axis=1)))
    halves = np.repeat(rows, 2).reshape(32, 3)
    assert look.thumbnail[:, 0].tolist() == [math.floor(each + 0.5) for each in halves.mean(1)]
    assert (look.thumbnail == look.thumbnail[:, :1]).all()


@pytest.mark.parametrize("size", [(500, 375), (250, 188), (333, 250), (1000, 750)])
def test_one_scene_looks_the_same_in_every_size(size):
    """A grid of 8×8 that ends outside the picture does not shift the thumbnail."""
    whole = look_of(small_picture(scene()))
    data = encoded(scene().resize(size, Image.Resampling.BOX), "JPEG", quality=92)
    look = look_of(small_jpeg(data))
    assert np.abs(look.thumbnail.astype(int) - whole.thumbnail).mean() < 3
    assert np.abs(look.thumbnail.mean() - whole.thumbnail.mean()) < 1


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "JPEG"])
def test_one_scene_looks_the_same_in_every_format(kind):
    """Whatever a format loses."""
    image = Image.open(io.BytesIO(encoded(scene(), kind))).convert("RGB")
    look, whole = look_of(small_picture(image)), look_of(small_picture(scene()))
    assert np.abs(look.thumbnail.astype(int) - whole.thumbnail).mean() < 3
    assert look.sharpness == pytest.approx(whole.sharpness, abs=0.1)


def test_gray_and_colour_of_one_jpeg_agree():
    """Decoding the brightness alone is enough."""
    data = encoded(scene(), "JPEG", quality=92)
    one, other = look_of(small_jpeg(data)), look_of(small_jpeg(data, "RGB"))
    assert np.abs(one.thumbnail.astype(int) - other.thumbnail).max() <= 3


def test_colours_are_weighted_as_eyes_do():
    """ITU-R BT.601: green looks brighter than red, and red brighter than blue."""
    levels = [
        int(look_of(small_picture(Image.new("RGB", (40, 40), colour))).thumbnail[0, 0])
        for colour in ("white", "lime", "red", "blue", "black")
    ]
    assert levels == [255, 149, 77, 29, 0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (3, 3), (4, 4), (32, 32), (33, 31)])
def test_tiny_pictures_have_a_look(shape):
    """They are enlarged, and not sharp."""
    look = look_of(gray(np.full(shape, 77)))
    assert look.thumbnail.shape == (SIDE, SIDE)
    assert (look.thumbnail == 77).all()
    assert look.sharpness == 0


@pytest.mark.parametrize("shape", [(1, 100_000), (3, 100_001), (40, 20_000), (70, 50_000)])
@pytest.mark.parametrize("turns", [0, 1])
def test_strips_are_looked_at_as_others(shape, turns):
    """One half is black, the other white; the memory does not grow with the longer side."""
    pixels = np.zeros(shape, np.uint8)
    pixels[:, shape[1] // 2 :] = 255
    thumbnail, peak = peak_of(lambda: look_of(gray(np.rot90(pixels, turns))).thumbnail)
    assert sorted(set(thumbnail.ravel().tolist())) in ([0, 255], [0, 128, 255])
    assert abs(thumbnail.mean() - 127.5) < 3
    assert peak < 2 * pixels.size + 2_000_000


def test_the_decoded_scale_does_not_matter():
    """A JPEG has the same looks decoded at 1/4 as at 1/8."""
    data = encoded(scene(1000, 752), "JPEG", quality=92)
    pixels = simplejpeg.decode_jpeg(data, colorspace="GRAY", min_height=188, min_width=250)
    one, other = look_of(bounded(SmallPicture(pixels, 752, 1000, 4))), look_of(small_jpeg(data))
    assert np.abs(one.thumbnail.astype(int) - other.thumbnail).mean() < 2


# pixels, sharpness
SHARPNESS = [
    pytest.param(np.repeat([[0, 0, 0, 90, 90, 90]], 6, axis=0), 1, id="edge"),
    pytest.param(np.repeat([[0, 10, 20, 30, 40, 50]], 6, axis=0), 0, id="ramp"),
    pytest.param(np.pad([[50]], 3), 4, id="dot"),
    pytest.param(np.pad([[0]], 3, constant_values=50), 4, id="hole"),
    pytest.param(np.repeat([[0, 0, 30, 60, 90, 90]], 6, axis=0), 1 / 3, id="soft edge"),
]


@pytest.mark.parametrize(("pixels", "sharpness"), SHARPNESS)
def test_sharpness(pixels, sharpness):
    """Sharpness is the largest second difference by the range; contrast does not matter."""
    assert look_of(gray(pixels)).sharpness == pytest.approx(sharpness)
    assert look_of(gray(pixels * 2)).sharpness == pytest.approx(sharpness)
    assert look_of(gray(pixels.T)).sharpness == pytest.approx(sharpness)


def test_blur_takes_sharpness():
    """A blur of 2 % of the shorter side lowers sharpness; 0.3 % is not seen at this scale."""
    sharp, soft, blurred = (
        look_of(
            small_jpeg(encoded(scene().filter(ImageFilter.GaussianBlur(radius)), "JPEG"))
        ).sharpness
        for radius in (0, 1, 8)
    )
    assert soft == pytest.approx(sharp, rel=0.2)
    assert blurred < sharp / 2


def test_many_at_once_look_as_one_by_one():
    """A batch may have several shapes, gray and in colour, in any order."""
    sizes = [(500, 375), (375, 500), (500, 375), (499, 375), (40, 32), (2, 3)]
    jpegs = [encoded(scene(*size, seed=seed), "JPEG") for seed, size in enumerate(sizes)]
    several = [small_jpeg(data) for data in jpegs] + [small_jpeg(jpegs[0], "RGB")]
    for place, picture in enumerate(several):
        one, of_all = look_of(picture), Looks(*(values[place] for values in look_at(several)))
        assert (one.thumbnail == of_all.thumbnail).all()
        assert one.sharpness == of_all.sharpness
