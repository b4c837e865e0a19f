"""What other tools' formats cost: the same photos and boxes as CSV, Parquet, YOLO and COCO.

    python -m benchmarks.formats --images DIR --rows 2000 --rounds 3

Each conversion runs in a process of its own, in turn; rates are images per second of processor
time, and ratios are those to the CSV of the same round. COCO's polygons are stored, too; "bare" is
COCO without them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import run_apart

BASE = "csv"
SIZE = (500, 375)
CLASSES = 80
BOXES = 8  # on average, as in COCO 2017
POINTS = 27  # of a polygon, so that an annotation has as many bytes as in COCO 2017


class Box(NamedTuple):
    """A class, and the left upper corner, width and height in pixels."""

    label: int
    left: float
    top: float
    width: float
    height: float


def boxes_of(number: int) -> Sequence[Box]:
    """Return the boxes of the image with a number; they are always the same."""
    rng = random.Random(number)
    found = []
    for _ in range(rng.randrange(2 * BOXES - 1)):
        left, top = rng.uniform(0, SIZE[0] - 40), rng.uniform(0, SIZE[1] - 40)
        width, height = rng.uniform(9, SIZE[0] - left), rng.uniform(9, SIZE[1] - top)
        corners = (round(value, 2) for value in (left, top, width, height))
        found.append(Box(rng.randrange(CLASSES), *corners))
    return found


def write_csv(folder: Path, images: Iterable[str]) -> str:
    """Write a line for each box, in pixels; return the source."""
    lines = ["image_uri,label,xmin,ymin,xmax,ymax,width,height\n"]
    for number, name in enumerate(images):
        for label, left, top, width, height in boxes_of(number):
            corners = f"{left},{top},{left + width:.2f},{top + height:.2f}"
            lines.append(f"{name},class {label},{corners},{SIZE[0]},{SIZE[1]}\n")
        if not boxes_of(number):
            lines.append(f"{name},,,,,,,\n")
    path = folder / "boxes.csv"
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def write_yolo(folder: Path, images: Iterable[str]) -> str:
    """Write a file of labels beside each image, and data.yaml; return the source."""
    names = [f"class {number}" for number in range(CLASSES)]
    for number, name in enumerate(images):
        lines = [
            f"{label} {(left + width / 2) / SIZE[0]:.6f} {(top + height / 2) / SIZE[1]:.6f} "
            f"{width / SIZE[0]:.6f} {height / SIZE[1]:.6f}\n"
            for label, left, top, width, height in boxes_of(number)
        ]
        (folder / name).with_suffix(".txt").write_text("".join(lines))
    (folder / "classes.txt").write_text("\n".join(names) + "\n")
    return f"{folder}/"


def write_bare_coco(folder: Path, images: Iterable[str]) -> str:
    """Write one COCO document without polygons; return the source."""
    return write_coco(folder, images, has_polygons=False)


def write_coco(folder: Path, images: Iterable[str], *, has_polygons: bool = True) -> str:
    """Write one document in COCO's order of keys; return the source."""
    names = list(images)
    categories = [{"id": n + 1, "name": f"class {n}"} for n in range(CLASSES)]
    with (folder / "instances.json").open("w", encoding="utf-8") as file:
        file.write('{"info": {}, "licenses": [], "images": [')
        file.writelines(_joined(_image(number, name) for number, name in enumerate(names)))
        file.write('], "annotations": [')
        found = _annotations(len(names), has_polygons=has_polygons)
        file.writelines(_joined(found))
        file.write(f'], "categories": {json.dumps(categories)}}}')
    return f"{folder}/"


def write_parquet(folder: Path, images: Iterable[str], compression: str = "none") -> str:
    """Write images and boxes to one file, as Hugging Face's datasets do; return the source."""
    names = list(images)
    boxes = list(map(boxes_of, range(len(names))))
    data = [{"bytes": (folder / name).read_bytes(), "path": name} for name in names]
    objects = [
        {"bbox": [list(box[1:]) for box in found], "category": [f"class {box[0]}" for box in found]}
        for found in boxes
    ]
    path = folder / "train.parquet"
    table = pa.table({"image": data, "objects": objects})
    pq.write_table(table, path, row_group_size=100, compression=compression)
    return str(path)


def write_snappy(folder: Path, images: Iterable[str]) -> str:
    """Write Parquet as pandas does; return the source."""
    return write_parquet(folder, images, "snappy")


def _image(number: int, name: str) -> dict[str, object]:
    width, height = SIZE
    url = f"http://images.cocodataset.org/train2017/{number:012d}.jpg"
    return {
        **{"license": 3, "file_name": name, "coco_url": url, "flickr_url": url, "id": number},
        **{"height": height, "width": width, "date_captured": "2013-11-14 11:18:45"},
    }


def _annotations(images: int, *, has_polygons: bool) -> Iterator[dict[str, object]]:
    own = 0
    for number in range(images):
        for label, left, top, width, height in boxes_of(number):
            xs = [round(left + width * at / POINTS, 2) for at in range(POINTS)]
            ys = [round(top + height * (at % 2), 2) for at in range(POINTS)]
            own += 1
            outline = [[side for pair in zip(xs, ys, strict=True) for side in pair]]
            yield {
                **({"segmentation": outline} if has_polygons else {}),
                **{"area": width * height, "iscrowd": 0, "image_id": number},
                **{"bbox": [left, top, width, height], "category_id": label + 1, "id": own},
            }


def _joined(items: Iterable[object]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f"{', ' if number else ''}{json.dumps(item)}"


WRITERS: dict[str, Callable[[Path, Iterable[str]], str]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "snappy": write_snappy,
    "yolo": write_yolo,
    "coco": write_coco,
    "bare": write_bare_coco,
}


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
