"""A row's uri and annotation: their errors, and the checks that formats and tasks share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from recordgen.core.dataset.manifest import LABELS_FILE, Dataset
from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.limits import LABEL_LETTERS
from recordgen.core.records.example import parse_record
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import RecordError
from recordgen.features import IMAGE_CHANNELS, IMAGE_ENCODED, OBJECTS, FeatureSpec
from recordgen.messages import shortened
from recordgen.messages.masking import may_hold_secrets
from recordgen.registry import TASKS
from recordgen.rejects import Reject, RejectCode

# In uris of payloads that rows contain.
_CONTENT_MARK = "sha256:"

# Redundant separators in a path: "a/./b", "a//b".
_NEEDLESS = re.compile(r"/(?:\.?/)+")

# A missing value that pandas turned into text before it wrote it: str(float("nan")); or MySQL's.
_MISSING = frozenset({"nan", "<na>", "\\n"})


class AnnotationError(ValueError):
    """An annotation that cannot be used.

    Attributes:
        message: what was found, what was expected, and the remedy.
    """

    def __init__(self, code: RejectCode, message: str) -> None:
        self.message = shortened(message)
        super().__init__(self.message)
        self.code = code

    def reject(self, source: str, line: int, uri: str = "") -> Reject:
        """Return the reject of a line."""
        return Reject(source, line, printable(uri), self.code.value, self.message)


def bad_annotation(message: str) -> AnnotationError:
    """Return the error of an annotation that the task does not understand."""
    return AnnotationError(RejectCode.BAD_ANNOTATION, message)


def bad_line(message: str) -> AnnotationError:
    """Return the error of a line that is no row."""
    return AnnotationError(RejectCode.BAD_LINE, message)


class Merged(NamedTuple):
    """The rows of one payload, merged."""

    annotation: str | None  # the merged annotation; None if no row has one
    duplicates: int  # number of rows, from the second on, that add nothing


class RowContent(NamedTuple):
    """The payload and the annotation of a row, as a line or a stored example gives them."""

    uri: str  # uri of the payload; empty if the row has none
    annotation: str | None  # see Row


def named_split(word: str, column: str = "") -> str | None:
    """Return the split that a row names, or None. Raises: AnnotationError, names the column."""
    try:
        return parse_ml_use(word)
    except ValueError as exc:
        where = f"column {column!r}: " if column else ""
        raise AnnotationError(RejectCode.UNKNOWN_ML_USE, f"{where}{exc}") from exc


def check_label(label: str) -> str:
    """Return a label if it can be written to a text file and read back.

    Raises:
        AnnotationError: the label is the word for a missing value, contains a line break, is not
            Unicode text, or is longer than a name.
    """
    if label.lower() in _MISSING:
        raise bad_annotation(
            f"the label {label!r} is what pandas or MySQL writes for a missing value; leave the "
            f"field empty (pandas does, before astype(str)), or rename the class",
        )
    if len(label) > LABEL_LETTERS.most:
        raise bad_annotation(
            f"a label must have at most {LABEL_LETTERS.most:,} letters (got {len(label):,}: "
            f"{printable(label)!s:.80}…)"
        )
    return check_text(label)


def check_text(label: str) -> str:
    """Return a path or label if it is one line of Unicode text. Raises: AnnotationError."""
    if label.isprintable():
        return label
    try:
        label.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AnnotationError(
            RejectCode.BAD_ENCODING, "the path or label is not Unicode text"
        ) from exc
    if len(label.splitlines()) > 1:
        raise bad_line("a path or label must not hold a line break")
    return label


def check_uri(uri: str) -> str:
    """Return the address of a payload, a path without ``.`` or empty folders.

    So ``./a.jpg`` and ``b//a.jpg`` are the images ``a.jpg`` and ``b/a.jpg``. Other spellings stay:
    behind a link, ``b/../a.jpg`` is another file; an object store takes names literally; and
    ``//me:pw@host/a.jpg`` may be a URL with secrets, which are removed from a whole one.

    Raises:
        AnnotationError: the address contains a line break, is not Unicode text, or has the scheme
            reserved for payloads that rows contain.
    """
    if is_content_uri(uri):
        raise AnnotationError(
            RejectCode.UNKNOWN_SCHEME,
            f"no storage is known for sha256:// (got {printable(uri)!s:.80}); name the file, or "
            f"write a text into its row",
        )
    has_needless = "://" not in uri and ("./" in uri or "//" in uri)
    if has_needless and not (uri.startswith("//") and may_hold_secrets(uri)):
        uri = _NEEDLESS.sub("/", uri).removeprefix("./") or uri
    return check_text(uri)


def are_clean_uris(text: str) -> bool:
    """Return whether :func:`check_uri` accepts all uris in a text as they are."""
    has_needless = "./" in text or text.count("//") > text.count("://")
    return not has_needless and _CONTENT_MARK not in text and text.isprintable()


def printable(text: str) -> str:
    """Return text for a message, escaped if it is not printable."""
    return text if text.isprintable() else ascii(text)


# Suffix of image features, after ``image`` or the name of a column.
_IMAGE_BYTES = "/encoded"


def stored_features(dataset: Dataset) -> Mapping[str, FeatureSpec]:
    """Return the specs of all features by name, from the dataset or else from its task."""
    if dataset.features or dataset.task not in TASKS:
        return dataset.features
    known = TASKS[dataset.task].features
    if dataset.objects:
        known = {**known, **{name: OBJECTS[name] for name in dataset.objects if name in OBJECTS}}
    if IMAGE_ENCODED in known and dataset.encoding.pixels:
        return {**known, IMAGE_CHANNELS: FeatureSpec("int64", 0)}
    return known


# What the values of a feature are; of arrays, their bytes.
_TYPES = {"int64": (int, "whole numbers"), "float32": (float, "numbers")}
_BYTES = (bytes, "text or bytes")


def declared_values(record: bytes, where: str, specs: Mapping[str, FeatureSpec]) -> dict[str, Any]:
    """Parse a record whose features are declared; it may have others.

    Raises: RecordError: it is damaged, at ``where``, or a feature has values of another type, or
        several of them instead of one.
    """
    values = parse_record(record, where)
    for name, found in values.items():
        if name not in specs or not found:
            continue
        kind, what = _TYPES.get(specs[name].dtype, _BYTES)
        if type(found[0]) is not kind:
            raise RecordError(f"{where}: {name} must be {what} (got {found[0]!r:.80})")
        if specs[name].shape == () and len(found) > 1:
            raise RecordError(f"{where}: {name} must be one value (got {len(found):,})")
    return values


def is_image(feature: str) -> bool:
    """Return whether a feature holds the bytes of an image: ``image/encoded``, ``day/encoded``."""
    return feature.endswith(_IMAGE_BYTES)


#: The names of the files that name labels in any of Recordgen's own tasks.
LABEL_FILES = ("label_map.pbtxt", LABELS_FILE, "tags.txt")


def label_files(dataset: Dataset) -> Mapping[str, str]:
    """Return the contents of the files that name the labels, by file name."""
    if dataset.task not in TASKS:  # written from Python, or by a package that is not installed
        return {}
    return {LABELS_FILE: labels_text(dataset.labels), **TASKS[dataset.task].files(dataset.labels)}
