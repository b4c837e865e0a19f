"""LabelMe: a JSON document for each image.

    a.json  {"imagePath": "a.jpg", "imageWidth": 640, "imageHeight": 480,
             "shapes": [{"label": "dog", "shape_type": "rectangle",
                         "points": [[10, 20], [40, 60]]}]}

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog, in pixels. Shapes with the
same label and ``group_id`` are one object. A document without shapes, but with
``"flags": {"dog": true}``, is that of an image with the label dog.
"""

from __future__ import annotations

import base64
import json
import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from recordgen.core.image_settings import Limits
from recordgen.core.limits import LABELME_BYTES
from recordgen.errors import PayloadError
from recordgen.formats import pictures
from recordgen.formats.format import Evidence
from recordgen.formats.json_values import json_value, key_paths
from recordgen.formats.listing import Listing
from recordgen.formats.objects import TASKS_OF_IMAGES
from recordgen.formats.shapes import around, ellipse, mask_of, outlined, runs_below, shape_notes
from recordgen.subjects.details import NO_POLYGONS, Details, Polygons
from recordgen.subjects.picture import Corners, Marked, Picture, are_numbers

if TYPE_CHECKING:
    from recordgen.formats.shapes import Runs

_SINGLE, _SEVERAL, _BOXES, _MASKS = TASKS_OF_IMAGES
_PROBED = 3
_AREAS = ("rectangle", "polygon", "circle", "oriented_rectangle", "mask")
# Shapes without an area, which are dropped, as those with the label that stands for no class.
_IGNORE = "__ignore__"
_OTHERS = ("point", "points", "line", "linestrip", _IGNORE)
_NO_SHAPES = re.compile(rb'"shapes"\s*:\s*\[\s*\]')
_FLAGS = re.compile(rb'"flags"\s*:\s*\{([^{}]*)\}')
_TRUE = re.compile(rb":\s*true")


class LabelMe(pictures.PictureFormat):
    """A folder of images with LabelMe's JSON beside each."""

    name = "labelme"
    tasks: ClassVar = (_BOXES, _SINGLE, _SEVERAL, _MASKS)
    names_files = True
    in_pixels = True
    has_sizes = True

    def detect(self, listing: Listing) -> Evidence | None:
        documents = listing.candidates(".json")
        found = [name for name in documents[:_PROBED] if _is_mine(listing.head(name))]
        if not found:
            return None
        flags = [_true_flags(listing.head(name)) for name in found]
        task = _BOXES if not all(flags) else _SINGLE if max(flags) == 1 else _SEVERAL
        reason = f"{found[0]} has the {'shapes in' if task == _BOXES else 'flags of'} an image"
        return Evidence(reason, task, found if listing.only else ("",))

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        used = set()
        for line, name in enumerate(listing.candidates(".json"), start=1):
            if not _is_mine(listing.head(name)):
                yield pictures.Note(line, f"{name} has no shapes; it was skipped")
                continue
            item = picture_of(listing, line, name)
            used.add(item.uri)
            yield item
        others = [] if listing.only else [name for name in listing.images if name not in used]
        yield from pictures.notes_about(others, "images have no JSON, and were skipped")


def _is_mine(head: bytes) -> bool:
    keys = key_paths(head.decode("utf-8", "replace"))
    return "shapes.points" in keys or {"shapes", "imagePath"} <= keys


def _true_flags(head: bytes) -> int:
    """Return how many flags of an image without shapes are true; 0 if it has shapes."""
    flags = _FLAGS.search(head) if _NO_SHAPES.search(head) else None
    return len(_TRUE.findall(flags[1])) if flags else 0


def picture_of(
    listing: Listing, line: int, name: str, beside: str = ""
) -> Picture | pictures.Problem:
    """Return the picture of a document, or its problem.

    ``beside``: the image that it describes; empty if its own name or the document says it.
    """
    stem = posixpath.splitext(name)[0]
    beside = beside or next(iter(listing.tree.by_stem.get(stem, ())), "")
    try:
        found = json_value(listing.read(name, LABELME_BYTES.most))
        if not isinstance(found, dict) or not isinstance(found.get("shapes"), list):
            raise ValueError("it has no list of shapes")
        shapes = [it if isinstance(it, dict) else {} for it in found["shapes"]]
        kinds = [_kind_of(shape) for shape in shapes]
        size = pictures.size_of(found.get("imageWidth"), found.get("imageHeight"))
        pairs = zip(shapes, kinds, strict=True)
        parts = [_part(shape, kind, size) for shape, kind in pairs if kind not in _OTHERS]
        objects = list(_objects(parts, size))
        said = str(found.get("imagePath") or f"{stem}.jpg")
        image = beside or pictures.image_named(listing, said, posixpath.dirname(name))
    except pictures.ExampleError as exc:
        return pictures.Problem(line, f"{name}: {exc}", exc.uri, exc.code)
    except ValueError as exc:
        return pictures.Problem(line, f"{name}: {exc}", beside)
    notes = shape_notes([kind for kind in kinds if kind in _OTHERS])
    flags = found.get("flags")
    chosen = flags.items() if isinstance(flags, dict) else ()
    labels = [key for key, is_chosen in chosen if is_chosen is True and key != _IGNORE]
    return Picture(line, image, None, size, objects, labels, notes, document=name)


def _kind_of(shape: Mapping[str, Any]) -> str:
    """Return the kind of a shape, or the label that stands for no class."""
    return _IGNORE if shape.get("label") == _IGNORE else str(shape.get("shape_type") or "polygon")


class _Part(NamedTuple):
    """A shape: a whole object, or one of those with its label and its group."""

    label: str
    group: Any
    corners: Corners
    outline: Polygons = NO_POLYGONS
    runs: Runs | None = None  # of a mask


def _objects(parts: Sequence[_Part], size: tuple[int, int] | None) -> Iterator[Marked]:
    """Yield the object of each group. Raises: ValueError: its shapes cannot be joined."""
    groups: dict[Any, list[_Part]] = {}
    for number, part in enumerate(parts):
        key = number if part.group is None else (part.label, json.dumps(part.group))
        groups.setdefault(key, []).append(part)
    for group in groups.values():
        label = group[0].label
        if len({(bool(part.outline), part.runs is None) for part in group}) > 1:
            raise ValueError(f"shapes of {label!r:.40} with one group_id must be all polygons")
        corners = around(chain.from_iterable((box[:2], box[2:]) for _, _, box, *_ in group))
        details = Details(polygons=Polygons.of(chain.from_iterable(it.outline for it in group)))
        runs = [part.runs for part in group if part.runs is not None]
        if runs and size is not None:
            details = Details(mask=mask_of(runs, *size))
        yield Marked(label, corners, details)


def _part(shape: Mapping[str, Any], kind: str, size: tuple[int, int] | None) -> _Part:
    """Return a shape with its box. Raises: ValueError: it has no area, no label or no points."""
    label = shape.get("label")
    points: Any = shape.get("points")
    if kind not in _AREAS:
        raise ValueError(f"a shape is a {kind!r:.40}; expected {', '.join(_AREAS)}")
    if not isinstance(label, str) or not label.strip():
        raise ValueError("a shape has no label")
    are_pairs = isinstance(points, list) and all(are_numbers(it) and len(it) == 2 for it in points)
    if not are_pairs or len(points) < 2:
        raise ValueError(f"points of {label!r:.40} must be pairs of numbers (got {points!r:.60})")
    part = _Part(label.strip(), shape.get("group_id"), around(points))
    if kind == "rectangle":
        return part
    if kind == "mask":
        return _masked(part, shape.get("mask"), size)
    corners, details = outlined(points)
    if kind == "circle":  # its center, and a point on it
        (x, y), edge = points[:2]
        corners, details = ellipse(x, y, *[math.dist((x, y), edge)] * 2)
    return part._replace(corners=corners, outline=details.polygons)


def _masked(part: _Part, mask: Any, size: tuple[int, int] | None) -> _Part:
    """Return a mask, whose corners are its first and its last pixel, with its runs.

    Raises: ValueError: it is no PNG of the size that its corners say.
    """
    import numpy as np

    from recordgen.payloads.check import decoded_mask
    from recordgen.payloads.opening import file_header

    left, top, right, low = map(round, part.corners)
    part = part._replace(corners=(left, top, right + 1, low + 1))
    if size is None or not mask:
        return part
    try:
        data = base64.b64decode(mask)
        header = file_header(data)
        if (header.width, header.height) != (right + 1 - left, low + 1 - top):
            raise ValueError(f"it has {header.width} × {header.height} pixels")
        if header.format != "PNG":  # other formats may have millions of pixels in a few bytes
            raise ValueError(f"it must be a PNG (got a {header.format})")
        if header.width > size[0] or header.height > size[1]:
            raise ValueError("it is larger than its image of {} × {} pixels".format(*size))
        pixels = np.asarray(decoded_mask(header, data, Limits()).convert("L"))
        runs = runs_below(pixels != 0, left, top, *size)
    except (OSError, PayloadError, SyntaxError, TypeError, ValueError) as exc:
        raise ValueError(f"the mask of {part.label!r:.40} cannot be read: {exc}") from exc
    return part._replace(runs=runs)
