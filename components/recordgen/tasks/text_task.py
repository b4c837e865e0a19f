"""What all tasks of texts have in common: the payload stands in the row, or is a text file.

An annotation is a JSON object: ``text``, unless it lies in a file, and what the task says of it
under ``said``, unless that is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from recordgen.errors import PayloadError
from recordgen.rows import RejectCode, content_uri, is_content_uri
from recordgen.tasks.task import AnnotationError, Said, Task, uri_in

#: The key of text in a line of JSONL.
CONTENT_KEY = "textContent"


class TextSaid(NamedTuple):
    """What an annotation holds.

    Attributes:
        text: the payload; None: it lies in a file.
        said: what the task says of it, a JSON value; None: nothing.
    """

    text: str | None
    said: Any

    def encode(self) -> str | None:
        """Return the annotation."""
        values = {name: value for name, value in self._asdict().items() if value is not None}
        return json.dumps(values, ensure_ascii=False, sort_keys=True) if values else None

    @classmethod
    def decode(cls, annotation: str | None) -> TextSaid:
        """Return what :meth:`encode` was given."""
        values = json.loads(annotation) if annotation is not None else {}
        return cls(values.get("text"), values.get("said"))


class TextTask(Task):
    """A task whose payloads are texts."""

    kind = "text"
    noun = "text"
    batch_rows = 256
    uri_key = "textGcsUri"

    def is_stored(self, uri: str) -> bool:
        return not is_content_uri(uri)


def inline(text: str, said: Any) -> Said:
    """Return what a row says that holds its text itself."""
    return Said(content_uri(text), TextSaid(text, said).encode())


def stored(uri: str, said: Any) -> Said:
    """Return what a row says of a text file."""
    return Said(uri, TextSaid(None, said).encode())


def said_of(record: Mapping[str, Any], said: Any) -> Said:
    """Return what a line of JSONL says whose annotation is read already.

    Raises:
        AnnotationError: it has no text, and names no file of one.
    """
    text = record.get(CONTENT_KEY)
    if text is None:
        return stored(uri_in(record, TextTask.uri_key, TextTask.noun), said)
    if not isinstance(text, str) or not text.strip():
        raise AnnotationError(
            RejectCode.BAD_ANNOTATION, f"{CONTENT_KEY} must be a text (got {text!r:.80})"
        )
    return inline(text, said)


def text_of(annotation: str | None, payload: bytes) -> str:
    """Return the text of a row: its own, or that of its file.

    Raises:
        PayloadError: the file is not UTF-8.
    """
    own = TextSaid.decode(annotation).text
    if own is not None:
        return own
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise PayloadError(
            RejectCode.BAD_ENCODING.value,
            f"byte {exc.start + 1} of the text is not UTF-8; save the file as UTF-8",
        ) from exc
