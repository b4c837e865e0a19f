"""Objects of YOLO as a line of numbers, and Ultralytics' NDJSON with a line for each image.

    {"type": "dataset", "task": "detect", "class_names": {"0": "cat", "1": "dog"}}
    {"type": "image", "file": "a.jpg", "split": "train",
     "annotations": {"boxes": [[1, 0.5, 0.5, 0.2, 0.4]]}}

becomes the picture ``a.jpg`` of split train with a dog from (0.4, 0.3) to (0.6, 0.7), in shares of
the image. Rules: Ultralytics' "Object detection datasets overview".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from functools import partial

from recordgen import storage
from recordgen.core.limits import YOLO_BYTES
from recordgen.formats.json_values import items, json_value, mapping, text
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, Problem, image_or_problem, notes_about
from recordgen.formats.yolo_config import IMAGE_FOLDERS, YoloConfig
from recordgen.rejects import RejectCode
from recordgen.subjects.details import Details, Polygons, keypoints_of
from recordgen.subjects.picture import Marked, Picture

# Keys of the objects of an image in NDJSON; each object is one as a line of labels has it.
_SHAPES = frozenset({"boxes", "segments", "pose", "obb"})


def line_pictures(
    listing: Listing, config: YoloConfig, document: str
) -> Iterator[Picture | Problem | Note]:
    """Yield the images of Ultralytics' NDJSON."""
    seen = set[str]()
    with listing.open(document) as file:
        lines = iter(partial(file.readline, YOLO_BYTES.most), b"")
        for line, raw in enumerate(lines, start=1):
            if line > 1 and raw.strip():
                yield (picture := _line_picture(listing, config, document, line, raw))
                seen.add(picture.uri)
    prefix = f"{config.folder}/" if config.folder else ""
    others = [each for each in listing.images if each.startswith(prefix) and each not in seen]
    yield from notes_about(others, "images are not in it, and were skipped")


def _line_picture(
    listing: Listing, config: YoloConfig, document: str, line: int, raw: bytes
) -> Picture | Problem:
    uri: str | Problem = ""
    try:
        item = mapping(json_value(raw), "a line")
        name, split = text(item.get("file"), "file"), item.get("split")
        if not isinstance(split, str | None):
            raise ValueError(f"split must be a text (got {split!r:.40})")
        places = (config.folder, *(posixpath.join(config.folder, place) for place in IMAGE_FOLDERS))
        uri = image_or_problem(listing, name, *places, line=line, split=split)
        if isinstance(uri, Problem):
            url = item.get("url")
            if uri.code != RejectCode.MISSING_FILE or not storage.is_url(str(url)):
                return uri
            uri = str(url)
        shapes = mapping(item.get("annotations") or {}, "annotations")
        kinds = [kind for kind in shapes if shapes[kind]]
        if len(kinds) > 1 or not _SHAPES.issuperset(kinds):
            raise ValueError(f"expected one of {', '.join(sorted(_SHAPES))} (got {kinds!r:.80})")
        found = (each for kind in kinds for each in items(shapes[kind], kind))
        objects = [parse_object([*map(str, items(each, "an object"))], config) for each in found]
    except ValueError as exc:
        return Problem(line, f"{document}:{line}: {exc}", uri if isinstance(uri, str) else "")
    return Picture(line, uri, split, objects=objects)


def parse_object(fields: Sequence[str], config: YoloConfig) -> Marked:
    """Return the object of a line.

    ``1 0.5 0.5 0.2 0.4`` → dog, (0.4, 0.3, 0.6, 0.7)

    Raises: ValueError: the line has no class and box, or a polygon.
    """
    try:
        kind, *numbers = map(float, fields)
    except ValueError:
        raise ValueError(
            f"expected a class and numbers, separated by blanks (got {' '.join(fields):.80})"
        ) from None
    if not kind.is_integer() or not 0 <= kind < len(config.classes):
        raise ValueError(f"the class is {fields[0]}, but there are {len(config.classes)} names")
    label = config.classes[int(kind)]
    if len(numbers) == 4 or (config.keypoints and len(numbers) == 4 + config.keypoints):
        x, y, width, height = numbers[:4]
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        keypoints = keypoints_of(numbers[4:], config.per_keypoint)
        return Marked(label, corners, Details(keypoints=keypoints))
    if len(numbers) == 5:
        raise ValueError(
            "the line has a class, a box and a confidence, as predictions do; pass the labels"
        )
    if len(numbers) >= 6 and len(numbers) % 2 == 0:  # a polygon
        if max(numbers) >= 2:  # the visibility of a keypoint
            raise ValueError(
                "a point is outside of the image; if it is a keypoint, data.yaml needs kpt_shape"
            )
        xs, ys = numbers[::2], numbers[1::2]
        polygon = Details(polygons=Polygons.of([numbers]))
        return Marked(label, (min(xs), min(ys), max(xs), max(ys)), polygon)
    raise ValueError(f"expected a class and a box or polygon (got {len(numbers)} numbers)")
