"""``python -m pipelines.spans``: a pipeline for each new span of data.

earlier examples ─(numbers of labels)─▶ AutoMLExampleGen ─▶ StatisticsGen ─▶ ExampleValidator
                                                      │           curated schema ──┘
      the last spans ◀────────────────────────────────┤
            │                                         │
         Trainer ◀─(warm start)─ last blessed model ──┼─▶ Evaluator ─▶ Pusher
            └─────────────────────────────────────────┴────────┘

The Evaluator scores the new model and the last blessed model on the newest span, matching labels by
name, and blesses the new model if it is good enough and not worse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines import local
from pipelines.config import SPAN_MARKS, PipelineConfig
from pipelines.terminal import run_main
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import SourceError, UsageError
from recordgen.tasks import TASKS

#: Accepted loss of score, compared with the last blessed model.
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class SpanReport:
    """The result of a run.

    Attributes:
        labels: the labels of the span's dataset, by number.
        trained_on: the spans of the training.
        anomalies: ExampleValidator's findings, by split and feature.
        score: the score of the new model on ``eval`` of the span.
        baseline: the score of the last blessed model, if any.
        pushed_to: folder of the pushed model; None if it was not good enough, or worse.
    """

    span: int
    labels: tuple[str, ...]
    trained_on: tuple[int, ...]
    anomalies: tuple[str, ...]
    score: float
    baseline: float | None
    blessed: bool
    pushed_to: str | None


def run_span(config: PipelineConfig, curated_schema: str, window: int) -> SpanReport:
    """Run the pipeline for one span in this process.

    Args:
        config: the pipeline; its pattern must have spans; ``span`` None means the latest.
        curated_schema: a schema (pbtxt) to compare the span with.
        window: number of spans, including the newest, on which the model is trained.

    Raises:
        RecordgenError: a setting is wrong, or a step failed.
    """
    if not any(mark in config.pattern for mark in SPAN_MARKS):
        raise UsageError(
            f"the pattern must have {{SPAN}}, or {{YYYY}}, {{MM}} and {{DD}} (got "
            f"{config.pattern!r}); without spans, use pipelines.local"
        )
    if window < 1:
        raise UsageError(f"window must be at least 1 (got {window})")
    if not storage.exists(curated_schema):
        raise SourceError(
            f"{curated_schema}: no such file; copy the schema.pbtxt of a dataset you have checked"
        )

    def create() -> Any:
        from pipelines.spans_pipeline import create_span_pipeline

        return create_span_pipeline(config, curated_schema, window)

    return read_span_report(local.run_created(create, config))


def read_span_report(metadata_path: str) -> SpanReport:
    """Return the result of the latest run in a metadata store."""
    import tensorflow_model_analysis as tfma
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    from pipelines.metadata import Metadata
    from recordgen.dataset.manifest import read_dataset

    metadata = Metadata(metadata_path)
    executions = {each.component: each for each in metadata.latest_run()}
    found = {a.type: a for e in executions.values() for a in metadata.outputs(e)}
    trained = metadata.inputs(executions["Trainer"])
    [examples] = metadata.outputs(executions["AutoMLExampleGen"])
    dataset = read_dataset(examples.uri)
    measure = TASKS[dataset.task].declared("measure").tfma.name

    def score(model: str) -> float | None:
        result = tfma.load_eval_result(found["ModelEvaluation"].uri, model_name=model)
        metrics = result.get_metrics_for_slice() if result.slicing_metrics else {}
        values = [v["doubleValue"] for k, v in metrics.items() if k.rsplit("/", 1)[-1] == measure]
        return values[0] if values else None

    evaluated = metadata.inputs(executions["Evaluator"])
    has_baseline = sum(artifact.type == "Model" for artifact in evaluated) > 1
    new = score("candidate" if has_baseline else "")
    anomalies = []
    for name in storage.list_folders(found["ExampleAnomalies"].uri, "Split-"):
        path = storage.join(found["ExampleAnomalies"].uri, f"{name}/SchemaDiff.pb")
        diff = anomalies_pb2.Anomalies.FromString(storage.read_bytes(path))
        split = name.removeprefix("Split-")
        for feature, anomaly in sorted(diff.anomaly_info.items()):
            anomalies.append(f"{split}: {feature}: {anomaly.description}")
    pushed = found["PushedModel"].properties
    return SpanReport(
        span=int(examples.properties["span"]),
        labels=dataset.labels,
        trained_on=tuple(
            sorted(int(a.properties["span"]) for a in trained if a.type == "Examples")
        ),
        anomalies=tuple(anomalies),
        score=float(new if new is not None else "nan"),
        baseline=score("baseline") if has_baseline else None,
        blessed=bool(found["ModelBlessing"].properties.get("blessed")),
        pushed_to=str(pushed["pushed_destination"]) if pushed.get("pushed") else None,
    )


def print_span_report(report: SpanReport) -> None:
    """Print the result of a run."""
    print(f"\nspan       {report.span}; trained on {', '.join(map(str, report.trained_on))}")
    print(f"labels     {len(report.labels)}")
    print(f"anomalies  {len(report.anomalies)}")
    for anomaly in report.anomalies:
        print(f"  {anomaly}")
    before = "none" if report.baseline is None else f"{report.baseline:.4f}"
    print(f"score      {report.score:.4f} on eval; last blessed model: {before}")
    print(f"blessed    {'yes' if report.blessed else 'no'}")
    print(f"pushed to  {report.pushed_to or 'nowhere: only blessed models are pushed'}")


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser: the options of ``pipelines.local``, and of spans."""
    parser = local.build_parser()
    parser.prog = "python -m pipelines.spans"
    parser.description = "Convert a span, compare it with a schema, train on the last spans, push."
    add = parser.add_argument
    add("--span", type=int, help="the span to read (days since 1970 for dates); default: latest")
    add("--window", type=int, default=3, metavar="N", help="train on the last N spans; default 3")
    add("--curated-schema", required=True, metavar="FILE", help="schema.pbtxt to compare with")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = build_parser().parse_args(argv)

    def run() -> None:
        quiet_libraries()
        config = replace(local.to_config(args), span=args.span)
        print_span_report(run_span(config, args.curated_schema, args.window))

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
