"""Boxes on pictures: their positions, and their labels."""

import io
from itertools import combinations
from math import dist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordgen.errors import PayloadError
from recordgen.payloads.drawing import draw_boxes, label_colour
from recordgen.subjects.details import Details, Mask, Polygons
from recordgen.subjects.masks import runs_in, text_of
from recordgen.subjects.objects import StoredBox
from tests.conftest import encoded, exif_of, noise


def drawn(image, *boxes):
    """Return the pixels of an image with boxes on it."""
    drawing = draw_boxes(encoded(image, "PNG"), boxes)
    assert drawing.format == "png"
    return np.asarray(Image.open(io.BytesIO(drawing.data)))


def plain(width, height):
    return Image.new("RGB", (width, height), (128, 128, 128))


SIDE = st.integers(1, 60)
SHARE = st.floats(0, 1, width=32)
BOX = st.builds(
    lambda label, number, xs, ys: StoredBox(label, number, min(xs), min(ys), max(xs), max(ys)),
    st.text(max_size=20),
    st.integers(-1, 2**63 - 1),
    st.tuples(SHARE, SHARE),
    st.tuples(SHARE, SHARE),
)


@given(SIDE, SIDE, st.lists(BOX, max_size=5))
def test_any_box_can_be_drawn(width, height, boxes):
    """Boxes of any place, label and number leave the size of the picture."""
    assert drawn(noise(width, height), *boxes).shape == (height, width, 3)


@given(st.data(), SIDE, SIDE)
def test_a_box_is_where_it_should_be(data, width, height):
    """A line of one pixel lies inside the box, and all other pixels stay."""
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    right = data.draw(st.integers(left, width - 1))
    bottom = data.draw(st.integers(top, height - 1))
    image = noise(width, height)
    expected = np.array(image)

    expected[top : bottom + 1, left : right + 1] = label_colour(3)
    inner = slice(top + 1, bottom), slice(left + 1, right)
    expected[inner] = np.array(image)[inner]
    shares = (left / width, top / height, (right + 1) / width, (bottom + 1) / height)
    assert (drawn(image, StoredBox("", 3, *shares)) == expected).all()


# label, another label with number 7 that gives the same picture
ALIKE = [("Straße", "#7"), ("猫", "#7"), ("a\nb", "#7")]  # Pillow's font has no ß


@pytest.mark.parametrize(("label", "other"), ALIKE)
def test_labels_that_cannot_be_shown(label, other):
    """Text without glyphs becomes the number."""
    pictures = [
        drawn(plain(90, 70), StoredBox(text, 7, 0.1, 0.5, 0.9, 0.9))
        for text in (label, other, "another")
    ]
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] != pictures[2]).any()


def test_small_boxes_are_over_large_ones_and_labels_over_all():
    """The order of boxes does not matter."""
    small, large = StoredBox("", 0, 0.5, 0.5, 0.6, 0.6), StoredBox("", 1, 0, 0, 0.55, 0.55)
    one, other = drawn(plain(100, 100), small, large), drawn(plain(100, 100), large, small)
    assert (one == other).all()
    assert tuple(one[54, 50]) == label_colour(0)
    named = large._replace(label="cat", ymin=0.5, ymax=1.0)
    assert (drawn(plain(100, 100), named, small) == 0).all(-1).any()


def test_thick_lines_and_long_labels_stay_where_they_belong():
    """A line that fills a small box stays in it; a label begins where it has room."""
    small = drawn(plain(2000, 2000), StoredBox("", 0, 0.05, 0.05, 0.055, 0.0525))
    rows, columns = (small == label_colour(0)).all(-1).nonzero()
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (100, 104, 100, 109)
    for label in ("zebra", "z" * 100_000):
        image = drawn(plain(200, 100), StoredBox(label, 0, 0.97, 0.5, 1, 0.9))
        assert (image[50:90, :190] != 128).any()


def test_lines_and_letters_grow_with_the_image():
    """They take the same share of a small and a large picture."""
    box = StoredBox("cat", 0, 0.5, 0.5, 0.8, 0.8)
    small, large = (
        (drawn(plain(side, side), box) == label_colour(0)).all(-1) for side in (500, 2000)
    )
    assert large.mean() == pytest.approx(small.mean(), rel=0.2)


def test_colours_tell_labels_apart():
    """The first twenty labels have clearly different colours."""
    colours = [label_colour(number) for number in range(20)]
    assert min(dist(one, other) for one, other in combinations(colours, 2)) > 30


# format, mode → format of the picture
FORMATS = [("JPEG", "RGB", "jpeg"), ("JPEG", "CMYK", "jpeg"), ("JPEG", "L", "jpeg")]
FORMATS += [(kind, "RGB", "png") for kind in ("PNG", "BMP", "GIF", "WEBP")]
FORMATS += [("PNG", mode, "png") for mode in ("1", "L", "P", "RGBA", "I;16")]


@pytest.mark.parametrize(("kind", "mode", "expected"), FORMATS)
def test_a_jpeg_stays_a_jpeg_and_others_become_png(kind, mode, expected):
    """The drawing has no Exif and is not turned."""
    image = Image.new(mode, (40, 30)) if mode == "I;16" else noise(40, 30).convert(mode)
    more = {} if kind in ("BMP", "GIF") else {"exif": exif_of(6)}
    drawing = draw_boxes(encoded(image, kind, **more), [StoredBox("", 0, 0.25, 0.2, 1, 1)])
    found = Image.open(io.BytesIO(drawing.data))
    assert (drawing.format, found.format, found.mode) == (expected, expected.upper(), "RGB")
    assert found.size == (40, 30)
    assert not found.getexif()
    assert dist(found.getpixel((10, 18)), label_colour(0)) < (60 if expected == "jpeg" else 1)


@pytest.mark.parametrize("data", [b"", b"no image", encoded(noise(), "PNG")[:-200]])
def test_an_image_that_does_not_decode_is_refused(data):
    """Empty, foreign and truncated bytes are rejects."""
    with pytest.raises(PayloadError):
        draw_boxes(data, [StoredBox("cat", 0, 0, 0, 1, 1)])


TRIANGLE = (0.25, 0.25, 0.75, 0.25, 0.25, 0.75)
LEFT = np.zeros((4, 4), np.uint8)
LEFT[:, :2] = 1


# details, inside, outside
SHAPES = [
    (Details(polygons=Polygons.of([TRIANGLE])), (30, 30), (65, 65)),
    (Details(mask=Mask(text_of(runs_in(LEFT)), 4, 4)), (50, 20), (50, 80)),
    (Details(keypoints=(0.25, 0.5, 2.0)), (50, 25), (50, 75)),
]


@pytest.mark.parametrize(("details", "inside", "outside"), SHAPES)
def test_shapes_are_coloured(details, inside, outside):
    """Pixels (row, column) of the object have its colour, others are as they were."""
    pixels = drawn(plain(100, 100), StoredBox("", 0, 0.0, 0.0, 1.0, 1.0, details))
    red, _, blue = pixels[inside].astype(int)
    assert red > blue + 30
    assert pixels[outside].tolist() == [128] * 3


def test_keypoints_without_a_label_are_not_drawn():
    """A keypoint of visibility 0 has no place."""
    box = StoredBox("", 0, 0.0, 0.0, 1.0, 1.0)
    details = Details(keypoints=(0.5, 0.5, 0.0))
    expected = drawn(plain(100, 100), box)
    np.testing.assert_array_equal(drawn(plain(100, 100), box._replace(details=details)), expected)
