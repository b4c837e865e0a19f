"""What each task gives for training without TensorFlow: its inputs and targets, one by one.

Masks and boxes move with the pixels of their images.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from PIL import Image

from recordgen import features
from recordgen.access.boxes import (
    CORNERS,
    FIELD_FEATURES,
    SIDES,
    formatted,
    object_masks,
    shown_keypoints,
)
from recordgen.access.decode import Decoder, Floats
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Example, Records
from recordgen.errors import UsageError
from recordgen.subjects.masks import IGNORED, Mask, seen_through
from recordgen.subjects.objects import areas_of
from recordgen.tables.columns import Table, is_mask, table_of

#: The parts of a segment, and the features that hold them.
SEGMENT = {
    "uri": features.VIDEO_URI,
    "start": features.VIDEO_SEGMENT_START,
    "end": features.VIDEO_SEGMENT_END,
}


def images(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and their labels."""
    decode = decoder.of_examples(source.dataset)
    return labelled(
        source, there, decode.names, lambda e: decode(e).pixels, features.IMAGE_CLASS_LABEL
    )


def texts(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of texts and their labels."""
    return labelled(
        source, there, (features.TEXT,), itemgetter(features.TEXT), features.CLASS_LABEL
    )


def segments(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of segments (path of the video, start and end in seconds) and labels."""

    def segment(example: Example) -> dict[str, object]:
        return {part: example[name] for part, name in SEGMENT.items()}

    return labelled(source, there, tuple(SEGMENT.values()), segment, features.VIDEO_CLASS_LABEL)


def entities(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of tokens and tags; batches are padded as in ``recordgen.load``."""
    return Pairing((features.TOKENS, features.TAGS_LABEL), _tagged, padding=-1, least=1)


def _tagged(example: Example) -> Any:
    tokens, tags = example[features.TOKENS], example[features.TAGS_LABEL]
    if len(tokens) != len(tags):
        raise ValueError(f"{features.TAGS_LABEL} has {len(tags)} numbers for {len(tokens)} tokens")
    return {"tokens": tokens, "mask": np.ones(len(tokens), bool)}, tags


_MASK = features.IMAGE_MASK_ENCODED


def masks(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and masks of class numbers."""
    decode = decoder.of_examples(source.dataset)

    def item(example: Example) -> Any:
        pixels, view, size = decode(example)
        mask = _decoded(np.asarray(example[_MASK]).tobytes())
        return pixels, seen_through(mask, view.tolist(), size)

    return Pairing((*decode.names, _MASK), item)


def _decoded(encoded: bytes) -> Mask:
    """Decode a stored mask; if there is none, all pixels are ignored. Raises: ValueError."""
    if not encoded:
        return np.full((1, 1), IGNORED, np.uint8)
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            if image.mode != "L":
                raise ValueError(f"its mask must be gray (got Pillow's mode {image.mode})")
            return np.asarray(image)
    except (OSError, SyntaxError, Image.DecompressionBombError) as exc:
        raise ValueError(f"its mask cannot be decoded: {exc}") from exc


# --- rows of tables ------------------------------------------------------------------------------


#: The weight of a row without one.
DEFAULT_WEIGHT = 1.0


def rows(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of columns and the target, or of images and labels.

    Raises: UsageError: no ``dataset.json`` lists the columns, or a column of images has masks.
    """
    table = None if source.dataset is None else table_of(source.dataset)
    if table is None:
        raise UsageError(f"{source!r}: no dataset.json lists the columns of its examples")
    check_masks(table.images)
    if table.is_labelled_image:
        return images(source, there, decoder)
    decoders = {
        name: decoder.of_examples(source.dataset, table.image_feature(name, "")[:-1])
        for name in table.images
    }
    features = [
        feature
        for name in table.read_names
        for feature in (decoders[name].names if name in decoders else [name])
    ]
    target, weight = _target(table, source.class_names), table.weight
    defaults = {} if weight is None else {weight: DEFAULT_WEIGHT}
    inputs = partial(_inputs, table.read_names, decoders)
    if target is None:
        return Pairing(features, inputs, defaults=defaults)
    return Pairing(features, inputs, *target, weight or "", defaults)


def check_masks(images: Sequence[str]) -> None:
    """Check that no column of images has the name of masks. Raises: UsageError."""
    if masks := [name for name in images if is_mask(name)]:
        raise UsageError(
            f"column {masks[0]!r} has the name of a mask, whose pixels are classes: resizing would "
            f"mix them, and scaling divide them by 255; read its bytes with recordgen.read, leave "
            f"it out with columns=[…], or convert it under another name if it is a picture"
        )


def _inputs(names: Sequence[str], decoders: Any, example: Example) -> dict[str, Any]:
    return {
        name: decoders[name](example).pixels if name in decoders else example[name]
        for name in names
    }


def _target(table: Table, classes: Sequence[str]) -> tuple[str, Callable[[Any], Any]] | None:
    """Return the feature of the target, and what makes its number; None if there is no target."""
    if table.label is not None:
        return table.label_features[1], np.int64
    if table.target is None:
        return None
    if not table.has_labels:
        return table.target, np.float32
    numbers = {name: np.int64(number) for number, name in enumerate(classes)}
    return table.target, lambda value: numbers.get(_text(value), np.int64(features.NO_LABEL))


def _text(value: Any) -> str:
    """Return the class that a target names; a whole number that rows may lack is read as float."""
    return value if isinstance(value, str) or np.isnan(value) else str(int(value))


# --- boxes ---------------------------------------------------------------------------------------

_LABELS = features.IMAGE_OBJECT_LABEL

# The features that a record lacks.
_EMPTY = {name: np.zeros(0, spec.dtype) for name, spec in features.OBJECTS.items()}

# As in recordgen.load: boxes with less of their area in the image are skipped.
_MIN_VISIBLE = 0.3 - 1e-4

# Values by the name of their feature.
_Values = Mapping[str, Any]


def boxes(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and boxes; batches are padded as in ``recordgen.load``."""
    decode = decoder.of_examples(source.dataset)
    fields = decoder.fields
    known = {} if source.dataset is None else source.dataset.keypoints
    if features.KEYPOINTS in fields and not known:
        raise UsageError("fields: the examples have no keypoints; remove them")
    # Without the flag nobody could tell crowds from objects.
    skips = () if features.IS_CROWD in fields else (features.IS_CROWD,)

    def item(example: Example) -> Any:
        pixels, view, size = decode(example)
        corners = np.stack([example[name] for name in CORNERS], 1)
        seen, found = _seen(corners, example[_LABELS], view)
        sides = formatted(found["boxes"].T, decoder.boxes, size)
        found["boxes"] = np.stack(sides, 1)
        if not fields and features.IMAGE_OBJECT_IS_CROWD not in example:
            return pixels, found
        values = {**_EMPTY, **example}
        each = len(known.get("names", ()))
        more = {
            name: _field(name, values, corners, view, size, each)[seen]
            for name in (*fields, *skips)
        }
        if features.KEYPOINTS in more and not decoder.boxes.startswith("rel_"):
            more[features.KEYPOINTS] *= np.array([*size[::-1], 1], np.float32)
        del found["count"]
        found |= more
        if skips:
            is_object = found.pop(features.IS_CROWD) == 0
            found = {name: part[is_object] for name, part in found.items()}
        return pixels, {**found, "count": np.int64(len(found["labels"]))}

    more = [feature for name in (*fields, *skips) for feature in FIELD_FEATURES[name]]
    names = dict.fromkeys((*decode.names, *CORNERS, _LABELS, *more))
    return Pairing([*names], item, padding=-1, least=1, several=("boxes", *fields))


def _field(
    name: str, values: _Values, corners: Floats, view: Floats, size: tuple[int, int], each: int
) -> Any:
    """Return a field of all boxes of an image; ``each``: keypoints of a box."""
    count = len(corners)
    if name == features.AREA:
        return _areas(values, corners)
    if name == features.KEYPOINTS:
        return _keypoints(values, count, each, view)
    if name == features.MASKS:
        return _masks(values, count, view, size)
    return _for_each_box(values[FIELD_FEATURES[name][0]], count)


def _seen(corners: Floats, labels: Any, view: Floats) -> tuple[Any, dict[str, Any]]:
    """Return which boxes are seen (bool [n]), and these relative to the view.

    Corners, also those of the seen boxes, are float32 [n, 4]: top, left, bottom, right.
    """
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = areas_of(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * areas_of(moved)) & (labels >= 0)
    count = np.int64(seen.sum())
    return seen, {"boxes": inside[seen], "labels": labels[seen], "count": count}


def _for_each_box(found: Any, count: int, each: int = 0) -> Any:
    """Return a feature that a record may lack with ``each`` values for each box, 0 without it.

    If ``each`` is 0, it is one value, without a dimension of its own.

    Raises: ValueError: there is another number of values.
    """
    shape = (count, each) if each else (count,)
    if not len(found):
        return np.zeros(shape, found.dtype)
    if len(found) != count * max(1, each):
        raise ValueError(f"{count} boxes need {max(1, each)} values each (got {len(found)})")
    return np.reshape(found, shape)


def _areas(values: _Values, corners: Floats) -> Floats:
    """Return the areas of boxes in pixels of the stored image.

    ``corners`` are top, left, bottom and right of each box.
    """
    height, width = (np.float32(values[name]) for name in SIDES)
    own = (corners[:, 3] - corners[:, 1]) * width * (corners[:, 2] - corners[:, 0]) * height
    found = _for_each_box(values[features.IMAGE_OBJECT_AREA], len(corners))
    return np.where(found > 0, found, own)


def _keypoints(values: _Values, count: int, each: int, view: Floats) -> Floats:
    """Return the keypoints of boxes, float32 [boxes, keypoints, 3], in shares of the shown image.

    ``view`` is the part of the stored image that is shown: top, left, height, width.
    """
    columns = [
        _for_each_box(values[name], count, each) for name in FIELD_FEATURES[features.KEYPOINTS]
    ]
    points = np.stack(columns, -1).astype(np.float32)
    return shown_keypoints(points, np.tile(view, (count, 1)))


def _masks(values: _Values, count: int, view: Floats, size: tuple[int, int]) -> Mask:
    """Return the masks of boxes, uint8 [boxes, height, width]; ``view`` as for keypoints."""
    x, y = values[features.IMAGE_OBJECT_POLYGON_X], values[features.IMAGE_OBJECT_POLYGON_Y]
    stored = [values[name] for name in SIDES]
    return object_masks(
        np.stack([x, y], 1),
        values[features.IMAGE_OBJECT_POLYGON_POINTS],
        _for_each_box(values[features.IMAGE_OBJECT_POLYGON_COUNT], count),
        values[features.IMAGE_OBJECT_MASK_RUNS],
        _for_each_box(values[features.IMAGE_OBJECT_MASK_COUNT], count),
        np.tile(stored, (count, 1)),
        np.tile(view, (count, 1)),
        size,
    )
