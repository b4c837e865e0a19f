"""Made-up animated GIFs of a moving square, with the segments of its movements.

Each video has three movements in different directions, with rests between them, at a random pace:
a model can only distinguish movements by the times of the segment and the order of its frames.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipelines.samples import Sample, write_image, write_lines
from recordgen.training import TrainingConfig

#: Number of segments of the demo.
SEGMENTS = 900

_MOVEMENTS = 3  # of each video
_STEPS = {"down": (1, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0)}  # rows, columns

# Pixels: side of a frame, side of the square, length of a movement; brightness of the background.
_SIDE, _SQUARE, _WAY, _GROUND = 24, 6, (8, 15), 80

# Frames of a movement; duration of a frame and of a rest, in hundredths of a second as in GIFs.
_FRAMES, _PACE, _REST = 6, (5, 16), (20, 101)

# The lists of ten videos.
_LISTS = ("TRAIN",) * 7 + ("VALIDATION",) * 2 + ("TEST",)


class Movement(NamedTuple):
    """A segment.

    Attributes:
        label: the direction.
        start: in hundredths of a second.
        end: in hundredths of a second; None for the video's end.
    """

    label: str
    start: int
    end: int | None


class Clip(NamedTuple):
    """A video.

    Attributes:
        frames: uint8 [n, height, width].
        times: the duration of each frame, in hundredths of a second.
        movements: the movements, one after the other.
    """

    frames: Sequence[npt.NDArray[np.uint8]]
    times: Sequence[int]
    movements: Sequence[Movement]


def clip(number: int) -> Clip:
    """Return the video of a number, always the same."""
    random = np.random.default_rng(number)
    ground = random.integers(0, _GROUND, (_SIDE, _SIDE), np.uint8)
    brightness = random.integers(150, 256)
    frames: list[npt.NDArray[np.uint8]] = []
    times: list[int] = []
    movements = []
    for label in random.choice(list(_STEPS), _MOVEMENTS, replace=False).tolist():
        step, way = np.array(_STEPS[label]), random.integers(*_WAY)
        # Start anywhere, so that no single frame shows the direction.
        first = random.integers(0, _SIDE - _SQUARE - way * abs(step), endpoint=True)
        first = np.where(step < 0, first + way, first)
        start, pace = sum(times), int(random.integers(*_PACE))
        for share in np.linspace(0, 1, _FRAMES):
            top, left = (first + step * way * share).round().astype(int)
            frame = ground.copy()
            frame[top : top + _SQUARE, left : left + _SQUARE] = brightness
            frames.append(frame)
            times.append(pace)
        movements.append(Movement(label, start, sum(times)))
        times[-1] += int(random.integers(*_REST))
    movements[-1] = movements[-1]._replace(end=None)
    return Clip(frames, times, movements)


def write_clips(folder: str, segments: int | None = None) -> str:
    """Write videos, lists of their segments, and ``clips.csv``, which names the lists.

    Return the path of ``clips.csv``. It has lines such as ``TRAIN,train.csv``; ``train.csv`` has
    lines such as ``videos/000.gif,left,1.1,1.76``. Of ten videos seven are in ``train.csv``, two in
    ``validation.csv`` and one in ``test.csv``.
    """
    lists: dict[str, list[str]] = {}
    left = SEGMENTS if segments is None else segments
    for number in range(-(-left // _MOVEMENTS)):
        found, name = clip(number), f"videos/{number:03d}.gif"
        _write_video(os.path.join(folder, name), found)
        lines = lists.setdefault(_LISTS[number % len(_LISTS)], [])
        for label, start, end in found.movements[: left - number * _MOVEMENTS]:
            lines.append(f"{name},{label},{_seconds(start)},{_seconds(end)}")
    files = {ml_use: f"{ml_use.lower()}.csv" for ml_use in lists}
    for ml_use, lines in lists.items():
        write_lines(os.path.join(folder, files[ml_use]), lines)
    names = [f"{ml_use},{file}" for ml_use, file in files.items()]
    return write_lines(os.path.join(folder, "clips.csv"), names)


CLIPS = Sample(
    name="clips",
    data="animated GIFs of a moving square",
    write=write_clips,
    training=TrainingConfig(image_size=(24, 24), batch_size=16, epochs=5, learning_rate=3e-3),
    min_score=0.9,
)


def _seconds(hundredths: int | None) -> str:
    """``176`` → ``1.76``; None, the video's end → empty."""
    return "" if hundredths is None else f"{hundredths / 100:g}"


def _write_video(path: str, found: Clip) -> None:
    first, *rest = [Image.fromarray(frame) for frame in found.frames]
    milliseconds = [10 * time for time in found.times]
    write_image(path, first, "GIF", save_all=True, append_images=rest, duration=milliseconds)
