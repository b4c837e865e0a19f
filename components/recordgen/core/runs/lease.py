"""The lease of a run: a file that names the process which writes an output, and that it refreshes.

    run.json   {"recordgen": "0.1.0", "host": "a", "system": "a153f0df-…/pid:[4026531836]",
                "pid": 731, "started": "198549", "seen": "2026-11-21T09:30:38.123456+00:00"}

Whoever ends a run removes the file, and so does another run that takes it over.
A killed process on this system is detected at once: no process has its number, or the process with
its number started at another time. A process on another machine or in another container is judged
by the file only: if ``seen`` does not change for half a minute, the process is considered dead.
Two clocks are never compared.

The plan of a run in parts stays in the staging folder until all parts are written and committed:

    OUT/.recordgen-staging/RUN/parts.json         what the run does; it marks a planned run
                               workers/….json     leases of its workers
                               workers/00000.done all shards of the part are written

A planned run is not dead, though no process holds its lease: its workers may wait in a queue. So
another run may take it over only with ``resume``, and only while none of its workers is alive.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import built
from recordgen.core.ordered import beside
from recordgen.core.runs.staging import Staging, decoding
from recordgen.core.shards import ENCODERS
from recordgen.errors import RunnerError, StorageError
from recordgen.messages.masking import masked
from recordgen.version import __version__

#: Seconds between heartbeats, without which a process is taken for dead, and between two looks.
BEAT_SECONDS = 10.0
WATCH_SECONDS = 30.0
POLL_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """The process that works on a run."""

    host: str  # name of its machine
    system: str  # boot id of the kernel and pid namespace of `pid`; empty if unknown
    pid: int
    started: str  # start time in the kernel's ticks, because process ids are reused
    seen: str  # time of its last heartbeat

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, last seen at {self.seen}"


@contextmanager
def held(path: str, beat_seconds: float = BEAT_SECONDS, *, is_own: bool = False) -> Iterator[None]:
    """Hold the lease ``path`` with this process while the block runs.

    ``is_own``: no other process writes this file: one that takes the run over removes it.
    """
    write_holder(path, this_process())
    try:
        with beside(partial(_beat, path, beat_seconds)):
            yield
    finally:
        with suppress(StorageError):  # the error that ended the block matters more
            if is_own or _is_mine(read_holder(path)):
                storage.remove_file(path)


def check_held(path: str) -> None:
    """Check that this process still holds the lease ``path``.

    Raises: RunnerError: another run took over.
    """
    if not _is_mine(read_holder(path)):
        raise RunnerError(
            f"{path}: another run took over, because this one sent no heartbeat for "
            f"{WATCH_SECONDS:.0f} s; nothing was committed"
        )


def living_holder(
    path: str, watch_seconds: float = WATCH_SECONDS, poll_seconds: float = POLL_SECONDS
) -> Holder | None:
    """Return the process that holds the lease ``path``; None if it has ended or died.

    If it is dead, on another machine or in another container, this takes ``watch_seconds``.
    """
    holder = read_holder(path)
    if holder is None:
        return None
    running = is_running(holder)
    if running is not None:
        return holder if running else None
    words = "%s: an unfinished run (%s); waiting %.0f s for a heartbeat"
    _log.warning(words, masked(path), holder, watch_seconds)
    deadline = time.monotonic() + watch_seconds
    while time.monotonic() < deadline:
        time.sleep(poll_seconds)
        found = read_holder(path)
        if found is None or found.seen != holder.seen:
            return found
    return None


def _beat(path: str, seconds: float, done: threading.Event) -> None:
    while not done.wait(seconds):
        try:
            if not _is_mine(read_holder(path)):
                return
            write_holder(path, this_process())
        except (OSError, StorageError):
            continue  # the next heartbeat may succeed


def read_holder(path: str) -> Holder | None:
    """Return the holder of the lease ``path``, or None. Raises: StorageError."""
    try:
        data = json.loads(storage.read_text(path))
        del data["recordgen"]
        return built(Holder, data)
    except (FileNotFoundError, KeyError, RecursionError, TypeError, ValueError):
        return None  # the run has ended, or a crash of the machine has damaged the file


def write_holder(path: str, holder: Holder) -> None:
    """Write the holder of the lease ``path``. Raises: StorageError."""
    storage.write_text(path, json.dumps({"recordgen": __version__, **asdict(holder)}) + "\n")


def this_process() -> Holder:
    """Return this process, seen now."""
    host, pid, seen = socket.gethostname(), os.getpid(), datetime.now(timezone.utc).isoformat()
    started = start_of(pid)
    system = _system() if started else ""
    return Holder(host=host, system=system, pid=pid, started=started or "", seen=seen)


def _is_mine(holder: Holder | None) -> bool:
    return holder is not None and replace(this_process(), seen=holder.seen) == holder


def is_running(holder: Holder) -> bool | None:
    """Return whether a process is running, or None if this system cannot know."""
    if not holder.system or (holder.host, holder.system) != (socket.gethostname(), _system()):
        return None
    started = start_of(holder.pid)
    return None if started is None else started == holder.started


def _system() -> str:
    """Return the boot id of this kernel and the pid namespace of this process."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def start_of(pid: int) -> str | None:
    """Return when a process started; empty if it does not exist, None if unknown."""
    if sys.platform != "linux":
        return None  # on Windows, signal 0 would interrupt the process
    try:
        os.kill(pid, 0)
    except (OverflowError, ProcessLookupError):
        return ""
    except PermissionError:
        pass  # the process exists and belongs to another user
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # proc(5): pid (name) state …; field 22 is the start. A name may contain ")".
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A killed process stays a zombie (Z, X) until its parent has read its exit status.
    return "" if fields[0] in "ZX" else fields[19]


# --- a run in parts ------------------------------------------------------------------------------


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
    return storage.is_file(staging.path(_FILE))


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
    storage.remove_file(staging.path(_FILE))


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
