"""Read artifacts and executions from ML Metadata, without TFX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2

from recordgen.errors import SourceError

_Event = metadata_store_pb2.Event
_Execution = metadata_store_pb2.Execution
Value = int | float | str


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact: its number, type, uri, and properties of both kinds."""

    id: int
    type: str
    uri: str
    properties: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a component.

    Attributes:
        component: the component's id in the pipeline.
        state: ``COMPLETE``, ``CACHED``, ``FAILED``, ….
        finished: time of the last change of its state.
        properties: its parameters.
    """

    id: int
    component: str
    state: str
    finished: datetime
    properties: Mapping[str, Value]


class Metadata:
    """A metadata store, read-only."""

    def __init__(self, path: str) -> None:
        """Open the SQLite store at ``path``. Raises: SourceError if there is none."""
        if not os.path.isfile(path):
            raise SourceError(
                f"{path}: no metadata store here; run a pipeline in this folder first"
            )
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = path
        config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READONLY
        self._store = metadata_store.MetadataStore(config)

    def artifacts(self, type_name: str) -> list[Artifact]:
        """Return all complete artifacts of a type, oldest first."""
        found = self._store.get_artifacts_by_type(type_name)
        live = [a for a in found if a.state == metadata_store_pb2.Artifact.LIVE]
        return [_artifact(a) for a in sorted(live, key=lambda a: a.id)]

    def producer(self, artifact: Artifact) -> Execution | None:
        """Return the execution that produced ``artifact``, not executions served by the cache."""
        events = self._store.get_events_by_artifact_ids([artifact.id])
        ids = [event.execution_id for event in events if event.type == _Event.OUTPUT]
        found = sorted(self._store.get_executions_by_id(ids), key=lambda e: e.id)
        producers = [e for e in found if e.last_known_state != _Execution.CACHED]
        return self._execution(producers[0]) if producers else None

    def inputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` read, in the order of their numbers."""
        return self._artifacts_of(execution, _Event.INPUT)

    def outputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` produced or took from the cache."""
        return self._artifacts_of(execution, _Event.OUTPUT)

    def latest_run(self) -> list[Execution]:
        """Return the executions of the latest run, in the order of their start."""
        runs = self._store.get_contexts_by_type("pipeline_run")
        if not runs:
            return []
        latest = max(runs, key=lambda context: context.id)
        found = self._store.get_executions_by_context(latest.id)
        return [self._execution(e) for e in sorted(found, key=lambda e: e.id)]

    def _artifacts_of(self, execution: Execution, kind: int) -> list[Artifact]:
        events = self._store.get_events_by_execution_ids([execution.id])
        ids = sorted({event.artifact_id for event in events if event.type == kind})
        found = self._store.get_artifacts_by_id(ids)
        return [_artifact(a) for a in sorted(found, key=lambda a: a.id)]

    def _execution(self, proto: metadata_store_pb2.Execution) -> Execution:
        # Every execution belongs to its component's "node" context, named pipeline.component.
        contexts = self._store.get_contexts_by_execution(proto.id)
        nodes = [context.name for context in contexts if context.type == "node"]
        return Execution(
            proto.id,
            nodes[0].rsplit(".", 1)[-1] if nodes else proto.type,
            _Execution.State.Name(proto.last_known_state),
            datetime.fromtimestamp(
                proto.last_update_time_since_epoch / 1000, timezone.utc
            ).astimezone(),
            _values(proto),
        )


def _artifact(proto: metadata_store_pb2.Artifact) -> Artifact:
    return Artifact(proto.id, proto.type, proto.uri, _values(proto))


def _values(
    proto: metadata_store_pb2.Artifact | metadata_store_pb2.Execution,
) -> dict[str, Value]:
    """Return the properties of both kinds as plain values; declared ones take precedence."""
    return {
        key: getattr(value, value.WhichOneof("value"))
        for properties in (proto.custom_properties, proto.properties)
        for key, value in properties.items()
        if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
    }
