"""The base of all image tasks, whose payload is an image file, and image classification.

One label per image, or any number: ``[ML_USE],PATH,[LABEL1,…,LABELn]``.

Vertex AI "Prepare image training data for classification", single-label and multi-label::

    TRAIN,gs://bucket/1.jpg,cat
    {"imageGcsUri": "gs://bucket/1.jpg", "classificationAnnotation": {"displayName": "cat"}}

    TRAIN,gs://bucket/1.jpg,cat,dog
    {"imageGcsUri": "gs://bucket/1.jpg",
     "classificationAnnotations": [{"displayName": "cat"}, {"displayName": "dog"}]}

become ``image/class/text: [b"cat", b"dog"]`` and ``image/class/label: [0, 1]``, in the order of the
vocabulary. The annotation is the label, or a sorted JSON list of labels.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from recordgen import features
from recordgen.core.dataset.counts import record_line
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.records.example import FeatureValue, parse_example, serialize_example
from recordgen.core.rows.row import Adjustments, requested_uris
from recordgen.core.task.annotation import (
    Merged,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
)
from recordgen.core.task.task import HAS, ONE, SEVERAL, BuiltExample, FetchedRow, Task, each_row
from recordgen.messages import listed
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import lines

if TYPE_CHECKING:
    from recordgen.payloads.reencoding import CheckedImage
    from recordgen.subjects.picture import Picture


class StoredImage(NamedTuple):
    """The image of a row, and what its example is made with.

    Attributes:
        image: the image as it is stored.
        others: the row's payloads after its image.
        settings: how to check and change payloads.
        changes: counts changes, see :class:`recordgen.core.task.task.Tally`.
    """

    image: CheckedImage
    others: Sequence[bytes]
    vocabulary: Vocabulary
    settings: PayloadSettings
    changes: defaultdict[str, int]


class Described(NamedTuple):
    """What an example holds besides its image.

    Attributes:
        annotation: the annotation of the stored image, or None.
        digested: what it adds to the shard's digest besides image, uri and annotation.
    """

    annotation: str | None = None
    labels: Sequence[str] = ()
    features: Mapping[str, FeatureValue] = {}
    digested: bytes = b""


_NOT_DESCRIBED = Described()


class ImageTask(Task):
    """A task whose payloads are images."""

    kind = "image"
    noun = "image"
    batch_rows = 16
    facts: ClassVar[Collection[str]] = (IMAGES, MEASURES)
    uri_key = "imageGcsUri"
    csv_parser = "recordgen.formats.automl_csv:LineParser"
    reading = "recordgen.reading.kinds:IMAGES"
    pairing: ClassVar[str | None] = "recordgen.tasks.pairing:images"

    def from_record(self, record: Mapping[str, Any], adjusted: Adjustments) -> Sequence[RowContent]:
        uri = lines.uri_in(record, self.uri_key, self.noun)
        return [RowContent(uri, self.from_json(record, adjusted))]

    @abstractmethod
    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        """Return the annotation in a line of a JSONL file.

        Args and Raises: as :meth:`from_fields`; ``record`` is the parsed line.
        """

    @classmethod
    @abstractmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        """Return the exact annotation from which features were made, or None."""

    @abstractmethod
    def described(self, annotation: str, stored: StoredImage) -> Described:
        """Return what the annotation of the original payload adds to its example.

        It is decoded here, and only here: the stored image may be turned, cropped or padded.

        Raises: PayloadError: the annotation does not fit this image.
        """

    @each_row
    def make(self, fetched: FetchedRow) -> BuiltExample:
        row, payloads, vocabulary, settings = fetched
        # Imported here: reading import files does not need the decoders.
        from recordgen.core.rows.row import stored_bytes
        from recordgen.payloads.check import check_image
        from recordgen.payloads.opening import out_of_memory

        data, *others = payloads
        [address, *_] = requested_uris([row.uri], row.addresses)
        image = check_image(data, settings, stored_bytes(address, data))
        changes = defaultdict[str, int](int)
        said = _NOT_DESCRIBED
        if row.annotation is not None:
            stored = StoredImage(image, others, vocabulary, settings, changes)
            try:
                said = self.described(row.annotation, stored)
            except MemoryError as exc:
                raise out_of_memory() from exc
        for name in said.features:
            if name in features.OBJECTS:
                changes[f"{HAS}{name}"] += 1
        sha256 = hashlib.sha256(image.data)
        hexdigest = sha256.hexdigest()
        is_raw = image.format == features.RAW
        record = serialize_example(
            {
                features.IMAGE_ENCODED: image.data,
                features.IMAGE_FORMAT: image.format.encode(),
                features.IMAGE_HEIGHT: image.height,
                features.IMAGE_WIDTH: image.width,
                features.IMAGE_SOURCE_ID: row.uri.encode(),
                features.IMAGE_SHA256: hexdigest.encode(),
                **({features.IMAGE_CHANNELS: features.RAW_CHANNELS} if is_raw else {}),
                **said.features,
            }
        )
        return BuiltExample(
            record,
            said.labels,
            record_line(hexdigest, said.annotation, row.uri) + said.digested,
            image.reencoded,
            image.note,
            sha256.digest(),
            image.small,
            changes=changes,
        )

    @classmethod
    def digested(cls, record: bytes) -> bytes:
        values: Mapping[str, Any] = parse_example(record)
        names = features.IMAGE_SHA256, features.IMAGE_SOURCE_ID
        [sha256], [uri] = (values.get(name, [b""]) for name in names)
        for image in values.get(features.IMAGE_ENCODED, ()):
            if hashlib.sha256(image).hexdigest() != sha256.decode():
                raise ValueError(f"the image of {lines.stored_uri(uri)} was changed")
        return record_line(sha256.decode(), cls.from_features(values), lines.stored_uri(uri))


class LabelledImage(ImageTask):
    """A task whose annotations are labels of the whole image."""

    columns: ClassVar = {"label": LABEL_COLUMNS}

    @classmethod
    @abstractmethod
    def encoded(cls, labels: Iterable[str]) -> str | None:
        """Return the annotation of labels, which may repeat; None without any.

        Raises: AnnotationError: the task does not allow so many.
        """

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        labels = map(check_label, picture.labels)
        return RowContent(check_uri(picture.uri), self.encoded(labels))

    def described(self, annotation: str, stored: StoredImage) -> Described:
        labels = self.labels(annotation)
        names = features.IMAGE_CLASS_TEXT, features.IMAGE_CLASS_LABEL
        return Described(annotation, labels, stored.vocabulary.features(labels, names))

    @classmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        texts: Sequence[bytes] = values.get(features.IMAGE_CLASS_TEXT, ())
        return cls.encoded(text.decode() for text in texts)


class ImageClassification(LabelledImage):
    """Image classification with at most one label per image."""

    name = "image_classification"
    expected = "[ML_USE],PATH,[LABEL]"
    json_keys = ("classificationAnnotation",)
    features: ClassVar = features.IMAGE_CLASSIFICATION
    labelling = ONE
    trainer = "recordgen.tasks.images.training:OneImageLabel"
    measure = "recordgen.training.measures:OneLabelAccumulator"

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        if not fields:
            return None
        if len(fields) > 1:
            raise lines.too_many_fields(
                f"expected {self.expected}, one label per image (got {len(fields)} after the "
                f"path); quote a field that holds a comma; for several labels per image, use "
                f"--task image_multi_label"
            )
        return check_label(fields[0]) or None

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        one = record.get("classificationAnnotation")
        return None if one is None else lines.display_name(one, "classificationAnnotation")

    @classmethod
    def encoded(cls, labels: Iterable[str]) -> str | None:
        distinct = sorted(set(labels))
        if len(distinct) > 1:
            raise bad_annotation(
                f"expected one label per image (got {listed(distinct, repr)}); for several labels "
                f"per image, use --task image_multi_label"
            )
        return distinct[0] if distinct else None

    def labels(self, annotation: str) -> Sequence[str]:
        return (annotation,)


class ImageMultiLabel(LabelledImage):
    """Image classification with any number of labels per image; those of its rows are merged."""

    name = "image_multi_label"
    expected = "[ML_USE],PATH,[LABEL1,…,LABELn]"
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.IMAGE_MULTI_LABEL
    labelling = SEVERAL
    trainer = "recordgen.tasks.images.training:ManyImageLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        return self.encoded(map(check_label, fields))

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        return self.encoded(lines.display_names(record, *self.json_keys))

    @classmethod
    def encoded(cls, labels: Iterable[str]) -> str | None:
        distinct = sorted({label for label in labels if label})
        return json.dumps(distinct, ensure_ascii=False) if distinct else None

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        labels, duplicates = lines.add_up(map(_decode, annotations))
        return Merged(self.encoded(labels), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_decode(annotation)) <= set(_decode(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return _decode(annotation)


def _decode(annotation: str | None) -> Sequence[str]:
    return [] if annotation is None else list(json.loads(annotation))
