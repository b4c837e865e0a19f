"""Keys of AutoML's JSON objects that are nearly right are errors, not missing values."""

import json

import pytest

from recordgen.core.rows.row import Adjustments
from recordgen.formats import automl_jsonl
from recordgen.rejects import Reject
from recordgen.tasks import TASKS

IMAGE, TEXT, VIDEO = (
    {"imageGcsUri": "a.jpg"},
    {"textContent": "Anna flew"},
    {"videoGcsUri": "a.mp4"},
)
ML_USE = "aiplatform.googleapis.com/ml_use"
SHOWN = {"displayName": "x"}
BOX = {**SHOWN, "xMin": 0.1, "yMin": 0.1, "xMax": 0.2, "yMax": 0.2}


def parsed(task, record):
    raw = json.dumps(record).encode()
    [found] = automl_jsonl.parse_line(raw, "a.jsonl", 1, TASKS[task](), Adjustments())
    return found


def span(**more):
    return {**TEXT, "textSegmentAnnotations": [{**SHOWN, **more}]}


def segment(**more):
    return {**VIDEO, "timeSegmentAnnotations": [{**SHOWN, **more}]}


def older(**more):
    item = {"text_extraction": {"text_segment": more}, "display_name": "x"}
    return {"text_snippet": {"content": "Anna flew"}, "annotations": [item]}


# task, record, the key that was meant; None if the record is right
RECORDS = [
    ("text_entities", span(start_offset=5, endOffset=9), "startOffset"),
    ("text_entities", span(startoffset=5, endOffset=9), "startOffset"),
    ("text_entities", span(startOfset=5, endOffset=9), "startOffset"),
    ("text_entities", span(start=5, endOffset=9), "startOffset"),
    ("text_entities", span(startOffset=5, end_offset=9), "endOffset"),
    ("text_entities", span(endOffset=9, confidence=0.9), None),
    ("text_entities", span(startOffset=0, start_offset=3, endOffset=9), None),
    ("text_entities", older(startoffset=5, end_offset=9), "start_offset"),
    ("text_entities", older(startOffset=5, end_offset=9), None),
    ("text_entities", {**TEXT, "textSegmentAnotations": [SHOWN]}, "textSegmentAnnotations"),
    ("object_detection", {**IMAGE, "boundingBoxAnnotations": [{**BOX, "xMin": None, "xmin": 0.1}]},
     "xMin"),
    ("object_detection", {**IMAGE, "boundingBoxAnnotations": [{**BOX, "area": 3}]}, None),
    ("object_detection", {**IMAGE, "BoundingBoxAnotations": [BOX]}, "boundingBoxAnnotations"),
    ("image_classification", {**IMAGE, "classificationAnotation": SHOWN},
     "classificationAnnotation"),
    ("image_classification", {**IMAGE, "classificationannotation": SHOWN},
     "classificationAnnotation"),
    ("image_classification", {**IMAGE, "dataItemResourceLabel": {ML_USE: "test"}},
     "dataItemResourceLabels"),
    ("image_classification", {**IMAGE, "dataItemResourceLabels": {"x.com/mlUse": "test"}},
     "ml_use"),
    ("image_classification", {**IMAGE, "classificationAnnotations": [], "class": "x"}, None),
    ("image_classification", {**IMAGE, "dataItemResourceLabels": {"x.com/model": "a"}}, None),
    ("text_classification", {**TEXT, "classification_annotatio": SHOWN},
     "classificationAnnotation"),
    ("text_sentiment", {**TEXT, "sentimentAnnotation": {"sentimentMax": 4, "Sentiment": 2}},
     "sentiment"),
    ("text_sentiment", {**TEXT, "sentimentAnnotation": {"sentimentMax": 4}}, None),
    ("video_classification", segment(start_time="1s", endTime="2s"), "startTime"),
    ("video_classification", segment(startTime="1s", endtime="2s"), "endTime"),
    ("video_classification", segment(startTime="1s", stop=2), "endTime"),
    ("video_classification", segment(startTime="1s"), None),
]  # fmt: skip


@pytest.mark.parametrize(("task", "record", "meant"), RECORDS)
def test_nearly_right_keys(task, record, meant):
    """A key that differs in case, separators or a letter is rejected, and the right one named."""
    found = parsed(task, record)
    assert isinstance(found, Reject) == (meant is not None)
    if isinstance(found, Reject):
        assert found.code == "bad_annotation"
        assert repr(meant) in found.message
