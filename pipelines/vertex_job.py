"""Compile a pipeline to a job of Vertex AI Pipelines: a PipelineJob as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import v1 as tfx
from tfx.orchestration.data_types import RuntimeParameter

from pipelines import parameters
from pipelines.config import PipelineConfig
from pipelines.pipeline import RunInputs, create_pipeline
from pipelines.vertex_settings import VertexSettings
from recordgen.errors import UsageError
from recordgen.examplegen import vertex_driver

TRAINER = "Trainer"


def compile_job(
    config: PipelineConfig, settings: VertexSettings, values: Mapping[str, str]
) -> dict[str, Any]:
    """Return the job: the JSON body of the request that starts it.

    ``values`` are the runtime parameters, by :data:`pipelines.parameters.NAMES`.

    Raises:
        UsageError: a machine is for a step that does not exist.
    """
    pipeline = create_pipeline(config, runtime_inputs())
    images = {"default_image_path": settings.image, TRAINER: settings.trainer_image}
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image={step: image for step, image in images.items() if image},
            # 2.0 ignores a driver's results: span and fingerprint.
            use_pipeline_spec_2_1=True,
        )
    )
    job: dict[str, Any] = runner.run(pipeline, parameter_values=dict(values), write_out=False)
    if config.fingerprint_images:
        vertex_driver.use_in(job)
    set_machines(job["pipelineSpec"], settings.machines)
    job["labels"] = {**job.get("labels", {}), **settings.labels}
    if settings.service_account is not None:
        job["serviceAccount"] = settings.service_account
    if settings.network is not None:
        job["network"] = settings.network
    return job


def runtime_inputs() -> RunInputs:
    """Return inputs that get their values when a run is started."""
    return RunInputs(**{name: RuntimeParameter(name, ptype=str) for name in parameters.NAMES})


def set_machines(spec: dict[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the resources of steps into a pipeline's specification.

    TFX's ``with_platform_config`` does the same, but nothing for a file-based ExampleGen.

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
