"""Sentences and their tags, in two files with a line for each sentence.

    sentences.txt   Anna flew to New York
    labels.txt      B-person O O B-city I-city

Blanks separate tokens and tags; :mod:`recordgen.tasks.text_entities.tags` describes the tags. The
source is the file of sentences, or a folder with such files. The tags are in the file next to it
whose name has ``labels`` instead of ``sentences``. Names give the splits
(:mod:`recordgen.formats.split_names`): ``train_sentences.txt``, ``train/sentences.txt``.
"""

from __future__ import annotations

import posixpath
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, check_label
from recordgen.core.task.task import Task
from recordgen.errors import SourceError
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import bounded_lines, decode_line
from recordgen.formats.listing import Listing
from recordgen.formats.split_names import split_in_path
from recordgen.rejects import FIRST_MARK, Reject, RejectCode
from recordgen.tasks import TextEntities
from recordgen.tasks.text_entities.tags import TagError, spans_of, split_at_blanks
from recordgen.tasks.text_entities.task import TAGS_BEGUN, said_of_tokens

SENTENCES, LABELS = "sentences", "labels"

_SENTENCES = re.compile(rf"(.*)({SENTENCES})(.*)", re.IGNORECASE | re.DOTALL)
_BLANKS = re.compile(r"[ \t]+")


class Sentences(Format):
    """``sentences.txt`` beside ``labels.txt``, or a folder with such files."""

    name = "iob"
    is_decoded = True

    def detect(self, listing: Listing) -> Evidence | None:
        below = () if listing.images else listing.others
        if not any(map(names_sentences, [listing.only] if listing.only else below)):
            return None
        where = f"{listing.root.removeprefix('./')}{listing.only}"
        return Evidence(f"{where}: sentences and their tags", TextEntities.name, is_weak=True)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == TextEntities.name

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        return read_sentences(file, adjusted, given)


def names_sentences(path: str) -> bool:
    """Return whether a path has the name of a file of sentences."""
    name = posixpath.basename(path).lower()
    return SENTENCES in name and name.endswith(".txt")


def read_sentences(file: ImportFile, adjusted: Adjustments, given: Given) -> Iterator[Row | Reject]:
    """Yield a row for each sentence of a file, or of all such files below a folder.

    ``adjusted`` collects the entities that begin with ``I-``.

    Raises:
        SourceError: the file is not named ``…sentences….txt``, or the folder has no such file; the
            tags are missing or have another number of lines.
        StorageError: storage failed.
    """
    listing = file.around
    names = [listing.only] if listing.only else [*filter(names_sentences, listing.names)]
    if not names:
        raise SourceError(f"{file.path}: there is no file …{SENTENCES}….txt in this folder")
    root = file.path.removesuffix(listing.only)
    for name in names:
        yield from _read_file(listing, root, name, adjusted, given)


def _read_file(
    listing: Listing, root: str, name: str, adjusted: Adjustments, given: Given
) -> Iterator[Row | Reject]:
    path = f"{root}{name}"
    folder, base = posixpath.split(name)
    found = _SENTENCES.fullmatch(base)
    if found is None:
        raise SourceError(
            f"{path}: expected a file of sentences; name it …{SENTENCES}….txt, and the file of "
            f"tags next to it …{LABELS}….txt"
        )
    before, word, after = found.groups()
    tags_name = posixpath.join(folder, before + _spelt_as(word, LABELS) + after)
    tags_path = f"{root}{tags_name}"
    split = split_in_path(path) if given.names_splits else None
    encoding = given.encoding
    with listing.open(name) as sentences, listing.open(tags_name) as tags:
        files = (sentences, path), (tags, tags_path)
        both = [
            without_mark(bounded_lines(file, where, encoding), where, adjusted)
            for file, where in files
        ]
        pairs = enumerate(zip_longest(*both), start=1)
        for line, (sentence, tagged) in pairs:
            if sentence is None or tagged is None:
                ends = [line - 1, line - 1]
                for at, pair in chain([(line, (sentence, tagged))], pairs):
                    ends = [
                        at if raw and raw.strip() else end
                        for raw, end in zip(pair, ends, strict=True)
                    ]
                if ends[0] != ends[1]:
                    raise SourceError(
                        f"{path} has {ends[0]} lines and {tags_path} {ends[1]}; each sentence "
                        f"needs its tags on the same line"
                    )
            elif sentence.strip() or tagged.strip():
                yield _row(sentence, tagged, path, line, split, adjusted)


def without_mark(lines: Iterator[bytes], path: str, adjusted: Adjustments) -> Iterator[bytes]:
    """Yield the lines of a file without byte order marks."""
    for number, raw in enumerate(lines, start=1):
        if raw.startswith(BOM_UTF8):
            adjusted.add_line(path, number, *FIRST_MARK)
            raw = raw.removeprefix(BOM_UTF8)
        yield raw


def _spelt_as(example: str, word: str) -> str:
    """Return a word in the case of another one: ``Labels`` for ``Sentences``."""
    if example.isupper():
        return word.upper()
    return word.capitalize() if example[0].isupper() else word


def _row(
    sentence: bytes, tags: bytes, source: str, line: int, split: str | None, adjusted: Adjustments
) -> Row | Reject:
    try:
        tokens, names = _parts(sentence, "sentence"), _parts(tags, "line of tags")
    except AnnotationError as exc:
        return exc.reject(source, line)
    return tagged_row(tokens, names, source, line, split, adjusted)


def tagged_row(
    tokens: Sequence[str],
    tags: Sequence[str],
    source: str,
    line: int,
    split: str | None,
    adjusted: Adjustments,
) -> Row | Reject:
    """Return the row of a sentence, or why its tags are unusable.

    ``adjusted`` collects the entities that begin with ``I-``.
    """
    try:
        spans, begun = spans_of(split_at_blanks(" ".join(tokens)) if tokens else [], tags)
        for span in spans:
            check_label(span.label)
        uri, annotation = said_of_tokens(tokens, spans)
    except TagError as exc:
        return Reject(source, line, "", RejectCode.BAD_ANNOTATION.value, str(exc))
    except AnnotationError as exc:
        return exc.reject(source, line)
    for span in begun:
        adjusted.add(TAGS_BEGUN, f"the entity {span} begins with I-{span.label}; expected B-")
    return Row(source, line, split, uri, annotation)


def _parts(raw: bytes, what: str) -> list[str]:
    """Return the parts of a line between blanks. Raises: AnnotationError."""
    text = decode_line(raw, what, "write one per line").strip(" \t\r\n")
    return _BLANKS.split(text) if text else []
