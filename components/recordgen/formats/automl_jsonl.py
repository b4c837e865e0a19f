"""AutoML's JSONL files: one JSON object per payload and line. The task reads the annotations.

The format is Vertex AI's "Prepare image training data"; exports of managed datasets are the same::

    {"imageGcsUri": "gs://bucket/1.jpg",
     "classificationAnnotation": {"displayName": "cat"},
     "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"}}

become ``Row(split="train", uri="gs://bucket/1.jpg", annotation="cat")``. Only the uri is required.

``--columns`` names the keys of other tools' objects. With ``path=file,label=breed``,
``{"file": "gs://bucket/1.jpg", "breed": "cat"}`` is the row above without its split.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, bad_annotation, printable
from recordgen.core.task.task import Task
from recordgen.errors import SourceError
from recordgen.formats.header import Given
from recordgen.formats.json_keys import cells, check_keys
from recordgen.formats.json_values import json_value
from recordgen.formats.label_fields import Classes
from recordgen.formats.lines import decode_line
from recordgen.formats.path_template import PathTemplate, with_path_key
from recordgen.formats.table_layout import row_parser
from recordgen.rejects import FIRST_MARK, INNER_MARK, Reject, RejectCode
from recordgen.tasks.spelling import check_spelling
from recordgen.tasks.texts.labelled_text import OLDER_KEY
from recordgen.tasks.texts.text_task import CONTENT_KEY

# The parts of a line that name keys and their texts; a text that does not end is one, too.
_TEXT_OR_COLON = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*"?|:')

LABELS_KEY = "dataItemResourceLabels"
ML_USE_KEY = "aiplatform.googleapis.com/ml_use"

_NOT_ACCEPTED = ("reject", "ignore")

# Suffixes of Vertex AI's annotation keys, in both spellings.
_ANNOTATIONS = ("Annotation", "Annotations")
_SNAKE_ANNOTATIONS = ("_annotation", "_annotations")

# Keys that can only name the split.
_SPLIT_KEYS = frozenset(
    {"split", "ml_use", "mlUse", "ML_USE", "data_item_resource_labels", LABELS_KEY, ML_USE_KEY}
)


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | Reject]:
    r"""Parse the physical lines of a JSONL file.

    Args: as :meth:`recordgen.formats.format.CsvParser.parse_lines`; lines may have their ending
    (``\n`` or ``\r\n``), and a UTF-8 byte order mark at the start of a line is skipped.

    Raises:
        SourceError: the file is one JSON document with all objects.
        UsageError: the task does not have a given role.
    """
    by_roles = _ByRoles(task, adjusted, given) if given.roles else None
    for number, raw in enumerate(lines, start=1):
        if number == 1:
            raw = raw.removeprefix(BOM_UTF8)
            if raw.lstrip().startswith(b"[") or raw.strip() == b"{":
                raise SourceError(
                    f"{source}: this is one JSON document; write one object per line (JSONL)"
                )
        if raw.startswith(BOM_UTF8):
            raw = raw.removeprefix(BOM_UTF8)
            adjusted.add_line(source, number, *FIRST_MARK)
        if not raw.strip():
            continue
        if by_roles is not None:
            found = [by_roles.parse(raw, source, number)]
        else:
            found = parse_line(raw, source, number, task, adjusted, given.group)
        # In a readable line, the mark is a character of some text.
        if BOM_UTF8 in raw and all(isinstance(item, Reject) for item in found):
            adjusted.add_line(source, number, *INNER_MARK)
        yield from found


class _ByRoles:
    """Reads objects by the keys that options name; the other keys are AutoML's."""

    def __init__(self, task: Task, adjusted: Adjustments, given: Given) -> None:
        check_keys(task, given)
        self._task = task
        self._parser = row_parser(task, adjusted)
        self._parser.label_separator = given.label_separator
        self._roles = dict(given.roles)
        self._one_hot = given.one_hot_keys
        if self._one_hot:
            self._roles["label"] = given.keys_of("label")
        self._group, self._template = given.group, PathTemplate.of(given)
        if not self._roles.keys() & {"path", "text"}:
            self._roles["path"] = (task.uri_key,)
            if self._parser.texts:
                self._roles["text"] = (CONTENT_KEY,)

    def parse(self, raw: bytes, source: str, line: int) -> Row | Reject:
        """Parse one line."""
        record: Mapping[str, Any] = {}
        try:
            record = with_path_key(parse_object(raw), self._template)
            self._check_answer(record)
            header: list[str] = []
            fields: list[str] = []
            classes: dict[int, Classes] = {}
            for role, keys in self._roles.items():
                found: list[str] = []
                for key in keys:
                    value, one_hot = record.get(key), self._one_hot.get(key)
                    is_list = isinstance(one_hot, tuple) and value is not None
                    there = [json.dumps(value)] if is_list else cells(value, key)
                    if one_hot:
                        there = there or [""]
                        begin = len(fields) + len(found)
                        classes |= dict.fromkeys(range(begin, begin + len(there)), one_hot)
                    found += there
                if role != "label" and len(found) > 1:
                    raise bad_annotation(
                        f"{printable(keys[0])} must hold one value for {role} (got {len(found)})"
                    )
                header += [role] * len(found)
                fields += found
            if "split" not in self._roles:
                header.append("split")
                fields.append(_split(record) or "")
            group = _group(record, self._group)
        except AnnotationError as exc:
            return _reject(exc, self._subject(record or _readable(raw)), source, line, self._task)
        made = self._parser.by_header(header, classes=classes)(fields, source, line)
        return made if isinstance(made, Reject) else made._replace(group=group)

    def _check_answer(self, record: Mapping[str, Any]) -> None:
        """Check Prodigy's verdict on a label. Raises: AnnotationError: it is not accepted."""
        keys = {key for keys in self._roles.values() for key in keys}
        answer = record.get("answer")
        if "label" in self._roles and "answer" not in keys and answer in _NOT_ACCEPTED:
            raise bad_annotation(f"answer must be accept to give a label (got {answer})")

    def _subject(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the path and the text of an object under AutoML's keys."""
        known = {"path": self._task.uri_key, "text": CONTENT_KEY}
        return {
            known[role]: record.get(name)
            for role in known.keys() & self._roles.keys()
            for name in self._roles[role]
        }


def parse_line(
    raw: bytes, source: str, line: int, task: Task, adjusted: Adjustments, group_key: str = ""
) -> list[Row | Reject]:
    """Parse one line; see the module's example. ``group_key`` is the key of the row's group."""
    record: Mapping[str, Any] = {}
    try:
        record = parse_object(raw)
        split = _split(record)
        group = _group(record, group_key)
        _check_kinds(record, task)
        found = task.from_record(record, adjusted)
    except AnnotationError as exc:
        return [_reject(exc, record or _readable(raw), source, line, task)]
    return [
        _reject(item, record, source, line, task)
        if isinstance(item, AnnotationError)
        else Row(source, line, split, *item, group)
        for item in found
    ]


def _reject(
    error: AnnotationError, record: Mapping[str, Any], source: str, line: int, task: Task
) -> Reject:
    return error.reject(source, line, task.uri_of(record))


def parse_object(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a line. Raises: AnnotationError."""
    text = decode_line(raw, "line", "is this a JSONL file?")
    try:
        record = json_value(text.removeprefix("\ufeff"))
    except ValueError as exc:
        raise AnnotationError(
            RejectCode.BAD_LINE, f"each line must be one JSON object ({exc}): {_start(raw)}"
        ) from exc
    if not isinstance(record, dict):
        raise AnnotationError(
            RejectCode.BAD_LINE, f"each line must be one JSON object: {_start(raw)}"
        )
    return record


def _readable(raw: bytes) -> Mapping[str, Any]:
    """Return the texts by their keys in a line that is no JSON object: it is cut, or not UTF-8."""
    parts = _TEXT_OR_COLON.findall(raw.decode("utf-8", "replace"))
    found: dict[str, str] = {}
    for key, colon, value in zip(parts, parts[1:], parts[2:], strict=False):
        if colon == ":" != value:
            with suppress(ValueError):
                found.setdefault(json.loads(key), json.loads(value))
    return {key: value for key, value in found.items() if "\ufffd" not in value}


def _group(record: Mapping[str, Any], key: str) -> str | None:
    """Return the value of the key of groups. Raises: AnnotationError: it has several values."""
    found = cells(record.get(key), key) if key else []
    if len(found) > 1:
        raise bad_annotation(
            f"{printable(key)} must hold one value for group_by (got {len(found)})"
        )
    return "".join(found).strip() or None


def _start(raw: bytes) -> str:
    return ascii(raw[:80].decode("utf-8", "replace"))


def split_word(record: Mapping[str, Any]) -> str:
    """Return the ML_USE of an object as written, or ""."""
    labels = record.get(LABELS_KEY)
    return str(labels.get(ML_USE_KEY, "")) if isinstance(labels, Mapping) else ""


def _split(record: Mapping[str, Any]) -> str | None:
    labels = record.get(LABELS_KEY) or {}
    ml_use = labels.get(ML_USE_KEY, "") if isinstance(labels, Mapping) else labels
    try:
        if not ml_use:  # else the line has its split, and other keys are the user's own
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
            f'a split must be named as "{LABELS_KEY}": {{"{ML_USE_KEY}": "training"}} (got the key '
            f"{key}; if it names the split, use --columns split={key})"
        )


def _check_kinds(record: Mapping[str, Any], task: Task) -> None:
    """Check that an object has no annotations of another task, and no misspelt keys.

    Raises: AnnotationError.
    """
    for key, value in record.items():
        is_other = (
            key.endswith(_ANNOTATIONS)
            or (key.endswith(_SNAKE_ANNOTATIONS) and isinstance(value, dict | list))
            or (key == OLDER_KEY and task.kind not in ("text", "entities"))
        )
        if is_other and value and key not in task.json_keys:
            known = ", ".join(task.json_keys)
            raise bad_annotation(
                f"{printable(key)} is no annotation of {task.name}, which has {known}; "
                f"keep the rows of different tasks in separate files"
            )
    check_spelling(record, (task.uri_key, *task.json_keys, LABELS_KEY, CONTENT_KEY), "the line")
    if isinstance(labels := record.get(LABELS_KEY), Mapping):
        names = {key.rpartition("/")[2]: value for key, value in labels.items()}
        check_spelling(names, (ML_USE_KEY.rpartition("/")[2],), LABELS_KEY)
