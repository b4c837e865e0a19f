"""Examples without a ``dataset.json``: what a user says about them, and a source for readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from recordgen.core.dataset.joining import join_datasets
from recordgen.core.dataset.manifest import Dataset


@dataclass(frozen=True, slots=True)
class Description:
    """What records do not say about themselves; the fields are keys of a ``custom_config``."""

    task: str = ""
    columns: str = ""  # of a table, its roles: `target=quality`, or `target:class=quality,weight=w`
    # The dataset that they were made from, as a folder, a URL or a `dataset.json`: its task,
    # labels, target and weights are theirs.
    dataset_json: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> Description:
        """Return the description in a ``custom_config``."""
        given = values or {}
        return cls(**{name: given[name] for name in DESCRIPTION_KEYS if name in given})


#: The keys of a description.
DESCRIPTION_KEYS = tuple(each.name for each in fields(Description))


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
