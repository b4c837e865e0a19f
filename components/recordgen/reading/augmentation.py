"""Windows of images, and random changes of them. All randomness comes from the given seed."""

from __future__ import annotations

import math
from typing import TypedDict

import tensorflow as tf

from recordgen.reading.levels import stretched, to_uint8
from recordgen.reading.options import Augmentation

# --- the part of an image that is shown: the numbers by which both pixels and boxes move ----------

# A *window* (int32 [..., 4]: top, left, height, width) is cut out of an image, in pixels of the
# image. A *view* (float32 [..., 4], the same order) is the part of the stored image that the
# returned image shows, in shares of the stored height and width: (0, 0, 1, 1) is the whole image.
# With bars around the image, a view begins below 0 and is larger than 1.

# "Going Deeper with Convolutions" (Szegedy et al., 2014), section 6: the window's share of the
# area, and its shape (width : height) relative to the target's.
_CROP_AREA = (0.08, 1.0)
_CROP_SHAPE = (3 / 4, 4 / 3)


def center_window(size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the largest centred window of the target's shape in images of ``size``."""
    wanted = tf.constant(target, tf.float32)
    scale = tf.reduce_min(floats(size) / wanted, -1, keepdims=True)
    inner = tf.cast(tf.round(scale * wanted), tf.int32)
    inner = tf.clip_by_value(inner, 1, size)
    return tf.concat([(size - inner) // 2, inner], -1)


def random_window(size: tf.Tensor, target: tuple[int, int], draw: tf.Tensor) -> tf.Tensor:
    """Return a window of random area, shape and place; ``draw``: float32 [..., 4] in [0, 1).

    Its shape is close to the target's, so that resizing stretches it by a third at most.
    """
    area = (_CROP_AREA[0] + draw[..., 0] * (_CROP_AREA[1] - _CROP_AREA[0])) * tf.reduce_prod(
        floats(size), -1
    )
    low, high = tf.math.log(_CROP_SHAPE[0]), tf.math.log(_CROP_SHAPE[1])
    shape = tf.exp(low + draw[..., 1] * (high - low)) * (target[1] / target[0])
    inner = tf.stack([tf.sqrt(area / shape), tf.sqrt(area * shape)], -1)
    inner = tf.clip_by_value(tf.cast(tf.round(inner), tf.int32), 1, size)
    before = tf.cast(draw[..., 2:] * floats(size - inner + 1), tf.int32)
    return tf.concat([tf.minimum(before, size - inner), inner], -1)


def fitted_window(size: tf.Tensor, target: tuple[int, int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the window of the target that an image of ``size`` (int32 [..., 2]) fills.

    Returns:
        Top and left, and height and width (both int32 [..., 2]).
    """
    scale = tf.reduce_min(floats(target) / floats(size), -1, keepdims=True)
    inner = tf.clip_by_value(tf.cast(tf.round(floats(size) * scale), tf.int32), 1, target)
    return (tf.constant(target) - inner) // 2, inner


def scaled_window(window: tf.Tensor, ratio: int | tf.Tensor) -> tf.Tensor:
    """Return a window in pixels of the image as decoded at the scale 1 / ratio."""
    return tf.maximum(window // ratio, [0, 0, 1, 1])


def crop_view(window: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Return the view of a window of an image of ``size`` (int32 [..., 2])."""
    return floats(window) / floats(tf.concat([size, size], -1))


def fit_view(view: tf.Tensor, size: tf.Tensor, target: tuple[int, int]) -> tf.Tensor:
    """Return the view of a target into which an image of ``size`` that shows ``view`` is fitted."""
    start, inner = fitted_window(size, target)
    extent = view[..., 2:] * floats(target) / floats(inner)
    return tf.concat([view[..., :2] - extent * floats(start) / floats(target), extent], -1)


def floats(numbers: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    """Cast numbers to float32."""
    return tf.cast(numbers, tf.float32)


# --- random changes -------------------------------------------------------------------------------


# Rec. 601 luma.
_GRAY = (0.299, 0.587, 0.114)

# Contrast stretches around the mean of about this many rows: all rows would be one more pass.
_ROWS_OF_MEAN = 32

# With less contrast an image is a plain colour, and its range has no length.
_LEAST_CONTRAST = 1e-3

# 4 and 8 take the least time among 1, 2, 4, 8, 16 and 32.
_PIXELS_A_ROW = 8


class Changes(TypedDict, total=False):
    """The changes of each image in a batch; keys of unused changes are missing.

    Attributes:
        crop: top, left, height and width of the shown part, in shares of the image's height and
            width: float32 [batch, 4].
        is_mirrored: whether an image is mirrored left to right after the crop: bool [batch].
        light: see :func:`light_of`: float32 [batch, 3].
        colour: matrices that multiply pixels, see :func:`_of_several`: float32 [batch, n, n].
    """

    crop: tf.Tensor
    is_mirrored: tf.Tensor
    light: tf.Tensor
    colour: tf.Tensor


def draw_changes(
    how: Augmentation, count: tf.Tensor, size: tuple[int, int], seed: tf.Tensor
) -> Changes:
    """Draw random changes for ``count`` images of a size, from a seed (int64 [2])."""
    draws = tf.random.stateless_uniform((count, 9), seed)
    changes = Changes()
    if how.crop:
        kept = 1 - how.crop * draws[:, 4:6]
        changes["crop"] = tf.concat([(1 - kept) * draws[:, 6:8], kept], 1)
    if how.flip:
        changes["is_mirrored"] = draws[:, 8] < 0.5
    signed = 2 * draws[:, :4] - 1
    if how.brightness or how.contrast or how.saturation:
        changes["light"] = light_of(1 + how.contrast * signed[:, 1], how.brightness * signed[:, 0])
    if how.saturation:
        matrices = _saturation(1 + how.saturation * signed[:, 2])
        changes["colour"] = _of_several(matrices, math.prod(size))
    return changes


def light_of(contrast: tf.Tensor, brightness: tf.Tensor) -> tf.Tensor:
    """Return the levels that become black and white, as numbers to compute them for any image.

    They are computed once for a batch, because each step on a single image counts.

    Args:
        contrast: the factor by which levels move away from the image's mean, float32 [...].
        brightness: the share of the full range to add, float32 [...].

    Returns:
        float32 [..., 3]: black is the image's mean times the first number, plus the second; white
        is the third number above black.
    """
    contrast = tf.maximum(contrast, _LEAST_CONTRAST)
    return tf.stack([1 - 1 / contrast, -255 * brightness / contrast, 255 / contrast], -1)


def changed(image: tf.Tensor, changes: Changes) -> tf.Tensor:
    """Apply its changes to an image.

    Change image by image, not in batches: the processor's cache holds one image, but no batch.
    uint8 or float32 [height, width, 3] from 0 to 255 → uint8; see :func:`draw_changes`.
    """
    if "crop" in changes:
        image = _cropped(tf.cast(image, tf.float32), changes["crop"])
    if "is_mirrored" in changes:
        image = tf.cond(changes["is_mirrored"], lambda: tf.reverse(image, [1]), lambda: image)
    if "light" in changes:
        return _recoloured(image, changes)
    return to_uint8(image)


def shown_views(crop: tf.Tensor, size: tuple[int, int]) -> tf.Tensor:
    """Return the views (see :mod:`recordgen.reading.augmentation`) of cropped images of a size."""
    start, kept = crop[:, :2], crop[:, 2:]
    # The outer pixels of the result are samples at the centres of the window's outer pixels.
    sides = floats(size)
    start = (start * (sides - 1) + (1 - kept) / 2) / sides
    return tf.concat([start, kept], 1)


def _cropped(image: tf.Tensor, crop: tf.Tensor) -> tf.Tensor:
    """Resize a part of an image to the image's size."""
    start, kept = crop[:2], crop[2:]
    # Boxes end at the centre of the last pixel: [0, 0, 1, 1] is the whole image.
    box = tf.concat([start, start + kept], 0)
    cropped = tf.image.crop_and_resize(image[None], box[None], [0], image.shape[:2])
    return tf.ensure_shape(cropped[0], image.shape)


def _recoloured(image: tf.Tensor, changes: Changes) -> tf.Tensor:
    """Change light and colour of an image (uint8 or float32), and round it to uint8.

    Each change is linear in a pixel's channels. Light needs one factor and one offset per image;
    colour needs a matrix, whose product takes several times as long.
    """
    factor, offset, span = tf.unstack(changes["light"])
    black = _mean(image) * factor + offset
    if "colour" in changes:
        image = _times(tf.cast(image, tf.float32), changes["colour"])
    return stretched(image, black, span)


def _mean(image: tf.Tensor) -> tf.Tensor:
    """Return the mean of an image's channels (float32 []), from rows far apart."""
    height = image.shape[0]
    step = max(1, height // _ROWS_OF_MEAN)
    # Gathering copies whole rows; a slice with a step copies number by number.
    rows = tf.gather(image, range(step // 2, height, step))
    return tf.reduce_mean(tf.cast(rows, tf.float32))


def _of_several(matrices: tf.Tensor, pixels: int) -> tf.Tensor:
    """Return matrices (float32 [batch, n, n]) that multiply several of an image's pixels at once.

    Products with small matrices are slow, so each matrix is repeated along the diagonal.
    """
    count = math.gcd(pixels, _PIXELS_A_ROW)
    diagonal = tf.eye(count)[:, None, :, None] * matrices[:, None, :, None, :]
    return tf.linalg.matrix_transpose(tf.reshape(diagonal, (-1, 3 * count, 3 * count)))


def _times(image: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Multiply pixels by the matrix of :func:`_of_several`."""
    return tf.reshape(tf.reshape(image, (-1, matrix.shape[-1])) @ matrix, image.shape)


def _saturation(share: tf.Tensor) -> tf.Tensor:
    """Return matrices (float32 [batch, 3, 3]) for a saturation: 0 is gray, 1 no change."""
    gray = tf.constant([_GRAY] * 3)
    share = share[:, None, None]
    return share * tf.eye(3) + (1 - share) * gray
