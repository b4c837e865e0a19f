"""Text classification, one label per text: ``[ML_USE],TEXT,[LABEL]``.

Vertex AI "Prepare text training data for classification", single-label::

    TRAIN,"Good, and cheap.",praise
    {"textContent": "Good, and cheap.", "classificationAnnotation": {"displayName": "praise"}}

become ``text: b"Good, and cheap."``, ``class/text: b"praise"`` and ``class/label: 0``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.core.task.annotation import bad_annotation
from recordgen.core.task.annotations import ONE
from recordgen.tasks.lines import display_name
from recordgen.tasks.texts.labelled_text import OneLabel, older_labels


class TextClassification(OneLabel):
    """Text classification with at most one label per text."""

    name = "text_classification"
    expected = "[ML_USE],TEXT,[LABEL]"
    json_keys = ("classificationAnnotation",)
    labelling = ONE
    trainer = "recordgen.tasks.texts.training:OneTextLabel"
    measure = "recordgen.training.measures:OneLabelAccumulator"
    sample = "pipelines.samples.reviews:TOPICS"
    page = "docs/tasks/text_classification.md"

    def from_json(self, record: Mapping[str, Any]) -> Sequence[str]:
        if (one := record.get("classificationAnnotation")) is not None:
            return [display_name(one, "classificationAnnotation")]
        labels = older_labels(record)
        if len(labels) > 1:
            raise bad_annotation(
                f"expected one label per text (got {', '.join(map(repr, labels)):.80}); for "
                f"several, use --task text_multi_label",
            )
        return labels
