"""``lineage.json``: the training data and settings of a model, stored inside the model.

    MODEL/assets.extra/lineage.json   {"dataset": {"digest": "3f…", "rows": 1800, …}, "split": …}

SavedModel reserves ``assets.extra`` for users' files; servers ignore them and copies keep them. So
a pushed model can be traced to its import files without a metadata store; the digest identifies the
dataset, wherever it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recordgen import storage
from recordgen.dataset.joining import join_datasets
from recordgen.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.errors import DataError, SourceError
from recordgen.masking import without_secrets
from recordgen.options import make_options
from recordgen.storage.access import Access, RowUrlPolicy
from recordgen.version import __version__

LINEAGE_FILE = "assets.extra/lineage.json"

_FORMAT = "recordgen-lineage/1"

#: Where TFX's Trainer puts the model inside its artifact.
TFX_FOLDER = "Format-Serving"


@dataclass(frozen=True, slots=True)
class DatasetLineage:
    """The origin of a dataset.

    Attributes:
        uri: its path or URL without secrets; a tuple if several datasets were read as one.
        digest: see :class:`recordgen.dataset.manifest.Dataset`, also for all below.
        task: its task.
        rows: rows of the import files.
        rejects: rejected rows.
        splits: examples by split.
        label_count: number of labels.
        source: the import files as they were given.
        seed: the seed of order and splits.
        options: the options that affect the output.
        recordgen_version: the version that wrote the dataset.
    """

    uri: str | tuple[str, ...]
    digest: str
    task: str
    rows: int
    rejects: int
    splits: Mapping[str, int]
    label_count: int
    source: tuple[str, ...]
    seed: int
    options: Mapping[str, Any]
    recordgen_version: str

    @classmethod
    def of(cls, uri: str | tuple[str, ...], dataset: Dataset) -> DatasetLineage:
        """Return the lineage of the dataset at ``uri``."""
        return cls(
            uri=without_secrets(uri) if isinstance(uri, str) else tuple(map(without_secrets, uri)),
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
    """The training data and settings of a model.

    Attributes:
        dataset: the dataset when the training began.
        split: the training split.
        settings: the settings of the training.
        recordgen_version: the version that trained the model.
    """

    dataset: DatasetLineage
    split: str
    settings: Mapping[str, Any]
    recordgen_version: str = __version__

    def to_json(self) -> str:
        """Return the content of ``lineage.json``."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ModelLineage:
        """Parse the result of :meth:`to_json`. Raises: KeyError, TypeError, ValueError."""
        values = json.loads(text)
        if not isinstance(values, dict) or values.pop("format", None) != _FORMAT:
            raise ValueError(f"format must be {_FORMAT!r}")
        found = dict(values.pop("dataset"))
        found["source"] = tuple(found["source"])
        if not isinstance(found["uri"], str):
            found["uri"] = tuple(found["uri"])
        return cls(dataset=DatasetLineage(**found), **values)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The lineage of a model or a dataset.

    Attributes:
        place: the folder of the model or the dataset.
        dataset: the origin of the dataset.
        model: training of the model; None if the place is a dataset.
        state: whether the dataset at its uri is still the ``same`` or is ``changed`` or
            ``missing``; ``same`` if the place is a dataset; ``unchecked`` if its uri was not
            followed.
        refusal: why the dataset's uri was not followed; empty if it was.
    """

    place: str
    dataset: DatasetLineage
    model: ModelLineage | None
    state: str
    refusal: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the lineage for ``--json``."""
        model = None
        if self.model is not None:
            model = asdict(self.model)
            del model["dataset"]
        return {
            "place": self.place,
            "model": model,
            "dataset": asdict(self.dataset),
            "dataset_state": self.state,
            "refusal": self.refusal,
        }


def write_lineage(model: str, lineage: ModelLineage) -> None:
    """Write the lineage into a saved model's folder. Raises: StorageError."""
    storage.write_text(storage.join(model, LINEAGE_FILE), lineage.to_json())


def find_lineage(
    place: str | os.PathLike[str],
    *,
    allow_scheme: str | Sequence[str] = (),
    allow_root: str | Sequence[str] = (),
) -> Lineage:
    """Find the lineage of a model or a dataset.

    A model may come from anyone, so its ``lineage.json`` may reach what the rows of an import file
    at this place may reach: from a local model no web server, unless an option allows it.

    Args:
        place: a SavedModel, a folder of its versions (the newest is used), a TFX Model uri, or the
            output of a conversion.
        allow_scheme: schemes of datasets that may be opened, in addition to the default ones.
        allow_root: folders and URL prefixes of datasets that may be opened; empty: no restriction.

    Raises:
        SourceError: there is neither, or its description is damaged.
        StorageError: storage failed.
        UsageError: ``allow_scheme`` or ``allow_root`` is invalid.
    """
    access = make_options({"allow_scheme": allow_scheme, "allow_root": allow_root}).access
    root = storage.normal(os.fspath(place)).rstrip("/")
    if storage.exists(storage.join(root, DATASET_FILE)):
        dataset = DatasetLineage.of(root, read_dataset(root))
        return Lineage(root, dataset, None, "same")
    for folder in _models(root):
        path = storage.join(folder, LINEAGE_FILE)
        if storage.exists(path):
            model = _read_model(path)
            return Lineage(folder, model.dataset, model, *_state(model.dataset, path, access))
    raise SourceError(
        f"{root}: no {DATASET_FILE} and no {LINEAGE_FILE} here; give a dataset, or a SavedModel "
        f"that recordgen.training has saved"
    )


def lineage_lines(found: Lineage) -> Iterator[str]:
    """Yield the lineage as text, from the model to the import files."""
    indent = ""
    if found.model is not None:
        yield f"model {found.place}"
        yield f"  trained on split {found.model.split}, recordgen {found.model.recordgen_version}"
        settings = ", ".join(f"{name}={value}" for name, value in found.model.settings.items())
        if settings:
            yield f"  with {settings}"
        yield "  from"
        indent = "    "
    yield from (f"{indent}{line}" for line in _dataset_lines(found))


def _dataset_lines(found: Lineage) -> Iterator[str]:
    dataset = found.dataset
    states = {
        "same": "",
        "changed": " (replaced by another dataset)",
        "missing": " (no longer there)",
        "unchecked": f" (not looked up: {found.refusal})",
    }
    splits = ", ".join(f"{name} {count:,}" for name, count in dataset.splits.items())
    examples = sum(dataset.splits.values())
    version, task, seed = dataset.recordgen_version, dataset.task, dataset.seed
    yield f"dataset {', '.join(_places(dataset))}{states[found.state]}"
    yield f"  digest {dataset.digest}"
    yield f"  {examples:,} examples ({splits}), {dataset.label_count:,} labels"
    yield f"  made by recordgen {version}, task {task}, seed {seed}"
    if not dataset.source:
        yield "  written from Python"
        return
    options = ", ".join(f"{name}={value}" for name, value in dataset.options.items() if value)
    yield f"  with {options}"
    yield f"  from {dataset.rows:,} rows, {dataset.rejects:,} rejected"
    for source in dataset.source:
        yield f"    {source}"


def _models(root: str) -> Iterator[str]:
    """Yield the folders of ``root`` that may hold a model, the newest version first."""
    yield root
    yield storage.join(root, TFX_FOLDER)
    versions = [name for name in storage.list_folders(root, "") if name.isdecimal()]
    for name in sorted(versions, key=int, reverse=True):
        yield storage.join(root, name)


def _read_model(path: str) -> ModelLineage:
    try:
        return ModelLineage.from_json(storage.read_text(path))
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise SourceError(f"{path}: not a {_FORMAT} lineage: {exc}; retrain the model") from exc


def _places(dataset: DatasetLineage) -> tuple[str, ...]:
    return (dataset.uri,) if isinstance(dataset.uri, str) else dataset.uri


def _state(dataset: DatasetLineage, named_by: str, access: Access) -> tuple[str, str]:
    """Return the state of a dataset, and why it is unknown; see :class:`Lineage`."""
    roots = [storage.normal(root) for root in _places(dataset)]
    for root in roots:
        if (refusal := access.refusal(root, named_by)) is not None:
            return "unchecked", f"{LINEAGE_FILE} may reach what an import file may: {refusal}"
    context = storage.RequestContext(RowUrlPolicy(access, named_by))
    try:
        there = join_datasets([(root, read_dataset(root, context)) for root in roots])
        return ("same" if there.digest == dataset.digest else "changed"), ""
    except SourceError:
        return "missing", ""
    except DataError:
        return "changed", ""
