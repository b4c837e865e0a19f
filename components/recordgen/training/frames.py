"""Frames of a part of a video, by TensorFlow alone: in training and in a saved model alike.

TensorFlow decodes animated GIFs and no other video. Its decoder does not say how long a frame is
shown, so that is read from the file: GIF89a has it in the "graphic control extension" that stands
before each frame.
"""

from __future__ import annotations

import tensorflow as tf

from recordgen.reading.decoding import resize_images

#: What a GIF begins with, before its version's 7a or 9a.
MAGIC = b"GIF8"

# Of a frame that does not say it, or says next to nothing: what browsers and ffmpeg make of it.
_USUAL_SECONDS = 0.1
_SHORTEST_SECONDS = 0.02

_EXTENSION, _CONTROL, _SIZE, _END, _IMAGE = 0x21, 0xF9, 0x04, 0x00, 0x2C
# The block itself, and the first byte of what follows.
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
    """Decode a video, and return frames that lie evenly over a part of it.

    Args:
        video: string [], a whole animated GIF.
        start: float32 [], in seconds.
        end: float32 [], in seconds; what lies behind the video's end is cut off, and of a part that
            begins there the last frame is left.
        name: what an error calls the video.
        frames: how many; those of short parts come more than once.
        image_size: height and width to which they are resized, in pixels.

    Returns:
        float32 [frames, height, width, 3] in [0, 1].

    Raises:
        tf.errors.InvalidArgumentError: the video is no GIF, which the error says with its name; or
            it is damaged.
    """
    is_gif = tf.strings.substr(video, 0, len(MAGIC)) == MAGIC
    # Not what it begins with: the signature evaluate would show what is in a server's files.
    said = ["TensorFlow decodes animated GIFs only, and this is none", name]
    with tf.control_dependencies([tf.debugging.Assert(is_gif, said)]):
        video = tf.identity(video)
    decoded = tf.io.decode_gif(video)
    ends = shown_until(video, tf.shape(decoded)[0])
    chosen = tf.gather(decoded, frames_between(ends, start, end, frames))
    images = resize_images(chosen, image_size) / 255
    return tf.ensure_shape(images, [frames, *image_size, 3])


def shown_until(video: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Return until when each frame of a GIF is shown.

    Frames that are shown for 0.2 s and 0.05 s → ``[0.2, 0.25]``

    Args:
        video: string [], the whole file.
        count: int32 [], how many frames it has. If the file does not say the time of each of them,
            all last 0.1 s.

    Returns:
        float32 [count], seconds from the video's beginning, each larger than the one before.
    """
    data = tf.io.decode_raw(video, tf.uint8)
    starts = tf.where(data[: 1 - _CONTROL_BYTES] == _EXTENSION)
    blocks = tf.cast(tf.gather(data, starts + tf.range(_CONTROL_BYTES, dtype=tf.int64)), tf.int32)
    # Pixels are compressed: that they spell all of this happens once in 500 GB.
    is_control = (
        (blocks[:, 1] == _CONTROL)
        & (blocks[:, 2] == _SIZE)
        & (blocks[:, 7] == _END)
        & ((blocks[:, 8] == _IMAGE) | (blocks[:, 8] == _EXTENSION))
    )
    said = tf.boolean_mask(blocks[:, 4] + 256 * blocks[:, 5], is_control)[:count]
    seconds = tf.cast(said, tf.float32) / 100
    seconds = tf.where(seconds < _SHORTEST_SECONDS, _USUAL_SECONDS, seconds)
    usual = tf.fill([count], _USUAL_SECONDS)
    return tf.cumsum(tf.cond(tf.size(seconds) == count, lambda: seconds, lambda: usual))


def frames_between(ends: tf.Tensor, start: tf.Tensor, end: tf.Tensor, frames: int) -> tf.Tensor:
    """Return which frames are shown in the middles of equal parts of a time.

    ``[0.5, 1.5, 4.0], 0.0, 4.0, 2`` → ``[1, 2]``, what is shown at 1 s and at 3 s

    Args:
        ends: float32 [n], as :func:`shown_until` returns them.
        start: float32 [], in seconds.
        end: float32 [], in seconds; what lies behind the last frame is left out.
        frames: how many parts.

    Returns:
        int32 [frames], 0 to n - 1; all n - 1 if nothing is left.
    """
    start = tf.clip_by_value(start, 0.0, ends[-1])
    end = tf.clip_by_value(end, start, ends[-1])
    shares = (tf.range(frames, dtype=tf.float32) + 0.5) / frames
    found = tf.searchsorted(ends, start + shares * (end - start), side="right")
    return tf.minimum(found, tf.size(ends) - 1)
