"""Image classification, any number of labels per image: ``[ML_USE],PATH,[LABEL1,…,LABELn]``.

Vertex AI "Prepare image training data for classification", multi-label::

    TRAIN,gs://bucket/1.jpg,cat,dog
    {"imageGcsUri": "gs://bucket/1.jpg",
     "classificationAnnotations": [{"displayName": "cat"}, {"displayName": "dog"}]}

become ``image/class/text: [b"cat", b"dog"]`` and ``image/class/label: [0, 1]``, in the order of the
vocabulary. The labels of an image's rows are merged. The annotation is a sorted JSON list of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import FeatureValue
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import Merged, RowContent, check_label, check_uri
from recordgen.core.task.annotations import SEVERAL
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.images.image_task import LabelledImage
from recordgen.tasks.lines import add_up, display_names

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture


class ImageMultiLabel(LabelledImage):
    """Image classification with any number of labels per image."""

    name = "image_multi_label"
    expected = "[ML_USE],PATH,[LABEL1,…,LABELn]"
    columns: ClassVar = {"label": LABEL_COLUMNS}
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.IMAGE_MULTI_LABEL
    labelling = SEVERAL
    trainer = "recordgen.tasks.images.training:ManyImageLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"
    sample = "pipelines.samples.digits:DIGIT_GROUPS"
    page = "docs/tasks/image_multi_label.md"

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        return _encode(map(check_label, fields))

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        return _encode(display_names(record, *self.json_keys))

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        return RowContent(check_uri(picture.uri), _encode(map(check_label, picture.labels)))

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        found, duplicates = add_up(map(_decode, annotations))
        return Merged(_encode(found), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(_decode(annotation)) <= set(_decode(stored))

    def labels(self, annotation: str) -> Sequence[str]:
        return _decode(annotation)

    def to_features(self, annotation: str, vocabulary: Vocabulary) -> Mapping[str, FeatureValue]:
        numbered = sorted((vocabulary.index(label), label) for label in _decode(annotation))
        return {
            features.IMAGE_CLASS_TEXT: [label.encode() for _, label in numbered],
            features.IMAGE_CLASS_LABEL: [number for number, _ in numbered],
        }

    @classmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        texts: Sequence[bytes] = values.get(features.IMAGE_CLASS_TEXT, ())
        return _encode(text.decode() for text in texts)


def _encode(labels: Iterable[str]) -> str | None:
    """Return the annotation of labels, which may repeat; None if there are none."""
    distinct = sorted({label for label in labels if label})
    return json.dumps(distinct, ensure_ascii=False) if distinct else None


def _decode(annotation: str | None) -> Sequence[str]:
    return [] if annotation is None else list(json.loads(annotation))
