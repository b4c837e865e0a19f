"""``check``: read and check everything that a conversion would, without writing a dataset."""

from __future__ import annotations

from recordgen import storage
from recordgen.console import logs
from recordgen.conversion.api import logged, with_rejects
from recordgen.conversion.checking import check_opened
from recordgen.conversion.committing import fatal_findings, why_unusable
from recordgen.conversion.texts import events
from recordgen.core.dataset.manifest import LINT_FILE, REJECTS_FILE
from recordgen.errors import LintError
from recordgen.formats.import_file import find_import_files
from recordgen.formats.source import open_files
from recordgen.kubeflow.convert import counts_of, metrics_of, to_options
from recordgen.kubeflow.execution import StepInput, StepOutput, write_place
from recordgen.rejects import to_lines


def run(step: StepInput) -> StepOutput:
    """Check the import files ``source``; write ``lint.jsonl`` and ``rejects.jsonl``.

    The step fails if the conversion would fail. A finding makes it fail only if ``fail_on`` names
    it, so that a pipeline can branch on ``lint_errors``.

    Raises:
        DataError: a conversion would find no usable row, or too many rejects.
        LintError: there are findings that ``fail_on`` names.
        RecordgenError: as :func:`recordgen.check`.
    """
    values = dict(step.parameters)
    beam_args = values.pop("beam_args", ())
    source = values.pop("source")
    logs.started("check", source)
    options = to_options(values)
    progress = logs.ProgressLog()
    opened, decided = logged(open_files(find_import_files(source), options), progress)
    result = check_opened(opened, decided, beam_args, progress)
    folder = write_place(step.outputs["findings"])
    lint = result.lint
    for name, lines in ((LINT_FILE, lint.lines()), (REJECTS_FILE, to_lines(result.rejects))):
        storage.write_text(storage.join(folder, name), "".join(lines))
    dataset, rows, most = result.dataset, result.dataset.rows, options.max_reject_fraction
    error = why_unusable(dataset.examples, rows.read, rows.dropped, result.rejects, most)
    if error is not None:
        raise with_rejects(error, result.rejects)
    if lint.fatal:
        raise LintError(f"{fatal_findings(lint)}; fix the data, or change fail_on; see {folder}")
    events.checked(result, exit_code=0)
    metrics = {**metrics_of(dataset), "seconds": round(result.seconds, 3)}
    del metrics["bytes"]  # nothing was written
    return StepOutput(counts_of(dataset), {"metrics": metrics})
