"""Image classification: one label per image, or any number: ``[ML_USE],PATH,[LABEL1,…,LABELn]``.

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

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import (
    AnnotationError,
    Merged,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
)
from recordgen.core.task.annotations import ONE, SEVERAL
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.images.image_task import Described, ImageTask, StoredImage
from recordgen.tasks.lines import add_up, display_name, display_names, label_features

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture


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
        return Described(annotation, labels, label_features(labels, stored.vocabulary, names))

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
    sample = "pipelines.samples.digits:DIGITS"
    page = "docs/tasks/image_classification.md"

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        if not fields:
            return None
        if len(fields) > 1:
            raise AnnotationError(
                RejectCode.TOO_MANY_FIELDS,
                f"expected {self.expected}, one label per image (got {len(fields)} after the "
                f"path); quote a field that holds a comma; for several labels per image, use "
                f"--task image_multi_label",
            )
        return check_label(fields[0]) or None

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        one = record.get("classificationAnnotation")
        return None if one is None else display_name(one, "classificationAnnotation")

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

    def shown(self, annotation: str) -> str:
        return repr(annotation)


class ImageMultiLabel(LabelledImage):
    """Image classification with any number of labels per image; those of its rows are merged."""

    name = "image_multi_label"
    expected = "[ML_USE],PATH,[LABEL1,…,LABELn]"
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.IMAGE_MULTI_LABEL
    labelling = SEVERAL
    trainer = "recordgen.tasks.images.training:ManyImageLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"
    sample = "pipelines.samples.digits:DIGIT_GROUPS"
    page = "docs/tasks/image_multi_label.md"

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        return self.encoded(map(check_label, fields))

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        return self.encoded(display_names(record, *self.json_keys))

    @classmethod
    def encoded(cls, labels: Iterable[str]) -> str | None:
        distinct = sorted({label for label in labels if label})
        return json.dumps(distinct, ensure_ascii=False) if distinct else None

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        labels, duplicates = add_up(map(_decode, annotations))
        return Merged(self.encoded(labels), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_decode(annotation)) <= set(_decode(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return _decode(annotation)


def _decode(annotation: str | None) -> Sequence[str]:
    return [] if annotation is None else list(json.loads(annotation))
