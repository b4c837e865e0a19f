"""``python -m pipelines.local``: the whole pipeline on this machine, with SQLite metadata."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.config import PipelineConfig, local_config
from pipelines.terminal import run_main, show_progress
from recordgen.errors import UsageError
from recordgen.options import ConvertOptions
from recordgen.quiet import load_tensorflow, quiet_libraries
from recordgen.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run came to.

    Attributes:
        examples: examples by split.
        labels: size of the vocabulary.
        rejects: rejected rows.
        accuracy: accuracy on ``eval``, 0..1.
        blessed: whether the model was good enough to be pushed.
        pushed_to: where it was pushed; None if it was not.
        cached: steps that were taken from the cache.
        steps: all steps.
    """

    examples: dict[str, int]
    labels: int
    rejects: int
    accuracy: float
    blessed: bool
    pushed_to: str | None
    cached: int
    steps: int


def run_pipeline(config: PipelineConfig, *, verbose: bool = False) -> RunReport:
    """Run the pipeline in this process and return what came out.

    Raises:
        RecordgenError: the data or a setting is at fault.
    """
    if config.metadata_path is None:
        raise UsageError("a local run needs metadata_path: where its ML Metadata is kept")
    print("loading TFX …", flush=True)
    if not verbose:
        load_tensorflow()
    from tfx import v1 as tfx  # takes 10 s and more: not before the arguments are known to be good

    from pipelines.pipeline import create_pipeline

    pipeline = create_pipeline(config)
    show_progress(len(pipeline.components), verbose=verbose)
    os.makedirs(os.path.dirname(config.metadata_path), exist_ok=True)
    tfx.orchestration.LocalDagRunner().run(pipeline)
    return read_report(config.metadata_path)


def read_report(metadata_path: str) -> RunReport:
    """Return what the latest run in a metadata store came to."""
    import tensorflow_model_analysis as tfma

    from pipelines.metadata import Metadata
    from pipelines.pipeline import ACCURACY

    metadata = Metadata(metadata_path)
    executions = metadata.latest_run()
    outputs = {a.type: a for e in executions for a in metadata.outputs(e)}
    examples = outputs["Examples"].properties
    metrics = tfma.load_eval_result(outputs["ModelEvaluation"].uri).get_metrics_for_slice()
    pushed = outputs["PushedModel"].properties
    by_name = {key.rsplit("/", 1)[-1]: value for key, value in (metrics or {}).items()}
    return RunReport(
        examples={
            name: int(examples[f"examples_{name}"])
            for name in json.loads(str(examples["split_names"]))
        },
        labels=int(examples["label_count"]),
        rejects=int(examples["rejects"]),
        accuracy=by_name[_metric_name(ACCURACY)]["doubleValue"],
        blessed=bool(outputs["ModelBlessing"].properties.get("blessed")),
        pushed_to=str(pushed["pushed_destination"]) if pushed.get("pushed") else None,
        cached=sum(execution.state == "CACHED" for execution in executions),
        steps=len(executions),
    )


def _metric_name(class_name: str) -> str:
    """``SparseCategoricalAccuracy`` → ``sparse_categorical_accuracy``, as TFMA names results."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in class_name).lstrip("_")


def print_report(report: RunReport, workdir: str) -> None:
    """Print what a run came to, and where to look."""
    if report.cached:
        what = "everything" if report.cached == report.steps else f"{report.cached} steps"
        print(f"\n{what} came from TFX's cache: the same data and settings were run before")
    splits = ", ".join(f"{name} {count}" for name, count in report.examples.items())
    print(f"\nexamples   {sum(report.examples.values())} ({splits}), {report.labels} labels")
    print(f"rejects    {report.rejects}")
    print(f"accuracy   {report.accuracy:.4f} on eval")
    print(f"blessed    {'yes' if report.blessed else 'no'}")
    print(f"pushed to  {report.pushed_to or 'nowhere: only blessed models are pushed'}")
    print(f"artifacts  {os.path.join(workdir, 'artifacts')}")
    print(f"training   tensorboard --logdir {os.path.join(workdir, 'artifacts', 'Trainer')}")


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.local",
        description="Convert, check, train, evaluate and push, on this machine. Run it again: "
        "steps whose input did not change come from the cache.",
    )
    training, options = TrainingConfig(), ConvertOptions()
    add = parser.add_argument
    add("--data", required=True, help="a folder of AutoML import CSVs, or one CSV")
    add("--workdir", required=True, help="folder for artifacts, metadata and pushed models")
    add("--pattern", default="*.csv", help="import files in --data; {SPAN}, {YYYY}, … are known")
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    add("--dataset-version", help="your own name for this data; part of the cache key")
    add("--no-fingerprint-images", action="store_true", help="do not look up every image first")
    add("--max-reject-fraction", type=float, default=options.max_reject_fraction)
    add("--seed", type=int, default=0, help="of the conversion and the training")
    add("--model", default=training.model, help="small_cnn or a keras.applications name")
    add("--weights", choices=["imagenet"], help="pretrained weights; Keras downloads them")
    add("--image-size", type=int, nargs=2, metavar=("H", "W"), default=training.image_size)
    add("--batch-size", type=int, default=training.batch_size)
    add("--epochs", type=int, default=training.epochs)
    add("--learning-rate", type=float, default=training.learning_rate)
    add("--min-accuracy", type=float, default=0.8, help="on eval, for a model to be blessed")
    add("--verbose", action="store_true", help="show TFX's own log, too")
    return parser


def to_config(args: argparse.Namespace) -> PipelineConfig:
    """Turn parsed arguments into a config.

    Raises:
        UsageError: a value is not allowed.
        SourceError: there is no data.
    """
    return local_config(
        args.data,
        args.workdir,
        pattern=args.pattern,
        name=args.name,
        dataset_version=args.dataset_version,
        fingerprint_images=not args.no_fingerprint_images,
        options=ConvertOptions(seed=args.seed, max_reject_fraction=args.max_reject_fraction),
        training=TrainingConfig(
            model=args.model,
            weights=args.weights,
            image_size=tuple(args.image_size),
            batch_size=args.batch_size,
            epochs=args.epochs,
            learning_rate=args.learning_rate,
            seed=args.seed,
        ),
        min_accuracy=args.min_accuracy,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = build_parser().parse_args(argv)

    def run() -> None:
        config = to_config(args)
        if not args.verbose:
            quiet_libraries()
        print_report(run_pipeline(config, verbose=args.verbose), os.path.abspath(args.workdir))

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
