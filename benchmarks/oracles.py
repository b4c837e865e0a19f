"""The boxes that another program reads in a data set, for ``benchmarks.real_data --oracle PYTHON``.

    PYTHON benchmarks/oracles.py FORMAT SOURCE

prints the boxes, or the labels, of each image by its file name, as JSON, and which program read
them. PYTHON needs the packages of the format: pycocotools, globox, label-studio-sdk, webdataset,
datasets, pandas or tensorflow. Create ML needs the sources of labelImg in PYTHONPATH, and
keras-yolo3 its own. None of these reads all of VIA's shapes: there, the rule is applied by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

#: label, and xmin, ymin, xmax, ymax in pixels; a label of the whole image has no corners
Box = tuple[str, list[float]]
Boxes = Iterator[tuple[str, list[Box]]]

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def _files(source: Path, *suffixes: str) -> Iterable[Path]:
    names = [source] if source.is_file() else sorted(source.rglob("*"))
    return [path for path in names if path.name.lower().endswith(suffixes)]


def coco(source: Path) -> Boxes:
    from pycocotools.coco import COCO

    for path in _files(source, ".json"):
        with contextlib.redirect_stdout(io.StringIO()):
            found = COCO(str(path))
        for image in found.imgs.values():
            yield (
                image["file_name"],
                [_coco_box(found, each) for each in found.imgToAnns[image["id"]]],
            )


def _coco_box(found: Any, item: Any) -> Box:
    return found.cats[item["category_id"]]["name"], _corners(item["bbox"])


def _corners(sides: Iterable[float]) -> list[float]:
    x, y, width, height = sides
    return [x, y, x + width, y + height]


def _globox(found: Any, name: Callable[[str], str] = str) -> Boxes:
    for image in found:
        boxes = [
            (name(str(box.label)), [box.xmin, box.ymin, box.xmax, box.ymax]) for box in image.boxes
        ]
        yield image.image_id, boxes


def pascal_voc(source: Path) -> Boxes:
    from globox import AnnotationSet

    for folder in sorted({path.parent for path in _files(source, ".xml")}):
        yield from _globox(AnnotationSet.from_pascal_voc(folder))


def cvat(source: Path) -> Boxes:
    from globox import AnnotationSet

    for path in _files(source, ".xml"):
        yield from _globox(AnnotationSet.from_cvat(path))


def labelme(source: Path) -> Boxes:
    from globox import AnnotationSet

    for folder in sorted({path.parent for path in _files(source, ".json")}):
        yield from _globox(AnnotationSet.from_labelme(folder, include_poly=True))


def yolo(source: Path) -> Boxes:
    import yaml
    from globox import AnnotationSet

    names = yaml.safe_load((source / "data.yaml").read_text())["names"]
    for labels in sorted({path.parent for path in _files(source, ".txt")} - {source}):
        images = labels.parent / "images" if labels.name == "labels" else labels
        suffixes = {path.suffix for path in images.iterdir()} & set(_IMAGES)
        for suffix in sorted(suffixes):
            with tempfile.TemporaryDirectory() as folder:  # each image has one of the suffixes
                for path in labels.glob("*.txt"):
                    if (images / path.stem).with_name(f"{path.stem}{suffix}").exists():
                        (Path(folder) / path.name).write_bytes(path.read_bytes())
                found = AnnotationSet.from_yolo_v5(
                    folder, image_folder=images, image_extension=suffix
                )
            yield from _globox(found, lambda number: names[int(number)])


def via(source: Path) -> Boxes:
    """By hand: the box around the points of a region, or x, y, width and height."""
    for path in _files(source, ".json"):
        found = json.loads(path.read_text())
        for image in found.get("_via_img_metadata", found).values():
            regions = image["regions"]
            regions = regions.values() if isinstance(regions, dict) else regions
            yield image["filename"], list(map(_via_box, regions))


def _via_box(region: Any) -> Box:
    shape, [label] = region["shape_attributes"], region["region_attributes"].values() or [""]
    if "all_points_x" in shape:
        xs, ys = shape["all_points_x"], shape["all_points_y"]
        return label, [min(xs), min(ys), max(xs), max(ys)]
    return label, _corners(shape[side] for side in ("x", "y", "width", "height"))


def open_images(source: Path) -> Boxes:
    from globox import AnnotationSet

    for path in _files(source, "-bbox.csv"):
        yield from _globox(AnnotationSet.from_openimage(path, image_folder=path.parent))


def create_ml(source: Path) -> Boxes:
    from libs.create_ml_io import CreateMLReader

    for path in _files(source, ".json"):
        for item in json.loads(path.read_text()):
            shapes = CreateMLReader(str(path), item["image"]).shapes
            yield (
                item["image"],
                [(label, [*points[0], *points[2]]) for label, points, *_ in shapes],
            )


def yolo_keras(source: Path) -> Boxes:
    from PIL import Image
    from yolo3.utils import get_random_data

    for path in _files(source, "_annotations.txt"):
        names = (path.parent / "_classes.txt").read_text().splitlines()
        for line in path.read_text().splitlines():
            name, *groups = line.split()
            if not (image := path.parent / name).exists():
                continue
            size = Image.open(image).size[::-1]  # as it is: no box moves
            settings = {"random": False, "max_boxes": len(groups) or 1, "proc_img": False}
            _, found = get_random_data(" ".join([str(image), *groups]), size, **settings)
            boxes = found.tolist()[: len(groups)]
            yield name, [(names[int(kind)].strip(), corners) for *corners, kind in boxes]


def label_studio(source: Path) -> Boxes:
    from label_studio_sdk.converter import Converter

    config = (
        "<View><Image name='image' value='$image'/><RectangleLabels name='label' toName='image'>"
        "{}</RectangleLabels></View>"
    )
    for path in _files(source, ".json"):
        items = json.loads(path.read_text())
        results = [it for task in items for each in task["annotations"] for it in each["result"]]
        names = {name for it in results for name in it["value"].get("rectanglelabels", ())}
        labels = "".join(f"<Label value='{name}'/>" for name in sorted(names))
        with tempfile.TemporaryDirectory() as folder:
            converter = Converter(config.format(labels), project_dir=None, download_resources=False)
            converter.convert_to_coco(str(path), folder, is_dir=False)
            yield from coco(Path(folder))


def webdataset(source: Path) -> Boxes:
    import webdataset

    for path in _files(source, ".tar"):
        for item in webdataset.WebDataset(str(path), shardshuffle=False).decode():
            boxes = [(each["category"], _corners(each["bbox"])) for each in item["json"]["objects"]]
            yield f"{item['__key__']}.jpg", boxes


def hugging_face(source: Path) -> Boxes:
    import datasets

    with tempfile.TemporaryDirectory() as cache:
        found = datasets.load_dataset(str(source), cache_dir=cache)
        for split in found.values():
            split = split.cast_column("image", datasets.Image(decode=False))
            feature = split.features.get("objects")
            feature = getattr(feature, "feature", feature)
            names = getattr(feature["category"], "feature", feature["category"])
            for item in split:
                objects = item["objects"]
                if isinstance(objects, list):
                    pairs = [(each["category"], each["bbox"]) for each in objects]
                else:
                    pairs = list(zip(objects["category"], objects["bbox"], strict=True))
                boxes = [
                    (names.int2str(n) if hasattr(names, "int2str") else str(n), _corners(box))
                    for n, box in pairs
                ]
                yield item["image"]["path"], boxes


parquet = hugging_face


def csv(source: Path) -> Boxes:
    """A table of one-hot labels, as Roboflow writes it."""
    import pandas as pd

    for path in _files(source, "_classes.csv"):
        table = pd.read_csv(path, skipinitialspace=True).set_index("filename")
        for image, row in table.iterrows():
            yield str(image), [(str(name), []) for name, value in row.items() if value == 1]


def tfrecord(source: Path) -> Boxes:
    import tensorflow as tf

    sides = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    for path in _files(source, ".record", ".tfrecord"):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            found = tf.train.Example.FromString(record).features.feature
            size = [found[f"image/{side}"].int64_list.value[0] for side in ("width", "height")]
            corners = zip(*(found[side].float_list.value for side in sides), strict=True)
            labels = found["image/object/class/text"].bytes_list.value
            pixels = [
                [n * side for n, side in zip(each, size * 2, strict=True)] for each in corners
            ]
            yield (
                found["image/filename"].bytes_list.value[0].decode(),
                [(each.decode(), box) for each, box in zip(labels, pixels, strict=True)],
            )


def main() -> None:
    kind, source = sys.argv[1:]
    found: dict[str, list[Box]] = defaultdict(list)
    for image, boxes in globals()[kind](Path(source)):
        found[image.replace("\\", "/").rsplit("/", 1)[-1]] += boxes
    print(json.dumps(found))


if __name__ == "__main__":
    main()
