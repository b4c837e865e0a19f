"""Appending: what a dataset that is there already means for the rows of a new run.

Its shards stay byte for byte. Rows whose example it holds are left out; the others get shards of
their own, numbered behind its last one, and new labels numbers of their own behind its last one.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from recordgen import storage
from recordgen.dataset.manifest import (
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
from recordgen.dataset.splits import split_order
from recordgen.errors import RecordError, SourceError, UsageError
from recordgen.lint.facts import Columns, from_parquet
from recordgen.options import AUTO, ConvertOptions, recorded_defaults
from recordgen.planning.plan import Base
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_records
from recordgen.rejects import Finding, Reject
from recordgen.rows.placing import placing
from recordgen.rows.planned import KnownRow
from recordgen.tasks import TASKS, task_for


class ExistingShard(NamedTuple):
    """One shard that stays: its path, and the split it belongs to."""

    path: str
    split: str


@dataclass(frozen=True)
class Existing:
    """The dataset that is appended to.

    Attributes:
        dataset: the content of its ``dataset.json``.
        shards: its shards.
        rejects: what its ``rejects.jsonl`` says.
        output: where it lies.
    """

    dataset: Dataset
    shards: tuple[ExistingShard, ...]
    rejects: tuple[Reject, ...]
    output: str

    @property
    def folders(self) -> frozenset[str]:
        """The folders of the import files it was made of: their relative uris start there."""
        return frozenset(map(storage.folder_of, self.dataset.source))

    @property
    def folder(self) -> str:
        """The folder in which the relative uris of its records start, of videos."""
        return self.dataset.folder or storage.folder_of(self.dataset.source[0])

    @property
    def files(self) -> frozenset[str]:
        """The files of its shards, as ``dataset.json`` names them."""
        return frozenset(
            shard.file for split in self.dataset.splits.values() for shard in split.shards
        )

    @property
    def base(self) -> Base:
        """What a plan must know of it."""
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
            f"a {task.noun} of {task.name} has no uri here, so new ones cannot be told from those "
            f"that are there; convert all of them anew, with --overwrite"
        )
    if not storage.exists(storage.join(output, DATASET_FILE)):
        return None
    if options.decides_together and not options.finds_alike:
        given = "stratify" if options.stratify != "none" else "duplicates"
        raise UsageError(
            f"{given}={getattr(options, given)} looks at all rows together, and --append adds to "
            f"rows whose split is decided; leave it out, or convert all of them anew, with "
            f"--overwrite"
        )
    dataset = read_dataset(output)
    if dataset.task not in TASKS:
        raise UsageError(
            f"{output}: holds examples written from Python; only what convert wrote can be "
            f"appended to"
        )
    ours = {**recorded_defaults(), **options.recorded()}
    if not options.vocabulary:
        del ours["vocabulary"]  # labels keep the numbers that they have there
    theirs = {**recorded_defaults(), **dataset.options, "task": dataset.task}
    if "near" in (options.split_by, theirs["split_by"]):
        raise UsageError(
            f"{output}: split_by=near compares all images with one another, and --append does not "
            f"look at those that are there; convert all of them anew, with --overwrite"
        )
    other = [name for name in ours if name not in _MAY_DIFFER and ours[name] != theirs[name]]
    if other:
        raise UsageError(
            f"{output}: appending needs the options that it was made with: "
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
    """Return the options with the task of the dataset in ``output``, unless they name one.

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


# They decide which rows become examples, or when a run fails, but not what a row becomes.
_MAY_DIFFER = frozenset(
    {"input_format", "header", "columns", "bad_boxes", "max_reject_fraction"}
    | {"allow_scheme", "allow_root", "duplicates", "stratify", "url_secrets"}
)


def known_rows(shard: ExistingShard, options: ConvertOptions, folder: str) -> Iterator[KnownRow]:
    """Yield what each record of a shard says of its row.

    ``folder`` is what new rows are placed by, see :meth:`recordgen.tasks.task.Task.placed_by`.

    Raises:
        RecordError: the shard is damaged or gone, or a record is none of ours.
    """
    place, task = placing(options.seed), task_for(options)
    for number, record in enumerate(_records(shard)):
        try:
            said = task.said(parse_example(record))
        except (ValueError, KeyError) as exc:
            raise RecordError(
                f"{shard.path}: record {number} does not say of which {task.noun} it is ({exc}), "
                f"so nothing can be appended to it"
            ) from exc
        if task.by_address and not storage.is_relative(said.uri):
            said = said._replace(uri=storage.from_folder(said.uri, folder, outside=False))
        sort_key = place(task.placed_by(said, folder)).sort_key
        yield KnownRow(sort_key, shard.path, shard.split, said.uri, said.annotation)


def _records(shard: ExistingShard) -> Iterator[bytes]:
    try:
        yield from read_records(shard.path)
    except OSError as exc:
        raise RecordError(
            f"{shard.path}: dataset.json names this shard, and it cannot be read "
            f"({exc.strerror or exc}); nothing was appended"
        ) from exc


def merge_findings(
    output: str, sources: Collection[str], new: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings of the dataset in ``output`` and new ones, by import file and line.

    What was found before in ``sources``, which were read now, is left out.

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
    """Return the facts of its examples; of an output that holds no facts, none.

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
    """Return the dataset that both make together: the shards of the one behind the other's."""
    splits = {
        name: Split.merge([item.splits[name] for item in (old, new) if name in item.splits])
        for name in sorted({*old.splits, *new.splits}, key=split_order)
    }
    shards = [shard for split in splits.values() for shard in split.shards]
    rows = RowCounts.merge([old.rows, new.rows])
    # Given or not when rows are added: the numbers were settled by the first run.
    settled = {name: old.options[name] for name in ("vocabulary",) if name in old.options}
    return replace(
        new,
        options={**new.options, **settled},
        source=tuple(dict.fromkeys((*old.source, *new.source))),
        folder=new.folder and (old.folder or storage.folder_of(old.source[0])),
        splits=splits,
        rows=rows,
        warnings=(),  # the checks look at both together
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
