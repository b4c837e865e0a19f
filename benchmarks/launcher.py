"""What follows the last shard, by number of rows: CPU seconds and memory, in one line per number.

    python -m benchmarks.launcher --rows 1000000 3000000 10000000
    python -m benchmarks.launcher --rows 1000000 3000000 --crowd
    python -m benchmarks.launcher --rows 1000000 10000000 --kind table
    python -m benchmarks.launcher --rows 100000000 --simulate

``--kind picture``: the facts of pictures that do not exist, 20,000 in each shard, random ones or,
with ``--crowd``, one form that is filled in differently each time, so that every picture looks like
all others. A process of its own runs the steps of the checks as a conversion without Beam does,
collects the findings, and writes ``examples.parquet`` and ``records.npy``. ``--kind table``: a CSV
of ten columns is planned and written in one part, and another process commits it.

``--simulate``: the plan of a conversion to shards of 1,280 pictures, and one of each kind of task
in its real size, each in a process of its own: a batch of shards, a bucket of equal and one of
similar keys, the union of all groups, and the launcher with the results and lengths of all shards;
and what bounds memory in crowds: a bucket of 3,000,000 pictures that share a band of their hash, of
which some are nearly the same, and the largest part of a group that is examined together.

Memory is the largest, and includes 120 MB of imports.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.memory import run_apart
from recordgen.checks.check import ALIKE, KEYED, MOST_TOGETHER, run_checks
from recordgen.checks.copies import NEAR_COLUMNS, divisions_of
from recordgen.checks.facts import GROUP, ExampleFacts
from recordgen.conversion import examining
from recordgen.conversion import parts as conversion_parts
from recordgen.conversion.examination import NEAR, UNITE, Examination, Rows, Stage, examination_of
from recordgen.conversion.settings import conversion_of
from recordgen.core.dataset.counts import RowCounts, Shard
from recordgen.core.dataset.index import write_index
from recordgen.core.dataset.manifest import Dataset, shard_file
from recordgen.core.facts.columns import facts_of, of_shard, to_parquet
from recordgen.core.flow.local_runner import LocalRunner
from recordgen.core.flow.runner import Count, Step
from recordgen.core.runs.staging import Staging
from recordgen.core.shards.task import ShardResult, SplitSum, summed
from recordgen.measures.likeness import same_in_band
from recordgen.measures.pictures import SIDE, Looks, PictureFacts, measured
from recordgen.options import make_options

# What a picture weighs: its row in an import file, its record, and the shard it is in.
CSV_ROW_BYTES, IMAGE_BYTES, SHARD_BYTES = 60, 100_000, 128_000_000
SHARD_ROWS = 20_000
LABELS = 100
SPLITS = ("train", "eval", "test")

# Random pictures that are drawn at once, and those of a bucket that all look alike.
_DRAWN, _CROWD = 1 << 22, 3_000_000


def make_pictures(root: Path, rows: int, shard_rows: int = SHARD_ROWS, *, crowd: bool) -> None:
    """Write the facts of shards, and the lengths of their records, to a staging folder."""
    staging, random = Staging(str(root)), np.random.default_rng(0)
    form = random.integers(12, 244, (SIDE, SIDE))
    for number, start in enumerate(range(0, rows, shard_rows)):
        count = min(shard_rows, rows - start)
        seen = _looks_of_forms(form, count, random) if crowd else _random_looks(count, random)
        contents = random.integers(0, 2**63, count, dtype=np.uint64)
        lines = random.permutation(count) + start
        result = _result(number, count, _facts(seen, contents, lines))
        staging.write_result(result, number)


def _result(number: int, count: int, facts: Any = None) -> ShardResult:
    """Return the result of a shard, as a worker makes it."""
    split = SPLITS[number % len(SPLITS)]
    shard = Shard(shard_file(split, number, 10**5, "none"), count, SHARD_BYTES, "0" * 64)
    labels = {f"label{label}": -(-count // LABELS) for label in range(LABELS)}
    lengths = np.full(count, IMAGE_BYTES, "<u4").tobytes()
    return ShardResult(
        split, shard, labels, count, {}, (), None, "0" * 64, lengths=lengths, facts=facts
    )


def _looks_of_forms(form: Any, count: int, random: Any) -> PictureFacts:
    filled = random.integers(-12, 13, (count, SIDE // 4, SIDE // 4), np.int16)
    pixels = filled.repeat(4, axis=1).repeat(4, axis=2) + form.astype(np.int16)
    level = np.full(count, 20.0)
    return measured(Looks(pixels.astype(np.uint8), level))


def _random_looks(count: int, random: Any) -> PictureFacts:
    """Return what random pictures have: random bits in hashes and signatures."""
    level = np.full(count, 60.0, np.float32)
    numbers = np.full(count, 100, np.uint8)
    return PictureFacts(
        random.integers(0, 2**64, count, dtype=np.uint64),
        random.integers(0, 256, (count, 8, 8), dtype=np.uint8),
        *(level, level, numbers, numbers, level),
    )


def _facts(seen: PictureFacts, contents: Any, lines: Any) -> Any:
    count = len(lines)
    return facts_of(
        {
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
    )


def make_table(root: Path, rows: int) -> None:
    """Plan and write a table in one part."""
    source, random = root / "table.csv", np.random.default_rng(0)
    with source.open("w", encoding="utf-8") as file:
        file.write(",".join(["ml_use", *(f"n{at}" for at in range(8)), "label"]) + "\n")
        for start in range(0, rows, SHARD_ROWS):
            numbers = random.normal(size=(min(SHARD_ROWS, rows - start), 8)).round(3)
            for at, line in enumerate(numbers.tolist()):
                split = ("TRAIN", "TRAIN", "VALIDATION", "TEST")[at % 4]
                file.write(f"{split},{','.join(map(str, line))},label{at % LABELS}\n")
    conversion_parts.plan(str(source), root / "out", 1, task="tabular", progress=None)
    conversion_parts.work(root / "out", 0)


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
    """Measure the CPU seconds of a phase."""
    started = time.process_time()
    yield
    seconds[name] = time.process_time() - started


def _shared(staging: Staging, rows: int) -> Examination:
    """Return what the steps share in a conversion of an import file with so many pictures."""
    options = make_options({"task": "image_classification"})
    source: Any = SimpleNamespace(names=("gs://bucket/labels.csv",), bytes=rows * CSV_ROW_BYTES)
    return examination_of(source, conversion_of(options), options.selection, staging)


def work_on_pictures(folder: str, rows: int) -> dict[str, float]:
    """Run the steps of the checks, then what the launcher does alone; return CPU seconds."""
    seconds, staging, steps = dict[str, float](), Staging(folder), dict[str, float]()
    shared, results = _shared(staging, rows), staging.read_results()
    files = [shard.file for each in results.values() for shard in each.shards]
    with phase("checks", seconds):
        runner = LocalRunner()
        flow: Any = TimedFlow(runner.start("ListShards", files), steps)
        examining.examine(runner, flow, shared)
        runner.run(staging)
    with phase("findings", seconds):
        nothing, selection = shared.examined(ExampleFacts([])), shared.selection
        run_checks(nothing, staging.read_found(), staging.read_lines, [], {}, selection)
    with phase("records.npy", seconds):
        dataset = _dataset(results)
        lengths = staging.lengths_of(dataset.shards)
        write_index(staging.path("records.npy"), dataset, lengths)
    with phase("examples.parquet", seconds):
        size = sum(map(len, to_parquet(map(staging.shard_facts, files))))
    if size < rows:
        raise RuntimeError(f"examples.parquet has {size} bytes")
    return {**seconds, **steps}


def _dataset(results: Mapping[str, SplitSum]) -> Dataset:
    return Dataset(
        task="image_classification",
        recordgen_version="0",
        source=(),
        seed=0,
        options={},
        compression="none",
        label_kind="text",
        labels=(),
        splits={name: each.split() for name, each in results.items()},
        rows=RowCounts(),
        reencoded={},
        warnings=(),
        digest="",
    )


def work_on_table(folder: str, rows: int) -> dict[str, float]:
    """Commit a table that is written; return CPU seconds, those of phases by the clock."""
    started = time.process_time()
    result = conversion_parts.commit(Path(folder, "out"), progress=None)
    if result.dataset.examples < rows * 0.9:
        raise RuntimeError(f"{result.dataset.examples} examples")
    return {"commit": time.process_time() - started}


def measure(kind: str, rows: int, *, crowd: bool) -> dict[str, Any]:
    """Return the figures of a number of rows."""
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        if kind == "table":
            make_table(Path(folder), rows)
        else:
            make_pictures(Path(folder), rows, crowd=crowd)
        before = _size(folder)
        work = work_on_table if kind == "table" else work_on_pictures
        seconds, peak_mb = run_apart(work, folder, rows)
        left = 0 if kind == "table" else _size(folder) - before
    name = "crowd" if crowd else kind
    return {"rows": rows, "kind": name, "peak_mb": peak_mb, "left": left / rows, **seconds}


def _size(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def shown(found: Mapping[str, Any]) -> str:
    """Return the figures in one line."""
    named = ("rows", "kind", "peak_mb", "left")
    spent = ", ".join(f"{name} {found[name]:.2f} s" for name in found if name not in named)
    left = f"; {found['left']:,.0f} bytes a row between steps" if found["left"] else ""
    return f"{found['rows']:,} {found['kind']}: {found['peak_mb']:,.0f} MB; {spent}{left}"


# --- the simulation ---------------------------------------------------------------------------


def simulate(rows: int) -> Iterator[str]:
    """Yield the plan of a number of pictures, and the figures of one task of each kind."""
    shard_rows = SHARD_BYTES // IMAGE_BYTES
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        shared = _shared(Staging(folder), rows)
        buckets, batches, shards = shared.buckets, shared.batches, -(-rows // shard_rows)
        yield (
            f"{rows:,} pictures: {shards:,} shards in {batches} batches, {buckets} buckets, "
            f"{_joins(shared):,} joins of {batches} parts each"
        )
        tasks: Mapping[str, tuple[Callable[..., dict[str, float]], int]] = {
            "a batch": (_one_batch, batches),
            "a join of equal keys": (_one_equal_join, buckets),
            "a join of similar pictures": (_one_near_join, _joins(shared) - buckets),
            "the union of groups": (_union, 1),
            "a join of a crowd": (_crowd_join, 0),
            "a part of a large group": (_group_part, 0),
            "the launcher": (_launcher, 1),
        }
        for name, (work, times) in tasks.items():
            found, peak_mb = run_apart(work, folder, rows)
            said = ", ".join(f"{what} {number:,.1f}" for what, number in found.items())
            often = f", {times:,} times" if times else ""
            yield f"  {name}{often}: {peak_mb:,.0f} MB; {said}"


def _begun(step: Stage) -> Stage:
    step.begin(lambda amounts: None)
    return step


def _one_batch(folder: str, rows: int) -> dict[str, float]:
    staging = Staging(folder)
    shared, seconds = _shared(staging, rows), dict[str, float]()
    mine = -(-rows // shared.batches)
    make_pictures(Path(folder), mine, SHARD_BYTES // IMAGE_BYTES, crowd=False)
    batch = [shard.file for each in staging.read_results().values() for shard in each.shards]
    facts = _size(folder)
    with phase("CPU s", seconds):
        messages = sum(1 for _ in _begun(examining.NoteKeys(shared)).process((0, batch)))
    with phase("examples.parquet, CPU s", seconds):
        size = sum(map(len, to_parquet(map(staging.shard_facts, batch))))
    left = (_size(folder) - facts) / mine
    return {
        **{"pictures": mine, "messages": messages, **seconds, "bytes left a picture": left},
        **{"bytes of facts a picture": facts / mine, "of examples.parquet": size / mine},
    }


def _parts(step: Stage, tables: Iterator[Any]) -> list[Rows]:
    """Leave a table of each batch for a join; return where they are."""
    left = (step.left(batch, [(("", 0), table)]) for batch, table in enumerate(tables))
    return [rows for each in left for _, rows in each]


def _join(step: Stage, name: str, messages: Sequence[Rows | examining.Size]) -> dict[str, float]:
    seconds = dict[str, float]()
    with phase("CPU s", seconds):
        found = sum(1 for _ in step.process(((name, 0), messages)))
    return {"messages": found, **seconds}


def _one_equal_join(folder: str, rows: int) -> dict[str, float]:
    random, shared = np.random.default_rng(1), _shared(Staging(folder), rows)
    count, step = rows // shared.buckets // shared.batches, _begun(examining.JoinKeys(shared))
    keys = (random.integers(0, 2**63, count, dtype=np.uint64) for _ in range(shared.batches))
    tables = (pa.table({"row": np.arange(count, dtype=np.int32), "key": mine}) for mine in keys)
    name = next(group.name for group in shared.groups() if group.scope == KEYED)
    return {"keys": count * shared.batches, **_join(step, name, _parts(step, tables))}


def _one_near_join(folder: str, rows: int) -> dict[str, float]:
    """Draw all pictures, keep those of one bucket of the first division, and join them."""
    random, shared = np.random.default_rng(2), _shared(Staging(folder), rows)
    drawn = (min(_DRAWN, rows - start) for start in range(0, rows, _DRAWN))
    hashes = np.concatenate([_of_one_bucket(shared, random, count) for count in drawn])
    step = _begun(examining.JoinKeys(shared))

    def table(mine: Any) -> Any:
        seen = _random_looks(len(mine), random)._replace(perceptual_hash=mine)
        facts = _facts(seen, mine, random.integers(0, rows, len(mine)))
        row = pa.array(np.arange(len(mine), dtype=np.int32))
        return facts.select(NEAR_COLUMNS).append_column("row", row)

    tables = map(table, np.array_split(hashes, shared.batches))
    name = next(group.name for group in shared.groups() if group.scope == ALIKE)
    parts = _parts(step, tables)
    return {"pictures": len(hashes), **_join(step, f"{NEAR}{name} 0", parts)}


def _of_one_bucket(shared: Examination, random: Any, count: int) -> Any:
    hashes = random.integers(0, 2**64, count, dtype=np.uint64)
    return hashes[shared.bucket_of(same_in_band(hashes, 0)) == 0]


def _crowd_join(folder: str, rows: int) -> dict[str, float]:
    """Join pictures of one bucket whose hashes differ in some bits of the last band."""
    random, shared = np.random.default_rng(4), _shared(Staging(folder), rows)
    step, count = _begun(examining.JoinKeys(shared)), _CROWD // SHARD_ROWS
    form = random.integers(12, 244, (8, 8))

    def table(batch: int) -> Any:
        flipped = np.uint64(1) << random.integers(48, 64, (2, SHARD_ROWS), np.uint64)
        looks = (form + random.integers(-12, 13, (SHARD_ROWS, 8, 8))).astype(np.uint8)
        found = facts_of(
            {
                "source": ["gs://bucket/labels.csv"] * SHARD_ROWS,
                "line": random.permutation(SHARD_ROWS) + batch * SHARD_ROWS,
                "perceptual_hash": np.uint64(0x0123456789ABCDEF) ^ flipped[0] ^ flipped[1],
                "signature": [each.tobytes() for each in looks],
                "contrast": np.full(SHARD_ROWS, 60.0),
            }
        )
        row = pa.array(np.arange(SHARD_ROWS, dtype=np.int32))
        return found.select(NEAR_COLUMNS).append_column("row", row)

    name = next(group.name for group in shared.groups() if group.scope == ALIKE)
    parts = _parts(step, map(table, range(count)))
    return {"pictures": count * SHARD_ROWS, **_join(step, f"{NEAR}{name} 0", parts)}


def _group_part(folder: str, rows: int) -> dict[str, float]:
    """Examine the largest part of a group of near-duplicates."""
    random, shared = np.random.default_rng(5), _shared(Staging(folder), rows)
    step, size = _begun(examining.ExamineGroups(shared)), MOST_TOGETHER // len(SPLITS)

    def table(split: str) -> Any:
        contents = random.integers(0, 2**63, size, dtype=np.uint64)
        facts = _facts(_random_looks(size, random), contents, random.permutation(size))
        made = of_shard(split, shard_file(split, 0, 1, "none"), facts)
        return made.append_column(GROUP, pa.array(np.zeros(size, np.uint64)))

    name = next(group.name for group in shared.groups() if group.scope == ALIKE)
    parts = _parts(step, map(table, SPLITS))
    return {"pictures": len(SPLITS) * size, **_join(step, name, parts)}


def _joins(shared: Examination) -> int:
    """Return the number of buckets that are joined, at most."""
    scopes = [group.scope for group in shared.groups()]
    divisions = len(divisions_of(shared.conversion.task)) if shared.buckets > 1 else 1
    return (scopes.count(KEYED) + scopes.count(ALIKE) * divisions) * shared.buckets


def _union(folder: str, rows: int) -> dict[str, float]:
    """Unite the groups of all buckets; one picture in a hundred is like another one."""
    random, shared = np.random.default_rng(3), _shared(Staging(folder), rows)
    step, mine = _begun(examining.UniteGroups(shared)), rows // shared.batches
    name = next(group.name for group in shared.groups() if group.scope == ALIKE)
    count = rows // 100 // (_joins(shared) - shared.buckets)

    def table() -> Any:
        batch, row = (random.integers(0, most, count, np.int32) for most in (shared.batches, mine))
        return pa.table(
            {"batch": batch, "row": row, "group": np.arange(count, dtype=np.int32) // 2}
        )

    parts = _parts(step, (table() for _ in range(_joins(shared) - shared.buckets)))
    sizes = [examining.Size(batch, mine) for batch in range(shared.batches)]
    return _join(step, f"{UNITE}{name}", [*parts, *sizes])


def _launcher(folder: str, rows: int) -> dict[str, float]:
    """Read the results of all shards, and write the index."""
    shard_rows, seconds = SHARD_BYTES // IMAGE_BYTES, dict[str, float]()
    texts = (_result(number, shard_rows).to_json() for number in range(rows // shard_rows))
    with phase("results, CPU s", seconds):
        results = summed(map(ShardResult.of, map(json.loads, texts)))
    path, lengths = Path(folder, "records.npy"), np.full(shard_rows, IMAGE_BYTES, "<u4").tobytes()
    with phase("records.npy, CPU s", seconds):
        write_index(str(path), _dataset(results), lambda file: lengths)
    return {**seconds, "MB of records.npy": path.stat().st_size / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--kind", choices=("picture", "table"), default="picture")
    parser.add_argument("--crowd", action="store_true", help="pictures that all look alike")
    parser.add_argument("--simulate", action="store_true", help="one task of each kind only")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each number")
    args = parser.parse_args()
    for rows in args.rows:
        if args.simulate:
            for line in simulate(rows):
                print(line, flush=True)
        else:
            found = measure(args.kind, rows, crowd=args.crowd)
            print(json.dumps(found) if args.json else shown(found), flush=True)


if __name__ == "__main__":
    main()
