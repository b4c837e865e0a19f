"""The way back from a model or a dataset to its import files, and OpenLineage's events.

    model serving/17  ─▶  dataset work/digits  ─▶  1,797 rows of digits.csv

Each model has its lineage inside, see :mod:`recordgen.lineage`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from recordgen import lineage, storage
from recordgen.core.dataset import manifest
from recordgen.core.dataset.joining import join_datasets
from recordgen.core.task.annotation import stored_features
from recordgen.errors import DataError, SourceError
from recordgen.exports.export import Export, Exported, ExportOptions, environment
from recordgen.exports.verifying import Difference
from recordgen.exports.verifying import verify as verify_files
from recordgen.options import make_options
from recordgen.storage.access import Access, RowUrlPolicy

#: Where TFX's Trainer puts the model inside its artifact.
TFX_FOLDER = "Format-Serving"

#: States of a dataset, see :class:`Traced`.
SAME, DAMAGED = "same", "damaged"


@dataclass(frozen=True, slots=True)
class Traced:
    """The lineage of a model or a dataset.

    Attributes:
        place: the folder of the model or the dataset.
        dataset: the origin of the dataset.
        model: training of the model; None if the place is a dataset.
        state: whether the dataset at its uri is still the ``same`` or is ``changed`` or
            ``missing``, by the digests in ``dataset.json``; ``same`` if the place is a dataset;
            ``damaged`` if its files were read and are others; ``unchecked`` if its uri was not
            followed.
        refusal: why the dataset's uri was not followed; empty if it was.
        differences: the files that differ from ``dataset.json``; None if they were not read.
    """

    place: str
    dataset: lineage.DatasetLineage
    model: lineage.ModelLineage | None
    state: str
    refusal: str = ""
    differences: Sequence[Difference] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the lineage for ``--json``."""
        found = {**asdict(self), "dataset_state": self.state}
        if found["model"] is not None:
            del found["model"]["dataset"]
        found["differences"] = self.differences and [item._asdict() for item in self.differences]
        del found["state"]
        return found


class Lineage(Export):
    """Shows the lineage of a model or a dataset."""

    takes = ("allow", "verify")

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Show the lineage. Raises: as :func:`find_lineage`."""
        found = find_lineage(place, allow=options.allow, verify=options.verify)
        text = "\n".join(lineage_lines(found))
        is_bad = options.verify and found.state != SAME
        return Exported(text=text, values=found.to_json(), is_bad=is_bad)


def find_lineage(
    place: str | os.PathLike[str], *, allow: str | Sequence[str] = (), verify: bool = False
) -> Traced:
    """Find the lineage of a model or a dataset.

    A model may come from anyone, so its ``lineage.json`` may reach what the rows of an import file
    at this place may reach: from a local model no web server, unless an option allows it.

    Args:
        place: a SavedModel, a folder of its versions (the newest is used), a TFX Model uri, or the
            output of a conversion.
        allow: schemes of datasets that may be opened, in addition to the default ones; and folders
            and URL prefixes, then no others.
        verify: read the dataset's files, and compare them with its ``dataset.json``.

    Raises:
        SourceError: there is neither, or its description is damaged.
        StorageError: storage failed.
        UsageError: ``allow`` is invalid.
    """
    access = make_options({"allow": allow}).access
    root = storage.normal(os.fspath(place)).rstrip("/")
    if manifest.has_dataset(root):
        dataset = lineage.DatasetLineage.of(root, manifest.read_dataset(root))
        found = Traced(root, dataset, None, SAME)
        return _verified(found) if verify else found
    for folder in _models(root):
        path = storage.join(folder, lineage.LINEAGE_FILE)
        if storage.is_file(path):
            model = _read_model(path)
            found = Traced(folder, model.dataset, model, *_state(model.dataset, path, access))
            return _verified(found) if verify else found
    raise SourceError(
        f"{root}: no {manifest.DATASET_FILE} and no {lineage.LINEAGE_FILE} here; give a dataset, "
        f"or a SavedModel that recordgen.training has saved"
    )


def _verified(found: Traced) -> Traced:
    """Return the lineage with the differences of the dataset's files, if it is still the same."""
    if found.state != SAME:
        return found
    roots = [storage.normal(root) for root in _places(found.dataset)]
    differences = [
        item if len(roots) == 1 else item._replace(file=storage.join(root, item.file))
        for root in roots
        for item in verify_files(root).differences
    ]
    return replace(found, state=DAMAGED if differences else SAME, differences=differences)


def lineage_lines(found: Traced) -> Sequence[str]:
    """Return the lineage as lines of text, from the model to the import files."""
    options = (f"{name}={value}" for name, value in found.dataset.options.items() if value)
    template = environment().get_template("lineage.txt")
    text = template.render(found=found, places=_places(found.dataset), options=", ".join(options))
    return text.splitlines()


def _models(root: str) -> Iterator[str]:
    """Yield the folders of ``root`` that may hold a model, the newest version first."""
    yield root
    yield storage.join(root, TFX_FOLDER)
    versions = [name for name in storage.list_folders(root, "") if name.isdecimal()]
    for name in sorted(versions, key=int, reverse=True):
        yield storage.join(root, name)


def _read_model(path: str) -> lineage.ModelLineage:
    data = None
    try:
        data = manifest.parsed_json(storage.read_bytes(path))
        return lineage.ModelLineage.from_json(data)
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise SourceError(
            f"{path}: not a {lineage.FORMAT} lineage: {exc}; {manifest.written_elsewhere(data)}"
            f"retrain the model"
        ) from exc


def _places(dataset: lineage.DatasetLineage) -> tuple[str, ...]:
    return (dataset.uri,) if isinstance(dataset.uri, str) else dataset.uri


def _state(dataset: lineage.DatasetLineage, named_by: str, access: Access) -> tuple[str, str]:
    """Return the state of a dataset, and why it is unknown; see :class:`Traced`."""
    roots = [storage.normal(root) for root in _places(dataset)]
    for root in roots:
        if (refusal := access.refusal(root, named_by)) is not None:
            return (
                "unchecked",
                f"{lineage.LINEAGE_FILE} may reach what an import file may: {refusal}",
            )
    context = storage.RequestContext(RowUrlPolicy(access, named_by))
    try:
        there = join_datasets([(root, manifest.read_dataset(root, context)) for root in roots])
        return (SAME if there.digest == dataset.digest else "changed"), ""
    except SourceError:
        return "missing", ""
    except DataError:
        return "changed", ""


# --- events of OpenLineage -----------------------------------------------------------------------


def facets_of(dataset: manifest.Dataset) -> lineage.Facets:
    """Return version, schema and counts of a dataset."""
    from openlineage.client import facet_v2 as facets

    made: dict[str, Any] = {"producer": lineage.PRODUCER}
    columns = [
        facets.schema_dataset.SchemaDatasetFacetFields(
            name=name, type=spec.dtype if spec.shape == () else f"array<{spec.dtype}>"
        )
        for name, spec in stored_features(dataset).items()
    ]
    described = {
        "version": facets.dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=dataset.digest, **made
        ),
        "schema": facets.schema_dataset.SchemaDatasetFacet(fields=columns, **made),
        "storage": facets.storage_dataset.StorageDatasetFacet(
            storageLayer="filesystem", fileFormat="tfrecord", **made
        ),
    }
    statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=dataset.examples, fileCount=len(dataset.shards), size=dataset.bytes, **made
    )
    return lineage.Facets(described, {"outputStatistics": statistics})
