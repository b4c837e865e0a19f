"""Label Studio's JSON export: a list of tasks, each with the results of its annotators.

    [{"data": {"image": "/data/upload/1/ab12cd34-a.jpg"}, "annotations": [{"result": [
       {"type": "rectanglelabels", "original_width": 640, "original_height": 480,
        "value": {"x": 10, "y": 20, "width": 30, "height": 40, "rectanglelabels": ["dog"]}}]}]}]

becomes the picture ``a.jpg`` with the box (64, 96, 256, 288) of a dog, in pixels: Label Studio
writes percent of the image. Rules: "Label Studio JSON format of annotated tasks".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from recordgen import storage
from recordgen.core.limits import REGION_LABELS
from recordgen.errors import NotUnderstoodError
from recordgen.formats import pictures
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.format import Evidence
from recordgen.formats.json_values import items, key_paths, mapping, numbers, text
from recordgen.formats.listing import Listing
from recordgen.formats.objects import TASKS_OF_IMAGES
from recordgen.formats.shapes import Region, ellipse, outlined, rectangle, shape_notes
from recordgen.subjects.picture import Marked, Picture, are_numbers

#: Name in ``rows.adjusted``: images whose annotators disagree; the first one's labels are stored.
ANNOTATORS_DIFFER = "annotators_differ"

_AREAS = ("rectanglelabels", "polygonlabels", "ellipselabels", "rectangle", "polygon", "ellipse")
_OTHERS = ("keypointlabels", "keypoint", "vectorlabels", "vector")
# Brushes are masks in an encoding of Label Studio's own.
_BRUSHES = ("brushlabels", "brush", "magicwand", "bitmask", "bitmasklabels")
# A file that was uploaded begins with eight hexadecimal digits.
_UPLOADED = re.compile(r"^[0-9a-f]{6,8}-")
_SEVERAL = re.compile(rb'"choices"\s*:\s*\[\s*"[^"]*"\s*,')
_UPLOADS, _LOCAL = "/data/upload/", "/data/local-files/"


class LabelStudio(pictures.PictureFormat):
    """Label Studio's JSON of images with rectangles, polygons, ellipses or choices."""

    name = "label_studio"
    tasks = TASKS_OF_IMAGES

    def detect(self, listing: Listing) -> Evidence | None:
        found = [name for name in listing.candidates(".json") if _is_mine(listing.head(name))]
        if not found:
            return None
        head = listing.head(found[0])
        one, several, boxes, _ = self.tasks
        if any(f'"{kind}"'.encode() in head for kind in (*_AREAS, *_BRUSHES)):
            task, what = boxes, "regions"
        elif b'"choices"' in head:
            task, what = several if _SEVERAL.search(head) else one, "choices"
        else:
            what = "it has no rectangles, polygons, ellipses or choices of images"
            remedy = "export texts with spans as CONLL2003, and other labels as CSV"
            raise NotUnderstoodError(f"{listing.root}{found[0]}: {what}; {remedy}")
        return Evidence(f"{found[0]} has Label Studio's {what} of images", task, found)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        make, unlabelled = partial(_picture, listing, posixpath.dirname(document)), 0
        for item in pictures.examples(pictures.items_of(listing, document), make):
            if item is None:
                unlabelled += 1
            else:
                yield item
        if unlabelled:
            yield pictures.Note(0, f"{unlabelled:,} tasks have no annotation, and were skipped")


def _is_mine(head: bytes) -> bool:
    if b'"result"' not in head:
        return False
    keys = key_paths(head.decode("utf-8", "replace"))
    return "annotations.result" in keys or "completions.result" in keys


def _results(task: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the results of each annotation that was not cancelled, the ground truth first.

    Raises: ValueError: the task has something else in their place.
    """
    found = items(task.get("annotations") or task.get("completions"), "annotations")
    done = [each for each in found if not mapping(each, "an annotation").get("was_cancelled")]
    for each in sorted(done, key=lambda each: not each.get("ground_truth")):
        if each.get("result") is not None:
            yield [mapping(result, "a result") for result in items(each["result"], "result")]


def _picture(listing: Listing, folder: str, number: int, item: Any) -> Picture | None:
    """Return the image of a task as its first annotator describes it; None without annotations.

    Raises: ValueError: the task cannot be used.
    """
    task = mapping(item, "a task")
    results = list(_results(task))
    if not results:
        return None
    image = _image(listing, _written(task.get("data")), folder)
    with pictures.about(image):
        first, *others = (_said(number, image, each) for each in results)
    said = [({*each.objects}, {*each.labels}) for each in (first, *others)]
    if any(each != said[0] for each in said):
        message = f"{len(results)} annotators disagree; the labels of the first were kept"
        return first._replace(notes=[*first.notes, (ANNOTATORS_DIFFER, message)])
    return first


def _written(data: Any) -> str:
    """Return the image of a task as it is written. Raises: ValueError: there is not exactly one."""
    texts = [each for each in mapping(data, "data").values() if isinstance(each, str)]
    found = [each for each in texts if IMAGE_SUFFIX.search(_path_of(each))]
    if len(found) != 1:
        raise ValueError(f"data must name one image (got {data!r:.120})")
    return found[0]


def _path_of(written: str) -> str:
    """Return the path in an address: ``/data/local-files/?d=a%20b.jpg`` → ``a b.jpg``."""
    if not storage.is_url(written) and not written.startswith("/data/"):
        return written
    parts = urlsplit(written)
    if parts.path.rstrip("/").endswith(_LOCAL.rstrip("/")):
        return parse_qs(parts.query).get("d", [""])[0]
    return unquote(parts.path)


def _image(listing: Listing, written: str, folder: str) -> str:
    """Return the image of a task. Raises: ExampleError: there is not exactly one."""
    parts = urlsplit(written)
    if parts.netloc and not parts.path.startswith((_UPLOADS, _LOCAL)):
        return written  # gs://bucket/a.jpg
    path = _path_of(written).removeprefix("/data/")
    try:
        return pictures.image_named(listing, path, folder, "images")
    except pictures.ExampleError:
        name, count = _UPLOADED.subn("", posixpath.basename(path), count=1)
        if not count:
            raise
        return pictures.image_named(listing, name, folder)


def _said(number: int, image: str, results: Sequence[Mapping[str, Any]]) -> Picture:
    """Return an image as an annotator describes it. Raises: ValueError: a region cannot be used."""
    # A region and its label may be two results with one id.
    labelled = {str(item.get("id")) for item in results if _labels(item)}
    objects: list[Marked] = []
    choices: dict[str, list[str]] = {}
    dropped: list[str] = []
    rotated = 0
    sides = ("original_width", "original_height")
    size = next(filter(None, (pictures.size_of(*map(item.get, sides)) for item in results)), None)
    for item in results:
        kind, value = str(item.get("type")), mapping(item.get("value") or {}, "a value")
        if kind == "choices" and "x" not in value and "points" not in value:
            choices.setdefault(str(item.get("from_name")), []).extend(
                text(each, "a choice") for each in items(value.get("choices"), "choices")
            )
        elif kind in _OTHERS:
            dropped.append(kind.removesuffix("labels"))
        elif kind in _BRUSHES:
            known = ", ".join(_AREAS[:3])
            raise ValueError(f"the mask of a {kind} cannot be read; expected one of {known}")
        elif kind in _AREAS or kind == "labels":
            labels = _labels(item)
            if not labels:
                if str(item.get("id")) in labelled:
                    continue
                raise ValueError(f"a {kind} has no label")
            REGION_LABELS.check(len(labels))
            if item.get("image_rotation"):
                raise ValueError("the image is rotated; rotate it back, and export again")
            region = _region(kind, value, size)
            rotated += bool(value.get("rotation"))
            objects += [Marked(label, *region) for label in labels]
    if len(choices) > 1:
        questions = ", ".join(sorted(choices))
        raise ValueError(f"it has choices of several questions ({questions}); export one")
    labels = [label for each in choices.values() for label in each]
    return Picture(number, image, None, size, objects, labels, shape_notes(dropped, rotated))


def _labels(item: Mapping[str, Any]) -> Sequence[str]:
    """Return the labels of a region: ``{"rectanglelabels": ["dog"]}`` → dog. Raises: ValueError."""
    value = mapping(item.get("value") or {}, "a value")
    found = next((value[key] for key in value if key.endswith("labels")), None)
    return [text(label, "a label") for label in items(found, "labels")]


def _region(kind: str, value: Mapping[str, Any], size: tuple[int, int] | None) -> Region:
    """Return a region: in pixels if the size is known, else in shares.

    Raises: ValueError: it has no numbers, or is rotated and the size is missing.
    """
    across, down = (side / 100 for side in size or (1, 1))
    [degrees] = numbers(value, ["rotation"], f"a {kind}") if value.get("rotation") else [0]
    if degrees and size is None:
        raise ValueError("a rotated region needs original_width and original_height")
    if points := items(value.get("points"), "points"):
        if not all(are_numbers(at) and len(at) == 2 for at in points):
            raise ValueError(f"the points of a {kind} must be pairs of numbers")
        return outlined((x * across, y * down) for x, y in points)
    is_ellipse = "radiusX" in value
    sides = ("x", "y", "radiusX", "radiusY") if is_ellipse else ("x", "y", "width", "height")
    sizes = numbers(value, sides, f"a {kind}")
    x, y, wide, high = (n * scale for n, scale in zip(sizes, (across, down) * 2, strict=True))
    if is_ellipse:
        return ellipse(x, y, wide, high, degrees)
    return rectangle((x, y, x + wide, y + high), degrees, (x, y))
