"""``convert``: import files → split, sharded TFRecords; the step of component.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordgen import storage
from recordgen.beam.runners import need_reachable, runner_factory
from recordgen.console import logs
from recordgen.conversion.api import convert_files
from recordgen.conversion.texts import events
from recordgen.core.dataset.manifest import REPORT_FILE, Dataset
from recordgen.core.dataset.splits import SPLITS
from recordgen.core.runs.counters import dataset_numbers
from recordgen.errors import SourceError, UsageError
from recordgen.formats.import_file import find_import_files
from recordgen.kubeflow.execution import Artifact, StepInput, StepOutput, place_of
from recordgen.options import OPTIONS, ConvertOptions, make_options, without_unset

_LABELS_SHOWN = 1000


def run(step: StepInput) -> StepOutput:
    """Convert, and describe the result.

    Raises: RecordgenError: as :func:`recordgen.conversion.api.convert_files`.
    """
    values = dict(step.parameters)
    transfer = values.pop("transfer", "auto")
    beam_args = values.pop("beam_args", ())
    values.pop("dataset_version", None)  # only part of the cache key
    source = values.pop("source", None) or _import_files(step.artifacts, transfer)
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
    events.converted(result)
    return StepOutput(
        counts_of(result.dataset),
        {
            "dataset": description_of(result.dataset),
            "metrics": {**metrics_of(result.dataset), "seconds": round(result.seconds, 3)},
        },
    )


def to_options(values: Mapping[str, Any]) -> ConvertOptions:
    """Decode a step's parameters; rows only reach allowed files. Raises: UsageError."""
    return replace(make_options(without_unset(values, OPTIONS)), confined=True)


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
