"""``python -m pipelines.local``: the whole pipeline on this machine, with SQLite metadata."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.metadata import Metadata, metadata_path
from pipelines.settings import Settings, add_pipeline_options, local_input, to_settings
from pipelines.terminal import loading_tfx, run_main, show_progress
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.core.dataset.manifest import Dataset, read_dataset
from recordgen.errors import SourceError
from recordgen.exports.export import environment
from recordgen.formats.detect import detect
from recordgen.formats.import_file import find_import_files
from recordgen.options import AUTO
from recordgen.tasks import TASKS

# The placeholders of span, version and date in a pattern.
_SPAN = re.compile(r"\{[A-Z][^}]*\}")


def run_pipeline(settings: Settings, workdir: str, *, verbose: bool = False) -> None:
    """Run the pipeline in this process. Raises: RecordgenError."""
    with loading_tfx(verbose=verbose):  # so check the arguments first
        from tfx import v1 as tfx

        from pipelines.pipeline import create_local_pipeline

    workdir = os.path.abspath(workdir)
    pipeline = create_local_pipeline(settings, workdir)
    show_progress(len(pipeline.components), verbose=verbose)
    os.makedirs(workdir, exist_ok=True)
    tfx.orchestration.LocalDagRunner().run(pipeline)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run; scores are of split ``eval``."""

    dataset: Dataset
    span: int  # 0 without spans
    trained_on: tuple[int, ...]  # spans
    anomalies: tuple[str, ...]  # ExampleValidator's findings, by split and feature
    measure: str  # the name of the score
    score: float
    baseline: float | None  # the score of the last blessed model, if there is one
    blessed: bool
    pushed_to: str | None
    cached: int  # number of steps whose result came from the cache
    steps: int


def read_report(workdir: str) -> Report:
    """Return the result of the latest run in ``workdir``."""
    metadata = Metadata(metadata_path(workdir))
    executions = {each.component: each for each in metadata.latest_run()}
    found = {a.type: a for e in executions.values() for a in metadata.outputs(e)}
    [examples] = metadata.outputs(executions["AutoMLExampleGen"])
    dataset = read_dataset(examples.uri)
    measure = TASKS[dataset.task].declared("measure").tfma.name
    models = [a for a in metadata.inputs(executions["Evaluator"]) if a.type == "Model"]
    has_baseline = len(models) > 1
    evaluation = found["ModelEvaluation"].uri
    trained = [a for a in metadata.inputs(executions["Trainer"]) if a.type == "Examples"]
    pushed = found["PushedModel"].properties
    return Report(
        dataset=dataset,
        span=int(examples.properties["span"]),
        trained_on=tuple(sorted(int(a.properties["span"]) for a in trained)),
        anomalies=_anomalies(found["ExampleAnomalies"].uri),
        measure=measure,
        score=_score(evaluation, measure, "candidate" if has_baseline else ""),
        baseline=_score(evaluation, measure, "baseline") if has_baseline else None,
        blessed=bool(found["ModelBlessing"].properties.get("blessed")),
        pushed_to=str(pushed["pushed_destination"]) if pushed.get("pushed") else None,
        cached=sum(each.state == "CACHED" for each in executions.values()),
        steps=len(executions),
    )


def _score(evaluation: str, measure: str, model: str) -> float:
    """Return TFMA's value of a metric, of all labels together."""
    import tensorflow_model_analysis as tfma

    values = tfma.load_eval_result(evaluation, model_name=model).get_metrics_for_slice()
    [score] = [v["doubleValue"] for name, v in values.items() if name.rsplit("/")[-1] == measure]
    return float(score)


def _anomalies(folder: str) -> tuple[str, ...]:
    """Return ExampleValidator's findings, such as ``eval: age: …``."""
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    found = []
    for name in storage.list_folders(folder, "Split-"):
        read = storage.read_bytes(storage.join(folder, f"{name}/SchemaDiff.pb"))
        diff = anomalies_pb2.Anomalies.FromString(read)
        for feature, anomaly in sorted(diff.anomaly_info.items()):
            found.append(f"{name.removeprefix('Split-')}: {feature}: {anomaly.description}")
    return tuple(found)


def print_report(report: Report, workdir: str) -> None:
    """Print the result of a run, and the paths of its files."""
    template = Path(__file__).with_name("report.txt").read_text(encoding="utf-8")
    artifacts = os.path.join(os.path.abspath(workdir), "artifacts")
    print(environment().from_string(template).render(report=report, artifacts=artifacts), end="")


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.local",
        description="Convert, check, train, evaluate and push, on this machine. In later runs, "
        "steps with unchanged input come from the cache.",
    )
    add, path = parser.add_argument, storage.normal
    add("--data", type=path, required=True, help="a folder of import CSVs or images, or one CSV")
    add("--workdir", type=path, required=True, help="folder of artifacts and pushed models")
    add_pipeline_options(parser, other_task="detected from the files")
    add("--curated-schema", type=path, default="", metavar="FILE", help="schema.pbtxt of a span")
    add("--window", type=int, default=3, metavar="N", help="with it, train on the last N spans")
    add("--verbose", action="store_true", help="also show TFX's own log")
    return parser


def with_task(settings: Settings) -> Settings:
    """Detect and print the task if it is not set. Raises: UsageError."""
    if settings.options.task != AUTO:
        return settings
    pattern = f"{settings.input_base}/{_SPAN.sub('*', settings.pattern)}"
    if pattern.endswith("/") and (files := storage.list_files(f"{pattern}**")):
        # A glob finds only files; the folder of one span is enough to detect the task of all.
        pattern = "/".join(files[-1].split("/")[: pattern.count("/")])
    found = detect(find_import_files(pattern), settings.options)
    print(f"task: {found.options.task} ({found.reason})", flush=True)
    return replace(settings, options=replace(settings.options, task=found.options.task))


def parse_settings(args: argparse.Namespace) -> Settings:
    """Return the settings on a command line, with the task of its data.

    Raises: UsageError: a value is not allowed; SourceError: there are no data.
    """
    settings = with_task(to_settings(args, *local_input(args.data, args.pattern)))
    schema = args.curated_schema
    if schema and not (storage.is_file(schema) or storage.list_dir(schema)):
        raise SourceError(
            f"{args.curated_schema}: no such file; copy the schema.pbtxt of a dataset you have "
            f"checked"
        )
    return settings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = build_parser().parse_args(argv)

    def run() -> None:
        settings = parse_settings(args)
        if not args.verbose:
            quiet_libraries()
        run_pipeline(settings, args.workdir, verbose=args.verbose)
        print_report(read_report(args.workdir), args.workdir)

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
