"""TFRecords that already hold images: Recordgen's, the Object Detection API's, TFDS's.

    train.tfrecord   image/encoded: …, image/object/bbox/xmin: [0.4], …, …/class/text: [dog]

becomes the picture ``train.tfrecord/0/rex.jpg`` with the box of a dog. The image stays in the
record, from which its bytes are read: so a dataset gets other splits, shards and checks, and keeps
its images. Features have the names of one of these tools, or those that ``--columns`` gives::

    Recordgen, Object Detection API   image/encoded, image/class/label, image/object/bbox/xmin, …
    TensorFlow Datasets               image, label, objects/bbox, …, as features.json says

The Object Detection API's numbers begin at 1, with names in ``label_map.pbtxt``; those of
TensorFlow Datasets at 0, with names in ``label.labels.txt``.
"""

from __future__ import annotations

import glob
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

from recordgen import features, storage
from recordgen.core.dataset.manifest import SPLIT_PREFIX, Dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import Range, name_within
from recordgen.errors import NotUnderstoodError, RecordError, SourceError
from recordgen.features import FLAGS
from recordgen.formats import pictures
from recordgen.formats.format import Evidence
from recordgen.formats.header import NOTHING_GIVEN, Given, find_columns
from recordgen.formats.import_file import ImportFile
from recordgen.formats.json_values import json_value, mapping, text
from recordgen.formats.listing import HEAD_BYTES, Listing, dataset_of
from recordgen.formats.objects import IMAGE_NAMES, TASKS_OF_IMAGES, StoredFile, names_beside
from recordgen.formats.proposal import unknown_columns
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.subjects.objects import OBJECT_FEATURES, stored_boxes
from recordgen.subjects.picture import Marked, Picture
from recordgen.tables.columns import Table
from recordgen.tables.roles import LABEL_COLUMNS, SIZE_ROLES

# Names of features in other tools' records, which say their role.
_IMAGES = frozenset({"image", "img", "image_raw", "image_encoded", "image_bytes", "encoded"})
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

    @property
    def in_order(self) -> Sequence[str]:
        """The names of classes in the order of their numbers."""
        return [self.classes[number] for number in sorted(self.classes)]

    def classes_of(self, values: Sequence[Any]) -> Sequence[str]:
        """Return the labels of an image, each once. Raises: ValueError."""
        if len({*values}) < len(values):
            remedy = "write the numbers of its classes, not a 0 or 1 for each"
            raise ValueError(f"the labels of an image must differ (got {values!r:.80}); {remedy}")
        return [text for text in map(self.named, values) if text]

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
        return _declared(listing, path)
    for name in listing.others:
        if _LABEL_MAP.search(name.lower()) and posixpath.dirname(name) in ("", folder):
            return Names(classes=_label_map(listing.head(name).decode("utf-8", "replace")))
    return Names(classes=dict(enumerate(names_beside(listing, document))))


def flat_names(where: str, record: Values, names: Names) -> Names:
    """Return the names of features such as ``image`` and ``class``, if all of them are known.

    Raises: NotUnderstoodError.
    """
    images = find_columns(flat := [*record], _IMAGES)
    labels = find_columns(flat, LABEL_COLUMNS)
    files = find_columns(flat, IMAGE_NAMES)
    known = {*images, *labels, *files, *find_columns(flat, SIZE_ROLES)}
    if len(images) != 1 or len(labels) > 1 or len(known) < len(flat):
        raise not_understood(where, record)
    label, file = ("".join(flat[at] for at in each[:1]) for each in (labels, files))
    return replace(names, image=flat[images[0]], label=label, file=file)


def not_understood(where: str, record: Values, given: Given = NOTHING_GIVEN) -> NotUnderstoodError:
    """Return the refusal of records whose features are not all known."""
    images = [name for name, values in record.items() if _is_image(values)]
    others = [name for name in record if name not in images]
    remedy = "" if images else "; records without images are read with recordgen.read"
    what = f"TFRecords whose features have not all a known role ({', '.join(record):.300}){remedy}"
    return unknown_columns(where, what, images, others, given)


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


def _declared(listing: Listing, path: str) -> Names:
    try:
        head = listing.head(path)
        if len(head) >= HEAD_BYTES:
            raise ValueError(f"more than {HEAD_BYTES >> 10} KiB")
        kinds = dict(_kinds(mapping(json_value(head), "the features"), ""))
    except ValueError as exc:
        raise SourceError(f"{listing.root}{path}: this is no list of features: {exc}") from exc

    def of_kind(kind: str) -> list[str]:
        return [name for name, each in kinds.items() if each == kind]

    image, *others = of_kind("Image") or [""]
    boxes = "".join(of_kind("BBoxFeature")[:1])
    inside, labels = boxes.rpartition("/")[0], of_kind("ClassLabel")
    box_label = next((name for name in labels if boxes and name.rpartition("/")[0] == inside), "")
    labels = sorted((it for it in labels if it != box_label), key=lambda name: "/" in name)
    label = "".join(labels[:1])
    if image == features.IMAGE_ENCODED:  # Recordgen's own files, whose boxes have a list a side
        box_label = features.IMAGE_OBJECT_LABEL
        label = "" if label == box_label else label
    wanted = box_label or label
    file = next((name for name in kinds if name.rpartition("/")[2] in _FILE_NAMES), "")
    words = {f"{inside}/{prefix}{word}": word for word in FLAGS for prefix in ("", "is_")}
    flags = {name: word for name, word in words.items() if boxes and name in kinds}
    names = [f"{wanted.replace('/', sign)}.labels.txt" for sign in "-."]
    classes = dict(enumerate(names_beside(listing, path, files=names)))
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


_NAMES = re.compile(r"tf_?rec(ord)?s?\b|\.records?$|-\d{5}-of-\d{5}$", re.IGNORECASE)
_FORMAT, _FILE_NAME = "image/format", "image/filename"
_TRUNCATED = "truncated"
_RAW = "the record holds raw pixels, and no image file"

# The parts of an image in a record that say what it is, and where it is from.
_FILE = ("encoded", "format", "source_id")

# Features of the whole image, the first of which counts.
_LABELS = (features.IMAGE_CLASS_TEXT, features.IMAGE_CLASS_LABEL)

# Records of a file among which detection looks for a label.
_TRIED = 8


class TfRecordFiles(pictures.PictureFormat):
    """Records of images with labels or boxes."""

    name = "tfrecord"
    tasks = TASKS_OF_IMAGES
    has_roles = True

    def detect(self, listing: Listing, given: Given = NOTHING_GIVEN) -> Evidence | None:
        files = record_files(listing)
        dataset = dataset_of(listing) if files else None
        if not files or (dataset is not None and dataset.task not in self.tasks):
            return None
        where = f"{listing.root}{files[0]}"
        # A shard of an output may be empty.
        nothing = None if dataset is None else {features.IMAGE_ENCODED: ()}
        try:
            first = next(first_records(where), nothing)
        except SourceError:
            if listing.only or dataset is not None:
                raise
            return None  # packed files among others
        if first is None:
            return None
        if given.roles:
            raise not_understood(where, first, given)
        found = _names(listing, files[0], dataset)
        if found.image not in first:
            if listing.only:
                raise not_understood(where, first)
            return None
        records = chain.from_iterable(first_records(f"{listing.root}{name}") for name in files)
        reason = f"{files[0]} holds examples with {found.image}"
        if dataset is not None:
            return Evidence(reason, dataset.task, files, dataset.labels)
        return Evidence(reason, self._task(where, found, records), files, found.in_order)

    detect_given = detect

    def _task(self, where: str, names: Names, records: Iterator[Values]) -> str:
        single, several, boxes, masks = self.tasks
        seen: dict[str, None] = {}
        for record in records:  # the first ones may be without objects
            if names.boxes or any(name.startswith("image/object/") for name in record):
                return boxes
            if features.IMAGE_MASK_ENCODED in record:
                return masks
            if label := names.label or next((name for name in _LABELS if name in record), ""):
                return several if len(record.get(label, ())) > 1 else single
            seen.update(dict.fromkeys(record))
        what = f"no feature is known to hold a label or boxes ({listed(seen, str)})"
        remedy = "use names of the Object Detection API, or read records with recordgen.read"
        raise SourceError(f"{where}: {what}; {remedy}")

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        names = _names(listing, document, dataset_of(listing))
        path = f"{listing.root}{document}"
        listing.open(document).close()  # an error if there is no such file
        if others := names.others:
            yield pictures.Note(0, f"only {names.image} is read; skipped: {listed(others, str)}")
        make = partial(_picture, names, document)
        yield from pictures.examples(read_records(path, document), make)


def record_files(listing: Listing) -> Sequence[str]:
    """Return the TFRecords of a listing by their names, or the shards of an output.

    Raises: SourceError: an output lacks some of its shards.
    """
    if not listing.only and "" in listing.tree.datasets:
        dataset = dataset_of(listing)
        shards = [shard.file for shard in dataset.shards] if dataset else []
        pattern = storage.join(glob.escape(listing.root), f"{SPLIT_PREFIX}*", "*")
        there = {"/".join(path.split("/")[-2:]) for path in storage.list_files(pattern)}
        if dataset and (missing := [shard for shard in shards if shard not in there]):
            others = f"recordgen convert {shlex.quote(pattern)} NEW_FOLDER"
            images = f"; the images of the others: {others}" * (dataset.task in TASKS_OF_IMAGES)
            what = f"no such file, though dataset.json lists it: {listed(missing, str)}"
            remedy = f"restore it, or convert the source again{images}"
            raise SourceError(f"{listing.root}: {what}; {remedy}")
        return shards
    names = [listing.only] if listing.only else listing.others
    return [name for name in names if _NAMES.search(name)]


class StoredRecord(NamedTuple):
    """A record: where it begins in its file, its bytes, and its features."""

    place: int
    data: bytes
    values: Values

    def first(self, feature: str) -> Any:
        """Return the first value of a feature; no bytes without one."""
        return next(iter(self.values.get(feature, ())), b"")

    def range_of(self, path: str, part: bytes) -> Range:
        """Return where some of its bytes are in its file."""
        return Range(path, self.place + self.data.find(part), len(part))


def read_records(path: str, document: str, *, is_placed: bool = True) -> pictures.Numbered:
    """Yield the records with their numbers, from 1, and the problem of each damaged one.

    The places in a packed file, which is not ``is_placed``, mean nothing.
    """
    records: Iterable[Any] = enumerate(RECORDS.read(path))
    for number, record in enumerate(RECORDS.read_placed(path) if is_placed else records):
        uri = f"{document}/{number}"
        if isinstance(record, RecordError):
            code = RejectCode.TRUNCATED if _TRUNCATED in str(record) else RejectCode.CORRUPT
            yield pictures.Problem(number + 1, str(record), uri, code)
            continue
        try:
            place, data = record
            yield number + 1, StoredRecord(place, data, parse_example(data))
        except ValueError as exc:
            yield pictures.Problem(number + 1, str(exc), uri)


def named_records(
    file: ImportFile, images: Sequence[str], labels: Sequence[str]
) -> pictures.Numbered:
    """Yield the numbers and features of the records of a file, with the names of classes.

    Args:
        file: the file.
        images: the features that hold images.
        labels: those whose numbers may have names in a file beside it.
    """
    document = file.around.only
    names = names_of(file.around, document)

    def plain(line: int, record: StoredRecord) -> tuple[int, Any]:
        values: dict[str, Any] = {}
        with pictures.about(f"{document}/{line - 1}"):
            check_encoded(record.values)
            for name, each in record.values.items():
                each = [*map(names.named, each)] if name in labels else each
                values[name] = each[0] if len(each) == 1 else each or None
        uri = name_within(document, line - 1, file_name_in(names, record.values))
        for name in images:
            if isinstance(data := values.get(name), bytes):
                place = record.range_of(posixpath.basename(file.path), data)
                values[name] = StoredFile(None, uri, place)
        return line, values

    return pictures.examples(read_records(file.path, document), plain)


def copied_records(file: ImportFile, table: Table) -> pictures.Numbered:
    """Yield the numbers and values of the records of an output, with the places of images.

    Raises: SourceError: the file is packed, and has images; RecordError: a record is damaged.
    """
    if table.images:
        check_unpacked(file.path)
    names = {column.name: column.name for column in table.stored}
    if table.label is not None:
        names[table.label] = table.label_features[0]

    def plain(line: int, record: StoredRecord) -> tuple[int, Any]:
        values = {name: plain_value(record.values.get(key, ())) for name, key in names.items()}
        for image in table.images:
            data, kind, uri = (record.first(table.image_feature(image, part)) for part in _FILE)
            if not isinstance(data, bytes) or kind == features.RAW.encode():
                raise ValueError(_RAW)
            place = record.range_of(posixpath.basename(file.path), data)
            values[image] = StoredFile(None, str(plain_value([uri])), place)
        return line, values

    is_placed = not RECORDS.is_gzip(file.path)
    return pictures.examples(read_records(file.path, file.around.only, is_placed=is_placed), plain)


def plain_value(values: Sequence[Any]) -> Any:
    """Return the value of a feature, texts decoded: one, a list of several, or None."""
    texts = [it.decode("utf-8", "replace") if isinstance(it, bytes) else it for it in values]
    return texts[0] if len(texts) == 1 else texts or None


def check_unpacked(path: str) -> None:
    """Check that images can be read from the records of a file. Raises: SourceError: no."""
    if RECORDS.is_gzip(path):
        remedy = "unpack it: gzip -d, or copy an output with recordgen export parquet"
        raise SourceError(f"{path}: images are read one by one, and this file is packed; {remedy}")


def first_records(path: str) -> Iterator[Values]:
    """Yield the features of the first records that can be read; none if it is no TFRecord.

    Raises: SourceError: the file is packed.
    """
    try:
        check_unpacked(path)
        for found in islice(RECORDS.read_placed(path), _TRIED):
            if not isinstance(found, RecordError):
                yield parse_example(found[1])
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except ValueError:
        return


def _names(listing: Listing, document: str, dataset: Dataset | None) -> Names:
    """Return the names of features. Raises: SourceError: they are unknown."""
    if dataset is not None:
        return Names(is_own=True)
    names, where = names_of(listing, document), f"{listing.root}{document}"
    first = next(first_records(where), {})
    return names if names.image in first else flat_names(where, first, names)


def check_encoded(values: Values) -> None:
    """Check that a record holds an image file. Raises: ValueError: it holds pixels."""
    if values.get(_FORMAT) == [features.RAW.encode()]:
        raise ValueError(_RAW)


def _picture(names: Names, document: str, line: int, record: StoredRecord) -> Picture:
    """Return the image of a record. Raises: ValueError: it cannot be used."""
    values = record.values
    written = file_name_in(names, values)
    uri = written if names.is_own and written else name_within(document, line - 1, written)
    with pictures.about(uri):
        check_encoded(values)
        image = values.get(names.image, ())
        if len(image) != 1 or not isinstance(image[0], bytes):
            raise ValueError(f"expected one image in {names.image} (got {len(image)} values)")
        label = names.label or next((name for name in _LABELS if values.get(name)), "")
        labels = names.classes_of(values.get(label, ()))
        objects, size = _objects(names, values), None
        if features.IMAGE_OBJECT_AREA in values:  # in pixels, as nothing else of a record is
            sides = map(record.first, (features.IMAGE_WIDTH, features.IMAGE_HEIGHT))
            size = pictures.size_of(*sides)
            objects = [each.scaled(*size) for each in objects] if size else objects
        mask = values.get(features.IMAGE_MASK_ENCODED, ())[:1]
        if not all(isinstance(data, bytes) for data in mask):
            raise ValueError(f"expected a mask, which is bytes (got {mask[0]!r:.80})")
    files = [record.range_of(document, data) for data in (image[0], *mask)]
    is_silent = values.keys().isdisjoint({names.boxes, *features.BBOX})
    masked = None if is_silent else ""
    return Picture(line, uri, None, size, objects, labels, payloads=files, mask=masked)


def file_name_in(names: Names, values: Values) -> str:
    """Return the name of the image file that a record says; "" if it says none."""
    candidates = (names.file, _FILE_NAME, features.IMAGE_SOURCE_ID)
    found = next((values[name] for name in candidates if values.get(name)), [b""])[0]
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _objects(names: Names, values: Values) -> Sequence[Marked]:
    """Return the objects of an image, in shares. Raises: ValueError: one is no box."""
    if names.boxes:
        values = _with_own_names(names, values)
    if OBJECT_FEATURES[0] not in values:
        return ()
    boxes, texts = stored_boxes(values), values.get(features.IMAGE_OBJECT_TEXT)
    # Among texts, an empty one is no class, unless a label map names its number.
    found = [
        names.named(text) or names.classes.get(box.number, "")
        for box, text in zip(boxes, texts or (), strict=bool(texts))
    ] or [names.named(box.number) for box in boxes]
    # As they were written: those beside the image are the task's to judge.
    corners = zip(*(values[side] for side in features.BBOX), strict=True)
    objects = zip(found, corners, boxes, strict=True)
    return [Marked(label, four, box.details) for label, four, box in objects]


def _with_own_names(names: Names, values: Values) -> Values:
    """Return the boxes of TensorFlow Datasets as features of the Object Detection API."""
    corners, labels = values.get(names.boxes, ()), values.get(names.box_label, ())
    if len(corners) != 4 * len(labels):
        expected = f"four numbers in {names.boxes} for each {names.box_label}"
        raise ValueError(f"expected {expected} (got {len(corners)} and {len(labels)})")
    # They are ymin, xmin, ymax, xmax.
    sides = {side: corners[at::4] for side, at in zip(features.BBOX, (1, 0, 3, 2), strict=True)}
    flags = {f"image/object/{word}": values.get(name, ()) for name, word in names.flags.items()}
    return {**sides, **flags, features.IMAGE_OBJECT_LABEL: labels}
