"""Labels of video segments: a small network over a few frames of each segment.

TensorFlow decodes the frames, in training and in saved models. The only videos that it decodes are
animated GIFs. Its decoder does not return the delays of frames, so they are read from the "graphic
control extension" that GIF89a has before each frame.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import keras
import tensorflow as tf

from recordgen import features
from recordgen.core.ordered import map_in_order
from recordgen.errors import DataError
from recordgen.payloads.header import kind_of
from recordgen.reading import eval_dataset, parsing_spec
from recordgen.reading.attempts import answered, attempted
from recordgen.reading.decoding import resize_images
from recordgen.reading.levels import between
from recordgen.tasks import VideoClassification
from recordgen.tasks.video_classification.reading import to_addresses
from recordgen.training.config import TrainingConfig
from recordgen.training.inputs import Root
from recordgen.training.learner import OneLabel, in_order
from recordgen.training.model import Models, answer, augmented, convolved, movement, predicted

_SEGMENT = (features.VIDEO_URI, features.VIDEO_SEGMENT_START, features.VIDEO_SEGMENT_END)

_SEGMENTS_AT_ONCE = 4096
_VIDEOS_AT_ONCE = 16
_HEAD_BYTES = 512

# Sides are halved until they have fewer pixels than this, time until it has fewer frames.
_FILTERS, _MOST_FILTERS = 16, 128
_SIDE, _TIME = 8, 8


#: The first bytes of a GIF; the rest of its version follows, 7a or 9a.
MAGIC = b"GIF8"

# Delay of frames with a missing or near-zero delay, as in browsers and ffmpeg.
_USUAL_SECONDS = 0.1

_SHORTEST_SECONDS = 0.02

_EXTENSION, _CONTROL, _SIZE, _END, _IMAGE = 0x21, 0xF9, 0x04, 0x00, 0x2C

# The block itself, and the first byte of the next one.
_CONTROL_BYTES = 9


class VideoTrainer(OneLabel):
    """One label per segment of a video; videos are animated GIFs."""

    feature = features.VIDEO_CLASS_TEXT
    # TensorFlow Serving takes inputs named …_bytes as base64 in JSON.
    request = (
        tf.TensorSpec([None], tf.string, name="video_bytes"),
        tf.TensorSpec([None], tf.float32, name="start"),
        tf.TensorSpec([None], tf.float32, name="end"),
    )

    def check(self) -> None:
        super().check()
        _check_videos(self.root, self.split, self.label_mode)

    def prepared(self, data: tf.data.Dataset) -> tf.data.Dataset:
        return in_order(data, lambda segments, *targets: (self._clips(segments), *targets))

    def eval_data(self, root: Root, split: str) -> tf.data.Dataset:
        """Return batches of frames and labels. Raises: DataError: a video cannot be decoded."""
        # Check unlabelled segments, too: the evaluation of the saved model reads them.
        _check_videos(root, split, None)
        return super().eval_data(root, split)

    def _clips(self, segments: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return the frames of a batch (float32 [batch, frames, height, width, 3])."""
        # One by one: a batch of whole videos may exceed the memory.
        parts = tuple(segments[name] for name in ("uri", "start", "end"))
        return tf.map_fn(self._read, parts, fn_output_signature=self._clip)

    def _read(self, segment: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Return the frames of a segment (float32 [frames, height, width, 3])."""
        uri, *times = segment
        return segment_frames(self.config, tf.io.read_file(uri), *times, name=uri)

    @property
    def _clip(self) -> tf.TensorSpec:
        return tf.TensorSpec([self.config.frames, *self.config.size, 3])

    def models(self) -> Models:
        model = build_classifier(self.config, len(self.dataset.labels), self.activation)
        return Models(augmented(model, self.config, self._moved), model)

    def _moved(self, clips: Any) -> Any:
        """Return clips that are moved, all frames of a segment alike."""
        (height, width), frames = self.config.size, self.config.frames
        # Frames become channels of one image, and frames again.
        image = keras.layers.Permute((2, 3, 1, 4))(clips)
        image = keras.layers.Reshape((height, width, 3 * frames))(image)
        image = movement(self.config)(image)
        image = keras.layers.Reshape((height, width, frames, 3))(image)
        return keras.layers.Permute((3, 1, 2, 4))(image)

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``video_bytes``, ``start``, ``end`` → ``labels``, ``scores`` (best first), ``error``."""

        def frames(video: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
            return segment_frames(self.config, video, start, end, name="in video_bytes")

        clips, is_good = attempted(frames, request, self._clip)
        error = tf.where(is_good, "", "the video is no animated GIF, or it is damaged")
        return answered(self.best(predicted(model, clips)), error)

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each label, float32 [batch, classes]; reads the videos."""
        spec = parsing_spec(_SEGMENT, task=VideoClassification.name)
        parsed = tf.io.parse_example(records, spec)
        parsed[features.VIDEO_URI] = to_addresses(parsed[features.VIDEO_URI], self.dataset.folder)
        segments = zip(("uri", "start", "end"), (parsed[name] for name in _SEGMENT), strict=True)
        return predicted(model, self._clips(dict(segments)))


def build_classifier(config: TrainingConfig, classes: int, activation: str) -> keras.Model:
    """Build the network: frames (float32 [batch, frames, height, width, 3]) → probabilities."""
    outputs = inputs = keras.Input((config.frames, *config.size, 3), name="frames")
    filters, side, time = _FILTERS, min(config.size), config.frames
    while True:
        outputs = convolved(outputs, filters, keras.layers.Conv3D)
        if side < _SIDE:
            break
        # Neighbouring frames show movements, so halve time late.
        shrink = 2 if time >= _TIME and filters > _FILTERS else 1
        outputs = keras.layers.MaxPooling3D((shrink, 2, 2))(outputs)
        filters, side, time = min(_MOST_FILTERS, 2 * filters), side // 2, time // shrink
    outputs = keras.layers.GlobalAveragePooling3D()(outputs)
    outputs = answer(outputs, config, classes, activation)
    return keras.Model(inputs, outputs, name="small_cnn_3d")


def _check_videos(root: Root, split: str, label_mode: Literal["int", "multi_hot"] | None) -> None:
    """Check that all videos of a split can be read, and begin as GIFs do. Raises: DataError."""
    data = eval_dataset(root, batch_size=_SEGMENTS_AT_ONCE, split=split, label_mode=label_mode)
    found = data if label_mode is None else data.map(lambda segments, _: segments)
    videos = sorted({uri for segments in found for uri in segments["uri"].numpy().tolist()})
    names = [os.fsdecode(video) for video in videos]
    heads = map_in_order(_first_bytes, names, threads=_VIDEOS_AT_ONCE)
    for name, head in zip(names, heads, strict=True):
        if not head.startswith(MAGIC):
            raise DataError(
                f"{root}: TensorFlow decodes only animated GIFs, and {name} in split {split!r} is "
                f"{kind_of(head)}; convert the videos to GIF, or train your own model with "
                f"recordgen.input_fn, and decode its segments with another library"
            )


def _first_bytes(name: str) -> bytes:
    """Return the first bytes of a video. Raises: DataError if TensorFlow cannot read it."""
    try:
        with tf.io.gfile.GFile(name, "rb") as file:
            found: bytes = file.read(_HEAD_BYTES)
    except tf.errors.OpError as exc:
        raise DataError(
            f"{name}: TensorFlow cannot read this video ({exc.message}); it must be on the machine "
            f"that trains, or in gs://"
        ) from exc
    return found


def segment_frames(
    config: TrainingConfig, video: tf.Tensor, start: tf.Tensor, end: tf.Tensor, *, name: Any
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
    chosen = tf.gather(decoded, frames_between(ends, start, end, config.frames))
    images = between(resize_images(chosen, config.size), 0.0, 1.0)
    return tf.ensure_shape(images, [config.frames, *config.size, 3])


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
