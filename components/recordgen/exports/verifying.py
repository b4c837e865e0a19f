"""``recordgen check OUT``: whether a finished dataset's files are those that were committed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from recordgen import storage
from recordgen.core.dataset.manifest import DATASET_FILE, EXAMPLES, Dataset, read_dataset
from recordgen.core.shards.intact import Difference, find_differences
from recordgen.core.task.annotation import label_files
from recordgen.errors import StorageError
from recordgen.registry import TASKS

_SAY_SECONDS = 5


class Verified(NamedTuple):
    """The result of a comparison.

    Attributes:
        dataset: the ``dataset.json``, which is taken for true.
        differences: the files that differ from it; empty if all is as it was committed.
    """

    dataset: Dataset
    differences: Sequence[Difference]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the result for ``--json``."""
        return {
            "seconds": self.seconds,
            "differences": [item._asdict() for item in self.differences],
            **self.dataset.to_json(),
        }


def is_finished(place: str) -> bool:
    """Return whether a place is a finished output.

    Stores refuse to tell whoever may not list that a file is missing. A real failure of the
    storage is reported by the reader of the import file.
    """
    with suppress(StorageError, OSError):
        return storage.exists(storage.join(place, DATASET_FILE))
    return False


def verify(root: str, say: Callable[[str], None] | None = None) -> Verified:
    """Compare each record, and the files beside the shards, with ``dataset.json``.

    Compared are: sizes, the checksum of each record, the sha256 of each image, the digest of each
    shard, which covers labels and uris, label files and ``records.npy``, and that no other file is
    in a split's folder. Digests are no signatures: whoever may write the files and ``dataset.json``
    can change both.

    Args:
        root: folder or URL of a finished output.
        say: called every few seconds with the progress.

    Raises:
        SourceError: there is no finished output.
        UsageError: the package of its task is not installed.
        StorageError: storage failed.
    """
    started = time.monotonic()
    dataset = read_dataset(root)
    digests = {
        file: hashlib.sha256(text.encode()).hexdigest()
        for file, text in label_files(dataset).items()
    }
    if dataset.index:
        digests[dataset.index["file"]] = dataset.index["sha256"]
    digested = bytes if dataset.task == EXAMPLES else TASKS[dataset.task].digested
    found, count, said = [], len(dataset.shards), started
    differences = find_differences(root, dataset, digested, digests)
    for done, difference in enumerate(differences, start=1):
        if say is not None and time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            say(f"compared {min(done, count):,} of {count:,} shards")
        if difference is not None:
            found.append(difference)
    return Verified(dataset, found, time.monotonic() - started)
