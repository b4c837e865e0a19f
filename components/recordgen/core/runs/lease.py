"""The lease of a run: a file that names the process which writes an output, and that it refreshes.

    run.json   {"recordgen": "0.1.0", "host": "a", "system": "a153f0df-…/pid:[4026531836]",
                "pid": 731, "started": "198549", "seen": "2026-11-21T09:30:38.123456+00:00"}

Whoever ends a run removes the file, and so does another run that takes it over.
A killed process on this system is detected at once: no process has its number, or the process with
its number started at another time. A process on another machine or in another container is judged
by the file only: if ``seen`` does not change for half a minute, the process is considered dead.
Two clocks are never compared.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial

from recordgen import storage
from recordgen.core.dataset.manifest import built
from recordgen.core.ordered import beside
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
def held(path: str, beat_seconds: float = BEAT_SECONDS) -> Iterator[None]:
    """Hold the lease ``path`` with this process while the block runs."""
    write_holder(path, this_process())
    try:
        with beside(partial(_beat, path, beat_seconds)):
            yield
    finally:
        with suppress(StorageError):  # the error that ended the block matters more
            if _is_mine(read_holder(path)):
                storage.remove(path)


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
