"""The base of all text tasks: the payload is in the row, or is a text file.

An annotation is a JSON object with the ``text``, unless it is in a file, and with the task's own
annotation under ``said``, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from recordgen.core.facts import MEASURES, TEXTS
from recordgen.core.rows.row import content_uri, is_content_uri
from recordgen.core.settings import PayloadSettings
from recordgen.core.task.annotation import (
    AnnotationError,
    RowContent,
    bad_annotation,
    check_uri,
    printable,
)
from recordgen.core.task.annotations import ADDING, Texts
from recordgen.core.task.task import Task
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode
from recordgen.tasks.lines import either

if TYPE_CHECKING:
    from recordgen.measures.texts import SeenText

#: The key of text in a line of JSONL.
CONTENT_KEY = "textContent"

#: Keys of the older shape of a line: the object with the text, and the uri of the text's file.
_SNIPPET_KEYS = ("text_snippet", "textSnippet")
_SNIPPET_FILE_KEYS = ("content_uri", "contentUri")


# json.dumps would make one for each row.
_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


class TextContent(NamedTuple):
    """The decoded annotation of a text.

    Attributes:
        text: the payload; None if it is in a file.
        said: the task's own annotation, a JSON value, or None.
    """

    text: str | None
    said: Any

    def encode(self) -> str | None:
        """Return the annotation; None if it would be empty."""
        values = {name: value for name, value in self._asdict().items() if value is not None}
        return _JSON.encode(values) if values else None

    @classmethod
    def decode(cls, annotation: str | None) -> TextContent:
        """Return the content of an annotation, the inverse of :meth:`encode`."""
        values = json.loads(annotation) if annotation is not None else {}
        return cls(values.get("text"), values.get("said"))


class TextTask(Task):
    """A task whose payloads are texts."""

    kind = "text"
    noun = "text"
    batch_rows = 256
    uri_key = "textGcsUri"
    csv_parser: ClassVar[str | None] = "recordgen.formats.text_csv:TextParser"
    reading = "recordgen.tasks.texts.reading:TEXTS"
    pairing: ClassVar[str | None] = "recordgen.tasks.pairing:texts"
    facts = (TEXTS, MEASURES)

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        subject, shown = super().preview(uri, annotation)
        if is_content_uri(uri) and annotation is not None:
            subject = TextContent.decode(annotation).text or ""
        return subject, shown

    def uri_of(self, record: Mapping[str, Any]) -> str:
        try:
            is_text = self.labelling in ADDING  # or else the text is not needed
            return row_of_line(record, None).uri if is_text else super().uri_of(record)
        except AnnotationError:
            return ""

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None]:
        contents = map(TextContent.decode, annotations.to_pylist())
        return [content._replace(text=None).encode() for content in contents]

    def seen(self, text: str, data: bytes, settings: PayloadSettings) -> SeenText | None:
        """Return the text for the checks, or None if no selected check reads texts.

        ``data`` is the text in UTF-8.
        """
        if not settings.needs_looks:
            return None
        from recordgen.measures.texts import SeenText  # reading rows does not need numpy

        return SeenText(data, len(text))


def inline(text: str, said: Any) -> RowContent:
    """Return the row of a text that it contains.

    Raises: AnnotationError: the text is empty, or not Unicode.
    """
    if not text.strip():
        raise AnnotationError(
            RejectCode.EMPTY_TEXT, "the text is empty; delete the row, or give it a text"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AnnotationError(
            RejectCode.BAD_ENCODING,
            f"character {exc.start + 1} of the text is half of a surrogate pair, which UTF-8 "
            f"cannot hold; write the whole character",
        ) from exc
    return RowContent(content_uri(text), TextContent(text, said).encode())


def stored(uri: str, said: Any) -> RowContent:
    """Return the row of a text file."""
    return RowContent(uri, TextContent(None, said).encode())


def row_of_line(record: Mapping[str, Any], said: Any) -> RowContent:
    """Return the row of a line of JSONL, given its annotation ``said``.

    Raises: AnnotationError: as :func:`payload_of_line` and :func:`inline`.
    """
    text, uri = payload_of_line(record)
    return stored(uri, said) if text is None else inline(text, said)


def payload_of_line(record: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the text of a line of JSONL and "", or None and the uri of its text file.

    The text is ``textContent``, or the file ``textGcsUri``; in the older shape of AutoML Natural
    Language ``{"text_snippet": {"content": …}}``, or ``content_uri`` there.

    Raises: AnnotationError: the line has neither a text nor a text file, or both.
    """
    text, file = record.get(CONTENT_KEY), record.get(TextTask.uri_key)
    if (snippet := either(record, _SNIPPET_KEYS)) is not None:
        if not isinstance(snippet, Mapping):
            raise bad_annotation(
                f'text_snippet must be an object, such as {{"content": "…"}} (got {snippet!r:.80})',
            )
        text = snippet.get("content") if text is None else text
        file = either(snippet, _SNIPPET_FILE_KEYS) if file is None else file
    if text is not None and file is not None:
        raise bad_annotation(
            f"a line must have a text ({CONTENT_KEY}) or the uri of a text file "
            f"({TextTask.uri_key}), not both",
        )
    if text is not None:
        if not isinstance(text, str):
            raise bad_annotation(f"{CONTENT_KEY} must be a text (got {text!r:.80})")
        return text, ""
    if not isinstance(file, str) or not file.strip():
        raise AnnotationError(
            RejectCode.NO_PATH,
            f"each line needs {CONTENT_KEY}, the text, or {TextTask.uri_key}, a text file's path "
            f"or URL (got the keys {', '.join(map(printable, record)) or 'none'!s:.80})",
        )
    return None, check_uri(file.strip())


def text_of(annotation: str | None, files: Sequence[bytes], encoding: str = "") -> str:
    """Return the text of a row, from its annotation or its only file, which is UTF-8 by default.

    Raises: PayloadError: the file does not have the encoding, or contains only blanks.
    """
    own = TextContent.decode(annotation).text
    if own is not None:
        return own
    [data] = files
    try:
        text = data.decode(encoding or "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        raise PayloadError(
            RejectCode.BAD_ENCODING.value,
            f"byte {exc.start + 1} of the text is not {encoding or 'UTF-8'}; save the file as UTF-8"
            f"; if all texts of a folder have another encoding, name it with --encoding",
        ) from exc
    if not text.strip():
        raise PayloadError(
            RejectCode.EMPTY_TEXT.value, "the text is empty; delete the row, or give it a text"
        )
    return text
