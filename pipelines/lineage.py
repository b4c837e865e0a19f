"""``python -m pipelines.lineage``: from a pushed model back to the import files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from pipelines.config import metadata_path
from pipelines.metadata import Artifact, Execution, Metadata
from pipelines.terminal import run_main
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import DataError

PUSHED_MODEL = "PushedModel"
# The order of a model's ancestors in the output.
_TYPES_FIRST = ("Model", "Examples", "ModelBlessing")


def pushed_model(metadata: Metadata, number: int | None = None) -> Artifact:
    """Return the latest pushed model, or the model with this ``number``. Raises: DataError."""
    pushed = [a for a in metadata.artifacts(PUSHED_MODEL) if a.properties.get("pushed")]
    if not pushed:
        raise DataError("no model was pushed yet: no training has finished, or no model is blessed")
    if number is None:
        return pushed[-1]
    by_number = {artifact.id: artifact for artifact in pushed}
    if number not in by_number:
        raise DataError(
            f"no pushed model #{number}; the pushed models are "
            f"{', '.join(f'#{n}' for n in by_number)}"
        )
    return by_number[number]


def lineage_lines(metadata: Metadata, artifact: Artifact) -> Iterator[str]:
    """Yield the tree of artifacts and executions behind ``artifact``, without repeating any."""
    yield from _tree(metadata, artifact, "", set())


def _tree(metadata: Metadata, artifact: Artifact, indent: str, seen: set[int]) -> Iterator[str]:
    name = f"{artifact.type} #{artifact.id}"
    if artifact.id in seen:
        yield f"{indent}{name} (see above)"
        return
    seen.add(artifact.id)
    yield f"{indent}{name}{describe_artifact(artifact)}"
    yield f"{indent}  at {artifact.properties.get('pushed_destination') or artifact.uri}"
    maker = metadata.producer(artifact)
    if maker is None:
        return
    yield f"{indent}  made by {maker.component}, execution #{maker.id}, {maker.finished:%F %T}"
    yield from (f"{indent}    {line}" for line in describe_execution(maker))
    inputs = metadata.inputs(maker)
    for parent in sorted(inputs, key=_reading_order):
        yield f"{indent}  from"
        yield from _tree(metadata, parent, f"{indent}    ", seen)


def _reading_order(artifact: Artifact) -> int:
    return _TYPES_FIRST.index(artifact.type) if artifact.type in _TYPES_FIRST else len(_TYPES_FIRST)


def describe_artifact(artifact: Artifact) -> str:
    """Return the details of an artifact."""
    values = artifact.properties
    if artifact.type == "ModelBlessing":
        return ": blessed" if values.get("blessed") else ": not blessed"
    if artifact.type != "Examples" or "examples" not in values:
        return ""
    splits = ", ".join(
        f"{name} {values.get(f'examples_{name}', 0)}"
        for name in json.loads(str(values["split_names"]))
    )
    parts = [
        f"{values['examples']} examples ({splits})",
        f"{values.get('label_count', 0)} labels",
        f"{values.get('rejects', 0)} of {values.get('rows', 0)} rows rejected",
        f"span {values.get('span', 0)}",
    ]
    for key in ("version", "dataset_version"):
        if key in values:
            parts.append(f"{key.replace('_', ' ')} {values[key]}")
    parts += [
        f"seed {values.get('seed')}",
        f"digest {str(values.get('dataset_digest'))[:16]}",
        f"recordgen {values.get('recordgen_version')}",
    ]
    return ": " + ", ".join(parts)


def describe_execution(execution: Execution) -> Iterator[str]:
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
