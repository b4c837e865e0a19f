"""How near conversion comes to the limit of the machine.

    python -m benchmarks.convert --images DIR --rows 5000 --rounds 3 --json

In one run, interleaved, each contender in a process of its own:

    limit             the same files read and checked by the same checker, one thread per core
    recordgen         recordgen.convert with --check decode (the default)
    recordgen_header  with --check header
    recordgen_none    with --check none
    naive             a loop: read, tf.train.Example, tf.io.TFRecordWriter; checks nothing

Rates are images per second of the work without imports; compare them within a run only, because
machines drift. Peak memory is that of the contender's process, imports included.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

Contender = Callable[[list[str], str], float]


def limit(paths: list[str], _: str) -> float:
    """Return the seconds of a bare loop that reads and checks, and nothing else."""
    from recordgen.options import ConvertOptions
    from recordgen.payloads.image import check_image

    options = ConvertOptions()

    def check(path: str) -> None:
        with open(path, "rb") as file:
            check_image(file.read(), options)

    started = time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.map(check, paths):
            pass
    return time.perf_counter() - started


def recordgen(paths: list[str], output: str, check: str = "decode") -> float:
    """Return the seconds of a whole conversion, from the CSV to the commit."""
    from recordgen.conversion import convert

    source = f"{output}.csv"
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"{path},{number % 10}\n" for number, path in enumerate(paths))
    return convert(source, output, check=check).seconds


def naive(paths: list[str], output: str) -> float:
    """Return the seconds of the script that everybody writes first."""
    import tensorflow as tf

    started = time.perf_counter()
    with tf.io.TFRecordWriter(output) as writer:
        for number, path in enumerate(paths):
            data = tf.io.gfile.GFile(path, "rb").read()
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
            label = tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10]))
            features = {"image/encoded": image, "image/class/label": label}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return time.perf_counter() - started


CONTENDERS: dict[str, Contender] = {
    "limit": limit,
    "recordgen": recordgen,
    "recordgen_header": partial(recordgen, check="header"),
    "recordgen_none": partial(recordgen, check="none"),
    "naive": naive,
}


def measure(contender: Contender, paths: list[str]) -> tuple[float, float]:
    """Run a contender in a fresh process; return (images/s, peak MB)."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        seconds, peak = pool.apply(_run, (contender, paths))
    return len(paths) / seconds, peak


def _run(contender: Contender, paths: list[str]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        seconds = contender(paths, os.path.join(folder, "out"))
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, required=True, metavar="DIR")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    args = parser.parse_args()
    paths = sorted(str(path) for path in args.images.glob("*.jpg"))[: args.rows]
    if len(paths) < args.rows:
        parser.error(
            f"{args.images} holds {len(paths)} JPEGs; make more with "
            f"python -m benchmarks.photos --to {args.images} --count {args.rows}"
        )
    for path in paths:  # every contender finds the files in the page cache
        Path(path).read_bytes()
    rounds: dict[str, list[float]] = {name: [] for name in args.only}
    peaks: dict[str, list[float]] = {name: [] for name in args.only}
    for number in range(1, args.rounds + 1):
        for name in args.only:
            rate, peak = measure(CONTENDERS[name], paths)
            rounds[name].append(rate)
            peaks[name].append(peak)
            if not args.json:
                print(f"round {number}  {name:17s} {rate:7,.0f} images/s  {peak:6,.0f} MB")
    rates = {name: statistics.median(values) for name, values in rounds.items()}
    peak_mb = {name: statistics.median(values) for name, values in peaks.items()}
    result = {"images_per_s": rates, "peak_mb": peak_mb, "rounds": rounds}
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name, rate in rates.items():
        of_limit = f"  {rate / rates['limit']:.2f} of the limit" if "limit" in rates else ""
        print(f"median   {name:17s} {rate:7,.0f} images/s  {peak_mb[name]:6,.0f} MB{of_limit}")


if __name__ == "__main__":
    main()
