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
        if isinstance(given, str):
            try:
                weights = tuple(map(int, given.split(",")))
            except ValueError:
                weights = ()
            if not 1 <= len(weights) <= len(SPLITS):
                raise UsageError(
                    f"split fractions must be up to three whole numbers for train,eval,test, such "
                    f"as 80,10,10 (got {given!r})"
                )
            return cls(SPLITS[: len(weights)], weights)
        if isinstance(given, Mapping):
            names = [split_named(name) if isinstance(name, str) else "" for name in given]
            shares = list(given.values())
            if sorted(names) == sorted(set(names) & set(SPLITS)) and _are_whole(shares):
                return cls(tuple(names), tuple(map(int, shares)))
        elif isinstance(given, Sequence) and not isinstance(given, bytes) and _are_whole(given):
            return cls.of(",".join(str(int(weight)) for weight in given))
        raise UsageError(
            f"split must be whole numbers for train, eval and test, such as '80,10,10', "
            f"[80, 10, 10] or {{'train': 80, 'eval': 20}} (got {given!r:.80})"
        )

    def __str__(self) -> str:
        return ",".join(map("{}:{}".format, self.names, self.weights))


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
        if isinstance(given, str):
            items = [item.strip() for item in given.split(",") if item.strip()]
            settings = [item.partition("=")[2] for item in items if item.startswith("names=")]
            shares: Any = [item for item in items if not item.startswith("names=")]
            if any(":" in item for item in shares):
                shares = {
                    name: int(share) if share.strip().isdecimal() else share
                    for name, _, share in (item.partition(":") for item in shares)
                }
            else:
                shares = ",".join(shares)
        elif isinstance(given, Mapping):
            settings = [str(given["names"])] if "names" in given else []
            shares = {name: share for name, share in given.items() if name != "names"}
        else:
            settings, shares = [], given
        names = settings[-1] if settings else _AUTO
        if names not in (_AUTO, "yes", "no"):
            raise UsageError(f"split: names must be one of auto, yes, no (got {names!r})")
        is_unset = not shares and (bool(settings) or isinstance(given, str))
        return cls(DEFAULT_FRACTIONS if is_unset else SplitFractions.of(shares), names)

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
