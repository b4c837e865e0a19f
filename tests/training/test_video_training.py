"""Segments of videos: from frames and their times to a model. See test_trained_models.py, too."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipelines.samples.clips import clip, write_clips
from recordgen import convert
from recordgen.core.records.example import serialize_example
from recordgen.errors import DataError
from recordgen.tasks.video_classification import training
from recordgen.training.config import TrainingConfig
from tests import trainer
from tests.conftest import convert_lines, encoded, tree_bytes

SIDE = 24
FAST = {"image_size": [SIDE, SIDE], "batch_size": 16, "epochs": 8, "learning_rate": 5e-3}


def gif(grays, hundredths):
    """Return a GIF whose frames have one gray each, with these delays."""
    first, *rest = [Image.fromarray(np.full((4, 5), gray, np.uint8)) for gray in grays]
    delays = [10 * n for n in hundredths]
    return encoded(first, "GIF", save_all=True, append_images=rest, duration=delays)


@given(st.lists(st.integers(2, 65_000), min_size=1, max_size=12))
@settings(max_examples=25)
def test_frames_are_shown_as_long_as_the_file_says(hundredths):
    """Delays of any length add up."""
    grays = [20 * number for number in range(len(hundredths))]
    ends = training.shown_until(tf.constant(gif(grays, hundredths)), tf.constant(len(grays)))
    np.testing.assert_allclose(ends, np.cumsum(hundredths) / 100, rtol=1e-5)


# the number of delays removed from the file, the ends of frames
DELAYS = [
    (0, [0.1, 0.6, 1.0]),  # the first delay, 0.01 s, is near-zero
    (1, [0.1, 0.2, 0.3]),  # the delays cannot be matched with frames
    (3, [0.1, 0.2, 0.3]),
]


@pytest.mark.parametrize(("unsaid", "expected"), DELAYS)
def test_frames_without_a_delay_last_a_tenth_of_a_second(unsaid, expected):
    """So do all frames if delays are missing."""
    video = gif([0, 100, 200], [1, 50, 40])
    for _ in range(unsaid):
        video = re.sub(rb"\x21\xf9\x04.{4}\x00", b"", video, count=1, flags=re.DOTALL)
    assert tf.io.decode_gif(video).shape[0] == 3
    found = training.shown_until(tf.constant(video), tf.constant(3))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# for frames that end at 1, 1.5 and 4 s: start, end, four chosen frames
SEGMENTS = [
    (0, 4, [0, 2, 2, 2]),
    (0, 1, [0, 0, 0, 0]),
    (0.5, 2.5, [0, 1, 2, 2]),
    (1, math.inf, [1, 2, 2, 2]),
    (3, 9, [2, 2, 2, 2]),
    (7, 9, [2, 2, 2, 2]),
    (7, math.inf, [2, 2, 2, 2]),
    (-3, -2, [0, 0, 0, 0]),
]


@pytest.mark.parametrize(("start", "end", "expected"), SEGMENTS)
def test_frames_lie_evenly_over_the_segment(start, end, expected):
    """A segment beyond the video shows its nearest frame."""
    ends = tf.constant([1.0, 1.5, 4.0])
    start, end = tf.constant(start, tf.float32), tf.constant(end, tf.float32)
    assert training.frames_between(ends, start, end, 4).numpy().tolist() == expected


def test_only_frames_of_the_segment_are_seen():
    """In their order, resized."""
    video = tf.constant(gif([0, 102, 204], [100, 50, 250]))
    config = TrainingConfig(frames=4, image_size=(6, 3))
    seen = training.segment_frames(config, video, tf.constant(0.5), tf.constant(2.5), name="a")
    assert seen.shape == (4, 6, 3, 3)
    for image, gray in zip(seen, (0, 0.4, 0.8, 0.8), strict=True):
        np.testing.assert_allclose(image, gray, atol=0.01)


def test_frames_shrink_as_images_do():
    """Fine patterns become their mean."""
    board = Image.fromarray(np.uint8(np.indices((16, 16)).sum(0) % 2 * 255))
    start, end = tf.constant(0.0), tf.constant(1.0)
    video = tf.constant(encoded(board, "GIF"))
    config = TrainingConfig(frames=1, image_size=7)
    [seen] = training.segment_frames(config, video, start, end, name="a")
    assert np.abs(seen - 0.5).max() < 0.1


def test_the_sample_is_always_the_same(tmp_path):
    """Its frames and their times are those of the files, and a second run writes the same bytes."""
    write_clips(str(tmp_path), 32)
    first = tree_bytes(tmp_path)
    write_clips(str(tmp_path), 32)
    assert tree_bytes(tmp_path) == first
    expected = clip(10)  # the last video, with two segments
    assert b"".join(first.values()).count(b"videos/010.gif") == 2
    video = (tmp_path / "videos/010.gif").read_bytes()
    decoded = tf.io.decode_gif(video)
    np.testing.assert_array_equal(decoded[..., 0], np.stack(expected.frames))
    ends = training.shown_until(tf.constant(video), tf.shape(decoded)[0])
    np.testing.assert_allclose(ends, np.cumsum(expected.times) / 100, rtol=1e-5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of an untrained model."""
    folder = tmp_path_factory.mktemp("clips")
    output, model = str(folder / "out"), str(folder / "model")
    convert(write_clips(str(folder), 32), output, task="video_classification")
    trainer.save_untrained(output, model, image_size=(SIDE, SIDE), batch_size=2)
    return model


def test_a_saved_model_says_what_it_cannot_decode(saved, tmp_path):
    """A bad video of a request costs its own answer; a record with one stops, without its bytes."""
    signatures = tf.saved_model.load(saved).signatures
    serve = signatures["serving_default"]
    videos = [b"\0\0\0\x18ftypmp42", gif([0, 200], [10, 10]), b""]
    times = {"start": tf.zeros([3]), "end": tf.ones([3])}
    answer = serve(video_bytes=tf.constant(videos), **times)
    assert [text == b"" for text in answer["error"].numpy()] == [False, True, False]
    assert np.isnan(answer["scores"]).all(axis=1).tolist() == [True, False, True]
    path = tmp_path / "1.mp4"
    path.write_bytes(b"a secret")
    values = {"video/uri": str(path).encode(), "video/segment/start": 0.0, "video/segment/end": 1.0}
    record = b"".join(serialize_example(values))
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"\[{path}\]") as caught:
        signatures["evaluate"](examples=tf.constant([record]))
    assert "secret" not in str(caught.value)


# a video, its content, the error
UNDECODABLE = [
    ("1.gif", b"\0\0\0\x18ftyp", r"/1.*'train'"),
    ("1", b"", r"/1.*'train'"),
    ("2.gif", None, "/2"),
    ("https://h/1.gif", None, r"/h.*/1\.gif"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNDECODABLE)
def test_undecodable_videos_are_named_before_training(tmp_path, name, content, message):
    """With the split, or without the parameters of a URL."""
    (tmp_path / "0.gif").write_bytes(gif([0, 9], [5, 5]))
    if content is not None:
        (tmp_path / name).write_bytes(content)
    lines = ["TRAIN,0.gif,a", f"TRAIN,{name},b,0,1"]
    out = convert_lines(tmp_path, lines, task="video_classification", allow=("https",))
    with pytest.raises(DataError, match=message):
        trainer.train(out, tmp_path, **FAST)


def test_videos_to_evaluate_are_looked_at_too(tmp_path):
    """Videos of splits that are not read do not matter."""
    lines = ["TRAIN,0.gif,a", "TRAIN,0.gif,b,0,1"]
    lines += ["VALIDATION,1.gif,a", "VALIDATION,2.mov", "TEST,3.avi,a"]
    for number in range(2):
        (tmp_path / f"{number}.gif").write_bytes(gif([0, 9], [5, 5]))
    out = convert_lines(tmp_path, lines, task="video_classification")
    with pytest.raises(DataError, match="/2"):
        trainer.train(out, tmp_path, **{**FAST, "batch_size": 2})
