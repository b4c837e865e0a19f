"""Compare the speed of reading with the limit of the decoder and with other pipelines.

    python -m benchmarks.read --data DIR --rounds 3 --json

DIR holds images (in one folder per class, or all in one), or is a Recordgen output. The images are
converted once; then these contenders run in turn, in one process:

    limit      tf.io.decode_jpeg in Dataset.map on all cores, on the same bytes in memory, with the
               scale of Recordgen's decoder, and nothing else
    limit_resized  recordgen.reading.decode_images in Dataset.map on batches of the same bytes
    recordgen  recordgen.train_dataset, one shuffled pass without augmentation
    naive      the tutorials' pipeline: list_files, interleave, shuffle, map, batch
    keras      keras.utils.image_dataset_from_directory on the image files
    bare, source_torch, source_grain, arrayrecord_grain, webdataset, hf_arrow, image_folder, …
               with --others PYTHON, an interpreter that has their packages: benchmarks/others.py
    recordgen_short_side  with --stored: recordgen on records of --image-size 256short
    recordgen_raw     with --stored: recordgen on raw pixels of the image size
    recordgen_uint8, recordgen_raw_uint8  recordgen and recordgen_raw with scale="uint8"
    recordgen_memory  the second pass with cache="memory"
    recordgen_crops   with resize="random_crop"
    recordgen_photo   with augment="photo": the same crops, mirrored, with different light
    recordgen_colour  the same with different colours
    recordgen_RandAugment, …_RandomErasing, …_MixUp, …_CutMix  the crops of recordgen_crops, changed
                      by the layer of Keras (3.8 or later) that the name ends with

The output has images per second over a whole pass and, per image, the CPU time and the number of
times that a thread waited. Compare figures of one run only, because machines drift. Run it under
``taskset -c 0`` to measure one core.

    --peak     each contender's peak memory with its worker processes, in one more pass
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import PeakMemory, run_apart
from benchmarks.others import PIPELINES

SUFFIXES = {".jpg", ".jpeg", ".png", ".gif", ".bmp"}
WARM_UP_BATCHES = 2

# Contenders that read images converted with other options.
STORED = ("recordgen_short_side", "recordgen_raw")

# Pipelines of ``benchmarks/others.py``.
OTHERS = tuple(PIPELINES)

# Layers of Keras, and their arguments for pixels from 0 to 1.
KERAS_LAYERS: Mapping[str, Mapping[str, Any]] = {
    "RandAugment": {"value_range": (0, 1)},
    "RandomErasing": {"value_range": (0, 1)},
    "MixUp": {},
    "CutMix": {},
}


@dataclass(frozen=True)
class Setting:
    """The input of all contenders.

    Attributes:
        folder: image files, one folder per class.
        records: the converted images.
        stored: the images converted with other options, by the contender that reads them.
        count: the number of images.
        image_size: height and width in pixels.
        batch_size: images per batch.
    """

    folder: str
    records: str
    stored: Mapping[str, str]
    count: int
    image_size: tuple[int, int]
    batch_size: int


# --- contenders: each returns datasets; one pass over them is timed -----------------------------


def limit(setting: Setting) -> list[Any]:
    import tensorflow as tf

    return [
        data.map(lambda item, ratio=ratio: tf.shape(_decoded(item, ratio)), -1).batch(64)
        for ratio, data in _in_memory(setting)
    ]


def limit_resized(setting: Setting) -> list[Any]:
    from recordgen.reading import decode_images

    return [
        data.batch(setting.batch_size).map(lambda b: decode_images(b, setting.image_size), -1)
        for _, data in _in_memory(setting)
    ]


def recordgen(
    setting: Setting, stored: str = "", *, again: bool = False, **options: Any
) -> list[Any]:
    """Return Recordgen's dataset; with ``again``, after its first pass."""
    dataset = _ours(setting, setting.stored[stored] if stored else setting.records, **options)
    if again:
        for _ in dataset:
            pass
    return [dataset]


def naive(setting: Setting) -> list[Any]:
    import tensorflow as tf

    spec = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64),
    }

    def parse(record: Any) -> tuple[Any, Any]:
        parsed = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_jpeg(parsed["image/encoded"], channels=3)
        return tf.image.resize(image, setting.image_size) / 255.0, parsed["image/class/label"]

    files = tf.data.Dataset.list_files(f"{setting.records}/Split-train/*")
    records = files.interleave(tf.data.TFRecordDataset).shuffle(1000)
    return [records.map(parse).batch(setting.batch_size)]


def keras(setting: Setting) -> list[Any]:
    import keras

    return [
        keras.utils.image_dataset_from_directory(
            setting.folder,
            image_size=setting.image_size,
            batch_size=setting.batch_size,
            verbose=False,
        )
    ]


def keras_layer(setting: Setting, layer: str) -> list[Any]:
    """Return Recordgen's dataset with a layer of Keras mapped over it."""
    from keras import layers

    change = getattr(layers, layer)(**KERAS_LAYERS[layer])

    def changed(images: Any, labels: Any) -> tuple[Any, Any]:
        after = change({"images": images, "labels": labels}, training=True)
        return after["images"], after["labels"]

    options: dict[str, Any] = {"resize": "random_crop", "label_mode": "categorical"}
    return [data.map(changed, -1).prefetch(-1) for data in recordgen(setting, **options)]


CONTENDERS: dict[str, Callable[[Setting], list[Any]]] = {
    "limit": limit,
    "limit_resized": limit_resized,
    "recordgen": recordgen,
    "naive": naive,
    "keras": keras,
    **{name: partial(recordgen, stored=name) for name in STORED},
    "recordgen_uint8": partial(recordgen, scale="uint8"),
    "recordgen_raw_uint8": partial(recordgen, stored="recordgen_raw", scale="uint8"),
    "recordgen_memory": partial(recordgen, again=True, cache="memory"),
    "recordgen_crops": partial(recordgen, resize="random_crop"),
    "recordgen_photo": partial(recordgen, augment="photo"),
    "recordgen_colour": lambda setting: recordgen(setting, **_colour()),
    **{f"recordgen_{layer}": partial(keras_layer, layer=layer) for layer in KERAS_LAYERS},
}


def _ours(setting: Setting, records: str, **options: Any) -> Any:
    from recordgen import train_dataset

    return train_dataset(
        records,
        batch_size=setting.batch_size,
        image_size=setting.image_size,
        **options,
    )


def _colour() -> dict[str, Any]:
    shares = dict.fromkeys(("brightness", "contrast", "saturation"), 0.1)
    return {"augment": {"flip": True, **shares}, "resize": "random_crop"}


def _in_memory(setting: Setting) -> list[tuple[int, Any]]:
    """Return the encoded images as datasets by the ratio at which Recordgen decodes them."""
    import tensorflow as tf

    by_ratio: dict[int, list[bytes]] = defaultdict(list)
    for path in _image_files(Path(setting.folder)):
        data = path.read_bytes()
        by_ratio[_ratio(data, setting.image_size)].append(data)
    return [
        (ratio, tf.data.Dataset.from_tensor_slices(tf.constant(items)))
        for ratio, items in by_ratio.items()
    ]


def _ratio(data: bytes, image_size: tuple[int, int]) -> int:
    import tensorflow as tf

    if not data.startswith(b"\xff\xd8"):
        return 1
    height, width = tf.io.extract_jpeg_shape(data).numpy()[:2]
    times = min(height // image_size[0], width // image_size[1])
    return max(ratio for ratio in (1, 2, 4, 8) if ratio <= max(times, 1))


def _decoded(data: Any, ratio: int) -> Any:
    import tensorflow as tf

    return tf.io.decode_jpeg(data, channels=3, ratio=ratio)


# --- measuring ----------------------------------------------------------------------------------


def measure(name: str, setting: Setting) -> tuple[float, float, float]:
    """Return images per second of one pass, and CPU milliseconds and waits per image."""
    datasets = CONTENDERS[name](setting)
    for dataset in datasets:
        for _ in dataset.take(WARM_UP_BATCHES):
            pass
    cpu, waits, started = time.process_time(), _waits(), time.perf_counter()
    for dataset in datasets:
        for _ in dataset:
            pass
    seconds = time.perf_counter() - started
    cpu_ms = (time.process_time() - cpu) / setting.count * 1000
    return setting.count / seconds, cpu_ms, (_waits() - waits) / setting.count


def _waits() -> int:
    """Return how often a thread of this process has waited for a lock, for work or for a file."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def measure_other(process: subprocess.Popen[str]) -> tuple[float, float, float]:
    """Return what :func:`measure` returns for a pass in a process of ``benchmarks/others.py``."""
    with suppress(BrokenPipeError):
        print(file=process.stdin, flush=True)
    answer = process.stdout.readline()  # type: ignore[union-attr]
    if not answer:
        raise SystemExit(f"{' '.join(map(str, process.args))} failed; its error is above")  # type: ignore[arg-type]
    rate, cpu_ms, waits = json.loads(answer)
    return rate, cpu_ms, waits


def installed_others(python: str) -> Iterable[str]:
    """Return the pipelines for which an interpreter has the packages."""
    done = subprocess.run(
        [python, _SCRIPT, "--installed"], stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


_SCRIPT = str(Path(__file__).with_name("others.py"))
_COMPONENTS = str(Path(__file__).parents[1] / "components")


@contextmanager
def others(
    python: str, names: Iterable[str], setting: Setting
) -> Iterator[Mapping[str, subprocess.Popen[str]]]:
    """Start the contenders that need another interpreter; the context ends them."""
    numbers = map(str, (*setting.image_size, setting.batch_size))
    given = [setting.folder, setting.records, *numbers]
    path = os.pathsep.join(filter(None, [_COMPONENTS, os.environ.get("PYTHONPATH", "")]))
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                subprocess.Popen(
                    [python, _SCRIPT, name, *given],
                    env={**os.environ, "PYTHONPATH": path},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in names
            if name in OTHERS
        }


def compare(
    setting: Setting,
    names: Iterable[str],
    rounds: int,
    running: Mapping[str, subprocess.Popen[str]],
    *,
    quiet: bool,
) -> dict[str, Any]:
    rates: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    waits: dict[str, list[float]] = {name: [] for name in names}
    for number in range(1, rounds + 1):
        for name in rates:
            rate, cpu_ms, waited = (
                measure_other(running[name]) if name in running else measure(name, setting)
            )
            rates[name].append(rate)
            cpu[name].append(cpu_ms)
            waits[name].append(waited)
            if not quiet:
                print(_line(f"round {number}", name, rate, cpu_ms, waited))
    return {
        "images": setting.count,
        "examples_per_s": {name: statistics.median(values) for name, values in rates.items()},
        "cpu_ms_per_image": {name: statistics.median(values) for name, values in cpu.items()},
        "waits_per_image": {name: statistics.median(values) for name, values in waits.items()},
        "rounds": rates,
    }


def peaks(
    setting: Setting, names: Iterable[str], running: Mapping[str, subprocess.Popen[str]]
) -> dict[str, float]:
    """Return each contender's peak memory in MB, with all its processes, in one more pass.

    Pipelines of ``benchmarks/others.py`` have been started before; ``bare`` and those that read
    containers of their own hold all encoded images.
    """
    found = {}
    for name in names:
        if name in running:
            with PeakMemory(running[name].pid) as seen:
                measure_other(running[name])
            found[name] = seen.peak_mb
        else:
            _, found[name] = run_apart(measure, name, setting)
    return found


def _line(which: str, name: str, rate: float, cpu_ms: float, waits: float) -> str:
    return f"{which:8s} {name:18s} {rate:8,.0f} images/s  {cpu_ms:6.3f} ms CPU  {waits:6.3f} waits"


# --- data ---------------------------------------------------------------------------------------


def prepare(data: Path, work: Path, args: argparse.Namespace) -> Setting:
    """Link the images into one folder per class, and convert them."""
    from recordgen import convert
    from recordgen.exports.inspection import inspect

    if (data / "dataset.json").exists():
        found = work / "extracted"
        inspect(str(data), num=args.limit or 10**9, to=str(found))
        data = found
    files = list(_image_files(data))[: args.limit]
    if not files:
        raise SystemExit(
            f"{data} holds no images; make some with python -m benchmarks.photos --to {data}"
        )
    folder = work / "images"
    lines = []
    for number, path in enumerate(files):
        label = path.parent.name if path.parent != data else str(number % 10)
        target = folder / label / f"{number:06d}{path.suffix.lower()}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.resolve())
        lines.append(f"TRAIN,{target},{label}\n")
        path.read_bytes()  # so that every contender finds the files in the page cache
    source = work / "images.csv"
    source.write_text("".join(lines))
    # Several shards, as in real datasets, even if the images are small.
    size = sum(path.stat().st_size for path in files)
    shard_mb = min(128.0, size / 8e6)
    convert(str(source), str(work / "records"), shard_mb=shard_mb)
    stored = {}
    for name, options in storages(args).items():
        stored[name] = str(work / name)
        convert(str(source), stored[name], shard_mb=shard_mb, **options)
    return Setting(
        str(folder),
        str(work / "records"),
        stored,
        len(files),
        tuple(args.image_size),
        args.batch_size,
    )


def storages(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of further conversions, by the contender that reads them."""
    found: dict[str, dict[str, Any]] = {}
    if args.stored:
        found["recordgen_short_side"] = {"image_size": "256short"}
        found["recordgen_raw"] = {"image_size": args.image_size, "encode": "raw"}
    return found


def _image_files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only JSON")
    parser.add_argument("--limit", type=int, metavar="N", help="take only the first N images")
    parser.add_argument(
        "--image-size", type=int, nargs=2, default=(224, 224), metavar=("HEIGHT", "WIDTH")
    )
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument(
        "--stored", action="store_true", help="also convert with --image-size 256short, and raw"
    )
    parser.add_argument(
        "--others", metavar="PYTHON", help="also measure the pipelines of benchmarks/others.py"
    )
    choices = [*CONTENDERS, *OTHERS]
    parser.add_argument("--only", nargs="+", choices=choices, help="only these contenders")
    parser.add_argument("--peak", action="store_true", help="also measure peak memory")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    missing = {*STORED} - {*storages(args)}
    needs = {name: name for name in (*STORED, *OTHERS)} | {"recordgen_raw_uint8": "recordgen_raw"}
    missing |= {*OTHERS} - {*(installed_others(args.others) if args.others else ())}
    names = [name for name in args.only or choices if needs.get(name) not in missing]
    with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as work:
        setting = prepare(args.data, Path(work), args)
        with others(args.others, names, setting) as running:
            result = compare(setting, names, args.rounds, running, quiet=args.json)
            if args.peak:
                result["peak_mb"] = peaks(setting, names, running)
    if args.json:
        print(json.dumps(result, indent=2))
        return
    rates, cpu = result["examples_per_s"], result["cpu_ms_per_image"]
    waits = result["waits_per_image"]
    for name, rate in rates.items():
        of_limit = f"  {rate / rates['limit']:.2f} of the limit" if "limit" in rates else ""
        print(_line("median", name, rate, cpu[name], waits[name]) + of_limit)
    if args.peak:
        print(f"peak_mb: {json.dumps(result['peak_mb'])}")


if __name__ == "__main__":
    main()
