"""What a user says about examples without a ``dataset.json``, see recordgen.reading.describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


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
