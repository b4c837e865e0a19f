"""What other tools' formats cost: the same photos and boxes as CSV, Parquet, YOLO and COCO.

    python -m benchmarks.formats --images DIR --rows 2000 --rounds 3

Each conversion runs in a process of its own, in turn; rates are images per second of processor
time, and ratios are those to the CSV of the same round. COCO's polygons are stored, too; "bare" is
COCO without them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.boxes import SIZE, WRITERS
from benchmarks.memory import run_apart

BASE = "csv"


def _convert(source: str, output: str, rows: int) -> float:
    """Return the seconds of processor time of a conversion, without imports."""
    from recordgen.conversion.api import convert

    used = time.process_time()
    found = convert(source, output, progress=None).dataset.examples
    seconds = time.process_time() - used
    if found != rows:
        raise RuntimeError(f"{found} of {rows} images were converted")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, required=True, metavar="DIR")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    photos = sorted(args.images.glob("*.jpg"))[: args.rows]
    if len(photos) < args.rows:
        width, height = SIZE
        parser.error(
            f"{args.images} holds {len(photos)} JPEGs; make more with python -m benchmarks.photos "
            f"--to {args.images} --count {args.rows} --size {width} {height}"
        )
    ratios: dict[str, list[float]] = {name: [] for name in WRITERS}
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-", dir=args.images) as folder:
        sources = {name: _source(Path(folder, name), name, photos) for name in WRITERS}
        for number in range(args.rounds):
            seconds = {}
            for name, source in sources.items():
                output = os.path.join(folder, f"{name}-{number}")
                seconds[name], peak_mb = run_apart(_convert, source, output, len(photos))
                ratios[name].append(seconds[BASE] / seconds[name])
                print(
                    f"round {number + 1}  {name:5s} {len(photos) / seconds[name]:6,.0f} images per "
                    f"CPU s  {ratios[name][-1]:.2f} of the CSV  {peak_mb:5,.0f} MB"
                )
    for name, found in ratios.items():
        print(f"median   {name:5s} {statistics.median(found):.2f} of the CSV")


def _source(folder: Path, name: str, photos: list[Path]) -> str:
    """Link the photos into a folder, and write their boxes there; return the source."""
    folder.mkdir()
    for photo in photos:
        os.link(photo, folder / photo.name)
    return WRITERS[name](folder, [photo.name for photo in photos])


if __name__ == "__main__":
    main()
