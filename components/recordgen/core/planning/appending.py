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
from functools import cache
from typing import NamedTuple

from recordgen import storage
from recordgen.core.dataset.manifest import FINDINGS_FILE, Dataset
from recordgen.core.facts.columns import Columns, read_examples, with_kept
from recordgen.core.planning.plan import Base
from recordgen.core.rows.columns import values_of
from recordgen.core.rows.row import KnownRow, placing
from recordgen.core.task.annotation import RowContent
from recordgen.core.task.task import Payloads, placing_name
from recordgen.errors import SourceError
from recordgen.rejects import Finding, Reject

# The columns of ``examples.parquet`` that tell which rows are there.
_OF_ROWS = ("shard", "split", "source", "uri", "annotation")


class ExistingGroup(NamedTuple):
    """A row group of the ``examples.parquet`` of an existing dataset.

    Relative import files start in the folder ``start``; in the current one if it is empty.
    """

    path: str
    number: int
    start: str = ""

    def read(self, names: Collection[str] | None = None) -> Columns:
        """Return columns of its rows. Raises: SourceError: they cannot be read."""
        try:
            with storage.open_read(self.path) as file:
                return read_examples(file, names, self.number)
        except (OSError, ValueError, KeyError) as exc:
            raise SourceError(f"{self.path}: cannot be read: {exc}") from exc

    def facts(self) -> Columns:
        """Return the facts of its rows. Raises: SourceError: they cannot be read."""
        return with_kept(self.read())


@dataclass(frozen=True)
class Existing:
    """The dataset that is appended to."""

    dataset: Dataset
    groups: tuple[ExistingGroup, ...]  # where its `examples.parquet` lists them
    rejects: tuple[Reject, ...]
    output: str  # folder or URL prefix that holds it
    start: str = ""  # see ExistingGroup

    def read_again(self, sources: Iterable[str]) -> set[str]:
        """Return its names of the import files that are among the sources of a run."""
        again = set(map(storage.real, sources))
        names = self.dataset.source
        return {name for name in names if storage.real(storage.join(self.start, name)) in again}

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


def known_rows(
    group: ExistingGroup, files: Collection[str], task: Payloads, seed: int, folder: str
) -> Iterator[KnownRow]:
    """Yield the row of each existing example in ``files``, the shards that stay.

    An interrupted run may have listed others.

    Raises: SourceError: the examples cannot be read.
    """
    place, real = placing(seed), cache(storage.real)
    found = group.read(_OF_ROWS)
    for file, split, source, *rest in zip(*(values_of(found[n]) for n in _OF_ROWS), strict=True):
        if file not in files:
            continue
        row = RowContent(*rest)
        uri = row.uri
        if task.by_address and not storage.is_relative(uri):
            row = row._replace(uri=storage.from_folder(uri, folder, outside=False))
        sort_key = place(placing_name(row, task, folder)).sort_key
        yield KnownRow(sort_key, file, split, real(storage.join(group.start, source)), *row)


def merge_findings(
    output: str, sources: Collection[str], new: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings of the dataset in ``output`` and new findings, by import file and line.

    Existing findings in ``sources`` are skipped, because this run read these import files again.

    Raises: SourceError: its ``findings.jsonl`` cannot be read.
    """
    old = (item for item in _read_findings(output) if item.source not in sources)
    return heapq.merge(old, new)


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


def merge(old: Dataset, new: Dataset) -> Dataset:
    """Return both datasets as one, with the old shards before the new ones."""
    from recordgen.core.dataset.joining import with_parts  # only an append needs it

    # The first run decided the numbers of labels, whatever the vocabulary option is now.
    vocabulary = {name: old.options[name] for name in ("vocabulary",) if name in old.options}
    return replace(
        with_parts(new, [old, new]),
        options={**new.options, **vocabulary},
        folder=new.folder and (old.folder or storage.folder_of(old.source[0])),
        source_folder=old.source_folder or new.source_folder,
        warnings=(),  # the checks run on both together later
        reencoded=dict(sorted((Counter(old.reencoded) + Counter(new.reencoded)).items())),
    )
