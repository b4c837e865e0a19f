"""Text classification, any number of labels: ``[ML_USE],TEXT,[LABEL1,…,LABELn]``.

Vertex AI "Prepare text training data for classification", multi-label::

    TRAIN,"Good, but late.",praise,delivery
    {"textContent": "Good, but late.",
     "classificationAnnotations": [{"displayName": "praise"}, {"displayName": "delivery"}]}

become ``class/text: [b"delivery", b"praise"]`` and ``class/label: [0, 1]``, in the order of the
vocabulary. The labels of a text's rows are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from recordgen import features
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.annotations import SEVERAL
from recordgen.rejects import RejectCode
from recordgen.tasks.lines import display_names
from recordgen.tasks.texts.labelled_text import LabelledText, older_labels

# AutoML's limit. A line with more is an unquoted text full of commas.
_MAX_LABELS = 100


class TextMultiLabel(LabelledText):
    """Text classification with any number of labels per text."""

    name = "text_multi_label"
    expected = "[ML_USE],TEXT,[LABEL1,…,LABELn]"
    json_keys = ("classificationAnnotations", "classificationAnnotation")
    features: ClassVar = features.TEXT_MULTI_LABEL
    labelling = SEVERAL
    trainer = "recordgen.tasks.texts.training:ManyTextLabels"
    measure = "recordgen.training.measures:ManyLabelsAccumulator"
    sample = "pipelines.samples.reviews:TOPIC_SETS"
    page = "docs/tasks/text_classification.md"

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        return self.check_labels(display_names(record, *self.json_keys) + older_labels(record))

    def check_labels(self, labels: Iterable[str]) -> Sequence[str]:
        found = super().check_labels(labels)
        if len(found) > _MAX_LABELS:
            raise AnnotationError(
                RejectCode.TOO_MANY_FIELDS,
                f"a text must have at most {_MAX_LABELS} labels (got {len(found)}); quote a text "
                f"that holds commas",
            )
        return found

    def class_features(self, texts: Sequence[bytes], numbers: Sequence[int]) -> dict[str, Any]:
        return {features.CLASS_TEXT: list(texts), features.CLASS_LABEL: list(numbers)}
