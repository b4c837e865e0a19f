"""``python -m pipelines.vertex``: compile the pipeline to a job of Vertex AI Pipelines.

Google's client starts the job, as often as wanted and with other parameters:
``aiplatform.PipelineJob(template_path="job.json", …).submit()``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.settings import (
    Machine,
    Settings,
    add_machine_option,
    add_pipeline_options,
    check_accelerator_image,
    parse_machine,
    to_settings,
)
from pipelines.terminal import run_main
from recordgen import storage
from recordgen.beam import runners
from recordgen.console.quiet import load_tensorflow, quiet_libraries
from recordgen.errors import UsageError
from recordgen.options import NO_NAMES, OPTIONS

# The measure and the features of the statistics depend on these, so they are compiled in.
_COMPILED = ("task", "schema")
# Parameters of AutoMLExampleGen that are whole messages of TFX, as JSON.
_MESSAGES = ("input_config", "output_config", "range_config")
# The settings of the training, and the Evaluator's metrics and thresholds, as JSON.
_CUSTOM_CONFIG = "custom_config"
_EVAL_CONFIG = "eval_config"


def compile_job(
    settings: Settings,
    pipeline_root: str,
    serving_dir: str,
    images: Mapping[str, str],
    beam_args: Sequence[str],
) -> dict[str, Any]:
    """Return the job: the JSON body of the request that starts it.

    Args:
        settings: the pipeline; all but task, schema and name can change from run to run.
        pipeline_root: gs:// folder for all artifacts.
        serving_dir: gs:// folder to which blessed models are pushed.
        images: images by step; ``default_image_path`` is the image of all other steps.
        beam_args: Beam's flags; empty: Beam runs in the containers.
    """
    from google.protobuf import json_format
    from tfx import v1 as tfx
    from tfx.orchestration.data_types import RuntimeParameter

    from pipelines.pipeline import LOCAL_BEAM_ARGS, create_pipeline, eval_config, example_gen_of
    from recordgen.examplegen import AutoMLExampleGen, vertex_driver
    from recordgen.examplegen.parameters import OPTION_TYPES

    known = example_gen_of(settings).exec_properties
    values = {
        **{name: known.get(name) or "" for name in ("input_base", "dataset_version")},
        **{name: _one_line(known.get(name)) for name in _MESSAGES},
        **{name: _value(name, known.get(name), kind) for name, kind in OPTION_TYPES.items()},
    }
    for name in _COMPILED:
        del values[name]
    parameters: dict[str, Any] = {
        name: RuntimeParameter(name, ptype=OPTION_TYPES.get(name, str))
        for name in (*values, "train_args", _CUSTOM_CONFIG, _EVAL_CONFIG)
    }
    pipeline = create_pipeline(
        settings.name,
        pipeline_root,
        AutoMLExampleGen(
            fingerprint_images=settings.fingerprint_images,
            **{name: parameters[name] for name in values},
            task=settings.task,
            schema=settings.options.schema,
        ),
        custom_config=parameters[_CUSTOM_CONFIG],
        eval_config=parameters[_EVAL_CONFIG],
        train_args=parameters["train_args"],
        serving_dir=serving_dir,
        beam_pipeline_args=[*(beam_args or LOCAL_BEAM_ARGS)],
    )
    measured = eval_config(settings.task, settings.min_score)
    values |= {
        "train_args": "{}",
        _CUSTOM_CONFIG: json.dumps(settings.training.to_custom_config()),
        _EVAL_CONFIG: json_format.MessageToJson(
            measured, preserving_proto_field_name=True, indent=None
        ),
    }
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image=dict(images),
            # Schema 2.0 ignores the results of a driver: span and fingerprint.
            use_pipeline_spec_2_1=True,
        )
    )
    job: dict[str, Any] = runner.run(pipeline, parameter_values=values, write_out=False)
    if settings.fingerprint_images:
        vertex_driver.use_in(job)
    return job


def _one_line(message: str | None) -> str:
    """Return TFX's JSON of a message in one line; empty if there is none."""
    return json.dumps(json.loads(message)) if message else ""


def _value(name: str, value: Any, kind: type) -> Any:
    """Return an option as a parameter; parameters have neither lists nor None."""
    if value is None:
        return NO_NAMES if OPTIONS[name].several else kind()
    return value


def set_machines(spec: dict[str, Any], machines: Mapping[str, Machine]) -> None:
    """Write the resources of steps into a pipeline's specification.

    TFX's ``with_platform_config`` does the same, but not for a file-based ExampleGen.

    Raises: UsageError: there is no such step.
    """
    for step, machine in machines.items():
        if step not in spec["components"]:
            raise UsageError(
                f"--machine needs one of the steps {', '.join(sorted(spec['components']))} "
                f"(got {step!r})"
            )
        resources: dict[str, Any] = {"cpuLimit": machine.cpus, "memoryLimit": machine.gigabytes}
        if machine.accelerator:
            count = str(machine.accelerators)
            resources["accelerator"] = {"type": machine.accelerator, "count": count}
        executor = spec["deploymentSpec"]["executors"][spec["components"][step]["executorLabel"]]
        executor["container"]["resources"] = resources


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
    add("--output", required=True, metavar="JOB.json", help="the compiled job; file or URL")
    add("--serving-dir", help="gs:// folder for blessed models; default ROOT/serving")
    add("--trainer-image", help="image of the Trainer, such as one with CUDA; default: --image")
    add_machine_option(parser, "Trainer=8,30,NVIDIA_TESLA_T4")
    # The task is not detected: perhaps only the cloud's workers can reach the data.
    add_pipeline_options(parser, other_task="image_classification, or tabular with its options")
    add(
        "beam_args",
        nargs="*",
        metavar="-- BEAM_FLAG",
        help="flags for Beam, such as --runner=DataflowRunner; default: Beam runs in the steps",
    )
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
        machines = dict(map(parse_machine, args.machine))
        check_accelerator_image(machines.get("Trainer"), args.trainer_image, "--trainer-image")
        images = {"default_image_path": args.image, "Trainer": args.trainer_image or args.image}
        if args.beam_args:
            runners.check_flags(args.beam_args)
            runners.check_dataflow(args.beam_args)
        print("loading TFX …", flush=True)
        load_tensorflow()  # takes 10 s or more, so check the arguments first
        job = compile_job(settings, args.pipeline_root, serving_dir, images, args.beam_args)
        set_machines(job["pipelineSpec"], machines)
        storage.write_text(args.output, json.dumps(job, indent=1, sort_keys=True) + "\n")
        print(f"compiled   {args.output}")
        for name, value in sorted(job["runtimeConfig"]["parameterValues"].items()):
            print(f"parameter  {name}={value}")

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
