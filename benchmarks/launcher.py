"""What the launcher does alone, after the last shard, by number of pictures: time and memory.

    python -m benchmarks.launcher --rows 1000000 3000000 10000000

The facts of pictures that do not exist stand in for those of shards, 20,000 in each: random
pictures (``varied``), or one form that is filled in differently each time (``forms``), among which
every picture looks like all others. For each number, a process of its own reads the facts, runs all
checks and writes ``examples.parquet``. Peak memory includes 120 MB of imports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather

from benchmarks.growth import measure_growth
from recordgen.core.facts.columns import WITH_ROWS, of_shard, to_parquet
from recordgen.core.facts.perceptual_hash import SIDE, Looks
from recordgen.core.facts.pictures import measured

SHARD_ROWS = 20_000
LABELS = 100
SPLITS = ("train", "eval", "test")


def make_facts(root: Path, rows: int) -> dict[str, tuple[str, int]]:
    """Write the facts of shards, for each variety."""
    found = {}
    for variety in ("varied", "forms"):
        folder = root / variety
        folder.mkdir()
        random = np.random.default_rng(0)
        form = random.integers(12, 244, (SIDE, SIDE))
        for number, start in enumerate(range(0, rows, SHARD_ROWS)):
            count = min(SHARD_ROWS, rows - start)
            size = (count, SIDE // 4, SIDE // 4)
            low, high = (0, 256) if variety == "varied" else (-12, 13)
            pixels = np.kron(random.integers(low, high, size), np.ones((4, 4), int))
            if variety == "forms":
                pixels += form
            contents = random.integers(0, 2**63, count, dtype=np.uint64)
            lines = random.permutation(count) + start
            feather.write_feather(
                _facts(pixels.astype(np.uint8), contents, lines), folder / f"{number:05d}.arrow"
            )
        found[variety] = (str(folder), rows)
    return found


def _facts(pixels: Any, contents: Any, lines: Any) -> Any:
    """Return the facts of a shard, as a worker leaves them."""
    count = len(lines)
    level = np.full(count, 20.0)
    seen = measured(Looks(pixels, level, level))
    values = {
        "source": ["gs://bucket/labels.csv"] * count,
        "line": lines,
        "uri": [f"gs://bucket/photos/{line:09d}.jpg" for line in lines],
        "annotation": [f"label{line % LABELS}" for line in lines],
        "content": contents,
        "format": ["JPEG"] * count,
        "height": np.full(count, 480),
        "width": np.full(count, 640),
        "gray": np.zeros(count, bool),
        "frames": np.ones(count, int),
        **seen._asdict(),
        "signature": [each.tobytes() for each in seen.signature],
    }
    columns = []
    for field in WITH_ROWS:
        value = values.get(field.name)
        if value is None:
            columns.append(pa.nulls(count, field.type))
        elif pa.types.is_dictionary(field.type):
            columns.append(pa.array(value).dictionary_encode())
        else:
            columns.append(pa.array(value, field.type))
    return pa.Table.from_arrays(columns, schema=WITH_ROWS)


def _parts(folder: str) -> Iterator[Any]:
    for number, path in enumerate(sorted(Path(folder).iterdir())):
        split = SPLITS[number % len(SPLITS)]
        yield of_shard(split, f"Split-{split}/{path.stem}", feather.read_table(path))


def _work(folder: str, rows: int) -> float:
    from recordgen.checks.check import Examined
    from recordgen.checks.facts import ExampleFacts
    from recordgen.checks.run import run_checks
    from recordgen.checks.selection import Selection
    from recordgen.core.dataset.vocabulary import Vocabulary
    from recordgen.registry import TASKS

    started, selection = time.perf_counter(), Selection.of(())
    facts = ExampleFacts(_parts(folder))
    examined = Examined(
        facts,
        TASKS["image_classification"](),
        selection.thresholds,
        Vocabulary("text", tuple(sorted(f"label{n}" for n in range(LABELS)))),
        {},
        "",
        are_numbers_given=False,
        open_payload=open,
    )
    run_checks(examined, [], [], {}, selection, lambda *_: None)
    size = sum(map(len, to_parquet(facts.columns)))
    if size < rows:
        raise RuntimeError(f"examples.parquet has {size} bytes")
    return time.perf_counter() - started


if __name__ == "__main__":
    measure_growth(__doc__ or "", make_facts, _work, sizes=(1_000_000, 3_000_000))
