"""``python -m pipelines.local``: the whole pipeline on this machine, with SQLite metadata."""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from pipelines.config import (
    PATTERN_HELP,
    PipelineConfig,
    add_pipeline_options,
    local_config,
    pipeline_settings,
)
from pipelines.terminal import run_main, show_progress
from recordgen import storage
from recordgen.console.quiet import load_tensorflow, quiet_libraries
from recordgen.dataset.manifest import read_dataset
from recordgen.errors import RunnerError, UsageError
from recordgen.options import AUTO
from recordgen.sources.detect import detect
from recordgen.sources.import_file import find_import_files
from recordgen.standards.lineage import TFX_FOLDER
from recordgen.standards.model_labels import read_model_labels
from recordgen.tasks import TASKS

# The placeholders of span, version and date in a pattern.
_SPAN = re.compile(r"\{[A-Z][^}]*\}")

_LOWEST_LABELS = 5  # the labels with the lowest scores are printed


def run_pipeline(config: PipelineConfig, *, verbose: bool = False) -> str:
    """Run the pipeline in this process; return its metadata store. Raises: RecordgenError."""

    def create() -> Any:
        from pipelines.pipeline import create_pipeline

        return create_pipeline(config)

    return run_created(create, config, verbose=verbose)


def run_created(create: Callable[[], Any], config: PipelineConfig, *, verbose: bool = False) -> str:
    """Run the pipeline that ``create`` returns in this process; return its metadata store.

    Raises: RecordgenError.
    """
    if config.metadata_path is None:
        raise UsageError("a local run needs metadata_path, the file of its ML Metadata")
    print("loading TFX …", flush=True)
    if not verbose:
        load_tensorflow()
    from tfx import v1 as tfx  # takes 10 s or more, so check the arguments first

    pipeline = create()
    show_progress(len(pipeline.components), verbose=verbose)
    os.makedirs(os.path.dirname(config.metadata_path), exist_ok=True)
    check_not_locked(config.metadata_path)
    tfx.orchestration.LocalDagRunner().run(pipeline)
    return config.metadata_path


def check_not_locked(metadata_path: str, seconds: float = 5.0) -> None:
    """Check that a metadata store can be written within ``seconds``.

    ML Metadata would retry for half a minute, then raise an error that names neither file nor
    remedy.

    Raises:
        RunnerError: another process locks the store.
    """
    if not os.path.exists(metadata_path):
        return
    with closing(sqlite3.connect(metadata_path, timeout=seconds)) as store:
        try:
            store.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as exc:
            raise RunnerError(
                f"{metadata_path}: ML Metadata cannot be written ({exc}); wait for the run that "
                f"uses it, or run in another folder"
            ) from exc


def print_report(metadata_path: str, workdir: str) -> bool:
    """Print the result of the latest run, and the paths of its files.

    Returns:
        Whether the model is blessed.
    """
    import tensorflow_model_analysis as tfma

    from pipelines.metadata import Metadata

    metadata = Metadata(metadata_path)
    executions = metadata.latest_run()
    outputs = {a.type: a for e in executions for a in metadata.outputs(e)}
    dataset = read_dataset(outputs["Examples"].uri)
    measure = TASKS[dataset.task].declared("measure").tfma.name
    [(_, by_output)] = tfma.load_eval_result(outputs["ModelEvaluation"].uri).slicing_metrics
    scores = {key: _value(metrics, measure) for key, metrics in by_output[""].items()}
    labels = enumerate(read_model_labels(f"{outputs['Model'].uri}/{TFX_FOLDER}"))
    by_label = [(scores[k], label) for n, label in labels if (k := f"classId:{n}") in scores]
    blessed = bool(outputs["ModelBlessing"].properties.get("blessed"))
    pushed = outputs["PushedModel"].properties
    pushed_to = pushed["pushed_destination"] if pushed.get("pushed") else None

    cached = sum(execution.state == "CACHED" for execution in executions)
    if cached:
        what = "everything" if cached == len(executions) else f"{cached} steps"
        print(f"\n{what} came from TFX's cache: an earlier run had the same data and settings")
    splits = ", ".join(f"{name} {split.examples}" for name, split in dataset.splits.items())
    print(f"\nexamples   {dataset.examples} ({splits}), {len(dataset.labels)} labels")
    print(f"rejects    {dataset.rows.rejects}")
    print(f"{measure:10} {scores['']:.4f} on eval")
    if by_label:
        lowest = sorted(by_label, key=lambda item: item[0])[:_LOWEST_LABELS]
        print(f"lowest     {', '.join(f'{label} {score:.4f}' for score, label in lowest)}")
    print(f"blessed    {'yes' if blessed else 'no'}")
    print(f"pushed to  {pushed_to or 'nowhere: only blessed models are pushed'}")
    print(f"artifacts  {os.path.join(workdir, 'artifacts')}")
    print(f"training   tensorboard --logdir {os.path.join(workdir, 'artifacts', 'Trainer')}")
    return blessed


def _value(metrics: Mapping[str, Any], measure: str) -> float:
    """Return TFMA's value of a metric."""
    [value] = [value for name, value in metrics.items() if name.rsplit("/", 1)[-1] == measure]
    return float(value["doubleValue"])


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.local",
        description="Convert, check, train, evaluate and push, on this machine. In later runs, "
        "steps with unchanged input come from the cache.",
    )
    add = parser.add_argument
    add("--data", required=True, help="a folder of AutoML import CSVs, or one CSV")
    add("--workdir", required=True, help="folder for artifacts, metadata and pushed models")
    add("--pattern", default="*.csv", help=PATTERN_HELP)
    add("--dataset-version", help="your own name for this data; part of the cache key")
    add_pipeline_options(parser, other_task="detected from the files")
    add("--verbose", action="store_true", help="also show TFX's own log")
    return parser


def to_config(args: argparse.Namespace) -> PipelineConfig:
    """Turn parsed arguments into a config; detect and print the task if it is not set.

    Raises:
        UsageError: a value is not allowed.
        SourceError: there are no data.
    """
    config = local_config(
        args.data,
        args.workdir,
        pattern=args.pattern,
        dataset_version=args.dataset_version,
        **pipeline_settings(args),
    )
    if config.options.task != AUTO:
        return config
    pattern = f"{config.input_base}/{_SPAN.sub('*', config.pattern)}"
    if pattern.endswith("/") and (files := storage.list_files(f"{pattern}**")):
        # A glob finds only files; the folder of one span is enough to detect the task of all.
        pattern = "/".join(files[-1].split("/")[: pattern.count("/")])
    found = detect(find_import_files(pattern), config.options)
    print(f"task: {found.options.task} ({found.reason})", flush=True)
    return replace(config, options=replace(config.options, task=found.options.task))


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
