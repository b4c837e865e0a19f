"""Datasets that are replaced while they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recordgen import storage
from recordgen.access.shards import ShardSet
from recordgen.core.dataset.vocabulary import labels_text


@dataclass(frozen=True, slots=True)
class Written:
    """What shows whether a local dataset was replaced by another one since it was opened.

    Its files have the same names then, but their numbers may mean other classes. A dataset that was
    appended to still has the old shards, and its labels begin with the old ones.

    Attributes:
        digests: the digest of each file, by path.
        labels: the content of ``labels.txt``.
    """

    folder: str
    digests: Mapping[str, str]
    labels: bytes


def written_of(shards: ShardSet) -> Written | None:
    """Return what shows whether shards were replaced; None if they are not one local dataset."""
    known, split = shards.dataset, shards.split
    if known is None or split is None or split not in known.splits or not shards.parts:
        return None
    mine = known.splits[split].shards
    if not mine:
        return None
    root = shards.files[0].path.removesuffix(mine[0].file)
    digests = {file.path: file.digest for file in shards.files}
    is_one = digests.keys() <= {f"{root}{shard.file}" for shard in mine}
    if not (is_one and storage.is_local(root) and all(digests.values())):
        return None
    return Written(root, digests, labels_text(known.labels).encode())
