"""What a backend hands a step, and what the step hands back.

KFP's ``ExecutorInput`` and ``ExecutorOutput`` (pipeline_spec.proto), as JSON:

    {"inputs": {"parameterValues": {"seed": 7.0},
                "artifacts": {"data": {"artifacts": [{"name": "…", "uri": "gs://…"}]}}},
     "outputs": {"artifacts": {"dataset": {"artifacts": [{"name": "…", "uri": "gs://…"}]}},
                 "parameters": {"examples": {"outputFile": "…"}},
                 "outputFile": "/gcs/…/executor_output.json"}}

    {"parameterValues": {"examples": 1797},
     "artifacts": {"dataset": {"artifacts": [{"name": "…", "uri": "gs://…", "metadata": {…}}]}}}

A step that decodes this itself has every input typed, optional ones included, and can describe its
artifacts; placeholders on a command line can do neither.

KFP's launcher (backend/src/v2/component/launcher_v2.go) copies input artifacts of gs://, minio://
and s3:// to a folder of the container before the step starts, ``gs://bucket/a`` to
``/gcs/bucket/a``, and uploads the files in the folders of the outputs after the step succeeded. On
Vertex AI the same folder is the bucket itself, through Cloud Storage FUSE. In kfp's local runs an
artifact's uri is a path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recordgen import storage
from recordgen.errors import UsageError

#: How convert reads and writes: by the uri's scheme, at the uri itself, or through the launcher's
#: folder.
TRANSFERS = ("auto", "uri", "path")

_FOLDERS = {"gs": "/gcs/", "minio": "/minio/", "s3": "/s3/"}


@dataclass(frozen=True, slots=True)
class Artifact:
    """An input or output artifact.

    Attributes:
        name: the backend's name for it, to be handed back as it came.
        uri: where it lies in the pipeline root: ``gs://…``, ``minio://…``, ``s3://…``, a path.
        metadata: what the step that made it says about it.
    """

    name: str
    uri: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepInput:
    """What a step is called with.

    Attributes:
        parameters: by the input's name; what is not there was not given.
        artifacts: input artifacts by name, the first of each.
        outputs: output artifacts by name.
        output_parameters: names of the output parameters.
        output_file: the file that the backend reads after the step.
    """

    parameters: Mapping[str, Any]
    artifacts: Mapping[str, Artifact]
    outputs: Mapping[str, Artifact]
    output_parameters: frozenset[str]
    output_file: str

    @classmethod
    def parse(cls, text: str) -> StepInput:
        """Decode an ``ExecutorInput``; whole numbers, doubles in its JSON, become ints.

        Raises:
            UsageError: it is not one.
        """
        try:
            data = json.loads(text)
            inputs, outputs = data.get("inputs", {}), data["outputs"]
            values = inputs.get("parameterValues", {})
            return cls(
                {name: _whole(value) for name, value in values.items() if value is not None},
                _first_of_each(inputs),
                _first_of_each(outputs),
                frozenset(outputs.get("parameters", {})),
                outputs["outputFile"],
            )
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise UsageError(
                f"--executor-input must be KFP's ExecutorInput as JSON, which a backend writes for "
                f"the placeholder {{{{$}}}} (got {text[:80]!r}): {exc!r}"
            ) from exc


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What a step hands back.

    Attributes:
        parameters: values of all output parameters.
        metadata: of output artifacts, by the output's name; values are JSON's.
    """

    parameters: Mapping[str, str | float | bool] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def write(self, step: StepInput) -> None:
        """Write it where the backend looks for it. Raises: StorageError."""
        artifacts = {
            name: {
                "artifacts": [
                    {
                        "name": artifact.name,
                        "uri": artifact.uri,
                        "metadata": dict(self.metadata.get(name, {})),
                    }
                ]
            }
            for name, artifact in step.outputs.items()
        }
        # A component of an older version may ask for less than there is to say.
        values = {
            name: value for name, value in self.parameters.items() if name in step.output_parameters
        }
        text = json.dumps({"parameterValues": values, "artifacts": artifacts})
        storage.write_text(step.output_file, text)


def _first_of_each(side: Mapping[str, Any]) -> dict[str, Artifact]:
    """Return the artifacts of the inputs or outputs; a list of none is an input not given."""
    return {
        name: Artifact(first.get("name", ""), first["uri"], first.get("metadata", {}))
        for name, found in side.get("artifacts", {}).items()
        for first in found.get("artifacts", [])[:1]
    }


def _whole(value: object) -> object:
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def launcher_path(uri: str) -> str:
    """Return the folder or file of the container that stands for ``uri``; others are their own.

    ``minio://bucket/a`` → ``/minio/bucket/a``
    """
    scheme, separator, rest = uri.partition("://")
    return _FOLDERS[scheme] + rest if separator and scheme in _FOLDERS else uri


def place_of(artifact: Artifact, transfer: str) -> str:
    """Return the path or URL at which convert reads or writes ``artifact``.

    ``auto`` goes to ``gs://`` itself: a dataset may be larger than the container's disk, its shards
    come to stay one by one, so that a retried step finds them, and Cloud Storage FUSE has no
    renaming that holds. Of other schemes only the launcher may have the credentials.

    Raises:
        UsageError: ``transfer`` is unknown.
    """
    if transfer not in TRANSFERS:
        raise UsageError(f"transfer must be one of {', '.join(TRANSFERS)} (got {transfer!r})")
    is_direct = transfer == "uri" or (transfer == "auto" and artifact.uri.startswith("gs://"))
    return artifact.uri if is_direct else launcher_path(artifact.uri)


def read_place(artifact: Artifact) -> str:
    """Return where a step that only reads finds ``artifact``: in the launcher's folder, if there.

    It was copied there for the step, or is read through it, and TensorFlow reads every path.
    """
    path = launcher_path(artifact.uri)
    return path if os.path.exists(path) else artifact.uri


def write_place(artifact: Artifact) -> str:
    """Return where a step writes an artifact of moderate size: in the launcher's folder.

    Its parent is made.
    """
    path = launcher_path(artifact.uri)
    if storage.is_local(path):
        os.makedirs(os.path.dirname(storage.local_path(path)) or ".", exist_ok=True)
    return path
