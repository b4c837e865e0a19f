"""Write the sample: animated GIFs of a square that moves to the right, then to the left.

    python examples/video_classification/make_videos.py

Each has eight frames, four a second; ``train.csv`` and ``test.csv`` label each second.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent
SIDE, SQUARE, FRAMES_PER_SECOND = 16, 4, 4
VIDEOS = {"train": range(8), "test": range(8, 10)}


def frames(number: int) -> list[Image.Image]:
    """Return the frames of a video: a square in its own gray that moves there and back."""
    rng = np.random.default_rng(number)
    top, gray = rng.integers(0, SIDE - SQUARE), rng.integers(120, 256)
    found = []
    for left in (0, 4, 8, 12, 11, 8, 4, 0):  # no equal neighbours: GIFs would merge them
        pixels = np.zeros((SIDE, SIDE), np.uint8)
        pixels[top : top + SQUARE, left : left + SQUARE] = gray
        found.append(Image.fromarray(pixels))
    return found


def main() -> None:
    """Write all files."""
    (FOLDER / "videos").mkdir(exist_ok=True)
    for split, numbers in VIDEOS.items():
        lines = []
        for number in numbers:
            name = f"videos/{number}.gif"
            first, *rest = frames(number)
            first.save(
                FOLDER / name, save_all=True, append_images=rest, duration=1000 // FRAMES_PER_SECOND
            )
            lines += [f"{name},right,0,1", f"{name},left,1,inf"]
        (FOLDER / f"{split}.csv").write_text("\n".join(lines) + "\n")
    (FOLDER / "videos.csv").write_text("TRAIN,train.csv\nTEST,test.csv\n")


if __name__ == "__main__":
    main()
