"""The calculated cost of a conversion on Dataflow: bytes shuffled, machine-hours, requests, money.

    python -m benchmarks.costs

Prints the table of docs/runners.md. Nothing is measured here: the rates below were measured by the
commands next to them, or are assumed as noted. Prices are list prices of us-central1 in November
2026, copied by hand: check them before you rely on a sum. The ratios do not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from recordgen.payloads.listings import SAVED_BY_PAGE, worth_listing
from recordgen.storage.listing import PAGE_OBJECTS

# The work.
WORKERS = {10**6: 10, 10**8: 100, 10**9: 500}  # by number of images
IMAGE_BYTES = 100_000
SHARD_BYTES = 128_000_000  # --shard-mb's default

# The data shuffled and staged. A row has a path, a label and two numbers: these are its bytes in a
# message with other rows, and in a bucket file in the staging folder.
ROW_BYTES = 110
STAGED_ROW_BYTES = 120
BUCKET_BYTES, MAX_BUCKETS = 2_000_000, 4_096  # bytes of the import file, about 60 for each row
CSV_ROW_BYTES = 60

FILE_ROWS = 10**6  # rows of an import file, read by one worker

# The rates of a worker: n1-standard-2, 2 vCPUs.
IMAGES_PER_S = 1_000  # from a disk: benchmarks.convert --images (92 kB) on 2 cores
FAR_CPU = 1.6  # processor time from gs:// relative to a disk: benchmarks.storage --side 448
ROWS_PER_S = 50_000  # read and planned, without sizes: benchmarks.rows on 2 cores

# Sizes come from listings if their pages contain enough images of a bucket, else from look-ups.
LOOKUPS_AT_ONCE, PAGES_AT_ONCE = 64, 32
LOOKUP_S, PAGE_S = 0.05, 0.5  # assumed: within a region
PAGE_CPU_S = 0.013  # docs/adr/0001-shuffle-rows-never-payloads.md
FINGERPRINT_CPU_S = 0.000_08  # for each image: benchmarks.storage --only fingerprint

# The work of the launcher only.
START_S = 300  # assumed: start of Dataflow's workers
MOVES_AT_ONCE = 32
MOVE_S = 0.1  # assumed: a copy within a bucket, and a removal

# Requests: each image is read and looked up. Each shard is written, moved (two requests: a copy and
# a removal, which is free), and has files with its result, its progress, its facts and its lengths.
# It reads its rows in one or two byte ranges, the checks read its facts twice, and the launcher
# reads its result, its lengths and its facts. Each bucket writes its rows. The joins of the checks
# read a million parts of files at most.
READS_PER_SHARD = 7
WRITES_PER_SHARD = 6

# Dollars.
WORKER_HOUR = 2 * 0.056 + 7.5 * 0.003557 + 25 * 0.000054  # vCPUs, GB of memory, GB of disk
SHUFFLED_GB = 0.011
SHUFFLE_STEPS = ((250, 0.25), (4_870, 0.5), (math.inf, 1.0))  # GB, the share that is billed
READS_1000 = 0.0004
WRITES_1000 = 0.005


def shuffled_gb(images: int) -> float:
    """Return the size of the rows that are grouped once, by bucket."""
    return images * ROW_BYTES / 1e9


def payload_design_gb(images: int) -> float:
    """Return the bytes shuffled if each payload were grouped once with its row."""
    return images * (IMAGE_BYTES + ROW_BYTES) / 1e9


def shards(images: int) -> int:
    return -(-images * IMAGE_BYTES // SHARD_BYTES)


def buckets(images: int) -> int:
    return min(MAX_BUCKETS, images * CSV_ROW_BYTES // BUCKET_BYTES)


def pages(images: int) -> int:
    """Return the number of listing requests; 0 if all images are looked up."""
    # Images of one bucket in a page: buckets are random samples.
    wanted = PAGE_OBJECTS // max(1, buckets(images))
    return images // wanted if worth_listing(wanted, 1) else 0


def lookups(images: int) -> int:
    return 0 if pages(images) else images


def reading_hours(images: int) -> float:
    """Return the hours for reading import files; each worker reads its files in turn."""
    files = math.ceil(images / FILE_ROWS)
    return math.ceil(files / WORKERS[images]) * min(images, FILE_ROWS) / ROWS_PER_S / 3600


def worker_hours(images: int) -> float:
    """Return the hours of all workers for sizes and images."""
    page_s = max(PAGE_S / PAGES_AT_ONCE, PAGE_CPU_S / 2)
    sizes = lookups(images) * LOOKUP_S / LOOKUPS_AT_ONCE + pages(images) * page_s
    return (sizes + images * FAR_CPU / IMAGES_PER_S) / 3600


def fingerprint_hours(images: int) -> float:
    """Return the hours before each run of a pipeline: one process, rows sorted by name."""
    listing = images / PAGE_OBJECTS * PAGE_S / PAGES_AT_ONCE
    return (listing + images * FINGERPRINT_CPU_S) / 3600


def commit_hours(images: int) -> float:
    return shards(images) * (MOVE_S + 3 * LOOKUP_S) / MOVES_AT_ONCE / 3600


def hours(images: int) -> float:
    busy = reading_hours(images) + worker_hours(images) / WORKERS[images]
    return START_S / 3600 + busy + commit_hours(images)


def worker_price(images: int) -> float:
    """Return the price of workers, including workers that wait for import files."""
    paid_hours = reading_hours(images) * WORKERS[images] + worker_hours(images)
    return paid_hours * WORKER_HOUR


def shuffle_price(gigabytes: float) -> float:
    charged = 0.0
    for step, share in SHUFFLE_STEPS:
        charged += min(gigabytes, step) * share
        gigabytes -= min(gigabytes, step)
    return charged * SHUFFLED_GB


def request_price(images: int) -> float:
    reads = images + lookups(images) + shards(images) * READS_PER_SHARD
    writes = pages(images) + buckets(images) + shards(images) * WRITES_PER_SHARD
    return (reads * READS_1000 + writes * WRITES_1000) / 1000


# Each figure, as a function of the number of images, with its formula.
ROWS: list[tuple[str, Callable[[int], float], str]] = [
    ("payloads, GB", lambda n: n * IMAGE_BYTES / 1e9, "images × 100 kB"),
    ("shuffled, GB", shuffled_gb, f"images × {ROW_BYTES} B × 1 grouping"),
    ("staged, GB", lambda n: n * STAGED_ROW_BYTES / 1e9, f"images × {STAGED_ROW_BYTES} B"),
    ("shuffled if payloads were, GB", payload_design_gb, f"images × (100 kB + {ROW_BYTES} B) × 1"),
    ("ratio", lambda n: payload_design_gb(n) / shuffled_gb(n), "with / without payloads"),
    ("workers of 2 vCPUs", lambda n: WORKERS[n], "chosen"),
    (
        "reading import files, h",
        reading_hours,
        "1 M rows in a file / 50,000 per s, × files per worker",
    ),
    ("pages of listings", pages, "images / images of a bucket in 1,000"),
    ("look-ups", lookups, f"images, if fewer than {SAVED_BY_PAGE} in a page"),
    (
        "worker-hours",
        worker_hours,
        "look-ups × 50 ms / 64 + pages × 500 ms / 32 + images × 1.6 / 1,000 per s",
    ),
    ("shards of 128 MB", shards, "payloads / 128 MB"),
    ("commit, h", commit_hours, "shards × (100 ms + 3 reads × 50 ms) / 32 concurrent"),
    ("in all, h", hours, "5 min + reading + worker-hours / workers + commit"),
    (
        "fingerprint before each run of TFX, h",
        fingerprint_hours,
        "images × (500 ms / 1,000 / 32 + 0.08 ms)",
    ),
    ("objects read per s", lambda n: WORKERS[n] * IMAGES_PER_S / FAR_CPU, "workers × 625"),
    ("workers, $", worker_price, "(worker-hours + reading × workers) × 0.14"),
    ("shuffle, $", lambda n: shuffle_price(shuffled_gb(n)), "GB × 0.011, less at first"),
    (
        "shuffle if payloads were, $",
        lambda n: shuffle_price(payload_design_gb(n)),
        "GB × 0.011, less at first",
    ),
    (
        "storage requests, $",
        request_price,
        "reads: images, look-ups, 7 × shards; writes: pages, buckets, 6 × shards",
    ),
]


def table() -> str:
    """Return the table in Markdown."""
    lines = ["| images of 100 kB | 1 M | 100 M | 1 B | formula |", "|---|---:|---:|---:|---|"]
    for name, figure, formula in ROWS:
        figures = " | ".join(_text(figure(images)) for images in WORKERS)
        lines.append(f"| {name} | {figures} | {formula} |")
    return "\n".join(lines)


def _text(figure: float) -> str:
    """Format two significant digits below a hundred, whole numbers above."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.2g}"


if __name__ == "__main__":
    print(table())
