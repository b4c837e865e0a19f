"""Which process writes into an output, and whether it is alive: a file that it keeps fresh.

    run.json   {"recordgen": "0.1.0", "host": "a", "system": "a153f0df-…/pid:[4026531836]",
                "pid": 731, "started": "198549", "seen": "2026-11-21T09:30:38.123456+00:00"}
    run.json   {"recordgen": "0.1.0"}                     that run has ended

A process of this system that was killed is known to be gone at once: there is no process of its
number, or it started at another time. Of one on another machine or in another container all that
can be seen is the file: if ``seen`` does not change for half a minute, it is taken for dead. No two
clocks are compared.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

from recordgen import storage
from recordgen.errors import RunnerError, StorageError
from recordgen.masking import masked
from recordgen.version import __version__

_BEAT_SECONDS = 10.0
_WATCH_SECONDS = 30.0
_POLL_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """The process that works on a run.

    Attributes:
        host: its machine's name.
        system: which running kernel and which numbering of processes ``pid`` belongs to; empty:
            the system does not tell.
        pid: its number there.
        started: when it started, in the kernel's ticks: numbers are used again.
        seen: when it last said that it works.
    """

    host: str
    system: str
    pid: int
    started: str
    seen: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, last seen at {self.seen}"


@contextmanager
def held(path: str) -> Iterator[None]:
    """Say in the file ``path`` that this process works here, for as long as the block runs.

    Raises:
        StorageError: the file cannot be written.
    """
    _write(path, _this_process())
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(path, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        with suppress(StorageError):  # what ended the block says more
            if _is_mine(_read(path)):
                end(path)


def end(path: str) -> None:
    """Say in the file ``path`` that its run has ended. Raises: StorageError."""
    _write(path, None)


def check_held(path: str) -> None:
    """Check that no other run has taken this process for dead and ended its run.

    Raises:
        RunnerError: another run has.
        StorageError: storage failed.
    """
    if not _is_mine(_read(path)):
        raise RunnerError(
            f"{path}: another run has taken this one for dead and gone on in its place, because "
            f"it gave no sign of life for {_WATCH_SECONDS:.0f} s; nothing was committed"
        )


def living_holder(path: str) -> Holder | None:
    """Return the process that works on the run of the file ``path``; None: it ended or died.

    Takes half a minute if that process belongs to another machine or container, and is dead.

    Raises:
        StorageError: storage failed.
    """
    holder = _read(path)
    if holder is None:
        return None
    running = _is_running(holder)
    if running is not None:
        return holder if running else None
    _log.warning(
        "%s: an unfinished run (%s); waiting %.0f s for a sign of life",
        masked(path),
        holder,
        _WATCH_SECONDS,
    )
    deadline = time.monotonic() + _WATCH_SECONDS
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        found = _read(path)
        if found is None or found.seen != holder.seen:
            return found
    return None


def _beat(path: str, done: threading.Event) -> None:
    while not done.wait(_BEAT_SECONDS):
        try:
            if not _is_mine(_read(path)):
                return
            _write(path, _this_process())
        except (OSError, StorageError):
            continue  # the next sign of life may get through


def _read(path: str) -> Holder | None:
    try:
        data = json.loads(storage.read_text(path))
        del data["recordgen"]
        return Holder(**data) if data else None
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return None  # what a crash of the machine has left of it says nothing


def _write(path: str, holder: Holder | None) -> None:
    data = {"recordgen": __version__, **(asdict(holder) if holder else {})}
    storage.write_text(path, json.dumps(data) + "\n")


def _this_process() -> Holder:
    pid = os.getpid()
    started = _started(pid)
    return Holder(
        host=socket.gethostname(),
        system=_system() if started else "",
        pid=pid,
        started=started or "",
        seen=datetime.now(timezone.utc).isoformat(),
    )


def _is_mine(holder: Holder | None) -> bool:
    return holder is not None and replace(_this_process(), seen=holder.seen) == holder


def _is_running(holder: Holder) -> bool | None:
    """Say whether a process is running; None: this cannot be told from here."""
    if not holder.system or (holder.host, holder.system) != (socket.gethostname(), _system()):
        return None
    started = _started(holder.pid)
    return None if started is None else started == holder.started


def _system() -> str:
    """Return which running kernel this is, and which of its numberings of processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Return when a process started; empty: it does not exist; None: unknown."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass  # the process exists and belongs to another user
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # proc(5): pid (name) state …; field 22 is the start. A name may hold anything.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A killed process stays a zombie until its parent has asked how it ended.
    return "" if fields[0] in "ZX" else fields[19]
