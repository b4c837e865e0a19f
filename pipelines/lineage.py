"""``python -m pipelines.lineage``: from a pushed model back to the import files.

It reads ML Metadata, and loads no TFX.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2

from pipelines.terminal import run_main
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import DataError, SourceError

_Event = metadata_store_pb2.Event
_Execution = metadata_store_pb2.Execution
# The order of a model's ancestors in the output.
_TYPES_FIRST = ("Model", "Examples", "ModelBlessing")


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact: its number, type, uri, and properties of both kinds."""

    id: int
    type: str
    uri: str
    properties: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a component, with its parameters as properties."""

    id: int
    component: str  # its id in the pipeline
    state: str  # COMPLETE, CACHED, FAILED, …
    finished: datetime  # the last change of its state
    properties: Mapping[str, int | float | str]


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
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = path
        config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READONLY
        self._store = metadata_store.MetadataStore(config)

    def artifacts(self, type_name: str) -> list[Artifact]:
        """Return all complete artifacts of a type, oldest first."""
        found = self._store.get_artifacts_by_type(type_name)
        return _artifacts([a for a in found if a.state == metadata_store_pb2.Artifact.LIVE])

    def producer(self, artifact: Artifact) -> Execution | None:
        """Return the execution that produced ``artifact``, not executions served by the cache."""
        events = self._store.get_events_by_artifact_ids([artifact.id])
        ids = [event.execution_id for event in events if event.type == _Event.OUTPUT]
        found = self._store.get_executions_by_id(ids)
        producers = [e for e in found if e.last_known_state != _Execution.CACHED]
        return self._execution(min(producers, key=lambda e: e.id)) if producers else None

    def inputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` read, in the order of their numbers."""
        return self._artifacts_of(execution, _Event.INPUT)

    def outputs(self, execution: Execution) -> list[Artifact]:
        """Return the artifacts that ``execution`` produced or took from the cache."""
        return self._artifacts_of(execution, _Event.OUTPUT)

    def latest_run(self) -> list[Execution]:
        """Return the executions of the latest run, in the order of their start."""
        runs = [context.id for context in self._store.get_contexts_by_type("pipeline_run")]
        found = self._store.get_executions_by_context(max(runs)) if runs else []
        return [self._execution(e) for e in sorted(found, key=lambda e: e.id)]

    def _artifacts_of(self, execution: Execution, kind: int) -> list[Artifact]:
        events = self._store.get_events_by_execution_ids([execution.id])
        ids = {event.artifact_id for event in events if event.type == kind}
        return _artifacts(self._store.get_artifacts_by_id(sorted(ids)))

    def _execution(self, proto: metadata_store_pb2.Execution) -> Execution:
        # Every execution belongs to its component's "node" context, named pipeline.component.
        contexts = self._store.get_contexts_by_execution(proto.id)
        nodes = [context.name for context in contexts if context.type == "node"]
        seconds = proto.last_update_time_since_epoch / 1000
        return Execution(
            proto.id,
            nodes[0].rsplit(".", 1)[-1] if nodes else proto.type,
            _Execution.State.Name(proto.last_known_state),
            datetime.fromtimestamp(seconds, timezone.utc).astimezone(),
            _properties(proto),
        )


def _artifacts(protos: Sequence[metadata_store_pb2.Artifact]) -> list[Artifact]:
    found = sorted(protos, key=lambda a: a.id)
    return [Artifact(a.id, a.type, a.uri, _properties(a)) for a in found]


def _properties(
    proto: metadata_store_pb2.Artifact | metadata_store_pb2.Execution,
) -> dict[str, int | float | str]:
    """Return the properties of both kinds as plain values; declared ones take precedence."""
    return {
        key: getattr(value, value.WhichOneof("value"))
        for properties in (proto.custom_properties, proto.properties)
        for key, value in properties.items()
        if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
    }


def pushed_model(metadata: Metadata, number: int | None = None) -> Artifact:
    """Return the latest pushed model, or the model with this ``number``. Raises: DataError."""
    pushed = {a.id: a for a in metadata.artifacts("PushedModel") if a.properties.get("pushed")}
    if not pushed:
        raise DataError("no model was pushed yet: no training has finished, or no model is blessed")
    number = max(pushed) if number is None else number
    if number not in pushed:
        known = ", ".join(f"#{n}" for n in pushed)
        raise DataError(f"no pushed model #{number}; the pushed models are {known}")
    return pushed[number]


def lineage_lines(metadata: Metadata, artifact: Artifact) -> Iterator[str]:
    """Yield the tree of artifacts and executions behind ``artifact``, without repeating any."""
    yield from _tree(metadata, artifact, "", set())


def _tree(metadata: Metadata, artifact: Artifact, indent: str, seen: set[int]) -> Iterator[str]:
    name = f"{artifact.type} #{artifact.id}"
    if artifact.id in seen:
        yield f"{indent}{name} (see above)"
        return
    seen.add(artifact.id)
    yield f"{indent}{name}{_details(artifact)}"
    yield f"{indent}  at {artifact.properties.get('pushed_destination') or artifact.uri}"
    maker = metadata.producer(artifact)
    if maker is None:
        return
    yield f"{indent}  made by {maker.component}, execution #{maker.id}, {maker.finished:%F %T}"
    yield from (f"{indent}    {line}" for line in _given(maker))
    order = {kind: number for number, kind in enumerate(_TYPES_FIRST)}
    for parent in sorted(metadata.inputs(maker), key=lambda a: order.get(a.type, len(order))):
        yield f"{indent}  from"
        yield from _tree(metadata, parent, f"{indent}    ", seen)


def _details(artifact: Artifact) -> str:
    """Return the details of a blessing or of examples; else an empty text."""
    values = artifact.properties
    if artifact.type == "ModelBlessing":
        return ": blessed" if values.get("blessed") else ": not blessed"
    if artifact.type != "Examples" or "examples" not in values:
        return ""
    names = json.loads(str(values["split_names"]))
    splits = ", ".join(f"{name} {values.get(f'examples_{name}', 0)}" for name in names)
    versions = [
        f"{key.replace('_', ' ')} {values[key]}, "
        for key in ("version", "dataset_version")
        if key in values
    ]
    return (
        f": {values['examples']} examples ({splits}), {values.get('label_count', 0)} labels, "
        f"{values.get('rejects', 0)} of {values.get('rows', 0)} rows rejected, "
        f"span {values.get('span', 0)}, {''.join(versions)}seed {values.get('seed')}, "
        f"digest {str(values.get('dataset_digest'))[:16]}, "
        f"recordgen {values.get('recordgen_version')}"
    )


def _given(execution: Execution) -> Iterator[str]:
    """Yield an execution's inputs other than artifacts: import files, training settings."""
    values = execution.properties
    if "input_base" in values and "input_config" in values:
        for split in json.loads(str(values["input_config"])).get("splits", []):
            yield f"from {values['input_base']}/{split['pattern']}"
    settings = values.get("custom_config")
    if settings and settings != "null":
        yield f"with {settings}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.lineage",
        description="Print the artifacts and executions behind a pushed model, back to the import "
        "files.",
    )
    parser.add_argument("--workdir", required=True, help="the folder that the pipeline ran in")
    parser.add_argument("--model", type=int, metavar="N", help="artifact number; default: latest")
    args = parser.parse_args(argv)
    quiet_libraries()

    def show() -> None:
        metadata = Metadata(metadata_path(args.workdir))
        for line in lineage_lines(metadata, pushed_model(metadata, args.model)):
            print(line)

    return run_main(show)


if __name__ == "__main__":
    sys.exit(main())
