"""Outlines and runs of pixels → masks as their images show the objects."""

from __future__ import annotations

import tensorflow as tf


def drawn_masks(
    polygons: tf.RaggedTensor,
    runs: tf.RaggedTensor,
    sizes: tf.Tensor,
    frames: tf.Tensor,
    image_size: tuple[int, int],
) -> tf.Tensor:
    """Return the masks of objects, uint8 [n, height, width]: 1 where an object is.

    A pixel belongs to a polygon if its center does; a polygon that crosses itself has holes.

    Args:
        polygons: ragged float32 [n, (polygons), (points), 2]: x and y in shares of the image.
        runs: ragged int64 [n, (runs)], see :mod:`recordgen.core.records.run_lengths`.
        sizes: int64 [n, 2], height and width of the images of the runs.
        frames: float32 [n, 4], what is shown of each image, see
            :func:`recordgen.reading.objects.whole_frames`.
        image_size: height and width in pixels.
    """
    filled = _filled(polygons, frames, image_size)
    return tf.maximum(filled, _sampled(runs, sizes, frames, image_size))


def _filled(polygons: tf.RaggedTensor, frames: tf.Tensor, image_size: tuple[int, int]) -> tf.Tensor:
    height, width = image_size
    every = polygons.values  # [m, (points), 2]
    objects, of_point = polygons.value_rowids(), every.value_rowids()
    frame = tf.gather(frames, tf.gather(objects, of_point))
    points = (every.values - frame[:, 1::-1]) / frame[:, :1:-1] * (float(width), float(height))
    # Each point is joined to the next one, and the last to the first.
    after = tf.range(1, tf.size(of_point, tf.int64) + 1)
    is_last = after == tf.gather(every.row_limits(), of_point)
    others = tf.gather(points, tf.where(is_last, tf.gather(every.row_starts(), of_point), after))
    (x0, y0), (x1, y1) = (
        tf.unstack(points[..., None], axis=1),
        tf.unstack(others[..., None], axis=1),
    )
    centers = tf.range(height, dtype=tf.float32) + 0.5
    crosses = (y0 <= centers) != (y1 <= centers)  # [points, height]
    x = x0 + (x1 - x0) * tf.math.divide_no_nan(centers - y0, y1 - y0)
    first = tf.cast(tf.clip_by_value(tf.math.ceil(x - 0.5), 0.0, float(width)), tf.int64)
    at = tf.where(crosses)
    places = tf.stack([tf.gather(of_point, at[:, 0]), at[:, 1], tf.gather_nd(first, at)], 1)
    shape = tf.stack([every.nrows(), tf.cast(height, tf.int64), tf.cast(width + 1, tf.int64)])
    # From each edge on to the right, inside and outside change places.
    changes = tf.scatter_nd(places, tf.ones(tf.shape(places)[:1], tf.int32), shape)
    inside = tf.cast(tf.cumsum(changes, 2)[..., :width] % 2, tf.uint8)
    return tf.math.unsorted_segment_max(inside, objects, polygons.nrows())


def _sampled(
    runs: tf.RaggedTensor, sizes: tf.Tensor, frames: tf.Tensor, image_size: tuple[int, int]
) -> tf.Tensor:
    """Return the nearest pixel of each pixel that is shown."""
    height, width = image_size
    there = tf.where(runs.row_lengths() > 0)
    chosen = there[:, 0]
    frame, stored = tf.gather(frames, chosen), tf.gather(sizes, chosen)

    def places(axis: int, side: int) -> tf.Tensor:
        shares = (tf.range(side, dtype=tf.float32) + 0.5) / side
        shown = frame[:, axis, None] + frame[:, 2 + axis, None] * shares
        return tf.cast(tf.floor(shown * tf.cast(stored[:, axis, None], tf.float32)), tf.int64)

    rows, columns = places(0, height)[:, :, None], places(1, width)[:, None, :]
    high, wide = stored[:, 0, None, None], stored[:, 1, None, None]
    is_there = (rows >= 0) & (rows < high) & (columns >= 0) & (columns < wide)
    flat = tf.reshape(tf.where(is_there, columns * high + rows, 0), (-1, height * width))
    ends = tf.cumsum(tf.gather(runs, chosen).to_tensor(), 1)
    # One more, since a batch may have no runs at all; no pixel is behind it.
    ends = tf.pad(ends, ((0, 0), (0, 1)), constant_values=tf.int64.max)
    values = tf.reshape(tf.searchsorted(ends, flat, "right") % 2, (-1, height, width))
    found = tf.cast(tf.where(is_there, values, 0), tf.uint8)
    shape = tf.stack([runs.nrows(), tf.cast(height, tf.int64), tf.cast(width, tf.int64)])
    return tf.scatter_nd(there, found, shape)
