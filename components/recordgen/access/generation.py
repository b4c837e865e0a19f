"""The generation of a dataset: what shows that files are still those that were opened.

A replaced dataset has files of the same names, but their numbers may mean other classes. A dataset
that was appended to still has the old shards, and its labels begin with the old ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recordgen import storage
from recordgen.access.counting import state_of
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.errors import DataError, SourceError

#: What is wrong with a dataset that was replaced.
REPLACED = "this dataset was replaced by another one since it was opened; open it again"

# Requests by name reach whatever has the name now: dataset.json is compared again after this time.
_FAR_SECONDS = 10.0


@dataclass
class Generation:
    """A dataset as it was opened.

    Whoever replaces a dataset removes its ``dataset.json`` before the first shard. So a shard that
    was opened before that file changed belongs to this generation.
    """

    root: str
    digests: Mapping[str, str]  # of each shard, by its path
    labels: Sequence[str]
    _state: str = field(default="", compare=False)  # of dataset.json when it was last compared
    # When a far file was compared, by its path.
    _compared: dict[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, root: str, dataset: Dataset) -> Generation:
        """Return the generation of a dataset that is open now."""
        return cls(root, digests_of(root, dataset), dataset.labels)

    def check(self, path: str) -> None:
        """Check that a shard that is open is of this generation.

        Raises: DataError: another dataset replaced it; StorageError: storage failed.
        """
        try:
            state = state_of(storage.join(self.root, DATASET_FILE))
            if state == self._state:
                return
            now = read_dataset(self.root)
        except (OSError, SourceError) as exc:  # it is being replaced, or was removed
            raise DataError(f"{self.root or '.'}: {REPLACED}") from exc
        digests = digests_of(self.root, now)
        is_same = digests.get(path) == self.digests[path]
        if not is_same or now.labels[: len(self.labels)] != self.labels:
            raise DataError(f"{self.root or '.'}: {REPLACED}")
        if digests.items() >= self.digests.items():  # else each shard is compared
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
