"""TFRecords that already hold images: Recordgen's, the Object Detection API's, TFDS's.

    train.tfrecord   image/encoded: …, image/object/bbox/xmin: [0.4], …, …/class/text: [dog]

becomes the picture ``train.tfrecord/0/rex.jpg`` with the box of a dog. The image stays in the
record, from which its bytes are read: so a dataset gets other splits, shards and checks, and keeps
its images. Names: :mod:`recordgen.formats.tfrecord_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, ClassVar

from recordgen import features, storage
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.core.records import RECORDS
from recordgen.core.records.boxes import OBJECT_FEATURES, stored_boxes
from recordgen.core.records.example import parse_example
from recordgen.core.rows.details import Details, flagged
from recordgen.core.rows.picture import Marked, Picture
from recordgen.core.rows.ranges import Range, name_within
from recordgen.errors import RecordError, SourceError
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, PictureFormat, Problem
from recordgen.formats.tfrecord_names import Names, names_of
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.tasks import ImageClassification, ImageMultiLabel, ObjectDetection

_NAMES = re.compile(r"tf_?rec(ord)?s?\b|\.records?(-\d+-of-\d+)?$", re.IGNORECASE)
_FORMAT, _FILE_NAME = "image/format", "image/filename"
_TRUNCATED = "truncated"

# Features of the whole image, the first of which counts.
_LABELS = (features.IMAGE_CLASS_TEXT, features.IMAGE_CLASS_LABEL)

# Records of a file among which detection looks for a label.
_TRIED = 8

Values = Mapping[str, Sequence[Any]]


class TfRecordFiles(PictureFormat):
    """Records of images with labels or boxes."""

    name = "tfrecord"
    tasks: ClassVar = (ImageClassification.name, ImageMultiLabel.name, ObjectDetection.name)

    def detect(self, listing: Listing) -> Evidence | None:
        is_output = not listing.only and "" in listing.tree.datasets
        names = [listing.only] if listing.only else listing.others
        files: Sequence[str] = [name for name in names if _NAMES.search(name)]
        if not files and not is_output:
            return None
        dataset = _dataset_of(listing)
        if is_output:
            files = [shard.file for shard in dataset.shards] if dataset else []
        if not files:
            return None
        where = f"{listing.root}{files[0]}"
        try:
            first = next(_records(where), None)
        except SourceError:
            if listing.only or is_output:
                raise
            return None  # packed files among others
        if first is None:
            return None
        found = _names(listing, files[0], dataset)
        if found.image not in first:
            if not listing.only:
                return None
            raise SourceError(
                f"{where}: no feature is known to hold an image (features: {listed(first, str)}); "
                f"read such records with recordgen.read"
            )
        records = chain.from_iterable(_records(f"{listing.root}{name}") for name in files)
        task = self._task(where, found, records, dataset)
        in_order = (found.classes[number] for number in sorted(found.classes))
        classes = dataset.labels if dataset is not None else tuple(dict.fromkeys(in_order))
        reason = f"{files[0]} holds examples with {found.image}"
        return Evidence(reason, task, files, classes)

    def _task(
        self, where: str, names: Names, records: Iterator[Values], dataset: Dataset | None
    ) -> str:
        single, several, boxes = self.tasks
        if dataset is not None and dataset.task in self.tasks:
            return dataset.task
        seen: dict[str, None] = {}
        for record in records:  # the first ones may be without objects
            if names.boxes or any(name.startswith("image/object/") for name in record):
                return boxes
            if label := names.label or next((name for name in _LABELS if name in record), ""):
                return several if len(record.get(label, ())) > 1 else single
            seen.update(dict.fromkeys(record))
        raise SourceError(
            f"{where}: no feature is known to hold a label or boxes (features: "
            f"{listed(seen, str)}); write records with the names of the Object Detection API, "
            f"or read them with recordgen.read"
        )

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        names = _names(listing, document, _dataset_of(listing))
        path = f"{listing.root}{document}"
        if others := names.others:
            yield Note(
                0, f"only the image in {names.image} is read; skipped: {listed(others, str)}"
            )
        for number, found in enumerate(RECORDS.read_placed(path)):
            if isinstance(found, RecordError):
                is_cut = _TRUNCATED in str(found)
                code = RejectCode.TRUNCATED if is_cut else RejectCode.CORRUPT
                yield Problem(number + 1, str(found), f"{document}/{number}", code)
            else:
                yield _picture(names, document, number, *found)


def _dataset_of(listing: Listing) -> Dataset | None:
    """Return the dataset that a folder, or a file in it, belongs to, if Recordgen wrote one."""
    roots = [listing.root]
    if listing.only:
        roots.append(storage.folder_of(listing.root.rstrip("/")))
    for root in roots:
        if not storage.is_http(root) and storage.exists(storage.join(root, DATASET_FILE)):
            with suppress(SourceError):  # another program's file of this name
                return read_dataset(root)
    return None


def _records(path: str) -> Iterator[Values]:
    """Yield the features of the first records that can be read; none if it is no TFRecord.

    Raises: SourceError: the file is packed.
    """
    try:
        if RECORDS.is_gzip(path):
            raise SourceError(
                f"{path}: images are read from the records one by one, and this file is packed; "
                f"unpack it: gzip -d"
            )
        for found in islice(RECORDS.read_placed(path), _TRIED):
            if not isinstance(found, RecordError):
                yield parse_example(found[1])
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except ValueError:
        return


def _names(listing: Listing, document: str, dataset: Dataset | None) -> Names:
    return names_of(listing, document) if dataset is None else Names(is_own=True)


def _picture(
    names: Names, document: str, number: int, place: int, record: bytes
) -> Picture | Problem:
    uri = f"{document}/{number}"
    try:
        values: Values = parse_example(record)
        uri = _uri(names, document, number, values)
        if values.get(_FORMAT) == [features.RAW.encode()]:
            raise ValueError("the record holds raw pixels, and no image file")
        image = values.get(names.image, ())
        if len(image) != 1 or not isinstance(image[0], bytes):
            raise ValueError(f"expected one image in {names.image} (got {len(image)} values)")
        objects = _objects(names, values)
        labels = _labels(names, values)
    except ValueError as exc:
        return Problem(number + 1, str(exc), uri)
    payload = Range(document, place + record.find(image[0]), len(image[0]))
    return Picture(number + 1, uri, None, None, objects, labels, payload=payload)


def _uri(names: Names, document: str, number: int, values: Values) -> str:
    """Return the path of an image: its own in a dataset, else below that of its file."""
    candidates = (names.file, _FILE_NAME, features.IMAGE_SOURCE_ID)
    found = next((values[name] for name in candidates if values.get(name)), [b""])[0]
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    return text if names.is_own and text else name_within(document, number, text)


def _labels(names: Names, values: Values) -> Sequence[str]:
    label = names.label or next((name for name in _LABELS if values.get(name)), "")
    return [text for text in map(names.named, values.get(label, ())) if text]


def _objects(names: Names, values: Values) -> Sequence[Marked]:
    """Return the objects of an image, in shares. Raises: ValueError: one is no box."""
    if not names.boxes:
        if OBJECT_FEATURES[0] not in values:
            return ()
        boxes, texts = stored_boxes(values), values.get(features.IMAGE_OBJECT_TEXT)
        # Among texts, an empty one is no class, unless a label map names its number.
        found = [
            names.named(text) or names.classes.get(box.number, "")
            for box, text in zip(boxes, texts or (), strict=bool(texts))
        ] or [names.named(box.number) for box in boxes]
        pairs = zip(boxes, found, strict=True)
        return [Marked(label, box[2:6], box.details) for box, label in pairs]
    corners, labels = values.get(names.boxes, ()), values.get(names.box_label, ())
    if len(corners) != 4 * len(labels) or not all(isinstance(it, int | float) for it in corners):
        raise ValueError(
            f"expected four numbers in {names.boxes} for each {names.box_label} (got "
            f"{len(corners)} and {len(labels)})"
        )
    each = [corners[at : at + 4] for at in range(0, len(corners), 4)]
    flags = {word: values.get(name, ()) for name, word in names.flags.items()}
    if any(len(found) not in (0, len(labels)) for found in flags.values()):
        raise ValueError(f"expected a flag for each box in {listed(names.flags, str)}")
    details = [
        Details(flagged({word: found[at] for word, found in flags.items() if found}))
        for at in range(len(labels))
    ]
    return [
        Marked(names.named(label), (xmin, ymin, xmax, ymax), found)
        for label, (ymin, xmin, ymax, xmax), found in zip(labels, each, details, strict=True)
    ]
