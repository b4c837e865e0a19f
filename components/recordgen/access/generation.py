"""The generation of a dataset: what shows that files are still those that were opened.

A replaced dataset has files of the same names, but their numbers may mean other classes. A dataset
that was appended to still has the old shards, and its labels begin with the old ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from recordgen import storage
from recordgen.access.counting import state_of
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.errors import DataError, SourceError

#: What is wrong with a dataset that was replaced.
REPLACED = "this dataset was replaced by another one since it was opened; open it again"

# Requests by name reach whatever has the name now: dataset.json is compared again after this time.
_FAR_SECONDS = 10.0


class Generation:
    """A dataset as it was opened.

    Whoever replaces a dataset removes its ``dataset.json`` before the first shard. So a shard that
    was opened before that file changed belongs to this generation.
    """

    def __init__(self, root: str, dataset: Dataset) -> None:
        self._root = root
        self._labels = dataset.labels
        self._digests = digests_of(root, dataset)
        self._state = ""  # of dataset.json when it was last compared
        self._compared: dict[str, float] = {}  # when, by the path of a far file

    def check(self, path: str) -> None:
        """Check that a shard that is open is of this generation.

        Raises: DataError: another dataset replaced it; StorageError: storage failed.
        """
        try:
            state = state_of(storage.join(self._root, DATASET_FILE))
            if state == self._state:
                return
            now = read_dataset(self._root)
        except (OSError, SourceError) as exc:  # it is being replaced, or was removed
            raise DataError(f"{self._root or '.'}: {REPLACED}") from exc
        digests = digests_of(self._root, now)
        is_same = digests.get(path) == self._digests[path]
        if not is_same or now.labels[: len(self._labels)] != self._labels:
            raise DataError(f"{self._root or '.'}: {REPLACED}")
        if digests.items() >= self._digests.items():  # else each shard is compared
            self._state = state

    def check_far(self, path: str) -> None:
        """As :meth:`check`, once for each file and again after ten seconds."""
        now = time.monotonic()
        if now - self._compared.get(path, -_FAR_SECONDS) >= _FAR_SECONDS:
            self.check(path)
            self._compared[path] = now


def digests_of(root: str, dataset: Dataset) -> Mapping[str, str]:
    """Return the digest of each shard by its path."""
    return {storage.join(root, shard.file): shard.digest for shard in dataset.shards}


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
