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

import sys
from collections.abc import Sequence
from typing import Any

from pipelines import local
from pipelines.settings import Settings
from pipelines.terminal import run_main
from recordgen import storage
from recordgen.console.quiet import quiet_libraries
from recordgen.errors import SourceError, UsageError


def run_span(settings: Settings, workdir: str, curated_schema: str, window: int) -> local.Report:
    """Run the pipeline for one span in this process.

    Args:
        settings: its pattern must have spans; its ``span`` None means the latest.
        workdir: the folder of artifacts, metadata and models.
        curated_schema: a schema (pbtxt) to compare the span with.
        window: number of spans, including the newest, on which the model is trained.

    Raises: RecordgenError: a setting is wrong, or a step failed.
    """
    if not settings.has_spans:
        raise UsageError(
            f"the pattern must have {{SPAN}}, or {{YYYY}}, {{MM}} and {{DD}} (got "
            f"{settings.pattern!r}); without spans, use pipelines.local"
        )
    if window < 1:
        raise UsageError(f"window must be at least 1 (got {window})")
    if not storage.exists(curated_schema):
        raise SourceError(
            f"{curated_schema}: no such file; copy the schema.pbtxt of a dataset you have checked"
        )

    def create(settings: Settings, workdir: str) -> Any:
        from pipelines.pipeline import create_span_pipeline

        return create_span_pipeline(settings, workdir, curated_schema, window)

    local.run_pipeline(settings, workdir, create=create)
    return local.read_report(workdir)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, with the options of ``pipelines.local`` and more; return its exit code."""
    parser = local.build_parser()
    parser.prog = "python -m pipelines.spans"
    parser.description = "Convert a span, compare it with a schema, train on the last spans, push."
    add = parser.add_argument
    add("--window", type=int, default=3, metavar="N", help="train on the last N spans; default 3")
    add("--curated-schema", required=True, metavar="FILE", help="schema.pbtxt to compare with")
    args = parser.parse_args(argv)

    def run() -> None:
        quiet_libraries()
        settings = local.parse_settings(args)
        report = run_span(settings, args.workdir, args.curated_schema, args.window)
        local.print_report(report, args.workdir)
        print(f"span       {report.span}; trained on {', '.join(map(str, report.trained_on))}")
        before = "none" if report.baseline is None else f"{report.baseline:.4f}"
        print(f"before     {before}: the score of the last blessed model")
        print(f"anomalies  {len(report.anomalies)}")
        for anomaly in report.anomalies:
            print(f"  {anomaly}")

    return run_main(run)


if __name__ == "__main__":
    sys.exit(main())
