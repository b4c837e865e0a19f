"""What a run of TFX left in its metadata store: executions and their artifacts. Loads no TFX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recordgen.errors import SourceError

if TYPE_CHECKING:
    from ml_metadata.proto import metadata_store_pb2


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact: its number, type, uri, and properties of both kinds."""

    id: int
    type: str
    uri: str
    properties: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a component."""

    id: int
    component: str  # its id in the pipeline
    state: str  # COMPLETE, CACHED, FAILED, …


def metadata_path(workdir: str) -> str:
    """Return the file of the metadata store in ``workdir``."""
    return os.path.join(os.path.abspath(workdir), "metadata.db")


class Metadata:
    """A metadata store, read-only."""

    def __init__(self, path: str) -> None:
        """Open the SQLite store at ``path``. Raises: SourceError if there is none."""
        if not os.path.isfile(path):
            raise SourceError(
                f"{path}: no metadata store here; run a pipeline in this folder first"
            )
        from ml_metadata.metadata_store import metadata_store  # only legs with TFX have it
        from ml_metadata.proto import metadata_store_pb2

        self._protos = metadata_store_pb2
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = path
        config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READONLY
        self._store = metadata_store.MetadataStore(config)

    def artifacts(self, type_name: str) -> list[Artifact]:
        """Return all complete artifacts of a type, oldest first."""
        found = self._store.get_artifacts_by_type(type_name)
        return sorted(
            (_artifact(a) for a in found if a.state == self._protos.Artifact.LIVE),
            key=lambda artifact: artifact.id,
        )

    def inputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` read, in the order of their numbers."""
        return self._artifacts_of(execution, self._protos.Event.INPUT)

    def outputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` produced or took from the cache."""
        return self._artifacts_of(execution, self._protos.Event.OUTPUT)

    def latest_run(self) -> list[Execution]:
        """Return the executions of the latest run, in the order of their start."""
        runs = [context.id for context in self._store.get_contexts_by_type("pipeline_run")]
        found = self._store.get_executions_by_context(max(runs)) if runs else []
        return [self._execution(each) for each in sorted(found, key=lambda each: each.id)]

    def _artifacts_of(self, execution: Execution, kind: int) -> list[Artifact]:
        events = self._store.get_events_by_execution_ids([execution.id])
        ids = sorted({event.artifact_id for event in events if event.type == kind})
        return [_artifact(each) for each in self._store.get_artifacts_by_id(ids)]

    def _execution(self, proto: metadata_store_pb2.Execution) -> Execution:
        # Every execution belongs to its component's "node" context, named pipeline.component.
        contexts = self._store.get_contexts_by_execution(proto.id)
        nodes = [context.name for context in contexts if context.type == "node"]
        component = nodes[0].rsplit(".", 1)[-1] if nodes else proto.type
        state = self._protos.Execution.State.Name(proto.last_known_state)
        return Execution(proto.id, component, state)


def _artifact(proto: metadata_store_pb2.Artifact) -> Artifact:
    """Return an artifact with plain values; declared properties take precedence."""
    values = {
        key: getattr(value, value.WhichOneof("value"))
        for properties in (proto.custom_properties, proto.properties)
        for key, value in properties.items()
        if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
    }
    return Artifact(proto.id, proto.type, proto.uri, values)
