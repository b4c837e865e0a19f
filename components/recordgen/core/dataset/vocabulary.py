"""The label vocabulary: label texts and their numbers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recordgen.core.dataset.splits import is_ml_use
from recordgen.errors import DataError, NotUnderstoodError, check_one_of
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

    def features(self, labels: Sequence[str], names: tuple[str, str]) -> dict[str, Any]:
        """Return the texts and the numbers of labels, in the order of their numbers.

        ``names`` are the features of the texts and of the numbers; without labels, there are none.
        """
        if len(labels) == 1:
            return dict(zip(names, (labels[0].encode(), self.index(labels[0])), strict=True))
        numbered = sorted((self.index(label), label) for label in labels)
        texts = [label.encode() for _, label in numbered]
        numbers = [number for number, _ in numbered]
        return dict(zip(names, (texts, numbers), strict=True)) if numbered else {}


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
    check_one_of("labels", mode, LABEL_MODES)
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


#: A list of labels in one field, as programs print it: ``[cat,dog]``, ``['a', 'b']``, ``{'a'}``.
LIST = re.compile(r"""\[.*\]|\{\s*(['"].*)?\}|\(\s*['"].*\)""", re.DOTALL)

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_INTEGER = re.compile(r"[-+]?\d+")
_HAS_OBJECTS = re.compile(r"(?<!^)\{|[\[(]\s*[\[(]")
_HAS_NUMBERS = re.compile(rf"[\[({{]\s*{_NUMBER}\s*[\])}},\s]")


_FILES = "jpe?g|png|gif|bmp|tiff?|webp|mp4|avi|mov|wav|mp3|txt|csv|json|xml|npy|npz|mat|pkl"

# Forms that labels which are no names contain, with words for them and what reads such data.
_FORMS: Mapping[str, str] = {
    r"<[a-z]+_?\d+>": (
        "holds tokens of a place such as <loc0100>, which are boxes; write them as columns xmin, "
        "ymin, xmax and ymax"
    ),
    rf"^{_NUMBER}(?:[\s,;]+{_NUMBER})+$": (
        "is several numbers, as of runs of pixels (RLE), boxes or points; write masks as PNG "
        "files, or boxes as columns xmin, ymin, xmax and ymax"
    ),
    rf"(?:\s{_NUMBER}){{4}}$": (
        "is a name and the numbers of boxes; write each box as a row, with columns xmin, ymin, "
        "xmax and ymax"
    ),
    r"^[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE]-\d+)$": (
        "is a fraction, such as an amount or a probability; declare the columns with --schema "
        "(float_label) to predict numbers"
    ),
    rf"(?i)^\w+://|\w\.(?:{_FILES})$": (
        "names a file, which is not read; give the columns of masks or boxes, or pass the folder "
        "with --layout"
    ),
    r"""^(['"]).*\1$""": "is in quotes, which are no part of a name; remove them",
    r"^\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?$": "is a date; write the class instead",
}

# What CheXpert's columns hold: 1 is yes, 0 is no, -1 is uncertain; empty fields are no.
_UNSURE, _YES_OR_NO = frozenset({"-1", "-1.0"}), frozenset({"0", "0.0", "1", "1.0"})

# Of so many rows, some share a class.
_ROWS_OF_CLASSES = 10

# So many labels joined by blanks have fewer parts than names of several words have.
_MANY_JOINED = 10

# In the order in which they are tried. The last ones also occur inside names.
_SEPARATORS = ("|", ";", ",", "/", "+", "&", "#", " ")

# Whole numbers are amounts if each has fewer rows than the second number, and there are more of
# them than the first: ages of 24 people are, the 10 digits and the 1,000 classes of ImageNet not.
_NEARLY_ALL_DIFFERENT, _MANY_WITH_GAPS = (10, 2), (30, 10)


@dataclass(frozen=True, kw_only=True)
class LabelForms:
    """What the labels of a run may be mistaken for."""

    # The task of rows with several labels, if their fields may hold several; empty otherwise.
    several: str = ""
    is_several: bool = False  # the run has that task
    # A label is all that a row says, so it may also be a split or a number to predict.
    is_alone: bool = False
    # -1 may mean that a label is uncertain, as in CheXpert; sentiments of texts are often -1.
    may_be_unsure: bool = False


def check_labels(counts: Mapping[str, int], unlabelled: int, forms: LabelForms) -> None:
    """Check that labels are names. ``counts``: rows by label; ``unlabelled``: those without one.

    Raises: NotUnderstoodError: a label is no name, or whole numbers are amounts.
    """
    minus = counts.keys() & _UNSURE
    if forms.may_be_unsure and unlabelled and minus and counts.keys() <= _UNSURE | _YES_OR_NO:
        what = (
            f"the labels are {listed(sorted(counts))}, and {unlabelled:,} rows have none: -1 may "
            f"be a class, or uncertain, which --columns label=…,uncertain=0 reads as 0, and "
            f"uncertain=1 as 1; both read an empty field as 0"
        )
        raise _odd(what, minus, counts)
    if lists := [label for label in counts if LIST.fullmatch(label)]:
        raise _list_found(lists, counts, forms)
    _check_joined(counts, forms)
    for form, what in _FORMS.items():
        if odd := [label for label in counts if re.search(form, label)]:
            raise _odd(f"the label {min(odd)!r:.80} {what}", odd, counts)
    if forms.is_alone and counts and all(map(is_ml_use, counts)):
        what = f"all labels are words of ML_USE ({listed(sorted(counts), str)}), which name splits"
        raise _odd(f"{what}; name their column with --columns split=", counts, counts)
    if forms.is_alone and _are_all_different(counts):
        what = f"each of {len(counts):,} rows has a label of its own, as captions and names of rows"
        raise _odd(what, counts, counts)
    if forms.is_alone and _are_amounts(counts):
        rows, fewest = sum(counts.values()), min(counts, key=int)
        raise _odd(
            f"{rows:,} rows have {len(counts):,} different whole numbers as labels, from {fewest}: "
            f"numbers to predict, such as ages or scores; declare the columns with --schema "
            f"(float_label), or confirm with labels=integer that they number classes",
            counts,
            counts,
            confirm="",
        )


def _odd(
    reason: str,
    odd: Collection[str],
    counts: Mapping[str, int],
    *,
    options: Mapping[str, str] | None = None,
    confirm: str = "; if the labels are names as they are, use labels=text",
) -> NotUnderstoodError:
    often = sorted(odd, key=lambda label: (-counts[label], label))[:3]
    shown = "\n".join(f"label {label!r:.80}: {counts[label]:,} rows" for label in often)
    return NotUnderstoodError(f"{reason}{confirm}", shown=shown, options=options)


def _separate(separator: str, forms: LabelForms) -> Mapping[str, str]:
    """Return the options that read several labels of a field; none if the rows have no fields."""
    task = {} if forms.is_several else {"task": forms.several}
    return {**task, "label_separator": separator} if forms.several else {}


def _list_found(
    lists: Sequence[str], counts: Mapping[str, int], forms: LabelForms
) -> NotUnderstoodError:
    what = f"the label {min(lists)!r:.80} is in brackets"
    if any(map(_HAS_NUMBERS.match, lists)):
        return _odd(
            f"{what}: numbers of a box, or one-hot labels, whose classes must be named: --columns "
            f"'label=COLUMN[cat|dog|…]'",
            lists,
            counts,
        )
    if any(map(_HAS_OBJECTS.search, lists)):
        return _odd(f"{what}: objects, whose parts are no labels", lists, counts)
    way = "; --label-separator ',' reads the labels of such a list" if forms.several else ""
    return _odd(f"{what}{way}", lists, counts, options=_separate(",", forms))


def _check_joined(counts: Mapping[str, int], forms: LabelForms) -> None:
    for separator in _SEPARATORS:
        joined = _joined(counts, separator)
        if not joined:
            continue
        parts = {part for label in joined for part in _parts(label, separator)}
        may_be_decimal = separator == "," and all(len(label.split(",")) == 2 for label in joined)
        if may_be_decimal and all(map(_INTEGER.fullmatch, parts)):
            raise _odd(
                f"the label {joined[0]!r:.80} has a decimal comma, or is two labels, which "
                f"--label-separator ',' reads",
                joined,
                counts,
            )
        raise _odd(
            f"the label {joined[0]!r:.80} looks like several labels joined by {separator!r}",
            joined,
            counts,
            options=_separate(separator, forms),
        )


def _joined(labels: Collection[str], separator: str) -> Sequence[str]:
    """Return the labels that are several, joined by a sign; none in doubt.

    A bar joins labels. Other signs do if all parts are labels, too; commas and semicolons also if
    half of the parts of several labels recur; blanks if many labels have few different parts.
    """
    parts = {label: _parts(label, separator) for label in labels if separator in label}
    joined = sorted(label for label, found in parts.items() if len(found) > 1)
    if separator == "|" or not joined:
        return joined
    each = [part for label in joined for part in parts[label]]
    if all(part in labels for part in each):
        return joined
    if separator == " ":  # of names, words are mostly more than names
        is_vocabulary = len(joined) >= _MANY_JOINED and len({*each}) * 2 < len(joined)
        return joined if is_vocabulary else ()
    if separator in ";,":
        times = Counter(each)
        again = sum(times[part] + (part in labels) > 1 for part in each)
        return joined if len(joined) > 1 and again * 2 >= len(each) else ()
    return ()


def _parts(label: str, separator: str) -> frozenset[str]:
    return frozenset(map(str.strip, label.split(separator))) - {""}


def _are_all_different(counts: Mapping[str, int]) -> bool:
    """Return whether many rows each have a label of their own, as captions and names of rows."""
    are_words = not all(map(_INTEGER.fullmatch, counts))
    return are_words and len(counts) >= _ROWS_OF_CLASSES and max(counts.values()) == 1


def _are_amounts(counts: Mapping[str, int]) -> bool:
    """Return whether whole numbers have too few rows each to number classes."""
    if not all(map(_INTEGER.fullmatch, counts)):
        return False
    rows, different = sum(counts.values()), len(counts)
    numbers = {int(label) for label in counts}
    has_gaps = bool(numbers) and max(numbers) - min(0, *numbers) + 1 > different + 1
    return any(
        different > most and rows < few * different
        for most, few in (_NEARLY_ALL_DIFFERENT, *((_MANY_WITH_GAPS,) if has_gaps else ()))
    )
