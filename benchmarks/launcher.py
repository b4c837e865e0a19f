"""What follows the last shard, by number of pictures: CPU seconds and memory of each phase.

    python -m benchmarks.launcher --rows 1000000 3000000 10000000

The facts of pictures that do not exist stand in for those of shards, 20,000 in each: random
pictures (``varied``), or one form that is filled in differently each time (``forms``, up to a
million), among which every picture looks like all others. For each number, a process of its own
runs the steps of the checks as a conversion without Beam does, collects the findings and writes
``examples.parquet``. Memory is the largest so far, and includes 120 MB of imports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth import measure_growth
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.run import FoundByWorkers, run_checks
from recordgen.conversion.examination import Examination
from recordgen.conversion.examining import examine
from recordgen.conversion.settings import conversion_of
from recordgen.core.dataset.manifest import shard_file
from recordgen.core.facts.columns import facts_of, to_parquet, without_empty
from recordgen.core.facts.perceptual_hash import SIDE, Looks
from recordgen.core.facts.pictures import PictureFacts, measured
from recordgen.core.flow.local_runner import LocalRunner
from recordgen.core.flow.runner import Count, Step
from recordgen.core.rows.columns import packed
from recordgen.core.runs.staging import Staging
from recordgen.options import make_options

SHARD_ROWS = 20_000
LABELS = 100
SPLITS = ("train", "eval", "test")

#: More forms are not made: it takes longer than their checks.
MOST_FORMS = 1_000_000

#: Examples of a bucket of the checks, as in a conversion of an import file.
BUCKET_ROWS = 320_000


def make_facts(root: Path, rows: int) -> dict[str, tuple[str, int]]:
    """Write the facts of shards to a staging folder, for each variety."""
    found = {}
    for variety in ("varied", "forms") if rows <= MOST_FORMS else ("varied",):
        folder = root / variety
        (folder / "facts").mkdir(parents=True)
        random = np.random.default_rng(0)
        form = random.integers(12, 244, (SIDE, SIDE))
        for number, start in enumerate(range(0, rows, SHARD_ROWS)):
            count = min(SHARD_ROWS, rows - start)
            seen = _looks_of_forms(form, count, random) if variety == "forms" else None
            contents = random.integers(0, 2**63, count, dtype=np.uint64)
            lines = random.permutation(count) + start
            facts = without_empty(_facts(seen or _random_looks(count, random), contents, lines))
            split = SPLITS[number % len(SPLITS)]
            (folder / "facts" / f"{split}-{number:05d}.arrow").write_bytes(packed(facts))
        found[variety] = (str(folder), rows)
    return found


def _looks_of_forms(form: Any, count: int, random: Any) -> PictureFacts:
    size = (count, SIDE // 4, SIDE // 4)
    pixels = form + np.kron(random.integers(-12, 13, size), np.ones((4, 4), int))
    level = np.full(count, 20.0)
    return measured(Looks(pixels.astype(np.uint8), level, level))


def _random_looks(count: int, random: Any) -> PictureFacts:
    """Return what random pictures have: random bits in hashes and signatures."""
    level = np.full(count, 60.0, np.float32)
    numbers = np.full(count, 100, np.uint8)
    return PictureFacts(
        random.integers(0, 2**64, count, dtype=np.uint64),
        random.integers(0, 256, (count, 8, 8), dtype=np.uint8),
        *(level, level, numbers, numbers, level, level, level),
    )


def _facts(seen: PictureFacts, contents: Any, lines: Any) -> Any:
    """Return the facts of a shard, as a worker leaves them."""
    count = len(lines)
    values = {
        "source": ["gs://bucket/labels.csv"] * count,
        "line": lines,
        "uri": [f"gs://bucket/photos/{line:09d}.jpg" for line in lines],
        "annotation": [f"label{line % LABELS}" for line in lines],
        "content": contents,
        "format": ["jpeg"] * count,
        "height": np.full(count, 480),
        "width": np.full(count, 640),
        "gray": np.zeros(count, bool),
        "frames": np.ones(count, int),
        **seen._asdict(),
        "signature": [each.tobytes() for each in seen.signature],
    }
    return facts_of(values)


class Clock(Step):
    """A step that measures another one."""

    def __init__(self, name: str, step: Step, seconds: dict[str, float]) -> None:
        self.staging = step.staging
        self._name, self._step, self._seconds = name, step, seconds

    def begin(self, count: Count) -> None:
        self._step.begin(count)

    def process(self, element: Any) -> Iterator[Any]:
        seconds, started = self._seconds, time.process_time()
        for found in chain(self._step.process(element), [None]):
            seconds[self._name] = seconds.get(self._name, 0) + time.process_time() - started
            if found is not None:
                yield found
            started = time.process_time()


class TimedFlow:
    """Elements whose steps are measured."""

    def __init__(self, flow: Any, seconds: dict[str, float]) -> None:
        self.flow, self.seconds = flow, seconds

    def through(self, name: str, step: Step) -> Any:
        return TimedFlow(self.flow.through(name, Clock(name, step, self.seconds)), self.seconds)

    def grouped(self, name: str) -> Any:
        return TimedFlow(self.flow.grouped(name), self.seconds)


@contextmanager
def phase(name: str, seconds: dict[str, float]) -> Iterator[None]:
    """Measure a phase, and print the largest memory at its end."""
    started = time.process_time()
    yield
    seconds[name] = time.process_time() - started
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1000
    steps = ", ".join(f"{step} {spent:.2f} s" for step, spent in seconds.items())
    print(f"    until {name}: {peak:,.0f} MB; {steps}", flush=True)


def _work(folder: str, rows: int) -> float:
    started, staging = time.process_time(), Staging(folder)
    options = make_options({"task": "image_classification"})
    selection, conversion = options.selection, conversion_of(options)
    found = sorted(path.stem.split("-") for path in Path(folder, "facts").iterdir())
    files = [shard_file(split, int(index), len(found), "none") for split, index in found]
    seconds: dict[str, float] = {}
    with phase("checks", seconds):
        shared = Examination(conversion, selection, staging, "", -(-rows // BUCKET_ROWS))
        runner = LocalRunner()
        flow: Any = TimedFlow(runner.start("ListShards", files), seconds)
        examine(runner, flow, shared)
        runner.run(staging)
    sizes = {path: path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()}
    facts_bytes = sum(size for path, size in sizes.items() if path.parent.name == "facts")
    print(
        f"    in the staging folder: {facts_bytes / rows:,.0f} bytes of facts for each picture, "
        f"and {(sum(sizes.values()) - facts_bytes) / rows:,.0f} of the steps"
    )
    with phase("findings", seconds):
        about_all, remarks = staging.read_about()
        nothing = shared.examined(ExampleFacts([]))
        by_workers = FoundByWorkers(staging.read_lines, about_all, remarks)
        run_checks(nothing, by_workers, [], [], {}, selection, lambda *_: None)
    with phase("examples.parquet", seconds):
        size = sum(map(len, to_parquet(map(staging.shard_facts, files))))
    if size < rows:
        raise RuntimeError(f"examples.parquet has {size} bytes")
    return time.process_time() - started


if __name__ == "__main__":
    measure_growth(__doc__ or "", make_facts, _work, sizes=(1_000_000, 3_000_000))
