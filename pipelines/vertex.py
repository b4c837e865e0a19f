"""``python -m pipelines.vertex``: compile the pipeline to a job of Vertex AI Pipelines.

Google's client starts the job, as often as wanted and with other parameters:
``aiplatform.PipelineJob(template_path="job.json", …).submit()``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipelines.settings import Settings, add_pipeline_options, to_settings
from pipelines.terminal import loading_tfx, run_main
from recordgen import storage
from recordgen.beam import check_dataflow, check_flags
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import UsageError


def compile_job(
    settings: Settings,
    pipeline_root: str,
    serving_dir: str,
    images: Mapping[str, str],
    beam_args: Sequence[str],
) -> dict[str, Any]:
    """Return the job: the JSON body of the request that starts it.

    Args:
        settings: the pipeline; folder, span and version of the data, the settings of the training
            and the threshold of the score can change from run to run.
        pipeline_root: gs:// folder for all artifacts.
        serving_dir: gs:// folder to which blessed models are pushed.
        images: images by step; ``default_image_path`` is the image of all other steps.
        beam_args: Beam's flags; empty: Beam runs in the containers.
    """
    from google.protobuf import json_format
    from tfx import v1 as tfx
    from tfx.orchestration.data_types import RuntimeParameter

    from pipelines import pipeline
    from recordgen.examplegen import vertex_driver

    to_json = partial(json_format.MessageToJson, preserving_proto_field_name=True, indent=None)
    span = pipeline.span_range(settings.span)
    values = {
        "input_base": settings.input_base,
        "range_config": to_json(span) if span else "",
        "dataset_version": settings.dataset_version or "",
        "train_args": "{}",
        "custom_config": json.dumps(settings.custom_config),
        "eval_config": to_json(pipeline.eval_config(settings.task, settings.min_score)),
    }
    parameters: dict[str, Any] = {name: RuntimeParameter(name, ptype=str) for name in values}
    of_data = ("input_base", "range_config", "dataset_version")
    example_gen = pipeline.example_gen_of(
        settings, **{name: parameters.pop(name) for name in of_data}
    )
    made = pipeline.create_pipeline(
        settings.name,
        pipeline_root,
        example_gen,
        **parameters,
        serving_dir=serving_dir,
        beam_pipeline_args=[*(beam_args or pipeline.LOCAL_BEAM_ARGS)],
    )
    experimental = tfx.orchestration.experimental
    # Schema 2.0 ignores the results of a driver: span and fingerprint.
    config = experimental.KubeflowV2DagRunnerConfig(
        default_image=dict(images), use_pipeline_spec_2_1=True
    )
    runner = experimental.KubeflowV2DagRunner(config)
    job: dict[str, Any] = runner.run(made, parameter_values=values, write_out=False)
    if settings.fingerprint_images:
        vertex_driver.use_in(job)
    return job


def check_url(option: str, url: str) -> None:
    """Check that the service can reach ``url``. Raises: UsageError."""
    if not url.startswith("gs://") or not url.removeprefix("gs://").strip("/"):
        raise UsageError(f"{option} must be a folder in a bucket, gs://BUCKET/… (got {url!r})")


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.vertex",
        description="Compile the pipeline to a job of Vertex AI Pipelines, which Google's client "
        "starts: aiplatform.PipelineJob(template_path=…).",
    )
    add = parser.add_argument
    add("--data", required=True, help="gs:// folder of the import files")
    add("--pipeline-root", required=True, help="gs:// folder for all artifacts")
    add("--image", required=True, help="image of all steps, in a registry")
    add("--output", type=storage.normal, required=True, metavar="JOB.json", help="file or URL")
    add("--serving-dir", help="gs:// folder for blessed models; default ROOT/serving")
    add("--trainer-image", help="image of the Trainer, such as one with CUDA; default: --image")
    # The task is not detected: perhaps only the cloud's workers can reach the data.
    add_pipeline_options(parser, other_task="image_classification, or tabular with its options")
    text = "flags for Beam, such as --runner=DataflowRunner; default: Beam runs in the steps"
    add("beam_args", nargs="*", metavar="-- BEAM_FLAG", help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = build_parser().parse_args(argv)
    serving_dir = args.serving_dir or f"{args.pipeline_root.rstrip('/')}/serving"

    def run() -> None:
        quiet_libraries()
        check_url("--data", args.data)
        check_url("--pipeline-root", args.pipeline_root)
        check_url("--serving-dir", serving_dir)
        settings = to_settings(args, args.data, args.pattern)
        images = {"default_image_path": args.image, "Trainer": args.trainer_image or args.image}
        if args.beam_args:
            check_flags(args.beam_args)
            check_dataflow(args.beam_args)
        with loading_tfx():  # so check the arguments first
            job = compile_job(settings, args.pipeline_root, serving_dir, images, args.beam_args)
        storage.write_text(args.output, json.dumps(job, indent=1, sort_keys=True) + "\n")
        print(f"compiled   {args.output}")
        for name, value in sorted(job["runtimeConfig"]["parameterValues"].items()):
            print(f"parameter  {name}={value}")

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
