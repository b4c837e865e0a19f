"""The steps that read import files: ``convert``, ``check`` and ``fingerprint``.

``convert`` writes split, sharded TFRecords and is the step of component.yaml; ``check`` reads and
checks all that it would, without writing a dataset; ``fingerprint`` gives a text that changes
with the data, for the cache of the steps after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordgen import storage
from recordgen.beam import need_reachable, runner_factory
from recordgen.console import logs
from recordgen.conversion.api import check_opened, convert_files, logged, with_rejects
from recordgen.conversion.fingerprint import image_fingerprint
from recordgen.conversion.summaries import log_checked, log_converted
from recordgen.conversion.work import fatal_findings, why_unusable
from recordgen.core.dataset.lint import dataset_numbers
from recordgen.core.dataset.manifest import LINT_FILE, REJECTS_FILE, REPORT_FILE, Dataset
from recordgen.core.dataset.splits import SPLITS
from recordgen.errors import LintError, SourceError, UsageError
from recordgen.formats.import_file import find_import_files
from recordgen.formats.source import open_files
from recordgen.kubeflow.execution import Artifact, StepInput, StepOutput, place_of, write_place
from recordgen.options import OPTIONS, ConvertOptions, make_options, without_unset
from recordgen.rejects import to_lines

_LABELS_SHOWN = 1000


def run(step: StepInput) -> StepOutput:
    """Convert, and describe the result.

    Raises: RecordgenError: as :func:`recordgen.conversion.api.convert_files`.
    """
    # The version of the data is only part of the cache key.
    values = step.values(*OPTIONS, "source", "transfer", "beam_args", "dataset_version")
    transfer, beam_args = values.get("transfer", "auto"), values.get("beam_args", ())
    source = values.get("source") or _import_files(step.artifacts, transfer)
    for previous in step.artifacts.get("previous", ()):
        if values.get("vocabulary"):
            raise UsageError("previous already numbers the labels; omit vocabulary")
        values["vocabulary"] = place_of(previous, transfer)
    output = storage.normal(place_of(step.outputs["dataset"], transfer))
    logs.started("convert", source, output=output)
    options = to_options(values)
    files = find_import_files(source)
    roots = [options.image_root] if options.image_root else []
    need_reachable(beam_args, [output, *roots, *(file.path for file in files)])
    result = convert_files(files, output, options, new_runner=runner_factory(beam_args))
    page = storage.read_text(storage.join(output, REPORT_FILE))
    storage.write_text(place_of(step.outputs["report"], transfer), page)
    log_converted(result)
    return StepOutput(
        counts_of(result.dataset),
        {
            "dataset": description_of(result.dataset),
            "metrics": {**metrics_of(result.dataset), "seconds": round(result.seconds, 3)},
        },
    )


def to_options(values: Mapping[str, Any]) -> ConvertOptions:
    """Decode the options among a step's parameters; rows only reach allowed files.

    Raises: UsageError.
    """
    given = {name: value for name, value in values.items() if name in OPTIONS}
    return replace(make_options(without_unset(given, OPTIONS)), confined=True)


def counts_of(dataset: Dataset) -> dict[str, int | str]:
    """Return the output parameters: counts that a pipeline can branch on, and the digest."""
    none = {f"{name}_examples": 0 for name in SPLITS}
    found = {**dataset_numbers(dataset), **none, **_examples_by_split(dataset)}
    return {**found, "digest": dataset.digest}


def description_of(dataset: Dataset) -> dict[str, Any]:
    """Return the metadata of the dataset's artifact: a summary of ``dataset.json``.

    Metadata stores limit the size of an artifact, so only the first thousand labels are listed.
    """
    numbers = dataset_numbers(dataset)
    described = ("recordgen_version", "task", "digest", "labels_digest", "seed", "bytes")
    return {
        **{name: getattr(dataset, name) for name in described},
        **{name: numbers[name] for name in ("rows", "examples", "rejects", "label_count")},
        "splits": {name: split.examples for name, split in dataset.splits.items()},
        "labels": list(dataset.labels[:_LABELS_SHOWN]),
    }


def metrics_of(dataset: Dataset) -> dict[str, float]:
    """Return the metrics that consoles show and compare between runs."""
    numbers = dataset_numbers(dataset)
    return {
        "labels": numbers.pop("label_count"),
        **numbers,
        **_examples_by_split(dataset),
        "reject_fraction": round(dataset.rows.rejects / dataset.rows.read, 6),
        "reencoded": sum(dataset.reencoded.values()),
        "bytes": dataset.bytes,
    }


def _examples_by_split(dataset: Dataset) -> dict[str, int]:
    return {f"{name}_examples": split.examples for name, split in dataset.splits.items()}


def _import_files(artifacts: Mapping[str, Sequence[Artifact]], transfer: str) -> str:
    """Return the import file of the artifact ``source``, or a glob if it is a folder of them.

    A folder without import files must hold images by label; its own path is returned.

    Raises: SourceError: there is no such artifact, or it is neither a file nor such a folder.
    """
    if "source" not in artifacts:
        raise SourceError("source is missing: give the import file's URL, or a Dataset artifact")
    # Rows may name images relative to their import file, so do not read a copy of it.
    place = place_of(artifacts["source"][0], transfer)
    for pattern in (place, storage.join(place, "*.csv"), storage.join(place, "*.jsonl")):
        if storage.list_files(pattern):
            return pattern
    if storage.list_dir(place):
        return place
    raise SourceError(
        f"{place}: the artifact is neither an import file nor a folder with *.csv, *.jsonl or "
        f"images"
    )


def check(step: StepInput) -> StepOutput:
    """Check the import files ``source``; write ``lint.jsonl`` and ``rejects.jsonl``.

    The step fails if the conversion would fail. A finding makes it fail only if ``fail_on`` names
    it, so that a pipeline can branch on ``lint_errors``.

    Raises:
        DataError: a conversion would find no usable row, or too many rejects.
        LintError: there are findings that ``fail_on`` names.
        RecordgenError: as :func:`recordgen.check`.
    """
    values = step.values(*OPTIONS, "source", "beam_args")
    source, beam_args = values["source"], values.get("beam_args", ())
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
    log_checked(result, exit_code=0)
    metrics = {**metrics_of(dataset), "seconds": round(result.seconds, 3)}
    del metrics["bytes"]  # nothing was written
    return StepOutput(counts_of(dataset), {"metrics": metrics})


def fingerprint(step: StepInput) -> StepOutput:
    """Look up size and time of the import files ``source`` and of all files that they name.

    Raises: RecordgenError: as :func:`recordgen.conversion.fingerprint.image_fingerprint`.
    """
    values = step.values(*OPTIONS, "source")
    files = find_import_files(values["source"])
    found = image_fingerprint(files, to_options(values))
    logs.said(found)
    return StepOutput({"fingerprint": found})
