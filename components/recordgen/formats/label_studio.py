"""Label Studio's JSON export: a list of tasks, each with the results of its annotators.

    [{"data": {"image": "/data/upload/1/ab12cd34-a.jpg"}, "annotations": [{"result": [
       {"type": "rectanglelabels", "original_width": 640, "original_height": 480,
        "value": {"x": 10, "y": 20, "width": 30, "height": 40, "rectanglelabels": ["dog"]}}]}]}]

becomes the picture ``a.jpg`` with the box (64, 96, 256, 288) of a dog, in pixels: Label Studio
writes percent of the image. Rules: "Label Studio JSON format of annotated tasks".
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from recordgen import storage
from recordgen.core.limits import REGION_LABELS
from recordgen.core.rows.picture import Marked, Picture, is_number
from recordgen.errors import SourceError
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.format import Evidence
from recordgen.formats.json_items import key_paths
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import (
    Note,
    PictureFormat,
    Problem,
    image_or_problem,
    items_of,
    size_of,
)
from recordgen.formats.shapes import Region, ellipse, outlined, rectangle, shape_notes
from recordgen.tasks import (
    ImageClassification,
    ImageMultiLabel,
    ImageSegmentation,
    ObjectDetection,
)

#: Name in ``rows.adjusted``: images whose annotators disagree; the first one's labels are stored.
ANNOTATORS_DIFFER = "annotators_differ"

_AREAS = ("rectanglelabels", "polygonlabels", "ellipselabels", "rectangle", "polygon", "ellipse")
_OTHERS = ("keypointlabels", "keypoint", "vectorlabels", "vector")
# Brushes are masks in an encoding of Label Studio's own.
_BRUSHES = ("brushlabels", "brush", "magicwand", "bitmask", "bitmasklabels")
# A file that was uploaded begins with eight hexadecimal digits.
_UPLOADED = re.compile(r"[0-9a-f]{6,8}-")
_SEVERAL = re.compile(rb'"choices"\s*:\s*\[\s*"[^"]*"\s*,')
_UPLOADS, _LOCAL = "/data/upload/", "/data/local-files/"


class LabelStudio(PictureFormat):
    """Label Studio's JSON of images with rectangles, polygons, ellipses or choices."""

    name = "label_studio"
    tasks: ClassVar = (
        *(ObjectDetection.name, ImageMultiLabel.name, ImageClassification.name),
        ImageSegmentation.name,
    )

    def detect(self, listing: Listing) -> Evidence | None:
        found = [name for name in listing.candidates(".json") if _is_mine(listing.head(name))]
        if not found:
            return None
        head = listing.head(found[0])
        boxes, several, one, _ = self.tasks
        if any(f'"{kind}"'.encode() in head for kind in (*_AREAS, *_BRUSHES)):
            task, what = boxes, "regions"
        elif b'"choices"' in head:
            task, what = several if _SEVERAL.search(head) else one, "choices"
        else:
            raise SourceError(
                f"{listing.root}{found[0]}: this Label Studio export has no rectangles, polygons, "
                f"ellipses or choices of images; write a CSV with the labels"
            )
        return Evidence(f"{found[0]} has Label Studio's {what} of images", task, found)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        folder = posixpath.dirname(document)
        unlabelled = 0
        for number, item in items_of(listing, document):
            results = list(_results(item))
            if results:
                yield _picture(listing, folder, number, item, results)
            else:
                unlabelled += 1
        if unlabelled:
            yield Note(0, f"{unlabelled:,} tasks have no annotation, and were skipped")


class _Found(NamedTuple):
    """What one annotator says."""

    objects: Sequence[Marked]
    labels: Sequence[str]
    size: tuple[int, int] | None
    notes: Sequence[tuple[str, str]]


def _is_mine(head: bytes) -> bool:
    if b'"result"' not in head:
        return False
    keys = key_paths(head.decode("utf-8", "replace"))
    return "annotations.result" in keys or "completions.result" in keys


def _results(item: Any) -> Iterator[Sequence[Any]]:
    """Yield the results of each annotation that was not cancelled, the ground truth first."""
    item = item if isinstance(item, dict) else {}
    found = item.get("annotations") or item.get("completions") or ()
    done = [each for each in found if isinstance(each, dict) and not each.get("was_cancelled")]
    for each in sorted(done, key=lambda each: not each.get("ground_truth")):
        if isinstance(results := each.get("result"), list):
            yield results


def _picture(
    listing: Listing,
    folder: str,
    number: int,
    item: Mapping[str, Any],
    results: Sequence[Sequence[Any]],
) -> Picture | Problem:
    written = _written(item.get("data"))
    if isinstance(written, Problem):
        return written._replace(line=number)
    image = _image(listing, written, folder, number)
    if isinstance(image, Problem):
        return image
    try:
        first, *others = map(_said, results)
    except ValueError as exc:
        return Problem(number, str(exc), image)
    notes = [*first.notes]
    if any(
        set(each.objects) != set(first.objects) or set(each.labels) != set(first.labels)
        for each in others
    ):
        message = f"{len(results)} annotators disagree; the labels of the first were kept"
        notes.append((ANNOTATORS_DIFFER, message))
    return Picture(number, image, None, first.size, first.objects, first.labels, notes)


def _written(data: Any) -> str | Problem:
    """Return the image of a task as it is written, or the problem that there is not exactly one."""
    texts = [each for each in data.values() if isinstance(each, str)] if data else []
    found = [each for each in texts if IMAGE_SUFFIX.search(_path_of(each))]
    if len(found) != 1:
        return Problem(0, f"data must name one image (got {json.dumps(data, default=str):.120})")
    return found[0]


def _path_of(written: str) -> str:
    """Return the path in an address: ``/data/local-files/?d=a%20b.jpg`` → ``a b.jpg``."""
    if not storage.is_url(written) and not written.startswith("/data/"):
        return written
    parts = urlsplit(written)
    if parts.path.rstrip("/").endswith(_LOCAL.rstrip("/")):
        return parse_qs(parts.query).get("d", [""])[0]
    return unquote(parts.path)


def _image(listing: Listing, written: str, folder: str, number: int) -> str | Problem:
    parts = urlsplit(written)
    if parts.netloc and not parts.path.startswith((_UPLOADS, _LOCAL)):
        return written  # gs://bucket/a.jpg
    path = _path_of(written).removeprefix("/data/")
    found = image_or_problem(listing, path, folder, "images", line=number)
    name = posixpath.basename(path)
    if isinstance(found, Problem) and _UPLOADED.match(name):
        name = _UPLOADED.sub("", name, count=1)
        return image_or_problem(listing, name, folder, line=number)
    return found


def _said(results: Sequence[Any]) -> _Found:
    """Return what an annotator says. Raises: ValueError: a region cannot be used."""
    items = [item for item in results if isinstance(item, dict)]
    # A region and its label may be two results with one id.
    labelled = {item.get("id") for item in items if _labels(item)}
    objects: list[Marked] = []
    choices: dict[str, list[str]] = {}
    dropped: list[str] = []
    rotated = 0
    sizes = (size_of(item.get("original_width"), item.get("original_height")) for item in items)
    size = next(filter(None, sizes), None)
    for item in items:
        kind, value = item.get("type"), item.get("value")
        kind = str(kind)
        value = value if isinstance(value, dict) else {}
        if kind == "choices" and "x" not in value and "points" not in value:
            choices.setdefault(str(item.get("from_name")), []).extend(
                str(each).strip() for each in value.get("choices") or ()
            )
        elif kind in _OTHERS:
            dropped.append(kind.removesuffix("labels"))
        elif kind in _BRUSHES:
            raise ValueError(
                f"a region is a {kind}, whose mask cannot be read; expected one of "
                f"{', '.join(_AREAS[:3])}"
            )
        elif kind in _AREAS or kind == "labels":
            labels = _labels(item)
            if not labels:
                if item.get("id") in labelled:
                    continue
                raise ValueError(f"a {kind} has no label")
            REGION_LABELS.check(len(labels))
            if item.get("image_rotation"):
                raise ValueError(
                    "the image was rotated in Label Studio; rotate it back, and export again"
                )
            region = _region(kind, value, size)
            rotated += bool(value.get("rotation"))
            objects += [Marked(label, *region) for label in labels]
    if len(choices) > 1:
        raise ValueError(
            f"it has choices of several questions ({', '.join(sorted(choices))}), and it is "
            f"unclear which one has its labels"
        )
    labels = [label for each in choices.values() for label in each]
    return _Found(objects, labels, size, shape_notes(dropped, rotated))


def _labels(item: Mapping[str, Any]) -> Sequence[str]:
    """Return the labels of a region: ``{"rectanglelabels": ["dog"]}`` → dog."""
    value = item.get("value")
    for key, found in value.items() if isinstance(value, dict) else ():
        if key.endswith("labels") and isinstance(found, list):
            return [str(label).strip() for label in found if str(label).strip()]
    return ()


def _region(kind: str, value: Mapping[str, Any], size: tuple[int, int] | None) -> Region:
    """Return a region: in pixels if the size is known, else in shares.

    Raises: ValueError: it has no numbers, or is rotated and the size is missing.
    """
    across, down = (side / 100 for side in size or (1, 1))
    degrees = value.get("rotation") or 0
    if degrees and size is None:
        raise ValueError("a rotated region needs original_width and original_height")
    if isinstance(points := value.get("points"), list) and points:
        if not all(isinstance(at, list) and len(at) == 2 and _are_numbers(*at) for at in points):
            raise ValueError(f"the points of a {kind} must be pairs of numbers")
        return outlined((x * across, y * down) for x, y in points)
    is_ellipse = "radiusX" in value
    sides = ("x", "y", "radiusX", "radiusY") if is_ellipse else ("x", "y", "width", "height")
    numbers: list[Any] = [value.get(side) for side in sides]
    if not _are_numbers(*numbers, degrees):
        raise ValueError(f"a {kind} needs {', '.join(sides)} (got {value!r:.80})")
    x, y, wide, high = (n * scale for n, scale in zip(numbers, (across, down) * 2, strict=True))
    if is_ellipse:
        return ellipse(x, y, wide, high, degrees)
    return rectangle((x, y, x + wide, y + high), degrees, (x, y))


def _are_numbers(*values: Any) -> bool:
    return all(map(is_number, values))
