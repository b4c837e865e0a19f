"""The dataset that a run appends to: what it holds, and whether the options suit it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from recordgen import storage
from recordgen.core.conversion import Conversion
from recordgen.core.dataset import manifest
from recordgen.core.ordered import map_in_order
from recordgen.core.planning.appending import Existing, ExistingGroup
from recordgen.core.rows.columns import count_groups, values_of
from recordgen.core.task.task import Payloads
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.exports.export import read_lines
from recordgen.options import AUTO, ConvertOptions, differing, recorded_there
from recordgen.rejects import Reject
from recordgen.tasks import TASKS

# These options decide which rows become examples, or when a run fails, but do not change examples.
_MAY_DIFFER = frozenset(
    {
        "format",
        "columns",
        "image_root",
        "encoding",
        "label_separator",
        "bad_boxes",
        "max_reject_fraction",
    }
    | {"allow", "duplicates", "stratify"}
)


def find_existing(output: str, conversion: Conversion) -> Existing | None:
    """Return the dataset in ``output``, or None if there is none yet.

    Raises:
        UsageError: it was made with other options, or not from import files.
        SourceError: its ``dataset.json`` or ``examples.parquet`` cannot be read.
        RecordError: a shard is missing, or has another size.
    """
    check_can_append(conversion.task)
    splits = conversion.splits
    if not manifest.has_dataset(output):
        return None
    if splits.decides_together and not splits.by_looks:
        given = "stratify" if splits.stratifies else "duplicates"
        raise UsageError(
            f"{given}={conversion.recorded[given]} needs all rows together, but --append does not "
            f"change the splits of existing rows; remove {given}, or convert all rows again, with "
            f"--overwrite"
        )
    dataset = manifest.read_dataset(output)
    if dataset.task not in TASKS:
        raise UsageError(
            f"{output}: holds examples written from Python; only datasets that convert wrote can "
            f"be appended to"
        )
    ours = dict(conversion.recorded)
    if not conversion.labels.vocabulary:
        del ours["vocabulary"]  # labels keep their existing numbers
    theirs = {**recorded_there(dataset.options), "task": dataset.task}
    if "near" in (ours["group_by"], theirs["group_by"]):
        raise UsageError(
            f"{output}: group_by=near compares all images with each other, but --append does not "
            f"read existing ones; convert all of them again, with --overwrite"
        )
    for each in (ours, theirs):  # import files may have other names
        each["split"] = each["split"].partition(",names=")[0]
    if other := differing(theirs, ours, (name for name in ours if name not in _MAY_DIFFER)):
        raise UsageError(
            f"{output}: appending needs the options of the existing dataset: {', '.join(other)}; "
            f"give those there, or convert all rows again, with --overwrite"
        )
    _check_shards(output, dataset)
    path = storage.join(output, manifest.EXAMPLES_FILE)
    start = _start_of(dataset, output)
    groups = tuple(group._replace(start=start) for group in _groups(path))
    rejects_file = storage.join(output, manifest.REJECTS_FILE)
    try:
        rejects = tuple(read_lines(rejects_file, Reject))
    except SourceError as exc:
        raise SourceError(f"{exc}; remove {rejects_file} to append") from exc
    _check_listed(path, groups, dataset)
    return Existing(dataset, groups, rejects, output, start)


def _start_of(dataset: manifest.Dataset, output: str) -> str:
    """Return the folder where relative import files start; empty if they are not there."""
    if not dataset.source_folder:
        return ""
    place = os.path.realpath(storage.local_path(output))
    folder = storage.absolute(storage.join(place, dataset.source_folder))
    relative = filter(storage.is_relative, dataset.source)
    return folder if any(os.path.exists(os.path.join(folder, path)) for path in relative) else ""


def check_can_append(task: Payloads) -> None:
    """Check that new rows can be distinguished from existing ones. Raises: UsageError."""
    if not task.can_append:
        raise UsageError(
            f"a {task.noun} of {task.name} has no uri here, so new ones cannot be distinguished "
            f"from existing ones; convert all of them again, with --overwrite"
        )


def task_there(output: str, options: ConvertOptions) -> ConvertOptions:
    """Return the options with the task of the dataset in ``output`` if they do not name a task.

    Raises: SourceError: its ``dataset.json`` cannot be read.
    """
    if options.task != AUTO or not manifest.has_dataset(output):
        return options
    there = manifest.read_dataset(output)
    if there.task not in TASKS:
        return options
    return replace(options, task=there.task, schema=there.options.get("schema", ""))


def _check_shards(output: str, dataset: manifest.Dataset) -> None:
    """Check that all shards are there and have their size. Raises: RecordError, StorageError."""
    paths = [storage.join(output, shard.file) for shard in dataset.shards]
    sizes = map_in_order(_size, paths, threads=storage.threads(paths))
    for path, shard, size in zip(paths, dataset.shards, sizes, strict=True):
        if size != shard.bytes:
            found = "is missing" if size is None else f"has {size:,} bytes"
            raise RecordError(
                f"{path}: dataset.json names this shard of {shard.bytes:,} bytes, but it {found}; "
                f"nothing was appended"
            )


def _size(path: str) -> int | None:
    try:
        return storage.size(path)
    except OSError:
        return None


def _groups(path: str) -> tuple[ExistingGroup, ...]:
    """Return where the examples of a dataset are listed. Raises: SourceError."""
    try:
        with storage.open_read(path) as file:
            return tuple(ExistingGroup(path, number) for number in range(count_groups(file)))
    except FileNotFoundError as exc:
        raise SourceError(
            f"{path}: no such file, but --append finds the existing rows in it; convert all rows "
            f"again, with --overwrite"
        ) from exc
    except (OSError, ValueError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}") from exc


def _check_listed(path: str, groups: Sequence[ExistingGroup], dataset: manifest.Dataset) -> None:
    """Check that all examples of a dataset are listed. Raises: SourceError."""
    listed: Counter[str] = Counter()
    for group in groups:
        listed.update(values_of(group.read(("shard",))["shard"]))
    for shard in dataset.shards:
        if (count := listed[shard.file]) != shard.examples:
            raise SourceError(
                f"{path}: lists {count:,} examples in {shard.file}, but dataset.json "
                f"{shard.examples:,}; convert all rows again, with --overwrite"
            )
