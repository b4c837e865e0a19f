r"""Sentences whose tokens have tags, see :mod:`recordgen.tasks.texts.tags`.

In CoNLL's files, a token and its tag are on each line, and a blank line is after each sentence::

    Anna NNP B-NP B-PER     the first column is the token, the last one its tag
    flew VBD B-VP O

    Köln<TAB>B-LOC          another sentence

Tabs separate the columns of a line that has any; otherwise blanks do. ``--columns text=2,label=3``
gives the numbers of the columns of tokens and tags if they are others; a first column of numbers,
or tags before their tokens, stop the run without it. A file of more than 5,000 lines that is one
sentence stops it, too. Before a sentence, lines of ``-DOCSTART-`` are skipped, and those that begin
with ``#`` and end with no tag.

Or sentences are in one file and their tags in another, whose name has ``labels`` instead of
``sentences``, with a line for each sentence and blanks between tokens and tags::

    sentences.txt   Anna flew to New York
    labels.txt      B-person O O B-city I-city

Names give the splits (:mod:`recordgen.formats.split_names`): ``train_sentences.txt``,
``train/sentences.txt``; and so do those of the shared task of 2003: ``eng.testa`` is eval, and
``eng.testb`` test.
"""

from __future__ import annotations

import posixpath
import re
import string
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, zip_longest
from typing import IO, ClassVar, NamedTuple

from recordgen import storage
from recordgen.core.dataset.splits import EVAL, TEST
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, bad_annotation, bad_line, check_label
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats import foreign_formats
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given, Head
from recordgen.formats.import_file import Files, ImportFile, Samples, sampled
from recordgen.formats.lines import bounded_lines, decode_line, decoded_head
from recordgen.formats.listing import HEAD_BYTES, Listing
from recordgen.formats.pictures import notes_about
from recordgen.formats.split_names import split_in_path, splits_in_name
from recordgen.options import ConvertOptions
from recordgen.registry import DOCUMENTS
from recordgen.rejects import FIRST_MARK, Reject, RejectCode, reject
from recordgen.tables.csv_fields import MAX_RECORD_BYTES
from recordgen.tasks import TextEntities
from recordgen.tasks.texts.entities import TAGS_BEGUN, said_of_tokens
from recordgen.tasks.texts.tags import BEGIN, OUTSIDE, TagError, is_tag, spans_of, split_at_blanks

SENTENCES, LABELS = "sentences", "labels"


class _Tagged(Format):
    """Tokens and their tags."""

    is_decoded = True

    def accepts(self, task: type[Task]) -> bool:
        return task.name == TextEntities.name


class Sentences(_Tagged):
    """``sentences.txt`` beside ``labels.txt``, or a folder with such files."""

    name = "iob"

    def detect(self, listing: Listing) -> Evidence | None:
        below = () if listing.images else listing.others
        if not any(map(names_sentences, [listing.only] if listing.only else below)):
            return None
        tags = (name for name in listing.names if LABELS in name.lower())
        if not storage.is_http(listing.root) and not any(tags):
            return None
        where = f"{listing.root.removeprefix('./')}{listing.only}"
        return Evidence(f"{where}: sentences and their tags", TextEntities.name, is_weak=True)

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        names = [listing.only] if listing.only else [*filter(names_sentences, listing.names)]
        root = file.path.removesuffix(listing.only)
        for name in names:
            yield from _read_file(listing, root, name, adjusted, given)


def names_sentences(path: str) -> bool:
    """Return whether a path has the name of a file of sentences."""
    name = posixpath.basename(path)
    return SENTENCES in name and name.endswith(".txt")


def _read_file(listing: Listing, root: str, name: str, adjusted: Adjustments, given: Given) -> Rows:
    """Yield a row for each sentence of a file.

    Raises: SourceError: the tags are missing, or have another number of lines.
    """
    path = f"{root}{name}"
    folder, base = posixpath.split(name)
    before, _, after = base.rpartition(SENTENCES)
    tags_name = posixpath.join(folder, f"{before}{LABELS}{after}")
    tags_path = f"{root}{tags_name}"
    split = split_in_path(path) if given.names_splits else None
    with listing.open(name) as sentences, listing.open(tags_name) as tags:
        both = (_lines(*each, given, adjusted) for each in ((sentences, path), (tags, tags_path)))
        for line, (sentence, tagged) in enumerate(zip_longest(*both), start=1):
            if not any(raw and raw.strip() for raw in (sentence, tagged)):
                continue
            if sentence is None or tagged is None:
                longer, other = (tags_path, path) if sentence is None else (path, tags_path)
                raise SourceError(
                    f"{longer}:{line}: {other} ends before this line of tags or tokens"
                )
            yield _row(Row(path, line, split, "", None), sentence, tagged, adjusted)


def _lines(file: IO[bytes], path: str, given: Given, adjusted: Adjustments) -> Iterator[bytes]:
    """Yield the lines of a file without byte order marks."""
    for number, raw in enumerate(bounded_lines(file, path, given.encoding), start=1):
        if raw.startswith(BOM_UTF8):
            adjusted.add_line(path, number, *FIRST_MARK)
            raw = raw.removeprefix(BOM_UTF8)
        yield raw


def _row(row: Row, sentence: bytes, tags: bytes, adjusted: Adjustments) -> Row | Reject:
    try:
        tokens, names = _parts(sentence, "sentence"), _parts(tags, "line of tags")
    except AnnotationError as exc:
        return exc.reject(row.source, row.line)
    return _tagged_row(row, tokens, names, adjusted)


def _tagged_row(
    row: Row, tokens: Sequence[str], tags: Sequence[str], adjusted: Adjustments
) -> Row | Reject:
    """Return a row with its sentence, or why its tags are unusable.

    ``adjusted`` collects the entities that begin with ``I-``.
    """
    try:
        spans, begun = spans_of(split_at_blanks(" ".join(tokens)) if tokens else [], tags)
        for span in spans:
            check_label(span.label)
        uri, annotation = said_of_tokens(tokens, spans)
    except TagError as exc:
        return reject(row, RejectCode.BAD_ANNOTATION, str(exc))
    except AnnotationError as exc:
        return exc.reject(row.source, row.line)
    for span in begun:
        adjusted.add(TAGS_BEGUN, f"the entity {span} begins with I-{span.label}; expected B-")
    return row._replace(uri=uri, annotation=annotation)


def _parts(raw: bytes, what: str) -> list[str]:
    """Return the parts of a line between blanks. Raises: AnnotationError."""
    return _fields(decode_line(raw, what, "write one per line").replace("\t", " "))


_DOCUMENT = "-DOCSTART-"
_LEAST_TAGGED = 0.9  # a few lines may be mistakes
_SPLITS = {".testa": EVAL, ".testb": TEST}
# Ends of names of copies and of predictions.
_COPIES = (".bak", ".orig", ".old", ".pred", ".out", "~")
_SHOWN = 3
# A file that is one sentence of more lines lacks the empty lines between its sentences.
_MOST_LINES = 5_000
_PLAIN_TAG = re.compile(r"O|[BI]-\S+")


class _Places(NamedTuple):
    """The columns of a line, by index: of its token, and of its tag."""

    token: int = 0
    tag: int = -1

    @classmethod
    def of(cls, given: Given) -> _Places:
        """Return the columns that options give. Raises: UsageError: they are not two numbers."""
        if not given.roles:
            return cls()
        numbers = [it for role in ("text", "label") for it in given.roles.get(role, ())]
        is_pair = len(given.roles) == len(numbers) == len(cls())
        if not is_pair or not all(re.fullmatch("[1-9][0-9]*", it) for it in numbers):
            got = ",".join(f"{role}={'|'.join(said)}" for role, said in given.roles.items())
            raise UsageError(f"columns: expected text=NUMBER,label=NUMBER (got {got})")
        return cls(*(int(number) - 1 for number in numbers))


class Conll(_Tagged):
    """A file with a token and its tag on each line, or a folder with such files."""

    name = "conll"
    numbered_roles: ClassVar = ("text", "label")

    def detect(self, listing: Listing) -> Evidence | None:
        if not listing.only and listing.images:
            return None
        names = [*tagged_files(listing)]
        if not names:
            return None
        reason = f"{listing.root.removeprefix('./')}{names[0]}: a token and its tag on each line"
        return Evidence(reason, TextEntities.name, [""] if listing.only else names)

    def heads(self, files: Files, options: ConvertOptions, samples: Samples) -> Sequence[Head]:
        if _Places.of(Given.of(options)) == _Places():
            for file in sampled(files):
                _check_places(file)
        return ()

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        path = file.path
        named = _SPLITS.get(posixpath.splitext(path)[1].lower()) or split_in_path(path)
        split = named if given.names_splits else None
        begun = Adjustments()  # not reported: in IOB1, entities begin with I-
        listing, places = file.around, _Places.of(given)
        skipped = _skipped(listing) if file.folder else ()
        for note in notes_about(skipped, "files without own tokens and tags were skipped"):
            adjusted.add_line(listing.root, 0, note.code, note.message)
        with listing.open(path.removeprefix(listing.root)) as opened:
            sentences = _sentences(_lines(opened, path, given, adjusted), places.tag)
            first = [*islice(sentences, 2)]
            if len(first) == 1 and len(first[0][1]) > _MOST_LINES:
                reason = "there is no empty line; write one after each sentence"
                raise NotUnderstoodError(f"{path}: {reason}")
            for line, sentence in chain(first, sentences):
                try:
                    tokens, tags = _tagged(sentence, line, places)
                except AnnotationError as exc:
                    yield exc.reject(path, line)
                    continue
                pairs = zip([OUTSIDE, *tags], tags, strict=False)
                # IOB1 has I- where B- begins an entity alone.
                if any(tag.startswith(BEGIN) and old[2:] != tag[2:] for old, tag in pairs):
                    begun = adjusted
                yield _tagged_row(Row(path, line, split, "", None), tokens, tags, begun)


def tagged_files(listing: Listing) -> Iterator[str]:
    """Yield the file that the user passed, or each file of a folder, if it has tokens and tags.

    Files of any ending count beside one of a usual ending, except copies and predictions. A file
    whose name says several splits, such as ``train_dev.tsv``, repeats the files of each, if there
    are such files beside it.
    """
    names = [listing.only] if listing.only else listing.candidates(*DOCUMENTS[Conll.name])
    splits = {(posixpath.dirname(name), split_in_path(name)) for name in names}

    def is_tagged(name: str) -> bool:
        folder, base = posixpath.split(name)
        rows, said = _head(listing, name), {(folder, split) for split in splits_in_name(base)}
        is_both = len(said) > 1 and said <= splits
        return not is_both and (_is_usual(rows) or _places_in(rows) is not None)

    read = set()
    for name in filter(is_tagged, names):
        read |= {name, posixpath.splitext(name)[0]}
        yield name
    for name in sorted({*listing.others} - {*names}) if read and not listing.only else ():
        is_copy = name.endswith(_COPIES) or posixpath.splitext(name)[0] in read
        if not is_copy and is_tagged(name):
            yield name


def _skipped(listing: Listing) -> Sequence[str]:
    """Return the files of a folder without tokens and tags, for the first one that has them."""
    tagged = tagged_files(listing.at(""))
    if next(tagged, "") != listing.only:
        return ()
    return sorted({*listing.others} - {listing.only, *tagged})


def _head(listing: Listing, name: str) -> list[list[str]]:
    """Return the columns of the first lines of a file that hold tokens."""
    head = listing.head(name)
    lines = decoded_head(head).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    if len(head) >= HEAD_BYTES:
        del lines[-1]
    return [fields for line in lines if (fields := _fields(line)) and not _is_aside(fields)]


def _is_usual(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether lines end with tags, one of which begins an entity."""
    tagged = [fields for fields in rows if len(fields) > 1 and is_tag(fields[-1])]
    if len(tagged) < len(rows) * _LEAST_TAGGED:
        return False
    # The tags of iob's sentences have nothing but tags.
    has_tokens = any(not is_tag(fields[0]) for fields in tagged)
    return has_tokens and any(fields[-1] != OUTSIDE for fields in tagged)


def _places_in(rows: Sequence[Sequence[str]]) -> _Places | None:
    """Return the columns of tokens and tags if every line has both, as advice; None if unclear."""
    if len({len(fields) for fields in rows}) != 1:
        return None
    columns = [*enumerate(zip(*rows, strict=True))]
    tags = [at for at, cells in columns if all(map(_PLAIN_TAG.fullmatch, cells))]
    tokens = [at for at, cells in columns if at not in tags and not all(map(str.isdecimal, cells))]
    if not tokens or not any(cell != OUTSIDE for at in tags for cell in columns[at][1]):
        return None
    token = tokens[0]
    # Nested tags follow the token, the outer ones first; chunks come before entities.
    return _Places(token, token + 1 if token + 1 in tags else tags[-1])


def _check_places(file: ImportFile) -> None:
    """Check that tokens are in the first column, and tags in the last one.

    Raises: NotUnderstoodError: they are elsewhere, or are no tokens and tags.
    """
    rows = _head(file.around, file.path.removeprefix(file.around.root))
    first = ["\t".join(fields) for fields in rows[:_SHOWN]]
    if _is_usual(rows) and not all(fields[0].isdecimal() for fields in rows):
        return
    if form := foreign_formats.of_rows(first):
        raise form.error(file.path)
    places = _places_in(rows)
    if not places and not _is_usual(rows):
        return
    says = f"text={places.token + 1},label={places.tag + 1}" if places else ""
    options = {"format": "conll", "columns": says} if places else {}
    reason = "columns are in another order: expected the token first, its tag at the end; give both"
    shown = "\n".join(map(" | ".join, rows[:_SHOWN]))
    raise NotUnderstoodError(f"{file.path}: {reason}", shown=shown, options=options)


def _sentences(lines: Iterable[bytes], tag: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield the number of each sentence's first line, and its lines.

    The lines of a sentence that is too long end where it is.
    """
    for is_blank, group in groupby(enumerate(lines, start=1), key=lambda line: not line[1].strip()):
        sentence: list[bytes] = []
        first = size = 0
        for number, raw in () if is_blank else group:
            if not sentence and _is_aside(_fields(raw.decode("utf-8", "replace")), tag):
                continue
            first = first or number
            if size <= MAX_RECORD_BYTES:
                sentence.append(raw)
            size += len(raw)
        if sentence:
            yield first, sentence


def _tagged(
    sentence: Sequence[bytes], first: int, places: _Places
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tokens and the tags of a sentence. Raises: AnnotationError."""
    if sum(map(len, sentence)) > MAX_RECORD_BYTES:
        raise bad_line(f"a sentence must have at most {MAX_RECORD_BYTES} bytes; write blank lines")
    rows = [_fields(decode_line(raw, "line", "write a token on each line")) for raw in sentence]
    least, width = max(1, *places), len(rows[0])
    for number, fields in enumerate(rows, start=first):
        if len(fields) <= least or len(fields) != width:
            got = f"{' '.join(fields)!r:.40}"
            raise bad_annotation(f"line {number} lacks a token, a tag, or {width} columns ({got})")
        token = fields[places.token]
        if not token or " " in token:
            raise bad_annotation(f"the token {token!r:.40} of line {number} is empty or has blanks")
    return [it[places.token] for it in rows], [it[places.tag] for it in rows]


def _fields(line: str) -> list[str]:
    """Return the columns of a line; none if it is blank. No-break spaces are parts of a token."""
    line = line.rstrip(string.whitespace)
    return line.split("\t") if "\t" in line else [*filter(None, line.split(" "))]


def _is_aside(fields: Sequence[str], tag: int = -1) -> bool:
    """Return whether a line before a sentence is no token; ``tag`` is the column of its tag."""
    is_comment = fields[0].startswith("#") and not any(map(is_tag, fields[tag:][:1]))
    return fields[0] == _DOCUMENT or is_comment
