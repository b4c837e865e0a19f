"""Objects of an image as Hugging Face's datasets hold them, and as Recordgen exports them.

    {"bbox": [[10, 20, 30, 40]], "category": [0]}     ─▶  the box (10, 20, 40, 60) of class 0
    [{"bbox": [10, 20, 30, 40], "category": 0}]       ─▶  the same

Boxes are COCO's: x, y, width and height, in pixels. Numbers are those of classes, whose names a
text beside a document has, or the README.md of the Hugging Face Hub ("Dataset cards")::

    dataset_info: {features: [{name: label, dtype: {class_label: {names: {'0': cat, '1': dog}}}}]}
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

from recordgen.core.limits import LABEL_LETTERS, ONE_HOT
from recordgen.core.rows.row import Range, name_within
from recordgen.features import AREA, FLAGS, IS_CROWD, NO_LABEL, TEXT_SOURCE_ID, TOKENS
from recordgen.formats.coco_document import Annotation
from recordgen.formats.json_values import json_value, mapping
from recordgen.formats.label_fields import flags_in
from recordgen.formats.listing import Listing
from recordgen.subjects.details import KEYPOINT, flagged
from recordgen.subjects.picture import Marked, is_number
from recordgen.tables.roles import LABEL, LABEL_TEXT
from recordgen.tasks import ImageClassification, ImageMultiLabel, ImageSegmentation, ObjectDetection

#: Of images in containers: with a label, with several, with boxes, and with masks.
_TASKS = (ImageClassification, ImageMultiLabel, ObjectDetection, ImageSegmentation)
TASKS_OF_IMAGES = tuple(task.name for task in _TASKS)

#: Columns and features that name an image, which need not be read.
IMAGE_NAMES = ("id", "image_id", "image_name", "file_name", "filename", "source_id")

#: The files in which number 0 is the name on the first line.
_NAMES_FILES = ("classes.txt", "labels.txt", "label.labels.txt")

_NAMES_BYTES = 16 << 20

# A list of more values that are all 0 or 1 repeats one of them.
_NUMBERS = 2

#: The names of classes by number, by column.
Classes: TypeAlias = Mapping[str, Sequence[str]]
NO_CLASSES: Classes = {}

_CROWDS = ("iscrowd", IS_CROWD)
_SHAPES = ("segmentation", "rle", "keypoints")

#: The keys of classes beside boxes.
CLASSES = ("categories", "category", "labels", "label")

_KEYS = ("bbox", *CLASSES, *_CROWDS, *FLAGS[1:], AREA, *_SHAPES)

_README = "README.md"
_HEADER = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t\r]*\n")
_END = re.compile(rb"^---[ \t\r]*$", re.MULTILINE)


def names_beside(
    listing: Listing, document: str, column: str = "", files: Sequence[str] = _NAMES_FILES
) -> Sequence[str]:
    """Return the names of classes from a file beside a document, in the order of their numbers.

    Without one of such ``files``, Hugging Face's README.md may declare those of a column.
    """
    folder = posixpath.dirname(document)
    for name in files:
        path = posixpath.join(folder, name)
        if path in listing:
            lines = listing.read(path, _NAMES_BYTES).decode("utf-8-sig", "replace").rstrip()
            if all(names := [line.strip() for line in lines.splitlines()]):
                are_numbered = all(name.startswith(f"{at}:") for at, name in enumerate(names))
                return tuple(it.partition(":")[2].strip() if are_numbered else it for it in names)
    declared = (_declared_classes(listing, place) for place in dict.fromkeys((folder, "")))
    return next((found[column] for found in declared if column in found), ())


class StoredFile(NamedTuple):
    """A file in a row, as Hugging Face's datasets hold it: ``{"bytes": …, "path": …}``.

    Attributes:
        data: its bytes; None if the row has only its path.
        path: its name; empty if the row has none.
        place: where its bytes are; None without them.
    """

    data: bytes | None
    path: str
    place: Range | None

    def in_row(self, container: str, number: int) -> StoredFile:
        """Return the file of a row: its path is its uri, its place is relative to its folder."""
        if self.place is None:
            return self
        place = self.place._replace(file=posixpath.basename(self.place.file))
        return StoredFile(None, name_within(container, number, self.path), place)


def named(value: Any, names: Sequence[str]) -> str:
    """Return the label of a value: a text, or the number of a class.

    Raises: ValueError: it is neither, or no class has this number.
    """
    if isinstance(value, str):
        LABEL_LETTERS.check(len(value))
        text = value.strip()
        if not names or not text.isascii() or not text.isdecimal():
            return text
        value = int(text) if len(text) < 10 else len(names)
    if isinstance(value, float) and value.is_integer():  # pandas writes numbers beside gaps so
        value = int(value)
    if isinstance(value, bool) and not names:
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"a label must be a text or a number (got {value!r:.80})")
    if names and not 0 <= value < len(names):
        raise ValueError(f"the class is {value}, but there are {len(names)} names")
    return names[value] if names else str(value)


def labels_of(value: Any, names: Sequence[str]) -> Sequence[str]:
    """Return the labels in a value: one, or a list. Null, "" and -1 are none.

    ``[0, 2]`` → cat, owl; the one-hot list ``[0, 0, 1]`` → owl. Lists of two are numbers.

    Raises: ValueError: a value is no label, or the classes of a one-hot list have no names.
    """
    if isinstance(value, str):
        ONE_HOT.check(len(value))
        if len(flags := flags_in(value)) > _NUMBERS:
            value = list(map(int, flags))
    values = value if isinstance(value, list) else [value]
    # Numbers of classes would not repeat.
    if len(values) > _NUMBERS and all(each in (0, 1) for each in values):
        if not names:
            what = f"a one-hot list needs the names of its {len(values)} classes"
            raise ValueError(f"{what}; write one in each line of classes.txt beside this file")
        if len(names) == len(values):
            return list(compress(names, values))
    labels = [named(each, names) for each in values if each is not None and each != -1]
    return [label for label in labels if label]


def objects_in(value: Any) -> Any:
    """Return objects, which a CSV has as JSON; None if the value holds none."""
    if isinstance(value, str):
        try:
            value = json_value(value)
        except ValueError:
            return None
    items = value if isinstance(value, list) else [value]
    return value if all(isinstance(it, Mapping) and "bbox" in it for it in items) else None


def read_objects(value: Any, names: Sequence[str]) -> Sequence[Marked]:
    """Return the objects of an image. Raises: ValueError: one has no box or no class."""
    return [_marked(each, names) for each in _parts(value)]


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects, also of lists with a value for each: ``{"bbox": […], "area": […]}``."""
    if isinstance(value, Mapping):
        known = {key: value[key] for key in _KEYS if value.get(key) is not None}
        boxes = known.get("bbox")
        if not isinstance(boxes, list):
            raise ValueError(f"objects needs a bbox and a category for each (got {value!r:.80})")
        count = len(boxes)
        for key, each in known.items():
            if not (isinstance(each, list) and len(each) == count):
                raise ValueError(f"objects needs a {key} for each bbox (got {value!r:.80})")
        value = [{key: each[at] for key, each in known.items()} for at in range(count)]
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, Mapping):
            raise ValueError(f"an object needs a bbox and a category (got {item!r:.80})")
        yield item


def _of(item: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((item[key] for key in keys if key in item), None)


def _marked(item: Mapping[str, Any], names: Sequence[str]) -> Marked:
    box = item.get("bbox")
    if not (isinstance(box, list) and len(box) == 4 and all(map(is_number, box))):
        raise ValueError(f"a bbox must be x, y, width and height (got {box!r:.80})")
    x, y, width, height = box
    label, points = named(_of(item, CLASSES), names), item.get("keypoints")
    shape = item.get("segmentation") or item.get("rle")
    said = Annotation.of({"segmentation": shape, "keypoints": points, "area": item.get("area")})
    flags = flagged({IS_CROWD: _of(item, _CROWDS)} | {flag: item.get(flag) for flag in FLAGS[1:]})
    count = len(points) // KEYPOINT if isinstance(points, list) else 0
    return Marked(label, (x, y, x + width, y + height), said.details(count)._replace(flags=flags))


def _declared_classes(listing: Listing, folder: str) -> Mapping[str, Sequence[str]]:
    """Return the names of classes by column that the README.md of a folder declares."""
    path = posixpath.join(folder, _README)
    head = listing.head(path) if path in listing else b""
    begin = _HEADER.match(head)
    end = _END.search(head, begin.end()) if begin else None
    if begin is None or end is None:
        return {}
    import yaml  # few sources have such a file

    from recordgen.formats.yolo import check_yaml

    text = head[begin.end() : end.start()]
    try:
        check_yaml(text)
        found = yaml.load(text, yaml.BaseLoader)  # all values are texts: no is a name
    except (yaml.YAMLError, ValueError):
        return {}
    infos = found.get("dataset_info") if isinstance(found, dict) else None
    classes: dict[str, Sequence[str]] = {}
    for info in infos if isinstance(infos, list) else [infos]:
        features = info.get("features") if isinstance(info, dict) else None
        for feature in features if isinstance(features, list) else ():
            if isinstance(feature, dict) and (names := class_names(feature)):
                classes.setdefault(str(feature.get("name")), names)
    return classes


def class_names(feature: Any) -> Sequence[str]:
    """Return the names of the first class label in a feature, which may be nested.

    The schema of a file has ``{"_type": "ClassLabel", "names": [...]}``, a README.md
    ``{"class_label": {"names": {"0": ...}}}``.
    """
    if isinstance(feature, list):
        if all(isinstance(it, dict) and "name" in it for it in feature):  # of a README.md
            return class_names({it["name"]: it for it in feature})
        return next(filter(None, map(class_names, feature)), ())
    if not isinstance(feature, dict):
        return ()
    label = feature if feature.get("_type") == "ClassLabel" else feature.get("class_label")
    names = label.get("names") if isinstance(label, dict) else None
    if isinstance(names, dict) and set(names) == set(map(str, range(len(names)))):
        names = [names[str(at)] for at in range(len(names))]
    if isinstance(names, list) and names and all(isinstance(it, str) for it in names):
        return tuple(name.strip() for name in names)
    inner = [feature[key] for key in CLASSES if key in feature] if "bbox" in feature else ()
    return next(filter(None, map(class_names, inner or feature.values())), ())


# --- numbers of classes in records ----------------------------------------------------------------

#: The column of the spans of a text.
ENTITIES = "entities"

# Columns that repeat what others say; the last ones beside entities only.
_REPEATED = (TEXT_SOURCE_ID, TOKENS, "ner_tags")


def without_repeats(record: Any, classes: Classes = NO_CLASSES) -> Any:
    """Return a record of a text without the columns that repeat what others say.

    ``classes`` are those that the schema names; a column beside them may repeat the names.
    """
    if not isinstance(record, Mapping):
        return record
    repeated = {*(_REPEATED if ENTITIES in record else _REPEATED[:1])}
    if LABEL in classes:
        repeated.add(LABEL_TEXT)
    return {name: value for name, value in record.items() if name not in repeated}


def classes_in(declared: Mapping[str, Any]) -> Classes:
    """Return the classes of the columns whose features Hugging Face declares."""
    flat = {name for name, it in declared.items() if isinstance(it, dict) and "_type" in it}
    names = {name: class_names(declared[name]) for name in declared if name in flat | {ENTITIES}}
    return {name: each for name, each in names.items() if each}


def with_names(record: Any, classes: Classes) -> Any:
    """Return a record with the names of classes for their numbers.

    It is what is wrong with it, if no class has one of the numbers.
    """
    if not isinstance(record, Mapping):
        return record
    try:
        known = {it: _with_name(it, record[it], classes[it]) for it in classes if it in record}
    except ValueError as exc:
        return str(exc)
    return {**record, **known}


def _with_name(column: str, value: Any, names: Sequence[str]) -> Any:
    if not isinstance(value, list):
        return "".join(labels_of(value, names))
    if column == ENTITIES:
        entities = (mapping(item, "an entity") for item in value)
        return [{**item, "label": named(item.get("label"), names)} for item in entities]
    return [named(item, names) for item in value if item not in (None, NO_LABEL)]
