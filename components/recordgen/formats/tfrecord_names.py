"""The names of features in TFRecords of images, and of the classes behind numbers.

    Recordgen, Object Detection API   image/encoded, image/class/label, image/object/bbox/xmin, …
    TensorFlow Datasets               image, label, objects/bbox, …, as features.json says

The Object Detection API's numbers begin at 1, with names in ``label_map.pbtxt``; those of
TensorFlow Datasets at 0, with names in ``label.labels.txt``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from recordgen import features
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.features import FLAGS
from recordgen.formats.column_names import SPLIT_COLUMNS, column_name, find_columns
from recordgen.formats.given_columns import GivenColumns
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.json_values import json_value, mapping, text
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.formats.objects import names_beside
from recordgen.tables.roles import LABEL_COLUMNS, MASK_COLUMNS, SIZE_ROLES

# Names of features in other tools' records, which say their role.
_IMAGES = frozenset({"image", "img", "image_raw", "image_encoded", "image_bytes", "encoded"})
_IMAGE_NAMES = frozenset({"id", "image_id", "image_name", "file_name", "filename", "source_id"})
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM")

_FEATURES_FILE = "features.json"
_LABEL_MAP = re.compile(r"label_?map\.pbtxt$")
_ITEM = re.compile(r"\bitem\s*\{")
_ID = re.compile(r"\bid\s*:\s*(\d{1,6})")
_NAME = re.compile(r"""\b(display_name|name)\s*:\s*(?:"([^"]*)"|'([^']*)')""")

Values: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Names:
    """Which features hold the image, its label and its boxes.

    Attributes:
        image: the bytes of the image file.
        label: the label of the whole image, its number or text; "" if there is none.
        boxes: the corners in one list, for each box ymin, xmin, ymax and xmax; "" for the Object
            Detection API's lists.
        box_label: with ``boxes``, the number of each box's class.
        classes: the names of classes by number.
        flags: the word of each list with a flag of each box: ``objects/is_crowd``, ``is_crowd``.
        others: features with more images, which are not read.
        given: the features that options name, which are read instead of the others.
        is_own: a dataset of Recordgen has the records, so that its uri identifies an image.
    """

    image: str = features.IMAGE_ENCODED
    label: str = ""
    boxes: str = ""
    box_label: str = ""
    file: str = ""
    classes: Mapping[int, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    is_own: bool = False
    given: GivenColumns = GivenColumns(NOTHING_GIVEN)  # noqa: RUF009  # it is frozen

    def labels_in(self, values: Sequence[Any] | None) -> Sequence[str]:
        """Return the labels of texts and numbers. Raises: ValueError."""
        return [text for text in map(self.named, values or ()) if text]

    def named(self, number: Any) -> str:
        """Return the label of a number or a text. Raises: ValueError: no class has the number."""
        if isinstance(number, bytes):
            return number.decode("utf-8").strip()
        if not isinstance(number, int):
            raise ValueError(f"a label must be a text or a whole number (got {number!r:.80})")
        if number == features.NO_LABEL:
            return ""
        if self.classes and number not in self.classes:
            raise ValueError(f"the class is {number}, but the names end at {max(self.classes)}")
        return self.classes.get(number, str(number))


def names_of(listing: Listing, document: str) -> Names:
    """Return the names of the features in a file. Raises: SourceError: features.json is damaged."""
    folder = posixpath.dirname(document)
    path = posixpath.join(folder, _FEATURES_FILE)
    if path in listing:
        return _declared(listing, folder, path)
    for name in listing.others:
        if _LABEL_MAP.search(name.lower()) and posixpath.dirname(name) in ("", folder):
            found = _label_map(listing.head(name).decode("utf-8", "replace"))
            return Names(classes=found)
    return Names(classes=dict(enumerate(names_beside(listing, document))))


def flat_names(where: str, record: Values, names: Names) -> Names:
    """Return the names of features such as ``image`` and ``class``, if all of them are known.

    Raises: NotUnderstoodError.
    """
    images = find_columns(flat := [*record], _IMAGES)
    labels = find_columns(flat, LABEL_COLUMNS)
    files = find_columns(flat, _IMAGE_NAMES)
    known = {*images, *labels, *files, *find_columns(flat, SIZE_ROLES)}
    if len(images) != 1 or len(labels) > 1 or len(known) < len(flat):
        raise not_understood(where, record)
    label, file = ("".join(flat[at] for at in each[:1]) for each in (labels, files))
    return replace(names, image=flat[images[0]], label=label, file=file)


def not_understood(where: str, record: Values) -> NotUnderstoodError:
    """Return the refusal of records whose features are not all known."""
    kinds = {name: column_name(name.rpartition("/")[2]) for name in record}
    images = [name for name, values in record.items() if _is_image(values)]
    others = [name for name in record if name not in images]
    masks = [name for name in images if kinds[name] in MASK_COLUMNS]
    images = [name for name in images if name not in masks]
    splits = [name for name in others if kinds[name] in SPLIT_COLUMNS]
    labels = [name for name in others if kinds[name] in LABEL_COLUMNS]
    roles = {"image": images, "split": splits, "mask": masks, "label": [] if masks else labels}
    columns = ",".join(f"{role}={found[0]}" for role, found in roles.items() if found)
    remedy = "" if images else "; records without images are read with recordgen.read"
    return NotUnderstoodError(
        f"{where}: TFRecords whose features have not all a known role ({', '.join(record):.300})"
        f"{remedy}",
        options={"columns": columns} if images else None,
    )


def _is_image(values: Sequence[Any]) -> bool:
    return len(values) == 1 and isinstance(values[0], bytes) and values[0].startswith(_MAGIC)


def _label_map(text: str) -> dict[int, str]:
    """Return the names of a label map: ``item { id: 1 name: 'cat' }``."""
    found = {}
    for item in _ITEM.split(text)[1:]:
        texts = {key: one or other for key, one, other in _NAME.findall(item)}
        number = _ID.search(item)
        if number and texts:
            found[int(number[1])] = texts.get("display_name") or texts.get("name", "")
    return found


def _declared(listing: Listing, folder: str, path: str) -> Names:
    head = listing.head(path)
    try:
        if len(head) >= HEAD_BYTES:
            raise ValueError(f"more than {HEAD_BYTES >> 10} KiB")
        kinds = dict(_kinds(mapping(json_value(head), "the features"), ""))
    except ValueError as exc:
        raise SourceError(f"{listing.root}{path}: this is no list of features: {exc}") from exc

    def first(kind: str, inside: str | None = None) -> str:
        names = (name for name, each in kinds.items() if each == kind)
        return next((n for n in names if inside is None or n.rpartition("/")[0] == inside), "")

    image, boxes = first("Image"), first("BBoxFeature")
    inside = boxes.rpartition("/")[0]
    box_label = first("ClassLabel", inside) if boxes else ""
    labels = [name for name, kind in kinds.items() if kind == "ClassLabel" and name != box_label]
    label = next((name for name in labels if "/" not in name), labels[0] if labels else "")
    if image == features.IMAGE_ENCODED:  # Recordgen's own files, whose boxes have a list a side
        box_label = features.IMAGE_OBJECT_LABEL
        label = "" if label == box_label else label
    wanted = box_label or label
    file = next((name for name in kinds if name.rpartition("/")[2] in _FILE_NAMES), "")
    words = {f"{inside}/{prefix}{word}": word for word in FLAGS for prefix in ("", "is_")}
    flags = {name: word for name, word in words.items() if boxes and name in kinds}
    others = [name for name, kind in kinds.items() if kind == "Image" and name != image]
    classes = _classes(listing, folder, wanted)
    return Names(image, label, boxes, box_label, file, classes, flags, others)


_FILE_NAMES = ("filename", "file_name", "source_id")


def _kinds(node: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield each feature and its kind: ``objects/bbox``, ``BBoxFeature``. Raises: ValueError."""
    kind = text(node.get("pythonClassName"), "pythonClassName").rpartition(".")[2]

    def inside(key: str, inner: str) -> Mapping[str, Any]:
        return mapping(mapping(node.get(key), key).get(inner), inner)

    if kind == "FeaturesDict":
        for key, each in inside("featuresDict", "features").items():
            yield from _kinds(mapping(each, key), f"{name}/{key}" if name else key)
    elif kind in ("Sequence", "Dataset"):
        yield from _kinds(inside("sequence", "feature"), name)
    else:
        yield name, kind


def _classes(listing: Listing, folder: str, name: str) -> Mapping[int, str]:
    for separator in ("-", "."):
        path = posixpath.join(folder, f"{name.replace('/', separator)}.labels.txt")
        if name and path in listing:
            lines: Sequence[str] = listing.head(path).decode("utf-8", "replace").splitlines()
            return dict(enumerate(line.strip() for line in lines))
    return {}
