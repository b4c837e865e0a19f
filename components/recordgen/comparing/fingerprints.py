"""Fingerprints of records: hashes of their parts, and the values that are shown.

    image/source_id: a.jpg, image/class/text: cat, image/key/sha256: 9f86…
    → key: hash of "a.jpg", payload: 0x9f86…, label: hash of ["cat"]

Numbers of labels are not included: the vocabulary is compared separately. Features that follow from
others, such as an image's height, are not included either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from recordgen import features
from recordgen.dataset.manifest import Dataset
from recordgen.masking import without_secrets
from recordgen.records.wire import canonical, feature_spans, feature_values, first_bytes
from recordgen.tables.columns import Table
from recordgen.tables.schema import Schema

#: Hash of a missing part.
NOTHING = 0

_URIS = (features.IMAGE_SOURCE_ID, features.TEXT_SOURCE_ID, features.VIDEO_SOURCE_ID)

# Features with labels as text, and with their numbers, for records without the texts.
_LABELS: Mapping[str, str] = {
    features.IMAGE_CLASS_TEXT: features.IMAGE_CLASS_LABEL,
    features.CLASS_TEXT: features.CLASS_LABEL,
    features.VIDEO_CLASS_TEXT: features.VIDEO_CLASS_LABEL,
    features.IMAGE_OBJECT_TEXT: features.IMAGE_OBJECT_LABEL,
    features.ENTITY_TEXT: features.ENTITY_LABEL,
}

# Boxes, entities and segments: features of their labels and positions; a segment has no own label.
_ANNOTATIONS: Sequence[tuple[str, Sequence[str]]] = (
    (features.IMAGE_OBJECT_TEXT, features.BBOX),
    (features.ENTITY_TEXT, (features.ENTITY_START, features.ENTITY_END)),
    ("", (features.VIDEO_SEGMENT_START, features.VIDEO_SEGMENT_END)),
)

_SIDES = (features.IMAGE_WIDTH, features.IMAGE_HEIGHT)
_MAX_SIDE = (1 << 32) - 1

# All other features are compared byte by byte.
_KNOWN = frozenset(
    {
        *_URIS,
        *_LABELS,
        *_LABELS.values(),
        *(name for _, places in _ANNOTATIONS for name in places),
        features.IMAGE_ENCODED,
        features.IMAGE_FORMAT,
        features.IMAGE_HEIGHT,
        features.IMAGE_WIDTH,
        features.IMAGE_CHANNELS,
        features.IMAGE_SHA256,
        features.TEXT,
        features.TAGS_TEXT,
        features.TAGS_LABEL,
        features.VIDEO_URI,
    }
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The features of a dataset that need special treatment.

    Attributes:
        is_table: whether records have no uri, so that all features except the target identify them.
        label: the feature with the label or target of a table; None for images, texts and videos.
        number: the feature with the label's number.
        has_classes: whether labels are classes that can be counted, not amounts.
    """

    is_table: bool = False
    label: str | None = None
    number: str | None = None
    has_classes: bool = True

    @classmethod
    def of(cls, dataset: Dataset | None) -> Layout:
        """Return the layout of a dataset, or of other tools' files if it is None."""
        if dataset is None or dataset.task not in ("tabular", "declared"):
            return cls()
        if dataset.task == "tabular":
            table = Table.from_json(dataset.options["table"])
            return cls(True, table.target, has_classes=table.has_labels)
        table = Schema.from_json(dataset.options["schema"]).table
        label, number = table.label_features if table.label is not None else (table.target, None)
        return cls(table.only_image is None, label, number, table.has_labels)


class Fingerprint(NamedTuple):
    """The fingerprint of one record; the first five are hashes of 64 bits.

    Attributes:
        key: the uri, or else the content; rows are matched by it.
        payload: the image's or text's bytes; the inputs of a table's row; the uri of a video.
        label: the labels, in any order.
        annotation: the boxes, entities or segment, in any order.
        rest: all other features.
        uri: uri of the payload; empty if it has none.
        labels: the labels, each once, sorted.
        objects: number of boxes or entities.
        width: width of the image in pixels, or length of the text in bytes; 0 if unknown.
        height: height of the image in pixels; 0 if unknown, or if the payload is not an image.
    """

    key: int
    payload: int
    label: int
    annotation: int
    rest: int
    uri: str
    labels: Sequence[str]
    objects: int
    width: int
    height: int


def fingerprint(record: bytes, layout: Layout) -> Fingerprint:
    """Return the fingerprint of a serialised ``tf.train.Example``.

    Raises:
        ValueError: the bytes are not an Example.
    """
    try:
        return _fingerprint(_Record(record), layout)
    except (ValueError, IndexError):
        # Another encoding of an Example, or not an Example.
        return _fingerprint(_Record(canonical(record)), layout)


class _Record:
    """A record whose features are read on demand."""

    def __init__(self, data: bytes) -> None:
        self.spans = feature_spans(data)
        self._data = data

    def values(self, name: str | None) -> Sequence[Any]:
        """Return the values of a feature; empty if it is missing."""
        return feature_values(self._data, self.spans[name]) if name in self.spans else ()

    def bytes(self, name: str) -> memoryview | None:
        """Return the first value of a feature without a copy; None if there are no bytes."""
        try:
            start, end = first_bytes(self._data, self.spans[name])
        except (KeyError, ValueError, IndexError):
            return None
        return memoryview(self._data)[start:end]

    def hash(self, names: Iterable[str]) -> int:
        """Return the hash of the stored bytes of features, in the order of their names."""
        state = blake2b(digest_size=8)
        for name in sorted(names):
            start, end = self.spans[name]
            key = name.encode()
            state.update(b"%d %d %b" % (len(key), end - start, key))
            state.update(self._data[start:end])
        return _short(state.digest())


def _fingerprint(record: _Record, layout: Layout) -> Fingerprint:
    if layout.is_table:
        labels = _shown(record.values(layout.label))
        key = record.hash(record.spans.keys() - {layout.label, layout.number})
        return Fingerprint(key, key, _hash(labels), NOTHING, NOTHING, "", labels, 0, 0, 0)
    uri = next((value for name in _URIS for value in record.values(name)), b"")
    text = without_secrets(uri.decode("utf-8", "replace") if isinstance(uri, bytes) else str(uri))
    labels = _labels(record, layout)
    payload, width, height = _payload(record, text)
    annotation, objects = _annotation(record)
    others = [name for name in record.spans if name not in _KNOWN and name != layout.label]
    rest = record.hash(others) if others else NOTHING
    if payload is None:
        payload = rest
    key = _hash_text(text) if text else payload
    return Fingerprint(
        key, payload, _hash(labels), annotation, rest, text, labels, objects, width, height
    )


def _payload(record: _Record, uri: str) -> tuple[int | None, int, int]:
    """Return the hash of the payload, its width and its height; None if no feature is one."""
    if (image := record.bytes(features.IMAGE_ENCODED)) is not None:
        width, height = (_side(record, name) for name in _SIDES)
        return _image_hash(image, record.bytes(features.IMAGE_SHA256)), width, height
    if (text := record.bytes(features.TEXT)) is not None:
        return _short(sha256(text).digest()), len(text), 0
    if uri and features.VIDEO_SOURCE_ID in record.spans:
        return _hash_text(uri), 0, 0
    return None, 0, 0


def _side(record: _Record, name: str) -> int:
    """Return an image's width or height; 0 if unknown."""
    value = next(iter(record.values(name)), 0)
    return min(max(value, 0), _MAX_SIDE) if isinstance(value, int) else 0


def _image_hash(image: memoryview, known: memoryview | None) -> int:
    """Return the first 64 bits of the image's sha256, which most records hold in hex."""
    try:
        if known is not None and len(known) == 64:
            return int(bytes(known[:16]), 16)
    except ValueError:
        pass  # another tool stores another key
    return _short(sha256(image).digest())


def _labels(record: _Record, layout: Layout) -> Sequence[str]:
    if layout.label is not None:
        return _shown(record.values(layout.label))
    names = (*_LABELS, *_LABELS.values())
    found = next((name for name in names if name in record.spans), None)
    values = record.values(found)
    if found in _LABELS.values():  # numbers of labels
        values = [value for value in values if value != features.NO_LABEL]
    return _shown(values)


def _annotation(record: _Record) -> tuple[int, int]:
    """Return the hash of boxes, entities or a segment, and the number of boxes or entities."""
    for label, places in _ANNOTATIONS:
        if places[0] in record.spans:
            columns = [record.values(name) for name in (label, *places) if name in record.spans]
            items = sorted(zip(*columns, strict=False))
            return _hash(map(repr, items)), len(items) if label else 0
    return NOTHING, 0


def _shown(values: Iterable[Any]) -> Sequence[str]:
    """Return values as text, each once, sorted, without empty texts."""
    texts = {
        value.decode("utf-8", "replace")
        if isinstance(value, bytes)
        else f"{value:.7g}"  # float32 has no more digits
        if isinstance(value, float)
        else str(value)
        for value in values
    }
    return tuple(sorted(texts - {""}))


def _hash(texts: Iterable[str]) -> int:
    found = list(texts)
    return _hash_text("\0".join((str(len(found)), *found))) if found else NOTHING


def _hash_text(text: str) -> int:
    return _short(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _short(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big")
