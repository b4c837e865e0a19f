"""``python -m pipelines.vertex``: compile the pipeline for Vertex AI, and start it there."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from pipelines.config import PipelineConfig, add_pipeline_options, pipeline_settings
from pipelines.parameters import (
    UNSET,
    add_parameter_options,
    below,
    check_parameters,
    check_url,
    config_values,
    given_parameters,
    parameter_values,
    with_settings,
)
from pipelines.submit import submit_job
from pipelines.terminal import run_main
from pipelines.vertex_settings import (
    RunSettings,
    add_run_options,
    check_form,
    dataflow_flags,
    to_machine,
)
from recordgen import storage
from recordgen.console.quiet import load_tensorflow, quiet_libraries
from recordgen.errors import UsageError

DEFAULT_PATTERN = "*.csv"


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.vertex",
        description="Compile the pipeline to a job of Vertex AI Pipelines; with --submit, start "
        "it. python -m pipelines.submit starts a compiled job again, with other parameters.",
    )
    add_run_options(parser)
    add = parser.add_argument
    add("--pipeline-root", required=True, help="gs:// folder for all artifacts")
    add("--image", required=True, help="image of all steps, in a registry")
    add("--output", required=True, metavar="JOB.json", help="the compiled job; file or URL")
    add("--submit", action="store_true", help="start it; needs Google Cloud credentials")
    add("--serving-dir", help="gs:// folder for blessed models; default ROOT/serving")
    add("--trainer-image", help="image of the Trainer, such as one with CUDA; default: --image")
    add(
        "--machine",
        action="append",
        default=[],
        metavar="STEP=CPUS,GB[,ACCELERATOR[:N]]",
        help="minimum of a step, such as Trainer=8,30,NVIDIA_TESLA_T4; may be repeated",
    )
    add("--dataflow-image", help="image of Dataflow's workers; runs Beam on Dataflow")
    add("--dataflow-temp-location", help="gs:// folder; default ROOT/dataflow")
    add("--dataflow-machine-type", help="machine type of Dataflow's workers")
    add("--dataflow-max-workers", type=int, metavar="N", help="maximum number of workers")
    add("--dataflow-subnetwork", metavar="URL", help="subnetwork of Dataflow's workers")
    add_parameter_options(parser, data_required=True)
    # The task is not detected: perhaps only the cloud's workers can reach the data.
    add_pipeline_options(parser, other_task="image_classification, or tabular with its options")
    return parser


def to_config(args: argparse.Namespace, run: RunSettings) -> PipelineConfig:
    """Turn parsed arguments into the pipeline's config.

    Raises:
        UsageError: a value is not allowed.
    """
    for name in ("project", "image"):
        if not getattr(args, name):
            raise UsageError(f"--{name} must not be empty")
    check_form("name", args.name)
    check_form("region", args.region)
    check_url("--pipeline-root", args.pipeline_root)
    serving_dir = args.serving_dir or below(args.pipeline_root, "serving")
    check_url("--serving-dir", serving_dir)
    more: dict[str, Any] = pipeline_settings(args)
    if (beam_args := dataflow_flags(args, run)) is not None:
        more["beam_args"] = beam_args
    return PipelineConfig(
        input_base=args.data,
        pipeline_root=args.pipeline_root,
        serving_dir=serving_dir,
        **more,
    )


def to_parameters(args: argparse.Namespace, config: PipelineConfig) -> dict[str, Any]:
    """Turn parsed arguments into the job's runtime parameters, except ``eval_config``.

    Raises:
        UsageError: a value is not allowed.
    """
    base = {**UNSET, **parameter_values(pattern=DEFAULT_PATTERN), **config_values(config)}
    values = with_settings(base, given_parameters(args))
    check_parameters(values)
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = build_parser().parse_args(argv)

    def run() -> None:
        settings = RunSettings.from_args(args)
        config = to_config(args, settings)
        machines = dict(map(to_machine, args.machine))
        images = {"default_image_path": args.image}
        if args.trainer_image:
            images["Trainer"] = args.trainer_image
        values = to_parameters(args, config)
        quiet_libraries()
        print("loading TFX …", flush=True)
        load_tensorflow()
        # Takes 10 s or more, so check the arguments first.
        from pipelines.vertex_job import compile_job, set_machines

        job = compile_job(config, values, images)
        set_machines(job["pipelineSpec"], machines)
        job = settings.in_job(job)
        storage.write_text(args.output, json.dumps(job, indent=1, sort_keys=True) + "\n")
        print(f"compiled   {args.output}")
        for name, value in sorted(job["runtimeConfig"]["parameterValues"].items()):
            print(f"parameter  {name}={value}")
        if args.submit:
            submit_job(job, project=args.project, region=args.region, endpoint=args.endpoint)

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
