"""Input and output of a step, and the paths of its artifacts.

KFP's ``ExecutorInput`` and ``ExecutorOutput`` (pipeline_spec.proto), as JSON:

    {"inputs": {"parameterValues": {"seed": 7.0},
                "artifacts": {"data": {"artifacts": [{"name": "…", "uri": "gs://…"}]}}},
     "outputs": {"artifacts": {"dataset": {"artifacts": [{"name": "…", "uri": "gs://…"}]}},
                 "parameters": {"examples": {"outputFile": "…"}},
                 "outputFile": "/gcs/…/executor_output.json"}}

    {"parameterValues": {"examples": 1797},
     "artifacts": {"dataset": {"artifacts": [{"name": "…", "uri": "gs://…", "metadata": {…}}]}}}

Steps decode this JSON because all its inputs are typed, including optional ones, and because steps
can then describe their artifacts; placeholders on a command line can do neither.

KFP's launcher (backend/src/v2/component/launcher_v2.go) copies input artifacts of gs://, minio://
and s3:// to a folder of the container before the step starts, ``gs://bucket/a`` to
``/gcs/bucket/a``, and uploads the files in the folders of the outputs after the step succeeded. On
Vertex AI the same folder is the bucket itself, through Cloud Storage FUSE. In kfp's local runs an
artifact's uri is a path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from recordgen import storage
from recordgen.errors import UsageError, check_gone, check_one_of

#: Where convert reads and writes: at the uri itself (uri), in the launcher's folder (path), or at
#: one of them by the uri's scheme (auto).
TRANSFERS = ("auto", "uri", "path")

_FOLDERS = {"gs": "/gcs/", "minio": "/minio/", "s3": "/s3/"}


@dataclass(frozen=True, slots=True)
class Artifact:
    """An input or output artifact.

    Attributes:
        name: the backend's name, to be returned unchanged.
        uri: its address in the pipeline root: ``gs://…``, ``minio://…``, ``s3://…``, a path.
        metadata: metadata from the step that wrote it.
    """

    name: str
    uri: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepInput:
    """The input of a step.

    Attributes:
        artifacts: the given input artifacts by name; only a list has several.
        output_file: the file that the backend reads after the step.
        defaults: the parameters' defaults when the pipeline was compiled.
    """

    parameters: Mapping[str, Any]
    artifacts: Mapping[str, Sequence[Artifact]]
    outputs: Mapping[str, Artifact]
    output_parameters: frozenset[str]
    output_file: str
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, defaults: str = "{}") -> StepInput:
        """Decode an ``ExecutorInput``. Its numbers are doubles; whole numbers become ints.

        Raises: UsageError: ``text`` is not an ``ExecutorInput``.
        """
        try:
            data = json.loads(text, parse_float=_number)
            inputs, outputs = data.get("inputs", {}), data["outputs"]
            values = inputs.get("parameterValues", {})
            return cls(
                {name: value for name, value in values.items() if value is not None},
                _artifacts_of(inputs),
                {name: first for name, [first, *_] in _artifacts_of(outputs).items()},
                frozenset(outputs.get("parameters", {})),
                outputs["outputFile"],
                json.loads(defaults),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise UsageError(
                f"--executor-input must be KFP's ExecutorInput as JSON, which a backend writes for "
                f"the placeholder {{{{$}}}} (got {text[:80]!r}): {exc!r}"
            ) from exc

    def values(self, *known: str) -> dict[str, Any]:
        """Return the parameters that this version knows.

        A compiled pipeline passes a value for every input that the step had then.

        Raises: UsageError: another input has gone.
        """
        check_gone(self.parameters, known, self.defaults)
        return {name: self.parameters[name] for name in known if name in self.parameters}

    def paths(self, *names: str) -> list[str]:
        """Return where to read the artifacts of these inputs; inputs that are not given have none.

        TensorFlow can read the launcher's folder.
        """
        return [read_place(one) for name in names for one in self.artifacts.get(name, ())]

    def path(self, name: str) -> str:
        """Return where to read an input artifact that every call of the step has."""
        return read_place(self.artifacts[name][0])


@dataclass(frozen=True, slots=True)
class StepOutput:
    """The output of a step.

    Attributes:
        parameters: values of all output parameters; JSON values.
        metadata: metadata of output artifacts, by name; JSON values.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def write(self, step: StepInput) -> None:
        """Write the output to the backend's file. Raises: StorageError."""
        artifacts = {
            name: {"artifacts": [{**asdict(artifact), "metadata": self.metadata.get(name, {})}]}
            for name, artifact in step.outputs.items()
        }
        # A component of an older version may have fewer outputs.
        values = {
            name: value for name, value in self.parameters.items() if name in step.output_parameters
        }
        text = json.dumps({"parameterValues": values, "artifacts": artifacts})
        storage.write_text(step.output_file, text)


def _artifacts_of(side: Mapping[str, Any]) -> dict[str, tuple[Artifact, ...]]:
    """Return the artifacts of each input or output; an empty list is an input not given."""
    return {
        name: tuple(
            Artifact(each.get("name", ""), each["uri"], each.get("metadata", {}))
            for each in found["artifacts"]
        )
        for name, found in side.get("artifacts", {}).items()
        if found.get("artifacts")
    }


def _number(text: str) -> float:
    """Decode a number of JSON, in which backends write whole ones as ``7.0``."""
    value = float(text)
    return int(value) if value.is_integer() else value


def launcher_path(uri: str) -> str:
    """Return the path in the container: ``minio://bucket/a`` → ``/minio/bucket/a``."""
    scheme, separator, rest = uri.partition("://")
    return _FOLDERS[scheme] + rest if separator and scheme in _FOLDERS else uri


def place_of(artifact: Artifact, transfer: str) -> str:
    """Return the path or URL at which convert reads or writes ``artifact``.

    ``auto`` uses ``gs://`` directly: a dataset may be larger than the container's disk, a retried
    step finds the finished shards, and renaming through Cloud Storage FUSE is not atomic. For other
    schemes, only the launcher may have credentials.

    Raises: UsageError: ``transfer`` is unknown.
    """
    check_one_of("transfer", transfer, TRANSFERS)
    is_direct = transfer == "uri" or (transfer == "auto" and artifact.uri.startswith("gs://"))
    return artifact.uri if is_direct else launcher_path(artifact.uri)


def read_place(artifact: Artifact) -> str:
    """Return the path to read ``artifact``: in the launcher's folder, if it is there."""
    path = launcher_path(artifact.uri)
    return path if os.path.exists(path) else artifact.uri


def write_place(artifact: Artifact) -> str:
    """Return the path to write a small artifact, in the launcher's folder; create its parent."""
    path = launcher_path(artifact.uri)
    if storage.is_local(path):
        os.makedirs(os.path.dirname(storage.local_path(path)) or ".", exist_ok=True)
    return path
