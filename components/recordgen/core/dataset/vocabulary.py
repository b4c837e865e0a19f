"""The label vocabulary: label texts and their numbers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from recordgen.errors import DataError, UsageError
from recordgen.messages import listed

#: The mode of rows without labels.
NO_LABELS = "none"
#: Labels keep their numbers if all are whole numbers.
AUTO_LABELS = "auto"

LABEL_MODES = (AUTO_LABELS, "text", "integer", NO_LABELS)

# "007" is a name, not a number: writing it back as 7 would lose it.
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


def _sparse_limit(distinct: int) -> int:
    """Return the largest vocabulary that whole-number labels may span.

    This is ten lines per label in use, and at least 1,000: class ids with gaps (ImageNet subsets,
    COCO's 90 ids for 80 classes) stay numbers; years, zip codes and database keys become text.
    """
    return max(1000, 10 * distinct)


@dataclass(frozen=True)
class Vocabulary:
    """An ordered vocabulary; a label's number is its index in ``names``."""

    kind: str  # `text` (sorted texts) or `integer` (`names[i] == str(i)`)
    names: tuple[str, ...]  # one label per line of `labels.txt`
    warnings: tuple[str, ...] = ()  # warnings about the choice of `kind`

    @cached_property
    def _index(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def index(self, label: str) -> int:
        """Return the number of ``label`` (``image/class/label``)."""
        return self._index[label]


def labels_text(names: Sequence[str]) -> str:
    """Return the content of ``labels.txt``: one label per line, by number."""
    return "".join(f"{name}\n" for name in names)


def parse_labels(text: str, path: str) -> Vocabulary:
    """Parse a ``labels.txt``; ``path`` is for messages.

    The lines ``cat``, ``dog`` → text, ``cat`` 0, ``dog`` 1; ``0``, ``1`` → whole numbers.

    Raises: DataError: there is no label, a line is empty, or two lines hold the same label.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    names = [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
    if not names:
        raise DataError(f"{path}: this file is empty; a vocabulary needs a label in each line")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(f"{path}:{number}: a vocabulary needs a label in each line (got none)")
        if name in first:
            raise DataError(
                f"{path}:{number}: the label {name!r} has a number already, from line "
                f"{first[name]}; name each label once"
            )
        first[name] = number
    return declared_vocabulary(names)


def declared_vocabulary(names: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of distinct labels in the order of their numbers."""
    is_integer = all(name == str(number) for number, name in enumerate(names))
    return Vocabulary("integer" if is_integer else "text", tuple(names))


def labels_digest(names: Sequence[str]) -> str:
    """Return the sha256 (hex) of ``labels.txt``: equal digests, equal numbers of equal labels."""
    return hashlib.sha256(labels_text(names).encode()).hexdigest()


def shown_labels(names: Sequence[str]) -> str:
    """Return labels for a message: ``'a', 'b', … (12 in all)``."""
    return listed(names)


def look_alikes(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of labels that differ only in case, blanks or Unicode form.

    ``["Cat", "cat", "dog", "hot dog", "hotdog"]`` → ``[("Cat", "cat"), ("hot dog", "hotdog")]``
    """
    found: dict[str, list[str]] = {}
    for name in names:
        plain = "".join(unicodedata.normalize("NFKC", name.casefold()).split())
        found.setdefault(plain, []).append(name)
    return [tuple(group) for group in found.values() if len(group) > 1]


def extend_vocabulary(known: Vocabulary, labels: Iterable[str]) -> Vocabulary:
    """Add labels to a vocabulary that records already use.

    New texts follow the old ones, sorted: ``cat`` 0, ``dog`` 1 and ``{"bee"}`` → ``bee`` 2.
    Whole-number labels keep their values.

    Raises: DataError: whole numbers do not go with one of ``labels``, or it is far larger.
    """
    new = sorted(set(labels) - set(known.names))
    if known.kind == "text":
        return Vocabulary("text", (*known.names, *new))
    odd = next((label for label in new if not _WHOLE_NUMBER.fullmatch(label)), None)
    if odd is not None:
        raise DataError(
            f"the existing labels are whole numbers, but {odd!r} is not; convert all rows again, "
            f"without --append and --vocabulary"
        )
    size = max([len(known.names), *(int(label) + 1 for label in new)])
    if size > _sparse_limit(len(known.names) + len(new)):
        raise DataError(
            f"the existing labels are whole numbers up to {len(known.names) - 1}, but {size - 1} "
            f"is far larger; convert all rows again, without --append and --vocabulary"
        )
    return Vocabulary("integer", tuple(map(str, range(size))))


def with_seen(known: Vocabulary, labels: Iterable[str]) -> Vocabulary:
    """Return a planned vocabulary with the labels that only the payloads of rows show."""
    new = set(labels) - set(known.names)
    if not new:
        return known
    return extend_vocabulary(known, new) if known.names else build_vocabulary(new)


def join_names(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the labels of several vocabularies, each once, the largest vocabulary first.

    ``("bee", "cat")``, ``("bee", "cat", "ape")``, ``("dog",)`` → ``bee cat ape dog``
    """
    longest_first = sorted(parts, key=len, reverse=True)
    return tuple(dict.fromkeys(name for names in longest_first for name in names))


def build_vocabulary(labels: Iterable[str], mode: str = "auto") -> Vocabulary:
    """Number the distinct ``labels`` of all splits together.

    Text is sorted by code point: ``{"dog", "cat"}`` → ``cat`` 0, ``dog`` 1. If every label is a
    whole number ≥ 0, the numbers are kept: ``{"0", "7"}`` → eight lines ``0`` … ``7``, and label 7
    stays 7. Sparse numbers (see ``_sparse_limit``) are treated as text, with a warning. ``mode``
    ``text`` or ``integer`` forces one; ``none`` allows no labels.

    Raises: DataError: the labels do not fit ``mode``; UsageError: ``mode`` is unknown.
    """
    if mode not in LABEL_MODES:
        raise UsageError(f"labels must be one of {', '.join(LABEL_MODES)} (got {mode!r})")
    distinct = sorted(set(labels))
    if mode == NO_LABELS and distinct:
        raise DataError(
            f"labels=none is for rows without labels, but some have them, such as "
            f"{shown_labels(distinct)}; omit it"
        )
    if mode == "text" or not distinct:
        return Vocabulary("text", tuple(distinct))
    odd = next((label for label in distinct if not _WHOLE_NUMBER.fullmatch(label)), None)
    if odd is not None:
        if mode == "integer":
            raise DataError(
                f"labels=integer needs every label to be a whole number ≥ 0 without leading "
                f"zeros (got {odd!r}); use labels=text or labels=auto"
            )
        return Vocabulary("text", tuple(distinct))
    size = max(int(label) for label in distinct) + 1
    if size <= _sparse_limit(len(distinct)):
        return Vocabulary("integer", tuple(map(str, range(size))))
    sparse = f"the {len(distinct)} whole-number labels reach up to {size - 1}"
    if mode == "integer":
        if size > 10_000_000:
            raise DataError(
                f"{sparse}: labels=integer would write {size} lines of labels.txt; use labels=text"
            )
        return Vocabulary("integer", tuple(map(str, range(size))))
    return Vocabulary(
        "text",
        tuple(distinct),
        (f"{sparse}, too sparse to keep; they are numbered as text (labels=integer keeps them)",),
    )
