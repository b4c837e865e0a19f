"""A driver for Vertex AI Pipelines that adds images to the fingerprint of TFX's own driver.

    python -m recordgen.examplegen.vertex_driver --json_serialized_invocation_args {{$}} …

TFX ignores a component's ``DRIVER_CLASS`` here: it always compiles its own driver for file-based
ExampleGens into ``lifecycle.preCacheCheck``. This driver takes the same arguments and writes the
same output; :func:`use_in` puts it into a job.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.components.example_gen.driver import update_output_artifact
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils as entrypoint
from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver as tfx_driver
from tfx.types import standard_component_specs as specs

from recordgen import storage
from recordgen.errors import RecordgenError
from recordgen.examplegen.driver import FOUND, with_images
from recordgen.examplegen.executor import AutoMLExampleGenExecutor

_MODULE = "recordgen.examplegen.vertex_driver"  # in the job, __name__ is __main__
_EXECUTOR = f"{AutoMLExampleGenExecutor.__module__}.{AutoMLExampleGenExecutor.__qualname__}"


def use_in(job: dict[str, Any]) -> None:
    """Replace the driver of AutoMLExampleGen in a job of ``KubeflowV2DagRunner`` (schema 2.1)."""
    for executor in job["pipelineSpec"]["deploymentSpec"]["executors"].values():
        container = executor.get("container", {})
        check = container.get("lifecycle", {}).get("preCacheCheck")
        if check and _EXECUTOR in container["args"]:
            check["command"] = [
                _MODULE if word == tfx_driver.__name__ else word for word in check["command"]
            ]


def run(args: argparse.Namespace) -> None:
    """Resolve span, version and fingerprint, and write them to the execution's output file.

    Raises:
        SourceError: an import file cannot be read, or none matches the span, date or version.
        StorageError: storage failed.
    """
    invocation = pipeline_spec_pb2.ExecutorInput()
    json_format.Parse(args.json_serialized_invocation_args, invocation, ignore_unknown_fields=True)
    inputs = pipeline_spec_pb2.ComponentInputsSpec()
    json_format.Parse(args.json_serialized_inputs_spec_args, inputs, ignore_unknown_fields=True)
    properties = with_images(
        entrypoint.parse_execution_properties(
            invocation.inputs.parameter_values, invocation.inputs.parameters, inputs
        )
    )
    found = {name: properties[name] for name in FOUND if properties[name] is not None}
    names: dict[int, str] = {}
    outputs = entrypoint.parse_raw_artifact_dict(invocation.outputs.artifacts, names)
    [examples] = outputs[specs.EXAMPLES_KEY]
    update_output_artifact(exec_properties=properties, output_artifact=examples.mlmd_artifact)
    artifact = json_format.MessageToDict(entrypoint.to_runtime_artifact(examples, names))
    output = {
        "parameterValues": {**found, specs.INPUT_CONFIG_KEY: properties[specs.INPUT_CONFIG_KEY]},
        "artifacts": {specs.EXAMPLES_KEY: {"artifacts": [artifact]}},
    }
    storage.write_text(invocation.outputs.output_file, json.dumps(output))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the driver; an error is the last line of the step's log."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", required=True)
    args, _ = parser.parse_known_args(argv)  # Beam's flags follow
    try:
        run(args)
    except RecordgenError as exc:
        sys.exit(f"error: {exc}")


if __name__ == "__main__":
    main()
