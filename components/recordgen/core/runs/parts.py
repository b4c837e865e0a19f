"""A run in parts: its plan stays in the staging folder until all parts are written and committed.

    OUT/.recordgen-staging/RUN/parts.json         what the run does; it marks a planned run
                               workers/….json     leases of its workers
                               workers/00000.done all shards of the part are written

A planned run is not dead, though no process holds its lease: its workers may wait in a queue. So
another run may take it over only with ``resume``, and only while none of its workers is alive.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import built
from recordgen.core.runs.staging import Staging, decoding
from recordgen.core.shards.task import ENCODERS
from recordgen.errors import RunnerError, StorageError
from recordgen.version import __version__

_FILE, _WORKERS, _DONE = "parts.json", "workers", ".done"


@dataclass(frozen=True, kw_only=True)
class PlannedParts:
    """What a planned run does."""

    parts: int  # number of its parts; part N writes the shards N, N + parts, N + 2 · parts, …
    shards: int
    options: Mapping[str, Any]
    sources: Mapping[str, str]  # version of each import file, by path
    keypoints: Mapping[str, Any]  # the declared keypoints of the source
    base: str | None  # digest of the dataset that the run appends to; None if it does not append
    made_by: tuple[str, ...] = (__version__, *ENCODERS)  # versions of Recordgen and its encoders
    plan: str = ""  # sha256 (hex) of the plan

    @property
    def filled(self) -> range:
        """The parts that have shards."""
        return range(min(self.parts, self.shards))


def write_planned(staging: Staging, planned: PlannedParts) -> None:
    """Make the run a planned one. Raises: StorageError."""
    values = asdict(replace(planned, plan=staging.plan_digest()))
    text = json.dumps({**values, "digest": _digest(values)}, ensure_ascii=False)
    storage.write_text(staging.path(_FILE), text)


def read_planned(staging: Staging) -> PlannedParts:
    """Return what the planned run does.

    Raises:
        RunnerError: another version of Recordgen or of its encoders planned it, or it was changed.
        StorageError: it cannot be read.
    """
    return staging.read_json(_FILE, partial(_planned_of, staging))


def _planned_of(staging: Staging, data: Any) -> PlannedParts:
    here, there = list(PlannedParts.made_by), data.get("made_by")
    if there != here:
        raise RunnerError(
            f"{staging.path(_FILE)}: planned with recordgen and encoders {there}, but this process "
            f"has {here}, which may write other bytes; use the same packages everywhere, or plan "
            f"again with --resume"
        )
    values = dict(data)
    digest = values.pop("digest")
    planned = built(PlannedParts, values)
    if digest != _digest(values):
        raise ValueError("its digest is another one")
    return planned


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def check_plan(staging: Staging, planned: PlannedParts) -> None:
    """Check the plan, which names its other files by their digests.

    Raises: RunnerError: it was changed; StorageError: it cannot be read.
    """
    with decoding(staging.path("plan.json")):
        if staging.plan_digest() != planned.plan:
            raise ValueError("its digest is another one")


def is_planned(staging: Staging) -> bool:
    """Return whether the run is a planned one. Raises: StorageError."""
    return storage.exists(staging.path(_FILE))


def check_planned(output: str, staging: Staging) -> None:
    """Check that the run is still to be written. Raises: RunnerError."""
    if not is_planned(staging):
        if not staging.has_plan:  # what this worker wrote after the folder was removed
            storage.remove(staging.root)
        raise RunnerError(
            f"{output}: this run was committed or taken over by another one meanwhile; nothing is "
            f"left to do for this worker"
        )


@contextmanager
def naming_end(output: str, staging: Staging) -> Iterator[None]:
    """Raise RunnerError instead of another error if the run is over."""
    try:
        yield
    except (StorageError, RunnerError):
        check_planned(output, staging)
        raise


def withdraw(staging: Staging) -> None:
    """Make the run an ordinary one, which has no parts. Raises: StorageError."""
    storage.remove(staging.path(_FILE))


def finish_part(staging: Staging, part: int) -> None:
    """Record that all shards of a part are written. Raises: StorageError."""
    storage.write_text(staging.path(_WORKERS, f"{part:05d}{_DONE}"), "\n")


def finished_parts(staging: Staging) -> set[int]:
    """Return the parts whose shards are all written. Raises: StorageError."""
    # Results do not tell: a worker that keeps a shard writes its result before it moves the file.
    names = (name for name, _ in storage.list_dir(staging.path(_WORKERS)))
    return {int(name.removesuffix(_DONE)) for name in names if name.endswith(_DONE)}


def worker_lease(staging: Staging, part: int) -> str:
    """Return the path of a lease for a new worker; a part may have several at once."""
    return staging.path(_WORKERS, f"{part:05d}-{uuid.uuid4().hex[:12]}.json")


def worker_leases(staging: Staging) -> list[str]:
    """Return the leases of all workers. Raises: StorageError."""
    names = storage.list_dir(staging.path(_WORKERS))
    return [staging.path(_WORKERS, name) for name, _ in names if name.endswith(".json")]
