"""AutoML's JSONL files: one JSON object per line and payload, and the task says what it means.

Vertex AI "Prepare image training data"; exports of managed datasets look the same::

    {"imageGcsUri": "gs://bucket/1.jpg",
     "classificationAnnotation": {"displayName": "cat"},
     "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"}}

become ``Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")``. Only the uri is required.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recordgen.errors import SourceError
from recordgen.rows import Reject, RejectCode, Row
from recordgen.sources.lines import MAX_LINE_BYTES, text_of_first
from recordgen.splits import parse_ml_use
from recordgen.tasks.labelled_text import OLDER_KEY
from recordgen.tasks.task import AnnotationError, Task, printable

LABELS_KEY = "dataItemResourceLabels"
ML_USE_KEY = "aiplatform.googleapis.com/ml_use"

# What Vertex AI's keys of annotations end with, however they are spelt.
_ANNOTATIONS = ("Annotation", "Annotations")
_SNAKE_ANNOTATIONS = ("_annotation", "_annotations")

# Who reads the older shape of a line.
_KINDS_OF_TEXT = ("text", "entities")

# What can only mean the split.
_SPLIT_KEYS = frozenset(
    {"split", "ml_use", "mlUse", "ML_USE", "data_item_resource_labels", LABELS_KEY, ML_USE_KEY}
)


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Counter[str]
) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of a JSONL file.

    Args:
        lines: lines with or without their ending (``\n`` or ``\r\n``); a first UTF-8 byte order
            mark is skipped.
        source: the file's name, for rows and messages.
        task: reads the annotations.
        adjusted: counts what was changed to make rows usable, by kind.

    Raises:
        SourceError: the file is UTF-16, no text, or one JSON document with all objects.
    """
    for number, raw in enumerate(lines, start=1):
        if number == 1:
            raw = text_of_first(raw, source, "JSONL in UTF-8")
            if raw.lstrip().startswith(b"[") or raw.strip() == b"{":
                raise SourceError(
                    f"{source}: this is one JSON document; write one object per line (JSONL)"
                )
        if raw.strip():
            yield from parse_line(raw, source, number, task, adjusted)


def parse_line(
    raw: bytes, source: str, line: int, task: Task, adjusted: Counter[str]
) -> list[Row | Reject]:
    """Parse one line; see the module's example."""
    record: Mapping[str, Any] = {}
    try:
        record = parse_object(raw)
        split = _split(record)
        _check_kinds(record, task)
        found = task.from_record(record, adjusted)
    except AnnotationError as exc:
        return [_reject(exc, record, source, line, task)]
    return [
        _reject(said, record, source, line, task)
        if isinstance(said, AnnotationError)
        else Row(source, line, split, *said)
        for said in found
    ]


def _reject(
    error: AnnotationError, record: Mapping[str, Any], source: str, line: int, task: Task
) -> Reject:
    uri = record.get(task.uri_key)
    shown = printable(uri.strip()) if isinstance(uri, str) else ""
    return Reject(source, line, shown, error.code.value, error.message)


def parse_object(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object that a line holds. Raises: AnnotationError."""
    if len(raw) > MAX_LINE_BYTES:
        raise AnnotationError(
            RejectCode.BAD_LINE,
            f"a line must be at most {MAX_LINE_BYTES} bytes long; is this a JSONL file?",
        )
    try:
        record = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        message = f"byte {exc.start + 1} of the line is not UTF-8; save the file as UTF-8"
        raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc
    except (ValueError, RecursionError) as exc:
        raise AnnotationError(
            RejectCode.BAD_LINE, f"each line must be one JSON object ({exc}): {_start(raw)}"
        ) from exc
    if not isinstance(record, dict):
        raise AnnotationError(
            RejectCode.BAD_LINE, f"each line must be one JSON object: {_start(raw)}"
        )
    return record


def _start(raw: bytes) -> str:
    return ascii(raw[:80].decode("utf-8", "replace"))


def _split(record: Mapping[str, Any]) -> str | None:
    labels = record.get(LABELS_KEY) or {}
    ml_use = labels.get(ML_USE_KEY, "") if isinstance(labels, Mapping) else labels
    try:
        if not ml_use:  # else the line says its split, and other keys are the user's own
            _check_split_keys(record, LABELS_KEY)
            _check_split_keys(labels, ML_USE_KEY)
        if not isinstance(ml_use, str):
            raise ValueError(f"{LABELS_KEY} must hold texts by name (got {labels!r:.80})")
        return parse_ml_use(ml_use.strip())
    except ValueError as exc:
        raise AnnotationError(RejectCode.UNKNOWN_ML_USE, str(exc)) from exc


def _check_split_keys(record: Mapping[str, Any], known: str) -> None:
    """Check that no key but ``known`` names a split. Raises: ValueError."""
    for key in sorted(key for key in record.keys() & _SPLIT_KEYS - {known} if record[key]):
        raise ValueError(
            f'a split is named as "{LABELS_KEY}": {{"{ML_USE_KEY}": "training"}} (got the key '
            f"{key})"
        )


def _check_kinds(record: Mapping[str, Any], task: Task) -> None:
    """Refuse annotations of another task. Raises: AnnotationError."""
    for key, value in record.items():
        is_other = (
            key.endswith(_ANNOTATIONS)
            or (key.endswith(_SNAKE_ANNOTATIONS) and isinstance(value, dict | list))
            or (key == OLDER_KEY and task.kind not in _KINDS_OF_TEXT)
        )
        if is_other and value and key not in task.json_keys:
            known = ", ".join(task.json_keys)
            raise AnnotationError(
                RejectCode.BAD_ANNOTATION,
                f"{printable(key)} is no annotation of {task.name}, which has {known}; "
                f"keep the rows of different tasks in files of their own",
            )
