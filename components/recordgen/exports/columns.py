"""The examples of a dataset as columns, for formats of tables and of samples.

    image/encoded, image/format, …          image      {"bytes": …, "path": "rex.jpg"}
    image/class/label                       label      3
    image/object/bbox/xmin, …               objects    [{"bbox": [x, y, w, h], "category": 3}]
    entity/start, entity/class/label, …     entities   [{"start": 0, "end": 11, "label": 2}]

The type of a column is a feature of Hugging Face's datasets as JSON, such as
``{"_type": "ClassLabel", "names": ["cat", "dog"]}``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recordgen import features, storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotation import is_image, label_files, stored_features
from recordgen.errors import UsageError
from recordgen.exports.copying import file_name
from recordgen.features import FLAGS, LIST_DTYPES, OBJECT_FLAGS, FeatureSpec
from recordgen.payloads.header import stored_image
from recordgen.subjects.details import KEYPOINT, Details
from recordgen.subjects.objects import OBJECT_FEATURES, stored_boxes
from recordgen.tables.columns import label_features, table_of
from recordgen.tasks import TASKS

#: Lists of values by feature name.
Values = Mapping[str, Sequence[Any]]

IMAGE = {"_type": "Image"}

#: What has the pixels of an object beside ``segmentation``, which COCO uses for both.
RLE = "rle"

#: Of a pixel, in segmentations and keypoints.
DECIMALS = 4

_TAGS_FILE = "tags.txt"
_ENTITIES = {
    "start": features.ENTITY_START,
    "end": features.ENTITY_END,
    "label": features.ENTITY_LABEL,
}

_ENTITY_LABELS = (features.ENTITY_TEXT, features.ENTITY_LABEL)

# Features that other columns contain.
_PARTS_OF_IMAGES = ("format", "height", "width", "channels", "key/sha256", "source_id")
_CONTAINED = (*OBJECT_FEATURES[1:], features.ENTITY_END, *_ENTITY_LABELS)

_NAMES = {
    features.TEXT_SOURCE_ID: "source_id",
    features.TAGS_LABEL: "ner_tags",
    features.VIDEO_SOURCE_ID: "source_id",
    features.VIDEO_SEGMENT_START: "start",
    features.VIDEO_SEGMENT_END: "end",
}

# The columns of images that belong to another one.
_CALLED = {features.IMAGE_MASK_ENCODED: "mask"}


class Column(NamedTuple):
    """One column.

    Attributes:
        feature: its type, as JSON of Hugging Face's datasets.
        read: returns the value of an example; None if it is missing.
    """

    name: str
    feature: Any
    read: Callable[[Values], Any]


def columns_of(dataset: Dataset) -> Sequence[Column]:
    """Return the columns of a dataset. Raises: UsageError: two have one name, or there are none."""
    found = list(_columns(dataset))
    if not found:
        raise UsageError(f"no features are known: the task {dataset.task!r:.80} is not installed")
    name, count = Counter(column.name for column in found).most_common(1)[0]
    if count > 1:
        raise UsageError(f"two features would become the column {name!r}; rename one of them")
    return found


def _columns(dataset: Dataset) -> Iterator[Column]:
    specs = stored_features(dataset)
    is_known = dataset.task in TASKS
    text, number = label_features(dataset)
    classes = _class_label(dataset.labels)
    prefixes = [name.removesuffix("encoded") for name in specs if is_image(name)]
    parts = {f"{prefix}{part}" for prefix in prefixes for part in _PARTS_OF_IMAGES}
    # Examples from Python may have such names for anything.
    objects = features.OBJECTS.keys() & specs.keys() if is_known else set[str]()
    for name, spec in specs.items():
        if is_image(name):
            yield from _image(dataset, name)
        elif name == OBJECT_FEATURES[0]:
            item = {"bbox": _several(_value("float32")), "category": classes}
            known = {word: kind for it, (word, kind) in _OF_OBJECTS.items() if it in objects}
            yield Column("objects", [item | known], partial(_objects, tuple(known)))
        elif name == features.ENTITY_START:
            item = {"start": _value("int64"), "end": _value("int64"), "label": classes}
            yield Column("entities", [item], _entities)
        elif name == features.TAGS_LABEL:
            tags = label_files(dataset).get(_TAGS_FILE, "").splitlines()
            yield Column(_NAMES[name], _several(_class_label(tags)), partial(_list, name))
        elif name == features.IMAGE_MASK_LABEL:
            yield Column("classes", _several(classes), partial(_list, name))
        elif name in (*parts, *objects, features.IMAGE_MASK_TEXT, *_CONTAINED, features.TAGS_TEXT):
            continue
        elif name == number:
            yield _label(dataset, name, spec, classes)
        elif name == text and number is None and dataset.labels:
            numbers = {label: at for at, label in enumerate(dataset.labels)}
            yield Column(name, classes, partial(_number, name, numbers))
        elif name == features.VIDEO_URI and is_known:
            yield Column("video", _value("string"), partial(_address, dataset.folder))
        elif name != text:
            yield _plain(_NAMES.get(name, name) if is_known else name, name, spec, is_known)


def _image(dataset: Dataset, name: str) -> Iterator[Column]:
    """Yield the columns of an image; sizes only beside boxes, which are in pixels."""
    prefix = name.removesuffix("/encoded")
    table = table_of(dataset)
    column = (table.only_image or prefix) if table is not None else _CALLED.get(name, prefix)
    yield Column(column, IMAGE, partial(_file, name))
    stored = stored_features(dataset)
    if OBJECT_FEATURES[0] in stored:
        for side in ("width", "height"):
            yield Column(side, _value("int64"), partial(_scalar, f"{prefix}/{side}"))
    if (source := f"{prefix}/source_id") in stored:
        is_only = table is None and name not in _CALLED
        called = "source_id" if is_only else f"{column}_source_id"
        yield Column(called, _value("string"), partial(_text, source))


def _label(dataset: Dataset, name: str, spec: FeatureSpec, classes: Any) -> Column:
    if spec.shape is None:
        return Column("labels", _several(classes), partial(_list, name))
    table = table_of(dataset)
    called = "label" if table is None else str(table.label)
    return Column(called, classes, partial(_known_number, name))


def _plain(called: str, name: str, spec: FeatureSpec, is_text: bool) -> Column:
    """Return a column of one value, of a list, or of a nested list for an array."""
    kind = ("string" if is_text else "binary") if spec.dtype == "bytes" else spec.dtype
    if spec.dtype in LIST_DTYPES and spec.shape in ((), None):
        each = _text if kind == "string" else _scalar
        if spec.shape is None:
            each = _texts if kind == "string" else _list
            return Column(called, _several(_value(kind)), partial(each, name))
        return Column(called, _value(kind), partial(each, name))
    # Parquet of PyArrow before 15 has no type for these.
    feature: Any = _value("float32" if kind == "float16" else kind)
    for _ in spec.shape or ():
        feature = _several(feature)
    return Column(called, feature, partial(_array, name, spec))


# --- types ---------------------------------------------------------------------------------------


def _value(dtype: str) -> Mapping[str, Any]:
    return {"dtype": dtype, "_type": "Value"}


def _several(feature: Any) -> Mapping[str, Any]:
    return {"feature": feature, "_type": "Sequence"}


def _class_label(names: Sequence[str]) -> Mapping[str, Any]:
    return {"names": list(names), "_type": "ClassLabel"} if names else _value("int64")


# What may be known of objects, by feature: the word of a field, and its type.
_OF_OBJECTS = {
    **{name: (word, _value("bool")) for name, word in zip(OBJECT_FLAGS, FLAGS, strict=True)},
    features.IMAGE_OBJECT_AREA: (features.AREA, _value("float32")),
    features.IMAGE_OBJECT_KEYPOINT_X: ("keypoints", _several(_value("float64"))),
    features.IMAGE_OBJECT_POLYGON_X: ("segmentation", _several(_several(_value("float64")))),
    features.IMAGE_OBJECT_MASK_RUNS: (
        *(RLE, {"counts": _value("string"), "size": _several(_value("int64"))}),
    ),
}


# --- values --------------------------------------------------------------------------------------


def _file(name: str, values: Values) -> Mapping[str, Any] | None:
    if (image := stored_image(values, name)) is None:
        return None
    uri = _text(f"{name.removesuffix('encoded')}source_id", values)
    return {"bytes": image[0], "path": file_name(uri or "", image[1])}


def _objects(known: Sequence[str], values: Values) -> Sequence[Mapping[str, Any]]:
    sides = (_scalar(name, values) for name in (features.IMAGE_WIDTH, features.IMAGE_HEIGHT))
    width, height = (side or 1 for side in sides)
    found = []
    for box in stored_boxes(values):
        said = shapes_in_pixels(box.details, (width, height))
        said |= {**dict.fromkeys(box.details.flags, True), features.AREA: box.details.area}
        more = {word: said.get(word, False if word in FLAGS else None) for word in known}
        found.append({"bbox": box.in_pixels(width, height), "category": box.number, **more})
    return found


def shapes_in_pixels(details: Details, size: tuple[int, int]) -> dict[str, Any]:
    """Return the shapes of an object with COCO's words, as far as they are known.

    ``segmentation`` has polygons, :data:`RLE` the pixels of an object without polygons.
    """
    found: dict[str, Any] = {}
    pixels = details.divided(1 / size[0], 1 / size[1])
    if pixels.polygons:
        found["segmentation"] = [[round(v, DECIMALS) for v in each] for each in pixels.polygons]
    elif (mask := pixels.mask) is not None:
        found[RLE] = {"size": [mask.height, mask.width], "counts": mask.counts}
    if pixels.keypoints:
        numbers = [round(value, DECIMALS) for value in pixels.keypoints]
        numbers[2::KEYPOINT] = map(int, numbers[2::KEYPOINT])
        found["keypoints"] = numbers
    return found


def _entities(values: Values) -> Sequence[Mapping[str, Any]]:
    lists = (values.get(name, ()) for name in _ENTITIES.values())
    return [dict(zip(_ENTITIES, each, strict=True)) for each in zip(*lists, strict=True)]


def _scalar(name: str, values: Values) -> Any:
    return next(iter(values.get(name, ())), None)


def _known_number(name: str, values: Values) -> Any:
    number = _scalar(name, values)
    return None if number == features.NO_LABEL else number


def _number(name: str, numbers: Mapping[str, int], values: Values) -> int | None:
    return numbers.get(_text(name, values) or "")


def _text(name: str, values: Values) -> str | None:
    value = _scalar(name, values)
    return None if value is None else value.decode("utf-8", "replace")


def _address(folder: str, values: Values) -> str | None:
    """Return the address of a video, whose path may begin at a folder."""
    uri = _text(features.VIDEO_URI, values)
    return uri and storage.resolve(uri, storage.join(folder, ""))


def _list(name: str, values: Values) -> Sequence[Any]:
    return values.get(name, ())


def _texts(name: str, values: Values) -> Sequence[str]:
    return [value.decode("utf-8", "replace") for value in values.get(name, ())]


def _array(name: str, spec: FeatureSpec, values: Values) -> Any:
    """Return an array as nested lists; None if it is missing, or has other values than declared."""
    found: Any = values.get(name, ())
    shape = spec.shape or ()
    if spec.dtype not in LIST_DTYPES:
        if not found:
            return None
        found = np.frombuffer(found[0], np.dtype(spec.dtype).newbyteorder("<"))
    if len(found) != math.prod(shape):
        return None
    if spec.dtype == "bytes":
        found = np.array(found, object)
    return np.reshape(found, shape).tolist()
