"""Sentences and their tags, in two files with a line for each sentence.

    sentences.txt   Anna flew to New York
    labels.txt      B-person O O B-city I-city

Tokens and tags stand between blanks, and tags are those of :mod:`recordgen.tasks.tags`. The file of
the sentences is named, or a folder that holds such files; the tags lie beside it, in the file whose
name has ``labels`` in place of ``sentences``. Splits are told by names: ``train_sentences.txt``, or
``train/sentences.txt``, or ``Split-train/sentences.txt``.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from recordgen import storage
from recordgen.dataset.manifest import SPLIT_PREFIX
from recordgen.dataset.splits import is_ml_use, parse_ml_use
from recordgen.errors import SourceError
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, Row
from recordgen.sources.image_folder import files_below
from recordgen.sources.lines import UTF16_MARKS, open_lines
from recordgen.tables.csv_fields import MAX_RECORD_BYTES
from recordgen.tasks.tags import TagError, spans_of, split_at_blanks
from recordgen.tasks.task import AnnotationError, Task, check_label
from recordgen.tasks.text_entities import TAGS_BEGUN, said_of_tokens

SENTENCES, LABELS = "sentences", "labels"

_SENTENCES = re.compile(rf"(.*)({SENTENCES})(.*)", re.IGNORECASE | re.DOTALL)
_BLANKS = re.compile(r"[ \t]+")


def is_of_sentences(path: str) -> bool:
    """Say whether a file is named as those with sentences are."""
    name = posixpath.basename(path).lower()
    return SENTENCES in name and name.endswith(".txt")


def read_sentences(path: str, task: Task, adjusted: Adjustments) -> Iterator[Row | Reject]:
    """Yield a row for each sentence of a file, or of all such files below a folder.

    Args:
        path: the file of sentences; or a folder, whose path ends with ``/``.
        task: the task of the rows.
        adjusted: gets the entities that begin with ``I-``.

    Raises:
        SourceError: the file is not named as one of sentences, or there is none; the tags are not
            beside it, or have another number of lines; or a file is UTF-16.
        StorageError: storage failed.
    """
    del task
    if not path.endswith("/"):
        yield from _read_file(path, adjusted)
        return
    names = sorted(filter(is_of_sentences, files_below(path)))
    if not names:
        raise SourceError(f"{path}: there is no file …{SENTENCES}….txt in this folder")
    for name in names:
        yield from _read_file(storage.join(path, name), adjusted)


def _read_file(path: str, adjusted: Adjustments) -> Iterator[Row | Reject]:
    folder, name = posixpath.split(path)
    found = _SENTENCES.fullmatch(name)
    if found is None:
        raise SourceError(
            f"{path}: expected a file of sentences; name …{SENTENCES}….txt, and the tags beside it "
            f"…{LABELS}….txt"
        )
    before, word, behind = found.groups()
    tags_name = before + _spelt_as(word, LABELS) + behind
    tags_path = storage.join(folder, tags_name) if folder else tags_name
    split = _split(folder, before, behind)
    with open_lines(path) as sentences, open_lines(tags_path) as tags:
        pairs = enumerate(zip_longest(sentences, tags), start=1)
        for line, (sentence, said) in pairs:
            if line == 1:
                sentence, said = _without_mark(sentence, path), _without_mark(said, tags_path)
            if sentence is None or said is None:
                ends = _last_lines(chain([(line, (sentence, said))], pairs), line - 1)
                _check_ends(path, tags_path, ends)
                return
            if sentence.strip() or said.strip():
                yield _row(sentence, said, path, line, split, adjusted)


def _spelt_as(example: str, word: str) -> str:
    """Return a word with the capitals of another: ``Labels`` beside ``Sentences``."""
    if example.isupper():
        return word.upper()
    return word.capitalize() if example[0].isupper() else word


def _row(
    sentence: bytes, said: bytes, source: str, line: int, split: str | None, adjusted: Adjustments
) -> Row | Reject:
    try:
        tokens, tags = _parts(sentence, "sentence"), _parts(said, "line of tags")
        spans, begun = spans_of(split_at_blanks(" ".join(tokens)) if tokens else [], tags)
        for span in spans:
            check_label(span.label)
        uri, annotation = said_of_tokens(tokens, spans)
    except TagError as exc:
        return Reject(source, line, "", RejectCode.BAD_ANNOTATION.value, str(exc))
    except AnnotationError as exc:
        return Reject(source, line, "", exc.code.value, exc.message)
    for span in begun:
        adjusted.add(TAGS_BEGUN, f"the entity {span} begins with I-{span.label}; expected B-")
    return Row(source, line, split, uri, annotation)


def _parts(raw: bytes, what: str) -> list[str]:
    """Return what stands between blanks. Raises: AnnotationError."""
    if len(raw) > MAX_RECORD_BYTES:
        raise AnnotationError(
            RejectCode.BAD_LINE,
            f"a {what} must be at most {MAX_RECORD_BYTES} bytes long; write one per line",
        )
    try:
        text = raw.decode("utf-8").strip(" \t\r\n")
    except UnicodeDecodeError as exc:
        raise AnnotationError(
            RejectCode.BAD_ENCODING,
            f"byte {exc.start + 1} of the {what} is not UTF-8; save the file as UTF-8",
        ) from exc
    return _BLANKS.split(text) if text else []


def _without_mark(raw: bytes | None, path: str) -> bytes | None:
    """Return a file's first line without its byte order mark. Raises: SourceError."""
    if raw is None:
        return None
    if raw.startswith(UTF16_MARKS):
        raise SourceError(f"{path}: this file is UTF-16; save it as UTF-8")
    return raw.removeprefix(codecs.BOM_UTF8)


def _last_lines(
    pairs: Iterable[tuple[int, tuple[bytes | None, bytes | None]]], before: int
) -> tuple[int, int]:
    """Return the last line of either file that is not blank, of those from here on."""
    last = [before, before]
    for line, pair in pairs:
        for side, raw in enumerate(pair):
            if raw is not None and raw.strip():
                last[side] = line
    return last[0], last[1]


def _check_ends(path: str, tags_path: str, ends: tuple[int, int]) -> None:
    """Check that the files have as many lines. Raises: SourceError."""
    sentences, tags = ends
    if sentences != tags:
        raise SourceError(
            f"{path} has {sentences} lines and {tags_path} {tags}; each sentence needs its tags in "
            f"the same line"
        )


def _split(folder: str, before: str, behind: str) -> str | None:
    """Return the split that names say, that of the file first; None: drawn."""
    stem = behind.rpartition(".")[0]
    for part in (before.strip("_-. "), stem.strip("_-. "), posixpath.basename(folder)):
        name = part.removeprefix(SPLIT_PREFIX)
        if name and is_ml_use(name):
            return parse_ml_use(name)
    return None
