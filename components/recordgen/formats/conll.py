r"""CoNLL's files: a token and its tag on each line, and a blank line after each sentence.

    Anna NNP B-NP B-PER     the first column is the token, the last one its tag
    flew VBD B-VP O

    Köln<TAB>B-LOC          another sentence

Tabs separate the columns of a line that has any; otherwise blanks do. Before a sentence, lines of
``-DOCSTART-`` are skipped, and those that begin with ``#`` and end with no tag. Names give the
splits (:mod:`recordgen.formats.split_names`), as do those of the shared task of 2003: ``eng.testa``
is eval, and ``eng.testb`` test.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from recordgen.core.dataset.splits import EVAL, TEST
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import AnnotationError, bad_annotation
from recordgen.core.task.task import Task
from recordgen.formats.encodings import decoded_head
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.iob import tagged_row, without_mark
from recordgen.formats.lines import bounded_lines, decode_line
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.formats.split_names import split_in_path
from recordgen.registry import DOCUMENTS
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import MAX_RECORD_BYTES
from recordgen.tasks import TextEntities
from recordgen.tasks.text_entities.tags import BEGIN, OUTSIDE, is_tag

_DOCUMENT = "-DOCSTART-"
_LEAST_TAGGED = 0.9  # a few lines may be mistakes
_SPLITS = {".testa": EVAL, ".testb": TEST}


class Conll(Format):
    """A file with a token and its tag on each line, or a folder with such files."""

    name = "conll"
    is_decoded = True

    def detect(self, listing: Listing) -> Evidence | None:
        if not listing.only and listing.images:
            return None
        found = [listing.only] if listing.only else listing.candidates(*DOCUMENTS[self.name])
        names = [name for name in found if _is(listing, name)]
        if not names:
            return None
        reason = f"{listing.root.removeprefix('./')}{names[0]}: a token and its tag on each line"
        return Evidence(reason, TextEntities.name, names)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == TextEntities.name

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        path = file.path
        named = _SPLITS.get(posixpath.splitext(path)[1].lower()) or split_in_path(path)
        split = named if given.names_splits else None
        begun = Adjustments()  # not reported: in IOB1, entities begin with I-
        listing = file.around
        with listing.open(path.removeprefix(listing.root)) as opened:
            lines = without_mark(bounded_lines(opened, path, given.encoding), path, adjusted)
            for line, sentence in _sentences(lines):
                try:
                    tokens, tags = _tagged(sentence, line)
                except AnnotationError as exc:
                    yield exc.reject(path, line)
                    continue
                pairs = zip([OUTSIDE, *tags], tags, strict=False)
                # IOB1 has I- where B- begins an entity alone.
                if any(tag.startswith(BEGIN) and old[2:] != tag[2:] for old, tag in pairs):
                    begun = adjusted
                yield tagged_row(tokens, tags, path, line, split, begun)


def _is(listing: Listing, name: str) -> bool:
    """Return whether a file begins with tokens and tags, one of which begins an entity."""
    head = listing.head(name)
    lines = decoded_head(head).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    if len(head) >= HEAD_BYTES:
        del lines[-1]
    rows = [fields for line in lines if (fields := _fields(line)) and not _is_aside(fields)]
    tagged = [fields for fields in rows if len(fields) > 1 and is_tag(fields[-1])]
    if len(tagged) < len(rows) * _LEAST_TAGGED:
        return False
    # The tags of iob's sentences have nothing but tags.
    has_tokens = any(not is_tag(fields[0]) for fields in tagged)
    return has_tokens and any(fields[-1] != OUTSIDE for fields in tagged)


def _sentences(lines: Iterable[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield the number of each sentence's first line, and its lines.

    The lines of a sentence that is too long end where it is.
    """
    sentence: list[bytes] = []
    first = size = 0
    for number, raw in enumerate(lines, start=1):
        is_blank = not raw.strip()
        if is_blank and sentence:
            yield first, sentence
            sentence, size = [], 0
        if is_blank or (not sentence and _is_aside(_fields(raw.decode("utf-8", "replace")))):
            continue
        first = first if sentence else number
        size += len(raw)
        if size - len(raw) <= MAX_RECORD_BYTES:
            sentence.append(raw)
    if sentence:
        yield first, sentence


def _tagged(sentence: Sequence[bytes], first: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tokens and the tags of a sentence. Raises: AnnotationError."""
    if sum(map(len, sentence)) > MAX_RECORD_BYTES:
        message = f"a sentence must be at most {MAX_RECORD_BYTES} bytes long; write blank lines"
        raise AnnotationError(RejectCode.BAD_LINE, message)
    tokens, tags = [], []
    for number, raw in enumerate(sentence, start=first):
        line = decode_line(raw, "line", "write a token on each line")
        token, *others = _fields(line)
        if not others:
            raise bad_annotation(f"line {number} has no tag ({token!r:.40})")
        if not token or " " in token:
            raise bad_annotation(f"the token of line {number} is empty or has a blank ({line:.40})")
        tokens.append(token)
        tags.append(others[-1])
    return tokens, tags


def _fields(line: str) -> list[str]:
    """Return the columns of a line; none if it is blank."""
    line = line.rstrip()
    return line.split("\t") if "\t" in line else line.split()


def _is_aside(fields: Sequence[str]) -> bool:
    """Return whether a line before a sentence is no token."""
    return fields[0] == _DOCUMENT or (fields[0].startswith("#") and not is_tag(fields[-1]))
