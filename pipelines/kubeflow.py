"""``python -m pipelines.kubeflow``: convert → statistics → train → evaluate → push, for KFP 2.

A fingerprint of the data is part of the conversion's cache key, and a model is pushed if it is good
enough and no worse than the newest one in the folder of pushed models.

The pipeline of the steps in :mod:`pipelines.component`, compiled to a package for Kubeflow
Pipelines or Vertex AI Pipelines.
"""

# No postponed annotations: kfp cannot read them on Outcome.

import argparse
import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kfp import compiler, dsl

from pipelines.component import TYPES, load_step
from pipelines.settings import Machine, add_machine_option, check_accelerator_image, parse_machine
from pipelines.terminal import run_main
from recordgen.core.dataset.splits import NO_EVAL
from recordgen.errors import UsageError
from recordgen.version import __version__

IMAGE = f"recordgen:{__version__}"

_STEPS = ("fingerprint", "convert", "statistics", "train", "evaluate", "push")
_MACHINES = {"convert": Machine(4, 4), "train": Machine(4, 8)}
_OTHER_MACHINE = Machine(2, 4)

# Inputs of a step that have another name as a parameter of the pipeline.
_PARAMETER_NAMES = {
    ("convert", "image_size"): "stored_image_size",
    ("fingerprint", "image_size"): "stored_image_size",
    ("train", "model_name"): "model",
    ("evaluate", "split"): "eval_split",
}

# Inputs that other steps or the command give.
_GIVEN = ("serving_dir", "hyperparameters")


class Outcome(NamedTuple):
    """The outputs of the pipeline."""

    examples: int
    score: float


class _Parameter(NamedTuple):
    """A parameter of the pipeline, and the name of its input in each step that has one."""

    type: type
    default: Any
    description: str
    inputs: Mapping[str, str]


def create_pipeline(
    name: str = "recordgen",
    image: str = IMAGE,
    *,
    pipeline_root: str | None = None,
    serving_dir: str | None = None,
    caching: bool = True,
    retries: int = 2,
    machines: Mapping[str, Machine] | None = None,
    train_image: str | None = None,
    fingerprint: bool = True,
) -> Any:
    """Build the pipeline as kfp's component; its outputs are ``examples`` and ``score``.

    Args:
        name: the pipeline's name.
        image: the image of all steps, under the name that the cluster pulls.
        pipeline_root: URL for artifacts; None for the cluster's default.
        serving_dir: where to push a model that is good enough; None to push no model.
        caching: whether results of steps with unchanged inputs come from the cache.
        retries: how often a failed step is tried again.
        machines: resources of steps that need others than the default.
        train_image: the image of the step train, such as one with CUDA; None for ``image``.
        fingerprint: whether every run looks up the files that rows name; else the parameter
            ``dataset_version`` says that they have changed.

    Raises:
        UsageError: there is no such step, or a training with an accelerator has no image for it.
    """
    check_accelerator_image((machines or {}).get("train"), train_image, "--train-image")
    images = {"train": train_image or image}
    steps = {step: load_step(step, images.get(step, image)) for step in _STEPS}
    parameters = _parameters(steps, (*_GIVEN, "dataset_version") if fingerprint else _GIVEN)
    machines = {**_MACHINES, **(machines or {})}
    if unknown := machines.keys() - set(steps):
        raise UsageError(f"a machine needs one of the steps {', '.join(steps)} (got {unknown})")
    machines.setdefault("evaluate", machines["train"]._replace(accelerator=None))

    def pipeline(*values: Any) -> Outcome:
        given = dict(zip(parameters, values, strict=True))

        def run(step: str, **inputs: Any) -> dsl.PipelineTask:
            for parameter, item in parameters.items():
                if step in item.inputs:
                    inputs[item.inputs[step]] = given[parameter]
            task = steps[step](**inputs).set_display_name(step.capitalize())
            task.set_caching_options(caching)
            task.set_retry(retries, backoff_duration="30s", backoff_factor=2)
            _request(task, machines.get(step, _OTHER_MACHINE))
            return task

        found = {}
        if fingerprint:
            files = run("fingerprint").set_caching_options(False)
            found = {"dataset_version": files.outputs["fingerprint"]}
        records = run("convert", **found)
        dataset = records.outputs["dataset"]
        run("statistics", dataset=dataset)
        model = run("train", dataset=dataset).outputs["model"]
        pushed = {} if serving_dir is None else {"serving_dir": serving_dir}
        evaluation = run("evaluate", dataset=dataset, model=model, **pushed)
        if pushed:
            # Another run may have pushed another model, and the cache would not push this one.
            evaluation.set_caching_options(False)
            metrics = evaluation.outputs["metrics"]
            run("push", model=model, evaluation=metrics, **pushed).set_caching_options(False)

        return Outcome(records.outputs["examples"], evaluation.outputs["score"])

    # kfp reads parameters and their descriptions from these; only `source` has no default.
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    listed = [
        inspect.Parameter(
            key, kind, default=empty if it.default is None else it.default, annotation=it.type
        )
        for key, it in parameters.items()
    ]
    signature = inspect.Signature(listed, return_annotation=Outcome)
    pipeline.__signature__ = signature  # type: ignore[attr-defined]
    lines = (f"    {key}: {item.description.rstrip('.')}.\n" for key, item in parameters.items())
    what = "Turn labelled examples into a model that is good enough to serve."
    pipeline.__doc__ = f"{what}\n\nArgs:\n{''.join(lines)}"
    return dsl.pipeline(name=name, pipeline_root=pipeline_root)(pipeline)


def _parameters(steps: Mapping[str, Any], given: Sequence[str]) -> dict[str, _Parameter]:
    """Return the parameters among the inputs of ``steps``; inputs of one name are shared."""
    types = {name: kind for kind, name in TYPES.items()}
    found: dict[str, _Parameter] = {}
    for step in ("convert", "fingerprint", "train", "evaluate"):
        for key, item in steps[step].component_spec.inputs.items():
            if item.type not in types or key in given:
                continue  # an artifact, or from another step
            name = _PARAMETER_NAMES.get((step, key), key)
            old = found.get(name, _Parameter(types[item.type], item.default, item.description, {}))
            said = old.description
            if item.description not in said:
                said = f"{said.rstrip('.')}; in {step}: {item.description}"
            found[name] = old._replace(description=said, inputs={**old.inputs, step: key})
    # Without split eval, the evaluation would fail after the whole training, unless it uses test.
    found["fail_on"] = found["fail_on"]._replace(default=[NO_EVAL])
    found["min_score"] = found["min_score"]._replace(default=0.8)
    return found


def _request(task: dsl.PipelineTask, machine: Machine) -> None:
    cpus, memory = f"{machine.cpus:g}", f"{machine.gigabytes:g}G"
    task.set_cpu_request(cpus).set_cpu_limit(cpus)
    task.set_memory_request(memory).set_memory_limit(memory)
    if machine.accelerator is not None:
        task.set_accelerator_type(machine.accelerator)
        task.set_accelerator_limit(machine.accelerators)


def compile_pipeline(path: str, **settings: Any) -> None:
    """Write the package of :func:`create_pipeline` for ``kfp.Client`` or Vertex AI.

    Raises: UsageError: kfp refuses a setting.
    """
    pipeline = create_pipeline(**settings)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    try:
        compiler.Compiler().compile(pipeline, path)
    except ValueError as exc:
        raise UsageError(f"kfp cannot compile this pipeline: {exc}") from exc


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.kubeflow",
        description="Compile the pipeline to a package for Kubeflow Pipelines or Vertex AI "
        "Pipelines.",
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FILE", help="the package to write, such as p.yaml")
    add("--name", default="recordgen", help="the pipeline's name")
    add("--image", default=IMAGE, help="the image, under the name that the cluster pulls")
    add("--train-image", metavar="IMAGE", help="of the training, such as one with CUDA")
    add("--pipeline-root", metavar="URL", help="gs://…, minio://…, s3://…; default: the cluster's")
    add("--serving-dir", metavar="URL", help="where to push models that are good enough")
    add("--no-caching", action="store_true", help="repeat each step in every run")
    add("--retries", type=int, default=2, help="how often to retry a failed step")
    add("--no-fingerprint", action="store_true", help="do not look up the data before each run")
    add_machine_option(parser, "train=8,30,nvidia.com/gpu, or NVIDIA_TESLA_T4 on Vertex AI")
    args = parser.parse_args(argv)

    def run() -> None:
        compile_pipeline(
            args.output,
            name=args.name,
            image=args.image,
            pipeline_root=args.pipeline_root,
            serving_dir=args.serving_dir,
            caching=not args.no_caching,
            retries=args.retries,
            machines=dict(map(parse_machine, args.machine)),
            train_image=args.train_image,
            fingerprint=not args.no_fingerprint,
        )
        print(f"wrote {args.output}")

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
