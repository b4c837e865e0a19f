"""Runs that are killed at a declared point, each in its own process."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recordgen.core.dataset.manifest import DATASET_FILE, LABELS_FILE
from recordgen.core.runs.staging import STAGING
from tests.conftest import encoded, noise
from tests.preloaded import BEAM_MODULES

# Processes forked from one that has loaded the package and this module start quickly.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([*BEAM_MODULES, __name__])


class Death(NamedTuple):
    """The n-th call of a function in which a process kills itself."""

    function: str  # its full name
    call: int  # number of the call, from 1
    after: bool  # whether the process dies at the end of the call, or at its beginning
    path: str = ""  # only calls count whose first argument contains this text
    is_finished: bool = False  # whether the dataset is complete then


RUNS = "recordgen.core.runs"
WHEN_ALL_IS_WRITTEN = Death(f"{RUNS}.lease.check_held", 1, after=False)
# Two are staged before: nothing is written in the output, where a temporary file would stay.
SHOW_DATASET = Death("os.replace", 3, after=False, path=DATASET_FILE)
REMOVE_LEASE = Death("recordgen.storage.remove_file", 1, False, f"{STAGING}/", is_finished=True)

# points of death
DEATHS = {
    "while planning": Death(f"{RUNS}.staging.Staging.write_plan", 1, after=False),
    "within the fourth shard": Death("recordgen.core.records.tfrecord.write_pieces", 4, after=True),
    "between shard and result": Death(f"{RUNS}.staging.Staging.write_result", 4, after=False),
    "after five shards": Death(f"{RUNS}.staging.Staging.write_result", 5, after=True),
    "before the commit": WHEN_ALL_IS_WRITTEN,
    "when the commit begins": Death("recordgen.storage.write_text", 1, True, "results/dataset"),
    "before moving": Death(f"{RUNS}.commit._clear", 1, after=True),
    "while moving": Death("recordgen.storage.move", 4, after=True),
    "after moving": Death("recordgen.storage.move", 1, after=False, path=LABELS_FILE),
    "before dataset.json": SHOW_DATASET,
    "after dataset.json": SHOW_DATASET._replace(after=True, is_finished=True),
    "before the lease is removed": REMOVE_LEASE,
    "while removing the staging folder": REMOVE_LEASE._replace(function="recordgen.storage.remove"),
}


def write_source(folder: Path, number: int = 40) -> tuple[list[Path], str]:
    """Write images and their import file; return the paths."""
    images = [folder / f"{each:04d}.jpg" for each in range(number)]
    for each, path in enumerate(images):
        path.write_bytes(encoded(noise(seed=each), "JPEG", quality=90))
    source = folder / "labels.csv"
    rows = (f"{path},{('cat', 'dog', '')[n % 3]}\n" for n, path in enumerate(images))
    source.write_text("".join(rows))
    return images, str(source)


def convert_and_die(death: Death, source: str, output: Path, **settings: Any) -> None:
    """Convert in a process that is killed before it ends."""
    call_and_die(death, "recordgen.convert", source, str(output), **settings)


def call_and_die(death: Death, function: str, *args: Any, **settings: Any) -> None:
    """Call a function, by its full name, in a process that is killed before it ends."""
    process = PROCESSES.Process(target=_dying, args=(death, function, args, settings))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


def _dying(
    death: Death, called: str, arguments: Sequence[Any], settings: Mapping[str, Any]
) -> None:
    owner_name, _, name = death.function.rpartition(".")
    owner = pkgutil.resolve_name(owner_name)
    function: Callable[..., Any] = getattr(owner, name)
    lock = threading.Lock()
    calls = 0

    def dying(*args: Any, **more: Any) -> Any:
        nonlocal calls
        with lock:
            counts = death.path in str(args[0])
            calls += counts
            mine = counts and calls == death.call
        if mine and not death.after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return function(*args, **more)
        finally:  # failed calls count, too
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)
    pkgutil.resolve_name(called)(*arguments, **settings)
