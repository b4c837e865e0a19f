"""Frames of a video segment, decoded by TensorFlow in training and in saved models.

The only videos that TensorFlow decodes are animated GIFs. Its decoder does not return the delays of
frames, so they are read from the "graphic control extension" that GIF89a has before each frame.
"""

from __future__ import annotations

import tensorflow as tf

from recordgen.reading.decoding import resize_images
from recordgen.reading.levels import between

#: The first bytes of a GIF; the rest of its version follows, 7a or 9a.
MAGIC = b"GIF8"

# Delay of frames with a missing or near-zero delay, as in browsers and ffmpeg.
_USUAL_SECONDS = 0.1
_SHORTEST_SECONDS = 0.02

_EXTENSION, _CONTROL, _SIZE, _END, _IMAGE = 0x21, 0xF9, 0x04, 0x00, 0x2C
# The block itself, and the first byte of the next one.
_CONTROL_BYTES = 9


def segment_frames(
    video: tf.Tensor,
    start: tf.Tensor,
    end: tf.Tensor,
    *,
    name: str | tf.Tensor,
    frames: int,
    image_size: tuple[int, int],
) -> tf.Tensor:
    """Decode an animated GIF, and return evenly spaced frames of a segment, resized.

    Start and end are in seconds. In a short segment, frames repeat.

    Returns:
        float32 [frames, height, width, 3] in [0, 1].

    Raises:
        tf.errors.InvalidArgumentError: the video is not a GIF, or it is damaged.
    """
    is_gif = tf.strings.substr(video, 0, len(MAGIC)) == MAGIC
    # Do not show the first bytes: the signature evaluate would reveal a server's files.
    message = ["TensorFlow decodes only animated GIFs, and this video is not one", name]
    with tf.control_dependencies([tf.debugging.Assert(is_gif, message)]):
        video = tf.identity(video)
    decoded = tf.io.decode_gif(video)
    ends = shown_until(video, tf.shape(decoded)[0])
    chosen = tf.gather(decoded, frames_between(ends, start, end, frames))
    images = between(resize_images(chosen, image_size), 0.0, 1.0)
    return tf.ensure_shape(images, [frames, *image_size, 3])


def shown_until(video: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Return the end of each frame of a GIF.

    Frames with delays of 0.2 s and 0.05 s → ``[0.2, 0.25]``, float32 [count]. Unless the file has a
    delay for each of ``count`` frames, all last 0.1 s.
    """
    data = tf.io.decode_raw(video, tf.uint8)
    starts = tf.where(data[: 1 - _CONTROL_BYTES] == _EXTENSION)
    blocks = tf.cast(tf.gather(data, starts + tf.range(_CONTROL_BYTES, dtype=tf.int64)), tf.int32)
    # By chance, compressed pixels match all of these bytes once in 500 GB.
    is_control = (
        (blocks[:, 1] == _CONTROL)
        & (blocks[:, 2] == _SIZE)
        & (blocks[:, 7] == _END)
        & ((blocks[:, 8] == _IMAGE) | (blocks[:, 8] == _EXTENSION))
    )
    delays = tf.boolean_mask(blocks[:, 4] + 256 * blocks[:, 5], is_control)[:count]
    seconds = tf.cast(delays, tf.float32) / 100
    seconds = tf.where(seconds < _SHORTEST_SECONDS, _USUAL_SECONDS, seconds)
    usual = tf.fill([count], _USUAL_SECONDS)
    return tf.cumsum(tf.cond(tf.size(seconds) == count, lambda: seconds, lambda: usual))


def frames_between(ends: tf.Tensor, start: tf.Tensor, end: tf.Tensor, frames: int) -> tf.Tensor:
    """Return the frames shown in the middle of each of ``frames`` equal parts, int32 [frames].

    ``[0.5, 1.5, 4.0], 0.0, 4.0, 2`` → ``[1, 2]``, the frames at 1 s and at 3 s. The segment is
    clipped to the last of the ends, which :func:`shown_until` returns.
    """
    start = tf.clip_by_value(start, 0.0, ends[-1])
    end = tf.clip_by_value(end, start, ends[-1])
    shares = (tf.range(frames, dtype=tf.float32) + 0.5) / frames
    found = tf.searchsorted(ends, start + shares * (end - start), side="right")
    return tf.minimum(found, tf.size(ends) - 1)
