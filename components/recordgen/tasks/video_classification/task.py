"""Video classification, segments of videos with a label: ``[ML_USE],PATH,[LABEL,START,END]``.

AutoML's lists and Vertex AI "Prepare video training data for classification"; times are seconds
from the video's beginning, and ``inf`` is its end::

    gs://bucket/1.mp4,car,120,180.5
    {"videoGcsUri": "gs://bucket/1.mp4", "timeSegmentAnnotations":
     [{"displayName": "car", "startTime": "120s", "endTime": "180.5s"}]}

become ``video/segment/start: 120.0``, ``video/segment/end: 180.5``, ``video/class/text: b"car"``
and ``video/class/label: 0``. Records hold a video's address; no video is opened. Each
segment is an example of its own, and so is each of several labels of one segment, as in AutoML. The
annotation is a JSON list of label, start and end; null means no label, or the video's end.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from recordgen import features, storage
from recordgen.core.records.example import FeatureValue, serialize_example
from recordgen.core.records.numbers import as_float32
from recordgen.core.rows.row import Adjustments
from recordgen.core.task import task
from recordgen.core.task.annotation import AnnotationError, RowContent, bad_annotation, check_label
from recordgen.errors import UsageError
from recordgen.options import ConvertOptions
from recordgen.rejects import RejectCode
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks.lines import check_spelling, display_name, list_in, too_many_fields, uri_in

_SEGMENTS_KEY = "timeSegmentAnnotations"
_LABEL_KEY = "classificationAnnotation"
_TIMES_KEY = "timeSegment"

# Bytes of a record besides its values: the feature names and the framing.
_NAMES_BYTES = 150

# A fraction needs no digit before its point; "inf" is AutoML's own word.
_SECONDS = re.compile(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?", re.ASCII | re.IGNORECASE)


class Segment(NamedTuple):
    """A part of a video.

    Attributes:
        start: in seconds.
        end: in seconds; infinite for the end of the video.
    """

    label: str | None
    start: float
    end: float

    def encode(self) -> str | None:
        """Return the annotation; None for the whole video without a label."""
        if self == WHOLE:
            return None
        end = None if math.isinf(self.end) else self.end
        return json.dumps([self.label, self.start, end], ensure_ascii=False)

    @classmethod
    def decode(cls, annotation: str | None) -> Segment:
        """Return the segment of an annotation, the inverse of :meth:`encode`."""
        if annotation is None:
            return WHOLE
        label, start, end = json.loads(annotation)
        return cls(label, start, math.inf if end is None else end)


#: A whole video without a label.
WHOLE = Segment(None, 0.0, math.inf)


class VideoClassification(task.Task):
    """Video classification, one label per segment."""

    name = "video_classification"
    kind = "video"
    noun = "segment"
    expected = "[ML_USE],PATH,[LABEL,START,END]"
    columns: ClassVar = {
        "label": LABEL_COLUMNS,
        "start": frozenset({"start", "start_time", "time_segment_start", "starttime", "begin"}),
        "end": frozenset({"end", "end_time", "time_segment_end", "endtime", "stop"}),
    }
    uri_key = "videoGcsUri"
    json_keys = (_SEGMENTS_KEY, _LABEL_KEY)
    features: ClassVar = features.VIDEO_CLASSIFICATION
    labelling = task.ONE
    csv_parser = "recordgen.formats.automl_csv:VideoParser"
    reading = "recordgen.tasks.video_classification.reading:VIDEOS"
    pairing = "recordgen.tasks.pairing:segments"
    trainer = "recordgen.tasks.video_classification.training:VideoTrainer"
    measure = "recordgen.training.measures:OneLabelAccumulator"
    by_address = True
    details_noun = "segment"

    @classmethod
    def of(cls, options: ConvertOptions) -> task.Task:
        if options.stratify == "label":
            raise UsageError(
                "stratify=label would put segments of one video, which have several labels, into "
                "several splits; omit it"
            )
        return cls()

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        if len(fields) > 3:
            raise too_many_fields(
                f"expected {self.expected} (got {len(fields)} fields after the path); quote a "
                f"field that holds a comma"
            )
        label, start, end = (*fields, *[""] * (3 - len(fields)))
        return _segment(check_label(label) or None, start or 0.0, end or math.inf).encode()

    def from_record(
        self, record: Mapping[str, Any], adjusted: Adjustments
    ) -> Sequence[RowContent | AnnotationError]:
        uri = self.check_uri(uri_in(record, self.uri_key, "video"))
        parsers = [partial(_timed, segment) for segment in list_in(record, _SEGMENTS_KEY)]
        if (whole := record.get(_LABEL_KEY)) is not None:
            parsers.append(partial(_whole, whole))
        found: list[RowContent | AnnotationError] = []
        for parse in parsers:
            try:
                found.append(RowContent(uri, parse().encode()))
            except AnnotationError as exc:  # the other segments of the line are good
                found.append(exc)
        return found or [RowContent(uri, WHOLE.encode())]

    def check_uri(self, uri: str) -> str:
        # Videos are not opened, so a missing file would go unnoticed.
        if storage.is_local(uri) and (hint := storage.slip_hint(uri)):
            raise AnnotationError(
                RejectCode.NO_PATH, f"the path of a video must not hold backslashes{hint}"
            )
        return super().check_uri(uri)

    def labels(self, annotation: str) -> Sequence[str]:
        label = Segment.decode(annotation).label
        return () if label is None else (label,)

    def details(self, annotation: str) -> Sequence[float]:
        return Segment.decode(annotation)[1:]

    def shown(self, annotation: str) -> str:
        label, start, end = Segment.decode(annotation)
        stop = "the end" if math.isinf(end) else f"{end:.10g} s"
        return f"{label!r} from {start:.10g} s to {stop}"

    def part(self, uri: str, annotation: str | None) -> str:
        return annotation or ""

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        return [()] * len(uris)

    def own_sizes(self, uris: task.Texts, annotations: task.Texts) -> task.Sizes:
        import pyarrow.compute as pc

        names = pc.add(pc.multiply(pc.utf8_length(uris).cast("int64"), 2), _NAMES_BYTES)
        return pc.add(names, super().own_sizes(uris, annotations))

    @task.each_row
    def make(self, fetched: task.FetchedRow) -> task.BuiltExample:
        row, _, vocabulary, _ = fetched
        segment = Segment.decode(row.annotation)
        labels = () if segment.label is None else (segment.label,)
        values: dict[str, FeatureValue] = {
            features.VIDEO_URI: row.uri.encode(),
            features.VIDEO_SOURCE_ID: row.uri.encode(),
            features.VIDEO_SEGMENT_START: segment.start,
            features.VIDEO_SEGMENT_END: segment.end,
        }
        for label in labels:
            values[features.VIDEO_CLASS_TEXT] = label.encode()
            values[features.VIDEO_CLASS_LABEL] = vocabulary.index(label)
        record = serialize_example(values)
        content = hashlib.sha256(row.uri.encode()).digest()
        return task.BuiltExample(record, labels, content=content)


def _timed(item: Any) -> Segment:
    return _between(item, display_name(item, f"each of {_SEGMENTS_KEY}"))


def _whole(item: Any) -> Segment:
    """Parse a label of the whole video, or of the times it gives. Raises: AnnotationError."""
    label = display_name(item, _LABEL_KEY)
    times = item.get(_TIMES_KEY) or {}
    if not isinstance(times, Mapping):
        raise bad_annotation(f"{_TIMES_KEY} must hold startTime and endTime (got {times!r:.80})")
    return _between(times, label)


def _between(times: Mapping[str, Any], label: str) -> Segment:
    """Return the segment of an object with ``startTime`` and ``endTime``, which may be missing."""
    known = ("displayName", "startTime", "endTime")
    check_spelling(times, known, "a segment", of_places=True)
    start, end = times.get("startTime"), times.get("endTime")
    return _segment(label, 0.0 if start is None else start, math.inf if end is None else end)


def _segment(label: str | None, start: str | float, end: str | float) -> Segment:
    """Return a segment. Raises: AnnotationError: a time is invalid, or it ends too early."""
    found = Segment(label, _seconds(start, "start"), _seconds(end, "end"))
    if not found.start < found.end:
        raise bad_annotation(f"a segment must end after its start (got {start} to {end})")
    return found


def _seconds(value: Any, what: str) -> float:
    """Parse a time, a number or text: ``1.5``, ``"1.5"`` or ``"1.5s"``."""
    text = str(value).strip() if isinstance(value, int | float | str) else ""
    if not isinstance(value, bool) and _SECONDS.fullmatch(text.removesuffix("s")):
        try:
            return as_float32(float(text.removesuffix("s")))
        except OverflowError:
            pass
    raise bad_annotation(
        f"a segment's {what} must be seconds from the video's beginning, 0 or more, or inf for "
        f"its end (got {value!r:.40})"
    )
