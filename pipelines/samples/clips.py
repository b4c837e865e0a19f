"""Made-up animated GIFs of a moving square, with the segments of its movements.

Each video has three movements in different directions, with rests between them, at a random pace:
a model can only distinguish movements by the times of the segment and the order of its frames.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from pipelines.samples import write_image, write_lines

SEGMENTS = 900
_STEPS = {"down": (1, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0)}  # rows, columns
_MOVEMENTS, _FRAMES = 3, 6  # of a video, of a movement
_SIDE, _SQUARE = 24, 6  # of a frame and of the square, in pixels
_LISTS = ("train",) * 7 + ("validation",) * 2 + ("test",)  # of ten videos


class Clip(NamedTuple):
    """A video; all times are in hundredths of a second, as in GIFs.

    Attributes:
        frames: uint8 [height, width] each.
        times: the duration of each frame.
        movements: each movement's label, start and end; the last one ends with the video (None).
    """

    frames: list[Any]
    times: list[int]
    movements: list[tuple[str, int, int | None]]


def clip(number: int) -> Clip:
    """Return the video of a number, always the same."""
    random = np.random.default_rng(number)
    ground = random.integers(0, 80, (_SIDE, _SIDE), np.uint8)
    brightness = random.integers(150, 256)
    made = Clip([], [], [])
    for label in random.choice(list(_STEPS), _MOVEMENTS, replace=False).tolist():
        step, way = np.array(_STEPS[label]), random.integers(8, 15)
        # Start anywhere, so that no single frame shows the direction.
        first = random.integers(0, _SIDE - _SQUARE - way * abs(step), endpoint=True)
        first = np.where(step < 0, first + way, first)
        start, pace = sum(made.times), int(random.integers(5, 16))
        for share in np.linspace(0, 1, _FRAMES):
            top, left = (first + step * way * share).round().astype(int)
            frame = ground.copy()
            frame[top : top + _SQUARE, left : left + _SQUARE] = brightness
            made.frames.append(frame)
            made.times.append(pace)
        made.movements.append((label, start, sum(made.times)))
        made.times[-1] += int(random.integers(20, 101))
    label, start, _ = made.movements.pop()
    return made._replace(movements=[*made.movements, (label, start, None)])


def write_clips(folder: str, segments: int | None = None) -> str:
    """Write videos, lists of their segments, and ``clips.csv``, which names the lists.

    ``clips.csv`` has lines such as ``TRAIN,train.csv``, and ``train.csv`` lines such as
    ``videos/000.gif,left,1.1,1.76``. Return the path of ``clips.csv``.
    """
    lists: dict[str, list[str]] = defaultdict(list)
    left = SEGMENTS if segments is None else segments
    for number in range(-(-left // _MOVEMENTS)):
        video, name = clip(number), f"videos/{number:03d}.gif"
        first, *rest = map(Image.fromarray, video.frames)
        times = [10 * time for time in video.times]  # in milliseconds
        path = os.path.join(folder, name)
        write_image(path, first, "GIF", save_all=True, append_images=rest, duration=times)
        for label, start, end in video.movements[: left - number * _MOVEMENTS]:
            ended = "" if end is None else f"{end / 100:g}"
            lists[_LISTS[number % 10]].append(f"{name},{label},{start / 100:g},{ended}")
    for listed, lines in lists.items():
        write_lines(os.path.join(folder, f"{listed}.csv"), lines)
    names = [f"{listed.upper()},{listed}.csv" for listed in lists]
    return write_lines(os.path.join(folder, "clips.csv"), names)
