"""Shares of the splits, for rows that name none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from recordgen.core.dataset.splits import SPLITS, split_named
from recordgen.errors import UsageError

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
        if not names or len(known) != len(shares) or not _are_whole(shares):
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


def _are_whole(values: Sequence[object]) -> bool:
    return all(isinstance(value, Integral) and not isinstance(value, bool) for value in values)


DEFAULT_FRACTIONS = SplitFractions(SPLITS, (80, 10, 10))


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Where rows that name no split go."""

    fractions: SplitFractions = DEFAULT_FRACTIONS  # the shares of the splits
    # Whether such rows get the split in the name of their import file or its folder: `auto`, `yes`
    # or `no`.
    names: str = _AUTO

    @classmethod
    def of(cls, given: Any) -> SplitRule:
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
        if names not in (_AUTO, "yes", "no"):
            raise UsageError(f"split: names must be one of auto, yes, no (got {names!r})")
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
