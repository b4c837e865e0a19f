"""OpenLineage events: report the start and the end of a conversion to a lineage service.

    START                        job recordgen.convert.digits: inputs: the import files, output
    COMPLETE | FAIL | ABORT      the output with version, schema, counts and data quality

OpenLineage's own settings give the destination: ``OPENLINEAGE_URL``, other variables of its client,
or ``openlineage.yml``. Without any of them nothing is imported. A service that does not answer and
a wrong setting cause only a warning.

Names of datasets: "Dataset Naming", openlineage.io/docs/spec/naming.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from recordgen import storage
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.task.stored import stored_features
from recordgen.errors import StorageError, UsageError
from recordgen.exports.export import Export, Exported, ExportOptions
from recordgen.exports.features import label_features, source_name
from recordgen.exports.output import Output
from recordgen.masking import masked, without_secrets
from recordgen.version import __version__

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

_PRODUCER = f"urn:recordgen:{__version__}"

_NAMESPACE = "OPENLINEAGE_NAMESPACE"
_JOB_NAME = "OPENLINEAGE_JOB_NAME"
_PARENT = "OPENLINEAGE_PARENT_ID"
_DISABLED = "OPENLINEAGE_DISABLED"
_SETTINGS = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
_TRANSPORT = "OPENLINEAGE__TRANSPORT"
_CONFIG_FILE = "openlineage.yml"

# Time to wait at the end of a run for pending events.
_CLOSE_SECONDS = 10.0

_log = logging.getLogger(__name__)


def is_configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether OpenLineage's own settings give a destination for events."""
    if environ.get(_DISABLED, "").strip().lower() == "true":
        return False
    if any(environ.get(name) for name in _SETTINGS):
        return True
    if any(name.startswith(_TRANSPORT) for name in environ):
        return True
    folders = (os.getcwd(), os.path.expanduser("~/.openlineage"))
    return any(os.path.isfile(os.path.join(folder, _CONFIG_FILE)) for folder in folders)


class RunEvents:
    """The events of a run that reads ``source`` and writes ``output``; no client, no events."""

    def __init__(self, client: OpenLineageClient | None, source: Sequence[str], output: str):
        self._client = client
        self._source = source
        self._output = output
        self._run_id = ""
        if client is not None:
            from openlineage.client.uuid import generate_new_uuid

            self._run_id = str(generate_new_uuid())

    def emit(
        self, state: str, dataset: Dataset | None = None, error: BaseException | None = None
    ) -> bool:
        """Send the state of the run: COMPLETE with the dataset, FAIL or ABORT with the error.

        Returns:
            Whether it was sent; if not, a warning gives the reason.
        """
        if self._client is None:
            return False
        try:
            self._client.emit(self._event(state, dataset, error))
        except Exception as exc:  # noqa: BLE001 -- no error of a transport may end the run
            _warn(f"the event {state} was not sent: {type(exc).__name__}: {exc}")
            return False
        return True

    def _event(self, state: str, dataset: Dataset | None, error: BaseException | None) -> Any:
        from openlineage.client import event_v2
        from openlineage.client.facet_v2 import error_message_run

        run_facets: dict[str, Any] = {}
        if error is not None:
            run_facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=masked(f"{type(error).__name__}: {error}"),
                programmingLanguage="PYTHON",
                producer=_PRODUCER,
            )
        inputs = [
            event_v2.InputDataset(*dataset_id(path))
            for path in self._source
            if storage.is_known(path) and path != "DataFrame"
        ]
        facets, output_facets = ({}, {}) if dataset is None else _facets(dataset)
        output = event_v2.OutputDataset(
            *dataset_id(self._output), facets=facets, outputFacets=output_facets
        )
        if parent := _parent():
            run_facets["parent"] = parent
        name = f"recordgen.convert.{source_name(self._source) or 'rows'}"
        return event_v2.RunEvent(
            eventType=event_v2.RunState[state],
            eventTime=datetime.now(timezone.utc).isoformat(),
            run=event_v2.Run(runId=self._run_id, facets=run_facets),
            job=event_v2.Job(
                namespace=os.environ.get(_NAMESPACE) or "default",
                name=os.environ.get(_JOB_NAME) or name,
            ),
            inputs=inputs,
            outputs=[output],
            producer=_PRODUCER,
        )


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
                f"OpenLineage's settings give no destination: set {_SETTINGS[0]}, or write "
                f"{_CONFIG_FILE}"
            )
        with run_events(output.dataset.source, output.root) as events:
            if not events.emit("COMPLETE", output.dataset):
                raise StorageError("OpenLineage took no event; --debug shows the reason")
        return Exported(text=f"sent {output.dataset.digest}", values={"sent": True})


@contextmanager
def run_events(source: Sequence[str], output: str) -> Iterator[RunEvents]:
    """Send START now and, if the block raises, FAIL or ABORT; the block sends COMPLETE.

    Args:
        source: the import files as they were given.
        output: folder or URL prefix of the output.
    """
    client = _client()
    events = RunEvents(client, source, output)
    events.emit("START")
    try:
        yield events
    except BaseException as exc:
        is_failure = isinstance(exc, Exception)  # a KeyboardInterrupt is not
        events.emit("FAIL" if is_failure else "ABORT", error=exc)
        raise
    finally:
        if client is not None:  # transports may send in the background
            client.close(_CLOSE_SECONDS)


def _parent() -> Any:
    """Return the facet of the run that started this one, which ``OPENLINEAGE_PARENT_ID`` names.

    Airflow's ``lineage_parent_id`` macro gives it: ``NAMESPACE/JOB/RUN``. None without one.
    """
    said = os.environ.get(_PARENT)
    if not said:
        return None
    parts = said.rsplit("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{_PARENT} must be NAMESPACE/JOB/RUN (got {said!r:.80})")
    from openlineage.client.facet_v2 import parent_run

    namespace, job, run = parts
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=run),
        job=parent_run.Job(namespace=namespace, name=job),
        producer=_PRODUCER,
    )


def _client() -> OpenLineageClient | None:
    """Return the configured client; None without settings, or if they are wrong."""
    if not is_configured():
        return None
    try:
        from openlineage.client import OpenLineageClient
    except ImportError:
        _warn(
            "OpenLineage is configured, but its client is not installed: no events are sent; "
            f"pip install '.[openlineage]', or set {_DISABLED}=true"
        )
        return None
    try:
        return OpenLineageClient()
    except Exception as exc:  # noqa: BLE001 -- a wrong setting may raise anything
        _warn(f"OpenLineage's settings cannot be used: {type(exc).__name__}: {exc}")
        return None


def dataset_id(path: str) -> tuple[str, str]:
    """Return the namespace and name that OpenLineage gives a file or folder.

    ``gs://bucket/a/b`` → ``("gs://bucket", "a/b")``; ``b/c`` → ``("file", "/cwd/b/c")``
    """
    if storage.is_local(path):
        return "file", os.path.abspath(storage.local_path(path))
    scheme, _, rest = without_secrets(path).partition("://")
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", name.strip("/") or "/"


def _facets(dataset: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    from openlineage.client.facet_v2 import (
        data_quality_metrics_dataset,
        dataset_version_dataset,
        output_statistics_output_dataset,
        schema_dataset,
        storage_dataset,
    )

    files = sum(len(split.shards) for split in dataset.splits.values())
    columns = [
        schema_dataset.SchemaDatasetFacetFields(
            name=name, type=spec.dtype if spec.shape == () else f"array<{spec.dtype}>"
        )
        for name, spec in stored_features(dataset).items()
    ]
    metrics = {
        name: data_quality_metrics_dataset.ColumnMetrics(**values)
        for name, values in column_metrics(dataset).items()
    }
    counts = {"rowCount": dataset.examples, "fileCount": files}
    facets = {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=dataset.digest, producer=_PRODUCER
        ),
        "schema": schema_dataset.SchemaDatasetFacet(fields=columns, producer=_PRODUCER),
        "storage": storage_dataset.StorageDatasetFacet(
            storageLayer="filesystem", fileFormat="tfrecord", producer=_PRODUCER
        ),
        "dataQualityMetrics": data_quality_metrics_dataset.DataQualityMetricsDatasetFacet(
            columnMetrics=metrics, bytes=dataset.bytes, producer=_PRODUCER, **counts
        ),
    }
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        size=dataset.bytes, producer=_PRODUCER, **counts
    )
    return facets, {"outputStatistics": statistics}


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


def _warn(message: str) -> None:
    _log.warning("%s", masked(message))
