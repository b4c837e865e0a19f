"""Labels are names: a word or several, or a whole number.

The plan counts the labels of all rows before anything is written, so one check sees the labels of
every format. These are no names, and stop the run unless an option says that they are:

    0.25                       a fraction: an amount or a probability
    17, 42, 20, … (24 of 24)   whole numbers of which nearly every row has its own: ages, scores
    ['cat', 'dog']             a list
    cat|dog                    several labels in one field
    264661 17 265429 33        several numbers: runs of pixels, points
    n01629819 5 5 30 30        a name and a box
    <loc0100><loc0200> clock   tokens of a place
    labels/1.txt, 2020-01-31   a file or an address, a date
    A dog runs on a beach.     a text of each row
    TRAIN, TEST                words of ML_USE, if there is no other label
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from recordgen.core.dataset.splits import is_ml_use
from recordgen.errors import NotUnderstoodError
from recordgen.messages import listed

#: A list of labels in one field, as programs print it: ``[cat,dog]``, ``['a', 'b']``, ``{'a'}``.
LIST = re.compile(r"""\[.*\]|\{\s*(['"].*)?\}|\(\s*['"].*\)""", re.DOTALL)

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")
_HAS_NUMBERS = re.compile(rf"[\[({{]\s*{_NUMBER}\s*[\])}},\s]")

_FILES = "jpe?g|png|gif|bmp|tiff?|webp|mp4|avi|mov|wav|mp3|txt|csv|json|xml|npy|npz|mat|pkl"

# Forms that labels which are no names contain, with words for them and what reads such data.
_FORMS: Sequence[tuple[re.Pattern[str], str, str]] = (
    (
        re.compile(r"<[a-z]+\d+>"),
        "holds tokens of a place such as <loc0100>, which are boxes",
        "write them as columns xmin, ymin, xmax and ymax",
    ),
    (
        re.compile(rf"^{_NUMBER}(?:[\s,;]+{_NUMBER})+$"),
        "is several numbers, as of runs of pixels (RLE), boxes or points",
        "write masks as PNG files, or boxes as columns xmin, ymin, xmax and ymax",
    ),
    (
        re.compile(rf"(?:\s{_NUMBER}){{4}}$"),
        "is a name and the numbers of boxes",
        "write each box as a row, with columns xmin, ymin, xmax and ymax",
    ),
    (
        re.compile(r"^[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE]-\d+)$"),
        "is a fraction, such as an amount or a probability",
        "declare the columns with --schema (float_label) to predict numbers",
    ),
    (
        re.compile(rf"^\w+://|\w\.(?:{_FILES})$", re.IGNORECASE),
        "names a file, which is not read",
        "give the columns of masks or boxes, or pass the folder with --layout",
    ),
    (
        re.compile(r"^\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?$"),
        "is a date",
        "write the class instead",
    ),
)

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


def check_labels(counts: Mapping[str, int], forms: LabelForms) -> None:
    """Check that labels are names. ``counts``: rows by label, of all rows.

    Raises: NotUnderstoodError: a label is no name, or whole numbers are amounts.
    """
    if lists := [label for label in counts if LIST.fullmatch(label)]:
        raise _list_found(lists, counts, forms)
    _check_joined(counts, forms)
    for form, what, remedy in _FORMS:
        if odd := [label for label in counts if form.search(label)]:
            raise _odd(f"the label {min(odd)!r:.80} {what}; {remedy}", odd, counts)
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
    way = "; --label-separator ',' reads the labels of such a list" if forms.several else ""
    return _odd(f"{what}{way}", lists, counts, options=_separate(",", forms))


def _check_joined(counts: Mapping[str, int], forms: LabelForms) -> None:
    for separator in _SEPARATORS:
        joined = _joined(counts, separator)
        if not joined:
            continue
        parts = {part for label in joined for part in _parts(label, separator)}
        may_be_decimal = separator == "," and all(len(label.split(",")) == 2 for label in joined)
        if may_be_decimal and all(map(_WHOLE_NUMBER.fullmatch, parts)):
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
    are_words = not all(map(_WHOLE_NUMBER.fullmatch, counts))
    return are_words and len(counts) >= _ROWS_OF_CLASSES and max(counts.values()) == 1


def _are_amounts(counts: Mapping[str, int]) -> bool:
    """Return whether whole numbers have too few rows each to number classes."""
    if not all(map(_WHOLE_NUMBER.fullmatch, counts)):
        return False
    rows, different = sum(counts.values()), len(counts)
    numbers = {int(label) for label in counts}
    has_gaps = bool(numbers) and max(numbers) - min(0, *numbers) + 1 > different + 1
    return any(
        different > most and rows < few * different
        for most, few in (_NEARLY_ALL_DIFFERENT, *((_MANY_WITH_GAPS,) if has_gaps else ()))
    )
