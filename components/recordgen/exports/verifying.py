"""Files of a finished dataset: ``recordgen check OUT`` compares them with those committed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from recordgen import storage
from recordgen.core.dataset import manifest
from recordgen.core.progress import Counter, Progress
from recordgen.core.runs.commit import shard_difference
from recordgen.core.task.annotation import label_files
from recordgen.errors import StorageError
from recordgen.registry import TASKS


class Difference(NamedTuple):
    """A file that is not as ``dataset.json`` says."""

    file: str
    message: str


class Verified(NamedTuple):
    """The result of a comparison.

    Attributes:
        dataset: the ``dataset.json``, which is taken for true.
        differences: the files that differ from it; empty if all is as it was committed.
    """

    dataset: manifest.Dataset
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
        if not manifest.has_dataset(place):
            return False
        with suppress(StorageError, OSError):
            return manifest.is_output(storage.list_dir(place))
        return True
    return False


def verify(root: str, progress: Progress | None = None) -> Verified:
    """Compare each record, and the files beside the shards, with ``dataset.json``.

    Compared are: sizes, the checksum of each record, the sha256 of each image, the digest of each
    shard, which covers labels and uris, label files and ``records.npy``, and that no other file is
    in a split's folder. Digests are no signatures: whoever may write the files and ``dataset.json``
    can change both.

    Args:
        root: folder or URL of a finished output.
        progress: receives the progress of a comparison that takes longer.

    Raises:
        SourceError: there is no finished output.
        UsageError: the package of its task is not installed.
        StorageError: storage failed.
    """
    started = time.monotonic()
    dataset = manifest.read_dataset(root)
    digests = {
        file: hashlib.sha256(text.encode()).hexdigest()
        for file, text in label_files(dataset).items()
    }
    if dataset.index:
        digests[dataset.index["file"]] = dataset.index["sha256"]
    digested = bytes if dataset.task == manifest.EXAMPLES else TASKS[dataset.task].digested
    found = list[Difference]()
    with Counter(progress, dataset.examples, dataset.bytes) as counter:
        for shard in dataset.shards:
            if difference := shard_difference(storage.join(root, shard.file), shard, digested):
                found.append(Difference(shard.file, difference))
            counter.count(shard.examples, shard.bytes)
    known = {shard.file for shard in dataset.shards}
    for folder in storage.list_folders(root, manifest.SPLIT_PREFIX):
        for name, _ in storage.list_dir(storage.join(root, folder)):
            if (file := f"{folder}/{name}") not in known:
                text = "belongs to no split, but TFX reads all files of the folder"
                found.append(Difference(file, text))
    found += _changed_files(root, digests)
    return Verified(dataset, found, time.monotonic() - started)


def _changed_files(root: str, digests: Mapping[str, str]) -> Iterator[Difference]:
    """Yield the files that differ from their sha256 (hex); ``digests`` has it by their path."""
    for file, digest in digests.items():
        try:
            content = storage.read_bytes(storage.join(root, file))
        except FileNotFoundError:
            yield Difference(file, "is missing")
        else:
            if hashlib.sha256(content).hexdigest() != digest:
                yield Difference(file, "was changed")
