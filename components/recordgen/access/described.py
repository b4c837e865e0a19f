"""A source of examples that have no ``dataset.json``."""

from __future__ import annotations

from dataclasses import dataclass

from recordgen.core.dataset.joining import join_datasets
from recordgen.core.dataset.manifest import Dataset


@dataclass(frozen=True)
class Described:
    """Examples without a ``dataset.json``, with what it would say: a source for all readers.

    Attributes:
        parts: each folder with its description.
        renumbered: as in :class:`recordgen.access.shards.ShardSet`.
    """

    parts: tuple[tuple[str, Dataset], ...]
    renumbered: bool = True

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders."""
        return tuple(root for root, _ in self.parts)

    @property
    def dataset(self) -> Dataset:
        """All descriptions joined."""
        return join_datasets(self.parts)

    def __str__(self) -> str:
        return ", ".join(self.roots)
