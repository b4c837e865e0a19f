"""Image classification, one label per image: ``[ML_USE],PATH,[LABEL]``.

Vertex AI "Prepare image training data for classification"::

    TRAIN,gs://bucket/1.jpg,cat
    {"imageGcsUri": "gs://bucket/1.jpg", "classificationAnnotation": {"displayName": "cat"}}

become ``image/class/text: b"cat"`` and ``image/class/label: 0``. The annotation is the label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records.example import FeatureValue
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import (
    AnnotationError,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
)
from recordgen.core.task.annotations import ONE
from recordgen.messages import listed
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.images.image_task import LabelledImage
from recordgen.tasks.lines import display_name

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture


class ImageClassification(LabelledImage):
    """Image classification with at most one label per image."""

    name = "image_classification"
    expected = "[ML_USE],PATH,[LABEL]"
    columns: ClassVar = {"label": LABEL_COLUMNS}
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

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        labels = sorted(set(map(check_label, picture.labels)))
        if len(labels) > 1:
            raise bad_annotation(
                f"expected one label per image (got {listed(labels, repr)}); for several labels "
                f"per image, use --task image_multi_label"
            )
        return RowContent(check_uri(picture.uri), labels[0] if labels else None)

    def labels(self, annotation: str) -> Sequence[str]:
        return (annotation,)

    def shown(self, annotation: str) -> str:
        return repr(annotation)

    def to_features(self, annotation: str, vocabulary: Vocabulary) -> Mapping[str, FeatureValue]:
        return {
            features.IMAGE_CLASS_TEXT: annotation.encode(),
            features.IMAGE_CLASS_LABEL: vocabulary.index(annotation),
        }

    @classmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        label: Sequence[bytes] = values.get(features.IMAGE_CLASS_TEXT, ())
        return label[0].decode() if label else None
