"""Keys that AutoML's JSON objects may have besides those that are read.

Keys that are nearly right are rejected: tests/wrong_rows.txt has them.
"""

import pytest

from recordgen.core.rows.row import Adjustments
from recordgen.formats import automl_jsonl
from recordgen.rejects import Reject
from recordgen.tasks import TASKS

_SPAN = '{"textContent": "Anna flew", "textSegmentAnnotations": [{"displayName": "x", %s}]}'
_OLDER = '{"text_snippet": {"content": "Anna flew"}, "annotations": [%s]}'
_BOX = '{"displayName": "x", "xMin": 0.1, "yMin": 0.1, "xMax": 0.2, "yMax": 0.2, "area": 3}'
RECORDS = [
    ("text_entities", _SPAN % '"endOffset": 9, "confidence": 0.9'),
    ("text_entities", _SPAN % '"startOffset": 0, "start_offset": 3, "endOffset": 9'),
    ("text_entities", _OLDER % '{"text_extraction": {"text_segment": {"startOffset": 5, '
     '"end_offset": 9}}, "display_name": "x"}'),
    ("object_detection", f'{{"imageGcsUri": "a.jpg", "boundingBoxAnnotations": [{_BOX}]}}'),
    ("image_classification",
     '{"imageGcsUri": "a.jpg", "classificationAnnotations": [], "class": "x"}'),
    ("image_classification",
     '{"imageGcsUri": "a.jpg", "dataItemResourceLabels": {"x.com/model": "a"}}'),
    ("text_sentiment", '{"textContent": "Good", "sentimentAnnotation": {"sentimentMax": 4}}'),
    ("video_classification", '{"videoGcsUri": "a.mp4", "timeSegmentAnnotations": '
     '[{"displayName": "x", "startTime": "1s"}]}'),
]  # fmt: skip


@pytest.mark.parametrize(("task", "record"), RECORDS)
def test_keys_that_are_not_read(task, record):
    """A key that is like none that is missing is passed over."""
    [found] = automl_jsonl.parse_line(record.encode(), "a.jsonl", 1, TASKS[task](), Adjustments())
    assert not isinstance(found, Reject)
