"""The way back from a model or a dataset to its import files, and OpenLineage's events.

    model serving/17  ─▶  dataset work/digits  ─▶  1,797 rows of digits.csv

Each model has its lineage inside, see :mod:`recordgen.lineage`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recordgen import lineage, storage
from recordgen.core.dataset import manifest
from recordgen.core.task.annotation import stored_features
from recordgen.errors import SourceError
from recordgen.exports.export import Export, Exported, ExportOptions, environment

#: Where TFX's Trainer puts the model inside its artifact.
TFX_FOLDER = "Format-Serving"


@dataclass(frozen=True, slots=True)
class Traced:
    """The lineage of a model or a dataset.

    Attributes:
        place: the folder of the model or the dataset.
        dataset: the origin of the dataset.
        model: training of the model; None if the place is a dataset.
    """

    place: str
    dataset: lineage.DatasetLineage
    model: lineage.ModelLineage | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the lineage for ``--json``."""
        found = asdict(self)
        if found["model"] is not None:
            del found["model"]["dataset"]
        return found


class Lineage(Export):
    """Shows the lineage of a model or a dataset."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Show the lineage. Raises: as :func:`find_lineage`."""
        found = find_lineage(place)
        return Exported(text="\n".join(lineage_lines(found)), values=found.to_json())


def find_lineage(place: str | os.PathLike[str]) -> Traced:
    """Find the lineage of a model or a dataset.

    A model may come from anyone, so the dataset that its ``lineage.json`` names is not opened.

    Args:
        place: a SavedModel, a folder of its versions (the newest is used), a TFX Model uri, or the
            output of a conversion.

    Raises:
        SourceError: there is neither, or its description is damaged.
        StorageError: storage failed.
    """
    root = storage.normal(os.fspath(place)).rstrip("/")
    if storage.exists(storage.join(root, manifest.DATASET_FILE)):
        return Traced(root, lineage.DatasetLineage.of(root, manifest.read_dataset(root)))
    for folder in _models(root):
        path = storage.join(folder, lineage.LINEAGE_FILE)
        if storage.exists(path):
            model = _read_model(path)
            return Traced(folder, model.dataset, model)
    raise SourceError(
        f"{root}: no {manifest.DATASET_FILE} and no {lineage.LINEAGE_FILE} here; give a dataset, "
        f"or a SavedModel that recordgen.training has saved"
    )


def lineage_lines(found: Traced) -> Sequence[str]:
    """Return the lineage as lines of text, from the model to the import files."""
    options = (f"{name}={value}" for name, value in found.dataset.options.items() if value)
    template = environment().get_template("lineage.txt")
    uri = found.dataset.uri
    places = uri if isinstance(uri, str) else ", ".join(uri)
    return template.render(found=found, places=places, options=", ".join(options)).splitlines()


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
