"""``python -m pipelines.kubeflow``: convert → statistics → train → evaluate → push, for KFP 2.

The pipeline is compiled to a package for Kubeflow Pipelines or Vertex AI Pipelines, or runs here,
in containers.
"""

# No postponed annotations: kfp cannot read them on Outcome.

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import kfp
from kfp import compiler, dsl, local
from packaging.version import Version

from pipelines.kubeflow_steps import load_step
from pipelines.terminal import run_main
from recordgen import storage
from recordgen.cli import add_options
from recordgen.dataset.splits import SplitFractions
from recordgen.errors import RunnerError, UsageError
from recordgen.options import OPTIONS
from recordgen.training.config import TRAINING_OPTIONS
from recordgen.version import __version__

IMAGE = f"recordgen:{__version__}"

_LOCAL_RUNS = Version("2.16")  # the oldest kfp that runs the pipeline in containers

# The parameters of a local run; conversion and training share the seed.
_RUN_OPTIONS = {**TRAINING_OPTIONS, **OPTIONS}

# Inputs of a step that have another name as a parameter of the pipeline.
_PARAMETER_NAMES = {"train": {"model_name": "model"}, "evaluate": {"split": "eval_split"}}

# Wait at the end of each container: kfp fetches a container's log after its start, and fails if the
# container is already gone, as a short one is on a busy engine.
_ENTRYPOINT = ("sh", "-c", '"$@"; code=$?; sleep 3; exit $code', "sh")


class Outcome(NamedTuple):
    """The outputs of the pipeline."""

    examples: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of a step.

    Attributes:
        cpu: cores, such as ``4`` or ``500m``.
        memory: such as ``8G``.
        accelerator: ``nvidia.com/gpu`` on Kubernetes, ``NVIDIA_TESLA_T4`` on Vertex AI, or None.
        accelerators: the number of accelerators.
    """

    cpu: str
    memory: str
    accelerator: str | None = None
    accelerators: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeflowConfig:
    """The settings of :func:`create_pipeline`, fixed when it is compiled.

    Attributes:
        name: the pipeline's name.
        image: the image of all steps, under the name that the cluster pulls.
        pipeline_root: ``gs://…``, ``minio://…`` or ``s3://…`` for artifacts; None for the
            cluster's default.
        serving_dir: where to push a model that is good enough; None to push no model.
        caching: whether results of steps with unchanged inputs come from the cache.
        retries: how often a failed step is tried again.
        convert: resources of the conversion.
        train: resources of training and evaluation.
    """

    name: str = "recordgen"
    image: str = IMAGE
    pipeline_root: str | None = None
    serving_dir: str | None = None
    caching: bool = True
    retries: int = 2
    convert: Resources = field(default_factory=lambda: Resources(cpu="4", memory="4G"))
    train: Resources = field(default_factory=lambda: Resources(cpu="4", memory="8G"))

    def __post_init__(self) -> None:
        for name in ("name", "image"):
            if not getattr(self, name):
                raise UsageError(f"{name} must not be empty")
        if self.retries < 0:
            raise UsageError(f"retries must be at least 0 (got {self.retries})")


def create_pipeline(config: KubeflowConfig) -> Any:
    """Build the pipeline as kfp's component; its outputs are ``examples`` and ``score``."""
    names = ("convert", "statistics", "train", "evaluate", "push")
    steps = {name: load_step(name, config.image) for name in names}

    parameters = _parameters({name: steps[name] for name in ("convert", "train", "evaluate")})
    signature = _signature(parameters)
    plain = Resources(cpu="2", memory="4G")
    checked = replace(config.train, accelerator=None)

    def pipeline(*values: Any) -> Outcome:
        given = dict(zip(signature.parameters, values, strict=True))

        def settings(step: str) -> dict[str, Any]:
            return {item.input_name: given[item.name] for item in parameters if step in item.steps}

        def run(step: str, resources: Resources, **inputs: Any) -> dsl.PipelineTask:
            task = steps[step](**inputs, **settings(step)).set_display_name(step.capitalize())
            task.set_caching_options(config.caching)
            task.set_retry(config.retries, backoff_duration="30s", backoff_factor=2)
            _request(task, resources)
            return task

        records = run("convert", config.convert)
        dataset = records.outputs["dataset"]
        run("statistics", plain, dataset=dataset)
        model = run("train", config.train, dataset=dataset).outputs["model"]
        evaluation = run("evaluate", checked, dataset=dataset, model=model)
        if config.serving_dir is not None:
            with dsl.If(evaluation.outputs["score"] >= given["min_score"], name="good enough"):
                pushing = run("push", plain, model=model, serving_dir=config.serving_dir)
                # A push from the cache would not copy the model.
                pushing.set_caching_options(False)

        return Outcome(records.outputs["examples"], evaluation.outputs["score"])

    # kfp reads parameters and their descriptions from these.
    pipeline.__signature__ = signature  # type: ignore[attr-defined]
    pipeline.__doc__ = _description(parameters)
    return dsl.pipeline(name=config.name, pipeline_root=config.pipeline_root)(pipeline)


class _Parameter(NamedTuple):
    """A parameter of the pipeline, and the steps that have an input for it."""

    name: str
    input_name: str
    type: type
    default: Any
    description: str
    steps: tuple[str, ...]

    def shared_with(self, other: "_Parameter") -> "_Parameter":
        """Return this parameter with the steps of both."""
        description = f"{self.description.rstrip('.')}; in {other.steps[0]}: {other.description}"
        return self._replace(description=description, steps=(*self.steps, *other.steps))


_TYPES = {"String": str, "Integer": int, "Float": float, "Boolean": bool, "List": list}
_MIN_SCORE = _Parameter(
    "min_score",
    "min_score",
    float,
    0.8,
    "score on eval_split from which a model is pushed: accuracy; mean AUC of several labels, mean "
    "average precision of boxes, F1 of entities, R² of numbers",
    (),
)


def _parameters(steps: Mapping[str, Any]) -> list[_Parameter]:
    """Return the parameters among the inputs of ``steps``; inputs of one name are shared."""
    found: dict[str, _Parameter] = {}
    for step, component in steps.items():
        for input_name, item in component.component_spec.inputs.items():
            if item.type in _TYPES:
                name = _PARAMETER_NAMES.get(step, {}).get(input_name, input_name)
                new = _Parameter(
                    name, input_name, _TYPES[item.type], item.default, item.description, (step,)
                )
                found[name] = found[name].shared_with(new) if name in found else new
    return [*found.values(), _MIN_SCORE]


def _signature(parameters: Iterable[_Parameter]) -> inspect.Signature:
    """Return the signature of the pipeline's function: only ``source`` has no default."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(
                item.name,
                kind,
                default=inspect.Parameter.empty if item.default is None else item.default,
                annotation=item.type,
            )
            for item in parameters
        ],
        return_annotation=Outcome,
    )


def _description(parameters: Iterable[_Parameter]) -> str:
    """Return the docstring of the pipeline's function."""
    lines = "".join(f"    {item.name}: {item.description.rstrip('.')}.\n" for item in parameters)
    return f"Turn labelled examples into a model that is good enough to serve.\n\nArgs:\n{lines}"


def compile_pipeline(config: KubeflowConfig, path: str) -> None:
    """Write the package for ``kfp.Client`` or Vertex AI. Raises: UsageError if kfp refuses it."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    try:
        compiler.Compiler().compile(create_pipeline(config), path)
    except ValueError as exc:
        raise UsageError(f"kfp cannot compile this pipeline: {exc}") from exc


def run_local(config: KubeflowConfig, folder: str, **parameters: Any) -> Outcome:
    """Run the pipeline on this machine, each step in a container, and return its outputs.

    Args:
        config: the settings; the container engine must have the image.
        folder: holds the import file, its images, and the artifacts; steps see no other folder.
        **parameters: parameters of the pipeline.

    Raises:
        UsageError: a setting is not for local runs, or kfp is too old.
        RunnerError: no container engine answers, or a step failed.
    """
    if config.serving_dir is not None:
        raise UsageError(
            "a local run must not have a serving_dir: kfp's local runs skip conditional steps"
        )
    if config.pipeline_root is not None:
        raise UsageError("a local run must not have a pipeline_root: its folder is the root")
    folder = os.path.abspath(folder)
    source = parameters.pop("source")
    if storage.is_local(source):
        source = os.path.abspath(storage.local_path(source))
        if os.path.commonpath([folder, source]) != folder:
            raise UsageError(f"{source}: must be in {folder}: the steps see no other folder")
    try:
        import docker
    except ImportError as exc:
        raise UsageError(f"local runs need the package docker: pip install docker ({exc})") from exc
    try:
        docker.from_env().ping()
    except docker.errors.DockerException as exc:
        raise RunnerError(
            f"no container engine answers ({exc}); start Docker, or Podman's service, and set "
            f"DOCKER_HOST to its address"
        ) from exc
    local.init(local_runner(), pipeline_root=folder)
    try:
        outputs = create_pipeline(config)(source=source, **parameters).outputs
    # If the container of a failed step is gone early, kfp only reports the missing outputs.
    except (RuntimeError, ValueError, docker.errors.DockerException) as exc:
        raise RunnerError(f"a step failed; see its log above ({exc})") from exc
    return Outcome(int(outputs["examples"]), float(outputs["score"]))


def local_runner() -> Any:
    """Return kfp's container runner, which writes files as this user.

    Raises:
        UsageError: this version of kfp cannot run whole pipelines.
    """
    if Version(kfp.__version__) < _LOCAL_RUNS:
        raise UsageError(
            f"local runs need kfp {_LOCAL_RUNS} or newer (got {kfp.__version__}); "
            f"LEG=no-tfx make setup installs it"
        )
    return local.DockerRunner(user=f"{os.getuid()}:{os.getgid()}", entrypoint=list(_ENTRYPOINT))


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.kubeflow",
        description="Compile the pipeline to a package for Kubeflow Pipelines or Vertex AI "
        "Pipelines, or run it here, in containers.",
    )
    config = KubeflowConfig()
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", metavar="FILE", help="the package to write, such as p.yaml")
    what.add_argument("--run-local", metavar="DIR", help="run it here; --source is in this folder")
    add = parser.add_argument
    add("--name", default=config.name, help="the pipeline's name")
    add("--image", default=config.image, help="the image, under the name that the cluster pulls")
    add(
        "--pipeline-root", metavar="URL", help="gs://…, minio://… or s3://…; default: the cluster's"
    )
    add("--serving-dir", metavar="URL", help="where to push models that are good enough")
    add("--no-caching", action="store_true", help="repeat each step in every run")
    add("--retries", type=int, default=config.retries, help="how often to retry a failed step")
    add("--convert-cpu", default=config.convert.cpu, metavar="N", help="cores of the conversion")
    add("--convert-memory", default=config.convert.memory, metavar="N", help="such as 4G")
    add("--train-cpu", default=config.train.cpu, metavar="N", help="cores of the training")
    add("--train-memory", default=config.train.memory, metavar="N", help="such as 8G")
    add("--accelerator", metavar="TYPE", help="for training: nvidia.com/gpu, NVIDIA_TESLA_T4, …")
    add("--accelerators", type=int, default=1, metavar="N", help="number of accelerators")
    run = parser.add_argument_group("parameters of a local run")
    run.add_argument("--source", metavar="CSV", help="AutoML import file in DIR")
    add_options(run, _RUN_OPTIONS.values())
    parser.set_defaults(**dict.fromkeys(_RUN_OPTIONS))  # the steps have the defaults
    return parser


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the pipeline that are given on the command line."""
    values = {name: getattr(args, name) for name in ("source", *_RUN_OPTIONS)}
    return {name: _to_kfp(value) for name, value in values.items() if value is not None}


def _to_kfp(value: Any) -> Any:
    """Return the value of a flag for KFP, which has neither tuples nor shares."""
    if isinstance(value, SplitFractions):
        return ",".join(map(str, value.weights))
    return list(value) if isinstance(value, tuple) else value


def to_config(args: argparse.Namespace) -> KubeflowConfig:
    """Turn parsed arguments into a config. Raises: UsageError."""
    same = ("name", "image", "pipeline_root", "serving_dir", "retries")
    return KubeflowConfig(
        **{name: getattr(args, name) for name in same},
        caching=not args.no_caching,
        convert=Resources(cpu=args.convert_cpu, memory=args.convert_memory),
        train=Resources(
            cpu=args.train_cpu,
            memory=args.train_memory,
            accelerator=args.accelerator,
            accelerators=args.accelerators,
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = build_parser()
    args = parser.parse_args(argv)
    given = given_parameters(args)
    if args.output and given:
        parser.error("parameters are given when the package is run, not when it is compiled")
    if args.run_local and "source" not in given:
        parser.error("--run-local needs --source")

    def run() -> None:
        if args.output:
            compile_pipeline(to_config(args), args.output)
            print(f"wrote {args.output}")
        else:
            outcome = run_local(to_config(args), args.run_local, **given)
            print(f"examples   {outcome.examples}")
            print(f"score      {outcome.score:.4f} on eval")
            print(f"artifacts  {os.path.abspath(args.run_local)}")

    return run_main(run)


def _request(task: dsl.PipelineTask, resources: Resources) -> None:
    task.set_cpu_request(resources.cpu)
    task.set_cpu_limit(resources.cpu)
    task.set_memory_request(resources.memory)
    task.set_memory_limit(resources.memory)
    if resources.accelerator is not None:
        task.set_accelerator_type(resources.accelerator)
        task.set_accelerator_limit(resources.accelerators)


if __name__ == "__main__":
    sys.exit(main())
