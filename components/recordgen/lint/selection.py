"""Which checks the user wants, which findings fail a run, and from which number on.

Codes may be spelled in any case; a level stands for all codes of that level, ``ALL`` for all. A
check that opens payloads runs only if its own code is selected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from recordgen.errors import UsageError, did_you_mean
from recordgen.lint.codes import (
    ALL,
    BY_DEFAULT,
    CHECKS,
    ERROR,
    LIKENESS,
    ODD_COLUMNS,
    ON_LOOKS,
    WARNING,
)


@dataclass(frozen=True)
class Selection:
    """What is looked for.

    Attributes:
        codes: the checks that run.
        fatal: those whose findings fail a conversion.
        thresholds: by code, of the checks that have one; of those of likeness, only what is given.
    """

    codes: frozenset[str]
    fatal: frozenset[str]
    thresholds: Mapping[str, float]

    @property
    def needs_looks(self) -> bool:
        """Whether a check looks at each image or text."""
        return not self.codes.isdisjoint(ON_LOOKS)

    @property
    def needs_rows(self) -> bool:
        """Whether a check looks at rows of tables as they are."""
        return any(CHECKS[code].finder == ODD_COLUMNS for code in self.codes)

    @classmethod
    @lru_cache(maxsize=16)
    def of(
        cls,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        fail_on: tuple[str, ...],
        threshold: tuple[str, ...],
    ) -> Selection:
        """Decode the options of these names.

        Args:
            select: codes; empty: all that open no payload.
            ignore: codes that are left out of them.
            fail_on: codes.
            threshold: words of the form ``CODE=NUMBER``.

        Raises:
            UsageError: a code is unknown, or a threshold is no number above 0.
        """
        codes = _codes("select", select, BY_DEFAULT) or BY_DEFAULT
        return cls(
            codes - _codes("ignore", ignore, CHECKS),
            _codes("fail_on", fail_on, CHECKS),
            {
                **{code: check.threshold for code, check in CHECKS.items() if check.threshold},
                **dict(map(_threshold, threshold)),
            },
        )


def _codes(option: str, words: Iterable[str], grouped: Collection[str]) -> frozenset[str]:
    """Return the codes that words stand for.

    Args:
        option: what gives the words.
        words: codes, levels and ``ALL``.
        grouped: the codes that a level and ``ALL`` stand for.

    Raises:
        UsageError: a word is none of these.
    """
    groups = {
        ALL: frozenset(grouped),
        **{
            level.upper(): frozenset(code for code in grouped if CHECKS[code].level == level)
            for level in (ERROR, WARNING)
        },
    }
    found: frozenset[str] = frozenset()
    for word in words:
        code = word.upper()
        if code not in groups and code not in CHECKS:
            raise UsageError(
                f"{option}: no check is named {word!r}{did_you_mean(code, (*CHECKS, *groups))}"
            )
        found |= groups.get(code, frozenset((code,)))
    return found


def _threshold(word: str) -> tuple[str, float]:
    name, _, text = word.partition("=")
    code = name.strip().upper()
    known = [
        each for each, check in CHECKS.items() if check.threshold is not None or each in LIKENESS
    ]
    if code not in known:
        raise UsageError(
            f"threshold: {word!r} must be CODE=NUMBER with one of {', '.join(known)}"
            f"{did_you_mean(code, known)}"
        )
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"threshold: {code} needs a number above 0 (got {text!r})")
    if code in LIKENESS and number > 1:
        raise UsageError(
            f"threshold: {code} needs a likeness above 0 and at most 1, such as 0.8 (got {text!r})"
        )
    return code, number
