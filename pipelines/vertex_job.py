"""Compile a pipeline to a job of Vertex AI Pipelines: a PipelineJob as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from tfx import v1 as tfx
from tfx.orchestration.data_types import RuntimeParameter

from pipelines import parameters
from pipelines.config import PipelineConfig
from pipelines.pipeline import RunInputs, create_pipeline, eval_config
from recordgen.errors import UsageError
from recordgen.examplegen import vertex_driver
from recordgen.examplegen.parameters import OPTION_TYPES


def compile_job(
    config: PipelineConfig, values: Mapping[str, Any], images: Mapping[str, str]
) -> dict[str, Any]:
    """Return the job: the JSON body of the request that starts it.

    Args:
        config: the pipeline, from which ``eval_config`` is built.
        values: the other runtime parameters, by :data:`pipelines.parameters.NAMES`.
        images: images by step; ``default_image_path`` is the image of all other steps.
    """
    pipeline = create_pipeline(config, runtime_inputs())
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image=dict(images),
            # Schema 2.0 ignores the results of a driver: span and fingerprint.
            use_pipeline_spec_2_1=True,
        )
    )
    measured = eval_config(config.task, config.min_score)
    values = {
        parameters.EVAL_CONFIG: json_format.MessageToJson(
            measured, preserving_proto_field_name=True, indent=None
        ),
        **values,
    }
    job: dict[str, Any] = runner.run(pipeline, parameter_values=values, write_out=False)
    if config.fingerprint_images:
        vertex_driver.use_in(job)
    return job


def runtime_inputs() -> RunInputs:
    """Return inputs whose values are set when a run is started."""
    given = {
        name: RuntimeParameter(name, ptype=OPTION_TYPES.get(name, str)) for name in parameters.NAMES
    }
    trainer = {name: given.pop(name) for name in (parameters.TRAIN_ARGS, parameters.CUSTOM_CONFIG)}
    evaluator = {parameters.EVAL_CONFIG: given.pop(parameters.EVAL_CONFIG)}
    return RunInputs(given, trainer, evaluator)


def set_machines(spec: dict[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the resources of steps into a pipeline's specification.

    TFX's ``with_platform_config`` does the same, but not for a file-based ExampleGen.

    Raises:
        UsageError: there is no such step.
    """
    executors = spec["deploymentSpec"]["executors"]
    for step, resources in machines.items():
        if step not in spec["components"]:
            raise UsageError(
                f"--machine needs one of the steps {', '.join(sorted(spec['components']))} "
                f"(got {step!r})"
            )
        executors[spec["components"][step]["executorLabel"]]["container"]["resources"] = resources
