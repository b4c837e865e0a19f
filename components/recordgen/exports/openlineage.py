"""Events of :mod:`recordgen.lineage` for conversions and for finished datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.annotation import stored_features
from recordgen.errors import StorageError, UsageError
from recordgen.exports.export import Export, Exported, ExportOptions, Output
from recordgen.lineage import (
    CONFIG_FILE,
    PRODUCER,
    SETTINGS,
    Facets,
    RunEvents,
    is_configured,
    run_events,
    source_name,
)
from recordgen.tables.columns import label_features


class OpenLineage(Export):
    """Sends the events of a finished dataset, for a conversion that sent none."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Send START and COMPLETE.

        Raises:
            UsageError: OpenLineage's settings give no destination.
            SourceError: there is no finished dataset.
            StorageError: the service does not take the events.
        """
        output = Output.open(place)
        if not is_configured():
            raise UsageError(
                f"OpenLineage's settings give no destination: set {SETTINGS[0]}, or write "
                f"{CONFIG_FILE}"
            )
        with conversion_events(output.dataset.source, output.root) as events:
            if not events.emit("COMPLETE", partial(facets_of, output.dataset)):
                raise StorageError("OpenLineage took no event; --debug shows the reason")
        return Exported(text=f"sent {output.dataset.digest}", values={"sent": True})


def conversion_events(source: Sequence[str], output: str) -> AbstractContextManager[RunEvents]:
    """Return the events of a conversion of import files, as they were given."""
    return run_events(f"recordgen.convert.{source_name(source) or 'rows'}", source, output)


def facets_of(dataset: Dataset) -> Facets:
    """Return version, schema, counts and data quality of a dataset."""
    from openlineage.client import facet_v2 as facets

    made: dict[str, Any] = {"producer": PRODUCER}
    counts: dict[str, Any] = {
        "rowCount": dataset.examples,
        "fileCount": sum(len(split.shards) for split in dataset.splits.values()),
    }
    columns = [
        facets.schema_dataset.SchemaDatasetFacetFields(
            name=name, type=spec.dtype if spec.shape == () else f"array<{spec.dtype}>"
        )
        for name, spec in stored_features(dataset).items()
    ]
    quality = facets.data_quality_metrics_dataset
    metrics = {
        name: quality.ColumnMetrics(**values) for name, values in column_metrics(dataset).items()
    }
    described = {
        "version": facets.dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=dataset.digest, **made
        ),
        "schema": facets.schema_dataset.SchemaDatasetFacet(fields=columns, **made),
        "storage": facets.storage_dataset.StorageDatasetFacet(
            storageLayer="filesystem", fileFormat="tfrecord", **made
        ),
        "dataQualityMetrics": quality.DataQualityMetricsDatasetFacet(
            columnMetrics=metrics, bytes=dataset.bytes, **counts, **made
        ),
    }
    statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        size=dataset.bytes, **counts, **made
    )
    return Facets(described, {"outputStatistics": statistics})


def column_metrics(dataset: Dataset) -> Mapping[str, Mapping[str, int]]:
    """Return the counts of the label column: values, gaps, different values.

    ``{"image/class/text": {"count": 9, "nullCount": 1, "distinctCount": 2}}``
    """
    column, _ = label_features(dataset)
    if column is None or not dataset.labels:
        return {}
    unlabelled = sum(split.unlabelled for split in dataset.splits.values())
    used = {label for split in dataset.splits.values() for label, n in split.labels.items() if n}
    return {
        column: {
            "count": dataset.examples - unlabelled,
            "nullCount": unlabelled,
            "distinctCount": len(used),
        }
    }
