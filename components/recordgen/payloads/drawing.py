"""Draw boxes, what else is known of objects, and masks on a picture, for display."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from recordgen.errors import PayloadError
from recordgen.payloads.opening import decoded, file_header, open_image
from recordgen.payloads.reencoding import LOSSY_QUALITY, to_8_bit
from recordgen.rejects import RejectCode
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.masks import IGNORED, pixels_of, runs_of
from recordgen.subjects.objects import StoredBox

# Least pixels, and the share of an image's shorter side.
_LINE, _LETTER = (1, 1 / 240), (11, 1 / 28)
_LETTERS = 100  # of a label, at most

# Steps of the golden ratio keep each hue far from the previous ones.
_HUE_TURN = 0.6180339887

# How much of a mask's colour covers the picture, of 255.
_FILLING = 96

Colour = tuple[int, int, int]


class Drawing(NamedTuple):
    """A picture with boxes or a mask.

    Attributes:
        data: an encoded image without metadata.
        format: ``jpeg`` if the image is a JPEG, else ``png``.
    """

    data: bytes
    format: str


def label_colour(number: int) -> Colour:
    """Return the colour of the label with this number: red, green and blue, 0..255."""
    red, green, blue = colorsys.hsv_to_rgb(number * _HUE_TURN % 1, 0.85, 1)
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_boxes(data: bytes, boxes: Sequence[StoredBox]) -> Drawing:
    """Draw boxes, their outlines, masks and keypoints, and their labels on an encoded image.

    The picture shows the stored pixels like TensorFlow's decoder, which ignores Exif orientation.
    A box's outline covers its outermost pixels, in the colour of its label. The label is in the
    upper left corner of the box; its number, ``#7``, replaces one with letters that the font lacks.

    Raises: PayloadError: the image does not decode.
    """
    canvas, name = _opened(data)
    draw = ImageDraw.Draw(canvas)
    side = min(canvas.size)
    line, letter = (max(least, round(share * side)) for least, share in (_LINE, _LETTER))
    font = ImageFont.load_default(letter)
    # Small boxes are drawn over large ones, and labels over all.
    ordered = sorted(boxes, key=lambda it: (it.xmax - it.xmin) * (it.ymax - it.ymin), reverse=True)
    for box in ordered:
        _fill_shape(canvas, box)
    for box in ordered:
        left, top, right, bottom = around = _pixels(box, canvas.size)
        # Pillow's outlines leave a box that has no room for two of them.
        if min(right - left, bottom - top) < 2 * line:
            draw.rectangle(around, fill=label_colour(box.number))
        else:
            draw.rectangle(around, outline=label_colour(box.number), width=line)
        _draw_keypoints(draw, box, canvas.size, 2 * line)
    for box in boxes:
        left, top, *_ = _pixels(box, canvas.size)
        is_known = box.label.isascii() and box.label.isprintable()
        text = box.label[:_LETTERS] if is_known else f"#{box.number}"
        last = max(0, canvas.width - round(draw.textlength(text, font)) - line)
        draw.text(
            (min(left + 2 * line, last), min(top, canvas.height - letter)),
            text,
            fill=label_colour(box.number),
            font=font,
            stroke_width=line,
            stroke_fill="black",
        )
    return _drawn(canvas, name)


def draw_mask(data: bytes, mask: bytes, background: int) -> Drawing:
    """Colour the pixels of an encoded image by their classes, except 255, no class.

    Args:
        data: the image, at any scale.
        mask: an encoded image whose levels are class numbers.
        background: the class whose pixels get no colour.

    Raises: PayloadError: one of them does not decode.
    """
    canvas, name = _opened(data)
    file = file_header(mask)
    opened = open_image(file)
    numbers = decoded(file.format, lambda: opened.convert("L")).resize(
        canvas.size, Image.Resampling.NEAREST
    )
    colours = Image.merge(
        "RGB", [numbers.point([label_colour(at)[band] for at in range(256)]) for band in range(3)]
    )
    filled = numbers.point([0 if at in (background, IGNORED) else _FILLING for at in range(256)])
    canvas.paste(colours, mask=filled)
    return _drawn(canvas, name)


def _opened(data: bytes) -> tuple[Image.Image, str]:
    """Return an encoded image in RGB, and its format. Raises: PayloadError."""
    file = file_header(data)
    image = open_image(file)
    return decoded(file.format, lambda: to_8_bit(image).convert("RGB")), file.format


def _drawn(canvas: Image.Image, name: str) -> Drawing:
    if name == "JPEG":
        # Full colour resolution, or the lines would bleed.
        return _saved(canvas, name, quality=LOSSY_QUALITY, subsampling=0)
    return _saved(canvas, "PNG")


def _saved(image: Image.Image, name: str, **options: Any) -> Drawing:
    out = io.BytesIO()
    image.save(out, name, exif=b"", icc_profile=None, **options)
    return Drawing(out.getvalue(), name.lower())


def _pixels(box: StoredBox, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of a box's pixels, at least one in each direction."""
    (left, right), (top, bottom) = (
        (first := min(side - 1, round(start * side)), max(first, round(end * side) - 1))
        for side, start, end in ((size[0], box.xmin, box.xmax), (size[1], box.ymin, box.ymax))
    )
    return left, top, right, bottom


def _fill_shape(canvas: Image.Image, box: StoredBox) -> None:
    """Colour the pixels of an object."""
    details, (width, height) = box.details, canvas.size
    if details.mask is not None:
        pixels = pixels_of(runs_of(details.mask.counts), details.mask.height, details.mask.width)
        shape = Image.fromarray(pixels * _FILLING).resize(canvas.size, Image.Resampling.NEAREST)
        canvas.paste(label_colour(box.number), mask=shape)
    for points in details.polygons:
        shape = Image.new("L", canvas.size)
        scaled = [value * (width, height)[at % 2] for at, value in enumerate(points)]
        ImageDraw.Draw(shape).polygon(scaled, fill=_FILLING)
        canvas.paste(label_colour(box.number), mask=shape)


def _draw_keypoints(
    draw: ImageDraw.ImageDraw, box: StoredBox, size: tuple[int, int], radius: int
) -> None:
    """Draw a dot at each labelled keypoint, filled if it is visible."""
    numbers = box.details.keypoints
    for x, y, shown in zip(*(numbers[at::KEYPOINT] for at in range(KEYPOINT)), strict=True):
        if shown:
            column, row = x * size[0], y * size[1]
            around = (column - radius, row - radius, column + radius, row + radius)
            colour = label_colour(box.number)
            draw.ellipse(around, fill=colour if shown > 1 else None, outline=(0, 0, 0))


# Up to these sizes an image takes a few tens of milliseconds; a JPEG is decoded at 1/8 scale.
_MAX_JPEG_PIXELS = 50_000_000
_MAX_PIXELS = 8_000_000

# Up to this side, in pixels, PNG keeps every pixel: JPEG would smear scans and icons.
_PIXEL_ART_SIDE = 64

_QUALITY = 80

# A JPEG that was shrunk while decoding to this share of the side or more is shown as it is.
_LEAST_SHARE = 0.75


class Thumbnail(NamedTuple):
    """A thumbnail.

    Attributes:
        data: an encoded image without metadata.
        format: ``png`` or ``jpeg``.
        height: height of the stored image, in pixels.
        width: width of the stored image, in pixels.
    """

    data: bytes
    format: str
    height: int
    width: int


def to_thumbnail(data: bytes, side: int) -> Thumbnail:
    """Downscale an encoded image to at most ``side`` pixels; smaller images keep their pixels.

    It shows the stored pixels like TensorFlow's decoder, which ignores Exif orientation.

    Raises: PayloadError: the image does not decode, or would take too long.
    """
    file = file_header(data)
    if file.decoded_pixels > (_MAX_JPEG_PIXELS if file.format == "JPEG" else _MAX_PIXELS):
        raise PayloadError(
            RejectCode.TOO_MANY_PIXELS, f"too large for a thumbnail: {file.width}×{file.height}"
        )
    image = open_image(file)
    return Thumbnail(*decoded(file.format, lambda: _encoded(image, side)), file.height, file.width)


def _encoded(image: Image.Image, side: int) -> Drawing:
    share = _LEAST_SHARE * side / max(image.size)
    image.draft(None, (max(1, int(image.width * share)), max(1, int(image.height * share))))
    small = to_8_bit(image)
    small.thumbnail((side, side), Image.Resampling.HAMMING)  # half of the time of LANCZOS
    if max(small.size) <= _PIXEL_ART_SIDE:
        return _saved(small, "PNG", optimize=True)
    return _saved(small, "JPEG", quality=_QUALITY, optimize=True)
