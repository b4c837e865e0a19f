"""What a conversion on Dataflow comes to, on paper: bytes shuffled, machine-hours, requests, money.

    python -m benchmarks.costs

Prints the table of docs/runners.md. Nothing is measured here: the rates below are, or are
assumed, as it says beside each. Prices are list prices of us-central1 as of November 2026, taken
over by hand: look them up before you rely on a sum. The ratios do not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# What there is to do.
IMAGES = {"1 M": 10**6, "100 M": 10**8, "1 B": 10**9}
WORKERS = {"1 M": 10, "100 M": 100, "1 B": 500}
IMAGE_BYTES = 100_000
SHARD_BYTES = 128_000_000  # --shard-mb's default

# What travels. A row is a path, a label, two numbers: so many bytes in a block of others. Once
# planned it waits in the staging folder, in a block again.
ROW_BYTES = 110
STAGED_ROW_BYTES = 120
BUCKET_BYTES, MAX_BUCKETS = 2_000_000, 4_096  # of import file, of which a row takes some 60 bytes
CSV_ROW_BYTES = 60

# What a worker does: n1-standard-2, 2 vCPUs.
IMAGES_PER_S = 1_000  # benchmarks.convert on 2 cores; assumes that storage delivers
LOOKUPS_AT_ONCE = 64
LOOKUP_S = 0.05  # assumed: one object's size, within a region

# What the launcher does alone.
START_S = 300  # assumed: until Dataflow's workers are there
MOVES_AT_ONCE = 32
MOVE_S = 0.1  # assumed: a copy within a bucket, and a removal

# Requests: an image is looked up and read; a shard is written, moved (two: copy and removal, which
# is free), and leaves its result and its progress; it reads its rows, in one or two stretches, and
# the launcher its result. A bucket leaves its rows.
READS_PER_IMAGE = 2
READS_PER_SHARD = 3
WRITES_PER_SHARD = 4

# Dollars.
WORKER_HOUR = 2 * 0.056 + 7.5 * 0.003557 + 25 * 0.000054  # vCPUs, GB of memory, GB of disk
SHUFFLED_GB = 0.011
SHUFFLE_STEPS = ((250, 0.25), (4_870, 0.5), (math.inf, 1.0))  # GB, the share that is charged
READS_1000 = 0.0004
WRITES_1000 = 0.005


def shuffled_gb(images: int) -> float:
    """Rows that are grouped: once, by bucket."""
    return images * ROW_BYTES / 1e9


def staged_gb(images: int) -> float:
    """Planned rows that are written to storage, and read from it."""
    return images * STAGED_ROW_BYTES / 1e9


def payload_design_gb(images: int) -> float:
    """What a design shuffles that sends each payload through one grouping with its row."""
    return images * (IMAGE_BYTES + ROW_BYTES) / 1e9


def shards(images: int) -> int:
    return -(-images * IMAGE_BYTES // SHARD_BYTES)


def buckets(images: int) -> int:
    return min(MAX_BUCKETS, images * CSV_ROW_BYTES // BUCKET_BYTES)


def worker_hours(images: int) -> float:
    lookups = images * LOOKUP_S / LOOKUPS_AT_ONCE
    return (lookups + images / IMAGES_PER_S) / 3600


def commit_hours(images: int) -> float:
    return shards(images) * MOVE_S / MOVES_AT_ONCE / 3600


def hours(images: int, workers: int) -> float:
    return START_S / 3600 + worker_hours(images) / workers + commit_hours(images)


def shuffle_price(gigabytes: float) -> float:
    charged = 0.0
    for step, share in SHUFFLE_STEPS:
        charged += min(gigabytes, step) * share
        gigabytes -= min(gigabytes, step)
    return charged * SHUFFLED_GB


def request_price(images: int) -> float:
    reads = images * READS_PER_IMAGE + shards(images) * READS_PER_SHARD
    writes = buckets(images) + shards(images) * WRITES_PER_SHARD
    return (reads * READS_1000 + writes * WRITES_1000) / 1000


def table() -> str:
    """Return the table in Markdown: a line for each figure, with its formula."""
    rows: list[tuple[str, Callable[[str], float], str]] = [
        ("payloads, GB", lambda n: IMAGES[n] * IMAGE_BYTES / 1e9, "images × 100 kB"),
        ("shuffled, GB", lambda n: shuffled_gb(IMAGES[n]), f"images × {ROW_BYTES} B × 1 grouping"),
        ("staged, GB", lambda n: staged_gb(IMAGES[n]), f"images × {STAGED_ROW_BYTES} B"),
        (
            "shuffled if payloads were, GB",
            lambda n: payload_design_gb(IMAGES[n]),
            f"images × (100 kB + {ROW_BYTES} B) × 1",
        ),
        (
            "times as much",
            lambda n: payload_design_gb(IMAGES[n]) / shuffled_gb(IMAGES[n]),
            "the one by the other",
        ),
        ("workers of 2 vCPUs", lambda n: WORKERS[n], "chosen"),
        (
            "worker-hours",
            lambda n: worker_hours(IMAGES[n]),
            "images × (50 ms / 64 at once + 1 / 1,000 per s)",
        ),
        ("shards of 128 MB", lambda n: shards(IMAGES[n]), "payloads / 128 MB"),
        ("commit, h", lambda n: commit_hours(IMAGES[n]), "shards × 100 ms / 32 at once"),
        (
            "in all, h",
            lambda n: hours(IMAGES[n], WORKERS[n]),
            "5 min + worker-hours / workers + commit",
        ),
        ("objects read per s", lambda n: WORKERS[n] * IMAGES_PER_S, "workers × 1,000"),
        ("workers, $", lambda n: worker_hours(IMAGES[n]) * WORKER_HOUR, "worker-hours × 0.14"),
        (
            "shuffle, $",
            lambda n: shuffle_price(shuffled_gb(IMAGES[n])),
            "GB × 0.011, less at first",
        ),
        (
            "shuffle if payloads were, $",
            lambda n: shuffle_price(payload_design_gb(IMAGES[n])),
            "GB × 0.011, less at first",
        ),
        (
            "storage requests, $",
            lambda n: request_price(IMAGES[n]),
            "2 reads per image, 3 reads and 4 writes per shard, 1 write per bucket",
        ),
    ]
    lines = [f"| images of 100 kB | {' | '.join(IMAGES)} | formula |", "|---|---:|---:|---:|---|"]
    for name, figure, formula in rows:
        figures = " | ".join(_text(figure(number)) for number in IMAGES)
        lines.append(f"| {name} | {figures} | {formula} |")
    return "\n".join(lines)


def _text(figure: float) -> str:
    """Return two significant digits below a hundred, whole numbers above."""
    if figure >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.2g}"


if __name__ == "__main__":
    print(table())
