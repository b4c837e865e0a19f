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
    FINDINGS_FILE,
    Dataset,
    RowCounts,
    Split,
    dataset_digest,
    mean_psnr,
)
from recordgen.core.dataset.splits import split_order
from recordgen.core.dataset.vocabulary import join_names
from recordgen.core.planning.plan import Base
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.placing import placing
from recordgen.core.rows.planned import KnownRow
from recordgen.core.task.placing import placing_name
from recordgen.core.task.task import Task
from recordgen.errors import RecordError, SourceError
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
        sources: what its rows name as their import file, from which their relative uris start: for
            documents in folders of a data set, the data set's folder.
    """

    dataset: Dataset
    shards: tuple[ExistingShard, ...]
    rejects: tuple[Reject, ...]
    output: str
    sources: frozenset[str] = frozenset()

    @property
    def folders(self) -> frozenset[str]:
        """The folders where relative uris of its rows start."""
        return frozenset(map(storage.folder_of, self.sources or self.dataset.source))

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


def known_rows(shard: ExistingShard, task: Task, seed: int, folder: str) -> Iterator[KnownRow]:
    """Yield the row of each record of a shard.

    ``folder`` is also used to place new rows, see :func:`recordgen.core.task.placing.placing_name`.

    Raises:
        RecordError: the shard is damaged or missing, or it has a record that Recordgen did not
            write.
    """
    place = placing(seed)
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
        objects=join_names([old.objects, new.objects]),
        keypoints=old.keypoints or new.keypoints,
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
