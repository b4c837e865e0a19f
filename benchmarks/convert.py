"""How near conversion comes to the limit of the machine.

    python -m benchmarks.convert --images DIR --rows 5000 --rounds 3 --json

In one run, interleaved, each contender in a process of its own:

    limit             a bare loop on one thread per core: read, check with the same checker, write
                      the same features with the same writer, one file for each thread
    recordgen         recordgen.convert with --check decode and all checks of the data (the default)
    recordgen_unlinted  without the checks of the data (--lint=-ALL)
    recordgen_content   with --group-by content, which reads each file once more
    recordgen_near      with --group-by near, which decodes each file once more
    recordgen_header  with --check header and --lint=-ALL
    recordgen_none    with --check none and --lint=-ALL
    limit_short_side  the same files read, decoded, resized and encoded by the calls of
                      --image-size 256short, one thread per core
    recordgen_short_side  with --image-size 256short and --lint=-ALL
    naive             a loop: read, tf.train.Example, tf.io.TFRecordWriter; checks nothing
    naive_processes   the same loop in one process per core, each with a file of its own
    tfx               TFX's way (BaseExampleGenExecutor and WriteSplit) on Beam in memory: read,
                      tf.train.Example, split 2:1 by its hash, serialise, shuffle, gzip

Rates are images per second of the work without imports; compare them within a run only, because
machines drift. Peak memory is the proportional set size of the contender's process and all its
descendants together, imports included.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import run_apart

SHORT_SIDE = 256  # pixels

START_SECONDS = 300  # for processes to import TensorFlow

Contender = Callable[[list[str], str], float]


def limit(paths: list[str], output: str) -> float:
    """Return the seconds of a bare loop that reads, checks and writes, and nothing else."""
    from recordgen.conversion.api import payloads_of
    from recordgen.core.records import RECORDS
    from recordgen.core.records.example import serialize_example
    from recordgen.options import ConvertOptions
    from recordgen.payloads.check import check_image

    settings = payloads_of(ConvertOptions(lint=("-ALL",)))
    threads = len(os.sched_getaffinity(0))
    numbered = list(enumerate(paths))

    def frames(of: int) -> Iterator[Sequence[bytes]]:
        for number, path in numbered[of::threads]:
            with open(path, "rb") as file:
                data = file.read()
            image = check_image(data, settings)
            yield RECORDS.frame(
                serialize_example(
                    {
                        "image/class/label": number % 10,
                        "image/encoded": data,
                        "image/format": image.format.encode(),
                        "image/height": image.height,
                        "image/source_id": path.encode(),
                        "image/width": image.width,
                    }
                )
            )

    def write(of: int) -> None:
        with open(f"{output}-{of}", "wb") as file, RECORDS.writer(file, "none") as writer:
            writer.write(frames(of))

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
    return time.perf_counter() - started


def limit_short_side(paths: list[str], _: str) -> float:
    """Return the seconds of a bare loop that makes small JPEGs, and nothing else."""
    import simplejpeg
    from PIL import Image

    def shrink(path: str) -> bytes:
        data = Path(path).read_bytes()
        height, width, *_ = simplejpeg.decode_jpeg_header(data)
        scale = min(1.0, SHORT_SIDE / min(height, width))
        size = round(width * scale), round(height * scale)
        pixels = simplejpeg.decode_jpeg(data, "RGB", min_width=size[0], min_height=size[1])
        out = io.BytesIO()
        small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
        small.save(out, "JPEG", quality=92)
        return out.getvalue()

    started = time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(shrink, paths))
    return time.perf_counter() - started


def recordgen(paths: list[str], output: str, **options: Any) -> float:
    """Return the seconds of a whole conversion, from the CSV to the commit."""
    from benchmarks.measuring import import_first
    from recordgen.conversion.api import convert

    import_first()

    source = f"{output}.csv"
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"{path},{number % 10}\n" for number, path in enumerate(paths))
    return convert(source, output, **options).seconds


def naive(paths: list[str], output: str) -> float:
    """Return the seconds of the script that everybody writes first."""
    import tensorflow as tf  # noqa: F401, its import is not the work

    started = time.perf_counter()
    _write_naively(list(enumerate(paths)), output)
    return time.perf_counter() - started


def naive_processes(paths: list[str], output: str) -> float:
    """Return the seconds of that script in one process per core, once all have TensorFlow."""
    count = len(os.sched_getaffinity(0))
    numbered = list(enumerate(paths))
    shards = [(numbered[n::count], f"{output}-{n}") for n in range(count)]
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(count + 1)
    with context.Pool(count, _load_tensorflow, (ready,)) as pool:
        ready.wait(START_SECONDS)
        started = time.perf_counter()
        pool.starmap(_write_naively, shards, chunksize=1)
        return time.perf_counter() - started


def _load_tensorflow(ready: Any) -> None:
    import tensorflow as tf  # noqa: F401

    ready.wait(START_SECONDS)


def _write_naively(numbered: Sequence[tuple[int, str]], output: str) -> None:
    import tensorflow as tf

    with tf.io.TFRecordWriter(output) as writer:
        for item in numbered:
            writer.write(_to_example(item).SerializeToString())


def _to_example(numbered: tuple[int, str]) -> Any:
    """Return the ``tf.train.Example`` of one image, as tutorials have it."""
    import tensorflow as tf

    number, path = numbered
    data = tf.io.gfile.GFile(path, "rb").read()
    image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10]))
    features = {"image/encoded": image, "image/class/label": label}
    return tf.train.Example(features=tf.train.Features(feature=features))


def tfx(paths: list[str], output: str) -> float:
    """Return the seconds of a pipeline with the steps of TFX's ExampleGens, which need no TFX."""
    import apache_beam as beam
    import tensorflow as tf  # noqa: F401, its import is not the work
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # noqa: F401, nor is this

    from recordgen.beam import IN_MEMORY_RUNNER

    started = time.perf_counter()
    with beam.Pipeline(options=PipelineOptions([f"--runner={IN_MEMORY_RUNNER}"])) as pipeline:
        train, evaluation = (
            pipeline
            | "ListImages" >> beam.Create(list(enumerate(paths)))  # (number, path)
            | "InputToRecord" >> beam.Map(_to_example)  # tf.train.Example
            | "SplitData" >> beam.Partition(_draw_split, 2)
        )
        for name, examples in (("train", train), ("eval", evaluation)):
            prefix = os.path.join(output, f"Split-{name}", "data_tfrecord")
            _ = (
                examples
                | f"Serialize[{name}]" >> beam.Map(lambda example: example.SerializeToString())
                | f"Shuffle[{name}]" >> beam.Reshuffle()  # bytes
                | f"Write[{name}]" >> beam.io.WriteToTFRecord(prefix, file_name_suffix=".gz")
            )
    return time.perf_counter() - started


def _draw_split(example: Any, splits: int) -> int:
    """Return 0 for two of three examples, else 1, in TFX's way."""
    key = example.SerializeToString(deterministic=True)
    return int(int(hashlib.sha256(key).hexdigest(), 16) % 3 >= 2)


CONTENDERS: dict[str, Contender] = {
    "limit": limit,
    "recordgen": recordgen,
    "recordgen_unlinted": partial(recordgen, lint="-ALL"),
    "recordgen_content": partial(recordgen, group_by="content"),
    "recordgen_near": partial(recordgen, group_by="near"),
    "recordgen_header": partial(recordgen, check="header", lint="-ALL"),
    "recordgen_none": partial(recordgen, check="none", lint="-ALL"),
    "limit_short_side": limit_short_side,
    "recordgen_short_side": partial(recordgen, image_size=f"{SHORT_SIDE}short", lint="-ALL"),
    "naive": naive,
    "naive_processes": naive_processes,
    "tfx": tfx,
}


def measure(contender: Contender, paths: list[str]) -> tuple[float, float]:
    """Run a contender in a fresh process; return (images/s, peak MB)."""
    seconds, peak_mb = run_apart(_run, contender, paths)
    return len(paths) / seconds, peak_mb


def _run(contender: Contender, paths: list[str]) -> float:
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
        return contender(paths, os.path.join(folder, "out"))


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
    result = {"examples_per_s": rates, "peak_mb": peak_mb, "rounds": rounds}
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name, rate in rates.items():
        of_limit = f"  {rate / rates['limit']:.2f} of the limit" if "limit" in rates else ""
        print(f"median   {name:17s} {rate:7,.0f} images/s  {peak_mb[name]:6,.0f} MB{of_limit}")


if __name__ == "__main__":
    main()
