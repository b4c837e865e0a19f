"""``lineage.json``: the training data and settings of a model, stored inside the model.

    MODEL/assets.extra/lineage.json   {"dataset": {"digest": "3f…", "rows": 1800, …}, "split": …}

SavedModel reserves ``assets.extra`` for users' files; servers ignore them and copies keep them. So
a pushed model can be traced to its import files without a metadata store; the digest identifies the
dataset, wherever it is.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import Dataset, built
from recordgen.messages.masking import without_secrets
from recordgen.version import __version__

LINEAGE_FILE = "assets.extra/lineage.json"

#: The value of ``format`` in the file.
FORMAT = "recordgen-lineage/1"

_PACKAGES = ("tensorflow", "keras", "numpy", "tfx")

# Variables that say what runs: our own, and for the commit those of GitHub, GitLab and Cloud Build.
_SAID = {
    "image": ("RECORDGEN_IMAGE",),
    "commit": ("RECORDGEN_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "COMMIT_SHA"),
}


@dataclass(frozen=True, slots=True)
class DatasetLineage:
    """The origin of a dataset."""

    # Its absolute path, or its URL without secrets; a tuple if several datasets were read as one.
    uri: str | tuple[str, ...]
    digest: str  # see Dataset, also for all below
    task: str
    rows: int  # rows of the import files
    rejects: int
    splits: Mapping[str, int]  # examples by split
    label_count: int
    source: tuple[str, ...]  # the import files as they were given
    seed: int  # the seed of order and splits
    options: Mapping[str, Any]  # the options that affect the output
    recordgen_version: str  # the version that wrote the dataset

    @classmethod
    def of(cls, uri: str | tuple[str, ...], dataset: Dataset) -> DatasetLineage:
        """Return the lineage of the dataset at ``uri``."""
        return cls(
            uri=_absolute(uri) if isinstance(uri, str) else tuple(map(_absolute, uri)),
            digest=dataset.digest,
            task=dataset.task,
            rows=dataset.rows.read,
            rejects=dataset.rows.rejects,
            splits={name: split.examples for name, split in dataset.splits.items()},
            label_count=len(dataset.labels),
            source=tuple(dataset.source),
            seed=dataset.seed,
            options=dataset.options,
            recordgen_version=dataset.recordgen_version,
        )


@dataclass(frozen=True, slots=True)
class ModelLineage:
    """The training data and settings of a model."""

    dataset: DatasetLineage  # the dataset when the training began
    split: str  # the training split
    settings: Mapping[str, Any]  # the settings of the training
    recordgen_version: str = __version__  # the version that trained the model
    # Versions of what trained it, see software_here.
    software: Mapping[str, str] = field(default_factory=dict)
    # Loss and metrics of the saved weights on split eval; empty if nothing was evaluated.
    scores: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """What events and metadata stores say of the model, by name."""
        scores = {f"eval_{name}": score for name, score in self.scores.items()}
        return {"dataset_digest": self.dataset.digest, **scores, **self.settings}

    def to_json(self) -> str:
        """Return the content of ``lineage.json``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: Any) -> ModelLineage:
        """Return the lineage in a parsed file. Raises: KeyError, TypeError, ValueError."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}")
        return built(cls, {name: value for name, value in data.items() if name != "format"})


def _absolute(place: str) -> str:
    return without_secrets(storage.absolute(place))


def software_here(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return versions of Python and packages here, and the container and commit if they are said.

    ``{"python": "3.10.13", "tensorflow": "2.16.2", "keras": "3.3.3", "commit": "3f0c…"}``
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    for name, variables in _SAID.items():
        if value := next((environ[each] for each in variables if environ.get(each)), ""):
            found[name] = without_secrets(value)
    return found


def write_lineage(model: str, lineage: ModelLineage) -> None:
    """Write the lineage into a saved model's folder. Raises: StorageError."""
    storage.write_text(storage.join(model, LINEAGE_FILE), lineage.to_json())
