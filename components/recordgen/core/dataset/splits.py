"""Splits: the words of ML_USE, the shares of the splits, and the seeded assignment by them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from recordgen.errors import SplitNotFoundError, UsageError, check_one_of, is_integer
from recordgen.messages import listed

TRAIN = "train"
EVAL = "eval"
TEST = "test"

#: The word of ML_USE for a split that is to be assigned.
UNASSIGNED = "unassigned"

#: TFX's Trainer, Evaluator and Transform look for ``train`` and ``eval`` by name.
SPLITS = (TRAIN, EVAL, TEST)

# Every word that names a split in a row, in the name of a folder or file, or as an input split.
# Vertex AI publishes and exports some ("About data splits for AutoML models"); people use the
# others in names of files and columns.
_PUBLISHED: Mapping[str, str | None] = {
    "train": TRAIN,
    "training": TRAIN,
    "validation": EVAL,
    "validate": EVAL,
    "test": TEST,
    UNASSIGNED: None,
}
_COMMON: Mapping[str, str | None] = {
    "val": EVAL,
    "valid": EVAL,
    "dev": EVAL,
    "devel": EVAL,
    "eval": EVAL,
    "evaluation": EVAL,
    "testing": TEST,
}
_ML_USE: Mapping[str, str | None] = {**_PUBLISHED, **_COMMON, "": None}

#: The words of ML_USE in lower case, without the empty one; and the words that Vertex AI publishes.
ML_USE_WORDS = tuple(filter(None, _ML_USE))
PUBLISHED_WORDS = tuple(_PUBLISHED)

#: The bits of the split hash that decide about :class:`EvalFrom`. ``SplitFractions`` uses the upper
#: bits, so the two choices are independent.
MOVE_BITS = (1 << 32) - 1

ML_USE_EXPECTED = "TRAIN, VALIDATION, TEST, UNASSIGNED or empty"

# Characters of a column's name or number. A pattern of these only would match the same text in
# every uri, so no useful pattern is mistaken for a column.
_COLUMN = re.compile(r"[\w -]+")

# "TSET" and "VALIDTION" are close to a word, "DOG" and "CAT" are not.
_CLOSE = 0.75

#: The code of the check that :func:`without_eval` explains.
NO_EVAL = "NO_EVAL"


def without_eval(eval_from: str) -> str:
    """Return that ``eval`` is missing, and the remedy, given the option ``eval_from``."""
    more = (
        f": eval_from={eval_from} moved none; give it a larger share"
        if eval_from
        else ", which TFX's Trainer and Evaluator need; eval_from=train:10 moves 10 % of train "
        "there"
    )
    return f"no example is in split eval{more}"


def split_order(split: str) -> tuple[int, str]:
    """Return the sort key of a split: train, eval, test, then others by name."""
    return (SPLITS.index(split) if split in SPLITS else len(SPLITS)), split


def is_ml_use(text: str) -> bool:
    """Return whether ``text`` is a word of ML_USE in any case; the empty text is one."""
    return text.lower() in _ML_USE


def word_in_folders(path: str) -> str | None:
    """Return the word of ML_USE that the innermost folder of a path is named after, if any.

    ``images/val2017/1.jpg`` → ``"val"``
    """
    words = (folder.rstrip("0123456789") for folder in reversed(path.split("/")[:-1]))
    return next((word for word in words if word and is_ml_use(word)), None)


def parse_ml_use(text: str) -> str | None:
    """Return the split that a word of ML_USE names, or None if one is to be assigned.

    ``TRAIN``, ``training`` → ``"train"``; ``Validate``, ``val``, ``dev`` → ``"eval"``;
    ``UNASSIGNED`` → None.

    Raises: ValueError: the word is unknown; the message names the word that was probably meant.
    """
    try:
        return _ML_USE[text.lower()]
    except KeyError:
        meant = near_ml_use(text)
        hint = f"; did you mean {meant}?" if meant else ""
        raise ValueError(f"ml_use must be {ML_USE_EXPECTED} (got {text!r}{hint})") from None


def split_named(name: str) -> str:
    """Return the split that a name means: ``val`` → ``"eval"``; other names stay."""
    return (parse_ml_use(name) if is_ml_use(name) else None) or name


def near_ml_use(text: str, likeness: float = _CLOSE) -> str | None:
    """Return the published word of ML_USE that ``text`` misspells, in capitals, or None.

    ``TRIAN`` → ``TRAIN``; ``validaton`` → ``VALIDATION``; ``cat`` → None. Short words such as
    ``val`` are no candidates: too many other words are close to them.
    """
    found = get_close_matches(text.lower(), PUBLISHED_WORDS, cutoff=likeness)
    return found[0].upper() if found else None


@dataclass(frozen=True, slots=True)
class EvalFrom:
    """A share of one split that moves to ``eval``, such as 10 % of ``train``."""

    split: str  # the split that gives rows to `eval`
    percent: float  # how many rows in a hundred, above 0 and below 100

    @classmethod
    def parse(cls, text: str) -> EvalFrom:
        """Parse ``SPLIT:PERCENT``: ``"train:10"``, ``"TRAIN:2.5"``.

        Raises: UsageError: it has another form, or the split is ``eval`` itself.
        """
        name, _, number = text.rpartition(":")
        split = parse_ml_use(name) if is_ml_use(name) else name
        try:
            percent = float(number)
        except ValueError:
            percent = math.nan
        if not split or split == EVAL or not 0 < percent < 100:
            raise UsageError(
                f"eval_from must be a split other than eval and a percentage between 0 and 100, "
                f"such as train:10 (got {text!r})"
            )
        return cls(split, percent)

    @property
    def end(self) -> int:
        """The first value of the bits :data:`MOVE_BITS` that stays in the split."""
        return round(self.percent / 100 * (MOVE_BITS + 1))

    def __str__(self) -> str:
        return f"{self.split}:{self.percent:g}"


@dataclass(frozen=True, slots=True)
class GroupBy:
    """The group of rows that must share a split: a patient, a video or a session."""

    # Name, JSON key or number (from 1) of the column that names the group, or empty.
    column: str = ""
    pattern: str = ""  # regular expression that finds the group in a uri, or empty

    @classmethod
    def parse(cls, text: str) -> GroupBy:
        r"""Parse the name of a column, or a regular expression: ``"patient_id"``, ``"(p\d+)/"``.

        A text of letters, digits, underscores, hyphens and blanks is a column; any other text is a
        regular expression.

        Raises: UsageError: the expression is invalid, or matches the empty text.
        """
        name = text.strip()
        if _COLUMN.fullmatch(name):
            return cls(column=name)
        try:
            pattern = re.compile(text)
        except re.error as exc:
            raise UsageError(
                f"group_by must be the name of a column or a regular expression such as "
                f"'(patient\\d+)/' ({exc}; got {text!r}); give the number of a column whose name "
                f"has characters other than letters, digits, _, - and blanks"
            ) from exc
        if pattern.fullmatch(""):
            raise UsageError(
                f"group_by must match something in every uri (got {text!r}, which matches the "
                f"empty text); an example is '(patient\\d+)/'"
            )
        return cls(pattern=text)

    def find(self, uri: str) -> str | None:
        r"""Return the group that the pattern finds in a uri, or None.

        ``"(p\d+)/"`` finds ``p7`` in ``scans/p7/1.jpg``: the first group in parentheses, or the
        whole match if there is none.
        """
        found = re.search(self.pattern, uri)
        return (found[1] if found.re.groups else found[0]) or None if found else None

    def __str__(self) -> str:
        return self.column or self.pattern


def find_split(where: str, split: str, there: Sequence[str]) -> str:
    """Return the name under which a dataset has a split; ``where`` is for the message.

    ``"validation"``, ``"val"``, ``"eval"`` → ``"eval"``, unless a split has exactly that name.

    Raises: SplitNotFoundError: there is no such split.
    """
    for name in (split, split_named(split)):
        if name in there:
            return name
    raise SplitNotFoundError(
        f"{where}: no split {split!r} here, only {listed(there, str) or 'none'}; a split without "
        f"examples is not written"
    )


# The value of a setting that is detected.
_AUTO = "auto"


@dataclass(frozen=True, slots=True)
class SplitFractions:
    """Named shares for rows that name no split, such as train 80, eval 10, test 10."""

    names: tuple[str, ...]  # the splits, in the order of their shares
    weights: tuple[int, ...]  # one whole number ≥ 0 per split; only their ratio counts

    def __post_init__(self) -> None:
        if len(self.names) != len(self.weights) or not self.names:
            raise UsageError(
                f"split fractions need one weight per split (got {len(self.names)} names and "
                f"{len(self.weights)} weights)"
            )
        if min(self.weights) < 0 or sum(self.weights) == 0:
            raise UsageError(f"split fractions must be ≥ 0 with a sum above 0 (got {self.weights})")

    @classmethod
    def of(cls, given: object) -> SplitFractions:
        """Return the shares that text, a sequence of numbers or a mapping by split names gives.

        ``"80,10,10"`` (train, eval, test; trailing splits may be omitted), ``[80, 10, 10]``,
        ``{"train": 80, "validation": 20}``

        Raises: UsageError: it is something else, or all numbers are 0.
        """
        if isinstance(given, SplitFractions):
            return given
        shares: Any = _parsed(given) if isinstance(given, str) else given
        names: Sequence[object] = ()
        if isinstance(shares, Mapping):
            names = [split_named(name) if isinstance(name, str) else name for name in shares]
            shares = list(shares.values())
        elif isinstance(shares, Sequence) and not isinstance(shares, bytes):
            names = SPLITS[: len(shares)]
        known = [split for split in SPLITS if split in names]
        if not names or len(known) != len(shares) or not all(map(is_integer, shares)):
            raise UsageError(
                f"split must be whole numbers for train, eval and test, such as '80,10,10', "
                f"[80, 10, 10] or {{'train': 80, 'eval': 20}} (got {given!r:.80})"
            )
        return cls(tuple(map(str, names)), tuple(map(int, shares)))

    def __str__(self) -> str:
        return ",".join(map("{}:{}".format, self.names, self.weights))


def _parsed(text: str) -> Mapping[str, object] | Sequence[object]:
    """Return the shares in a text by name, or in their order; what is no number stays text."""
    pairs = [item.strip().rpartition(":") for item in text.split(",")]
    numbers = [int(it) if it.strip().lstrip("-").isdecimal() else it for *_, it in pairs]
    named = {name: number for (name, *_), number in zip(pairs, numbers, strict=True)}
    return named if any(named) else numbers


DEFAULT_FRACTIONS = SplitFractions(SPLITS, (80, 10, 10))


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Where rows that name no split go."""

    fractions: SplitFractions = DEFAULT_FRACTIONS  # the shares of the splits
    # Whether such rows get the split in the name of their import file or its folder: `auto`, `yes`
    # or `no`.
    names: str = _AUTO

    @classmethod
    def of(
        cls, given: str | Sequence[int] | Mapping[str, int | str] | SplitFractions | SplitRule
    ) -> SplitRule:
        """Decode ``"80,10,10"``, ``"train:80,eval:20"``, ``"90,10,names=no"`` or ``"names=yes"``.

        A sequence of numbers and a mapping by names of splits, perhaps with ``names``, are the
        same.

        Raises: UsageError: it is something else.
        """
        if isinstance(given, SplitRule):
            return given
        named: list[str] = []
        if isinstance(given, str):
            items = [item.strip() for item in given.split(",") if item.strip()]
            named = [item.partition("=")[2] for item in items if item.startswith("names=")]
            given = ",".join(item for item in items if not item.startswith("names="))
        elif isinstance(given, Mapping):
            named = [str(given["names"])] if "names" in given else []
            given = {name: share for name, share in given.items() if name != "names"}
        names = named[-1] if named else _AUTO
        check_one_of("split: names", names, (_AUTO, "yes", "no"))
        is_unset = not given if named else isinstance(given, str) and not given
        return cls(DEFAULT_FRACTIONS if is_unset else SplitFractions.of(given), names)

    @property
    def recorded(self) -> str:
        """The rule as ``dataset.json`` has it: each share with the name of its split."""
        return f"{self.fractions}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.names == _AUTO else f",names={self.names}"

    def __str__(self) -> str:
        """Return text for :meth:`of`."""
        fractions = self.fractions
        is_plain = fractions.names == SPLITS[: len(fractions.names)]
        shares = ",".join(map(str, fractions.weights)) if is_plain else str(fractions)
        return f"{shares}{self._suffix}"
