"""The user's selection of checks, of codes that fail a run, and of thresholds.

Codes may be written in any case; a level means all codes of the level, ``ALL`` all codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from recordgen.core.dataset.lint import ERROR, WARNING
from recordgen.errors import UsageError, did_you_mean
from recordgen.registry import CHECKS

#: The word for all codes.
ALL = "ALL"


@dataclass(frozen=True)
class Selection:
    """Selected checks."""

    codes: frozenset[str]
    fatal: frozenset[str]  # codes whose findings fail a conversion
    # By code, for checks that have one; similarity thresholds only if given.
    thresholds: Mapping[str, float]

    @cached_property  # read for each image
    def needs(self) -> frozenset[str]:
        """The facts that the selected checks need, see :mod:`recordgen.core.facts`."""
        return frozenset(fact for code in self.codes for fact in CHECKS[code].needs)

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, lint: tuple[str, ...], fail_on: tuple[str, ...] = ()) -> Selection:
        """Decode the options of these names.

        ``-CODE`` does not run; ``CODE=NUMBER`` runs with another threshold, and codes that
        ``fail_on`` names run. Unless ``lint`` names codes alone, the default ones run, too.

        Raises: UsageError: a code is unknown, or a threshold is not a number above 0.
        """
        ignored = [word[1:] for word in lint if word.startswith("-")]
        thresholds = dict(map(_threshold, (word for word in lint if "=" in word)))
        named = [word for word in lint if "=" not in word and not word.startswith("-")]
        default = frozenset(code for code, check in CHECKS.items() if check.is_default)
        failing = CHECKS.keys() & (word.upper() for word in fail_on)
        codes = _codes("lint", named) or default
        chosen = codes.union(failing, thresholds) - _codes("lint", ignored)
        usual = {code: check.threshold for code, check in CHECKS.items() if check.threshold}
        return cls(chosen, _codes("fail_on", fail_on), usual | thresholds)


def _codes(option: str, words: Iterable[str]) -> frozenset[str]:
    """Return the codes that words select; a level or ``ALL`` selects all of its codes.

    Raises: UsageError: a word is neither a code, a level nor ``ALL``.
    """
    groups = {ALL: frozenset(CHECKS)} | {
        level.upper(): frozenset(code for code, check in CHECKS.items() if check.level == level)
        for level in (ERROR, WARNING)
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
        each for each, check in CHECKS.items() if check.threshold is not None or check.is_similarity
    ]
    if code not in known:
        raise UsageError(
            f"lint: {word!r} must be CODE=NUMBER with one of {', '.join(known)}"
            f"{did_you_mean(code, known)}"
        )
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"lint: {code} needs a number above 0 (got {text!r})")
    if CHECKS[code].is_similarity and number > 1:
        raise UsageError(
            f"lint: {code} needs a similarity above 0 and at most 1, such as 0.8 (got {text!r})"
        )
    return code, number
