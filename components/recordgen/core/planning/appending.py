"""Append to an existing dataset.

Its shards stay byte for byte. Rows whose example it holds are skipped; the other rows go into new
shards. New shards and new labels are numbered after the existing ones.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from recordgen import storage
from recordgen.core.dataset.joining import join_features
from recordgen.core.dataset.manifest import (
    DATASET_FILE,
    EXAMPLES_FILE,
    FINDINGS_FILE,
    REJECTS_FILE,
    Dataset,
    RowCounts,
    Split,
    dataset_digest,
    mean_psnr,
    read_dataset,
)
from recordgen.core.dataset.splits import split_order
from recordgen.core.dataset.vocabulary import join_names
from recordgen.core.facts.columns import Columns, from_parquet
from recordgen.core.planning.plan import Base
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.placing import placing
from recordgen.core.rows.planned import KnownRow
from recordgen.core.task.named import TASKS, task_for
from recordgen.core.task.placing import placing_name
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.options import AUTO, ConvertOptions, recorded_there
from recordgen.rejects import Finding, Reject


class ExistingShard(NamedTuple):
    """The path and the split of a shard that stays."""

    path: str
    split: str


@dataclass(frozen=True)
class Existing:
    """The dataset that is appended to.

    Attributes:
        dataset: the content of its ``dataset.json``.
        shards: its shards.
        rejects: the content of its ``rejects.jsonl``.
        output: folder or URL prefix that holds it.
    """

    dataset: Dataset
    shards: tuple[ExistingShard, ...]
    rejects: tuple[Reject, ...]
    output: str

    @property
    def folders(self) -> frozenset[str]:
        """The folders of its import files, where their relative uris start."""
        return frozenset(map(storage.folder_of, self.dataset.source))

    @property
    def folder(self) -> str:
        """The folder where relative uris in its records start (for videos)."""
        return self.dataset.folder or storage.folder_of(self.dataset.source[0])

    @property
    def files(self) -> frozenset[str]:
        """The files of its shards, as ``dataset.json`` names them."""
        return frozenset(
            shard.file for split in self.dataset.splits.values() for shard in split.shards
        )

    @property
    def base(self) -> Base:
        """The number of its shards and its labels, for the plan."""
        shards = {name: len(split.shards) for name, split in self.dataset.splits.items()}
        return Base(shards, self.dataset.vocabulary)


def find_existing(output: str, options: ConvertOptions) -> Existing | None:
    """Return the dataset in ``output``, or None if there is none yet.

    Raises:
        UsageError: it was made with other options, or not from import files.
        SourceError: its ``dataset.json`` cannot be read.
    """
    task = task_for(options)
    if not task.can_append:
        raise UsageError(
            f"a {task.noun} of {task.name} has no uri here, so new ones cannot be distinguished "
            f"from existing ones; convert all of them again, with --overwrite"
        )
    if not storage.exists(storage.join(output, DATASET_FILE)):
        return None
    if options.decides_together and not options.finds_alike:
        given = "stratify" if options.stratify != "none" else "duplicates"
        raise UsageError(
            f"{given}={getattr(options, given)} needs all rows together, but --append does not "
            f"change the splits of existing rows; remove {given}, or convert all rows again, with "
            f"--overwrite"
        )
    dataset = read_dataset(output)
    if dataset.task not in TASKS:
        raise UsageError(
            f"{output}: holds examples written from Python; only datasets that convert wrote can "
            f"be appended to"
        )
    ours = options.recorded()
    if not options.vocabulary:
        del ours["vocabulary"]  # labels keep their existing numbers
    theirs = {**recorded_there(dataset.options), "task": dataset.task}
    if "near" in (options.group_by, theirs["group_by"]):
        raise UsageError(
            f"{output}: group_by=near compares all images with each other, but --append does not "
            f"read existing ones; convert all of them again, with --overwrite"
        )
    for each in (ours, theirs):  # import files may have other names
        each["split"] = each["split"].partition(",names=")[0]
    other = [name for name in ours if name not in _MAY_DIFFER and ours[name] != theirs[name]]
    if other:
        raise UsageError(
            f"{output}: appending needs the options of the existing dataset: "
            + ", ".join(
                f"{name} is {theirs[name]!r} there and {ours[name]!r} here" for name in other
            )
        )
    shards = tuple(
        ExistingShard(storage.join(output, shard.file), name)
        for name, split in dataset.splits.items()
        for shard in split.shards
    )
    return Existing(dataset, shards, _read_rejects(storage.join(output, REJECTS_FILE)), output)


def task_there(output: str, options: ConvertOptions) -> ConvertOptions:
    """Return the options with the task of the dataset in ``output`` if they do not name a task.

    Raises:
        SourceError: its ``dataset.json`` cannot be read.
    """
    if options.task != AUTO or not storage.exists(storage.join(output, DATASET_FILE)):
        return options
    there = read_dataset(output)
    if there.task not in TASKS:
        return options
    return replace(options, task=there.task, schema=there.options.get("schema", ""))


def _read_rejects(path: str) -> tuple[Reject, ...]:
    try:
        lines = storage.read_text(path).split("\n")
    except FileNotFoundError:
        return ()
    return tuple(Reject(**json.loads(line)) for line in lines if line)


# These options decide which rows become examples, or when a run fails, but do not change examples.
_MAY_DIFFER = frozenset(
    {"format", "columns", "bad_boxes", "max_reject_fraction", "allow", "duplicates", "stratify"}
)


def known_rows(shard: ExistingShard, options: ConvertOptions, folder: str) -> Iterator[KnownRow]:
    """Yield the row of each record of a shard.

    ``folder`` is also used to place new rows, see :func:`recordgen.core.task.placing.placing_name`.

    Raises:
        RecordError: the shard is damaged or missing, or it has a record that Recordgen did not
            write.
    """
    place, task = placing(options.seed), task_for(options)
    for number, record in enumerate(_records(shard)):
        try:
            said = task.row_of(parse_example(record))
        except (ValueError, KeyError) as exc:
            raise RecordError(
                f"{shard.path}: record {number} does not name its {task.noun} ({exc}), so nothing "
                f"can be appended to the dataset"
            ) from exc
        if task.by_address and not storage.is_relative(said.uri):
            said = said._replace(uri=storage.from_folder(said.uri, folder, outside=False))
        sort_key = place(placing_name(said, task, folder)).sort_key
        yield KnownRow(sort_key, shard.path, shard.split, said.uri, said.annotation)


def _records(shard: ExistingShard) -> Iterator[bytes]:
    try:
        yield from RECORDS.read(shard.path)
    except OSError as exc:
        raise RecordError(
            f"{shard.path}: dataset.json names this shard, but it cannot be read "
            f"({exc.strerror or exc}); nothing was appended"
        ) from exc


def merge_findings(
    output: str, sources: Collection[str], new: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings of the dataset in ``output`` and new findings, by import file and line.

    Existing findings in ``sources`` are skipped, because this run read these import files again.

    Raises:
        SourceError: its ``findings.jsonl`` cannot be read.
    """
    old = (item for item in _read_findings(output) if item.source not in sources)
    return heapq.merge(old, new, key=lambda item: (item.source, item.line))


def _read_findings(output: str) -> Iterator[Finding]:
    path = storage.join(output, FINDINGS_FILE)
    try:
        with storage.open_read(path) as file:
            for line in file:
                yield Finding(**json.loads(line))
    except FileNotFoundError:
        return
    except (OSError, TypeError, ValueError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}") from exc


def read_facts(existing: Existing) -> list[Columns]:
    """Return the facts of its examples; empty if the output holds no facts.

    Raises:
        SourceError: its ``examples.parquet`` cannot be read.
    """
    path = storage.join(existing.output, EXAMPLES_FILE)
    try:
        return [from_parquet(storage.read_bytes(path))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}") from exc


def merge(old: Dataset, new: Dataset) -> Dataset:
    """Return both datasets as one, with the old shards before the new ones."""
    splits = {
        name: Split.merge([item.splits[name] for item in (old, new) if name in item.splits])
        for name in sorted({*old.splits, *new.splits}, key=split_order)
    }
    shards = [shard for split in splits.values() for shard in split.shards]
    rows = RowCounts.merge([old.rows, new.rows])
    # The first run decided the numbers of labels, whatever the vocabulary option is now.
    vocabulary = {name: old.options[name] for name in ("vocabulary",) if name in old.options}
    return replace(
        new,
        options={**new.options, **vocabulary},
        features=join_features([old.features, new.features]),
        inexact=join_names([old.inexact, new.inexact]),
        source=tuple(dict.fromkeys((*old.source, *new.source))),
        folder=new.folder and (old.folder or storage.folder_of(old.source[0])),
        splits=splits,
        rows=rows,
        warnings=(),  # the checks run on both together later
        reencoded=dict(sorted((Counter(old.reencoded) + Counter(new.reencoded)).items())),
        psnr=mean_psnr(
            *(
                (item.psnr["images"], item.psnr["images"] * item.psnr["mean_db"])
                for item in (old, new)
                if item.psnr
            )
        ),
        digest=dataset_digest(shards),
    )
