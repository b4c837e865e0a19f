"""Sources of every format, changed at random, under limits of memory and time.

`python -m tests.fuzz.sources --seconds 240` changes documents and containers of each format (or of
those that are named) and checks them as `recordgen check` does, in a process with 1.5 GB of address
space. An input of up to a megabyte may only give rows, rejects and Recordgen's own errors, within
30 s of processor time. Each input that fails is kept in the folder `--found`.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PIL import Image

import recordgen
from recordgen.errors import RecordgenError
from recordgen.rejects import RejectCode
from tests.conftest import encoded, noise, write_noise
from tests.formats.odd_values import Sample
from tests.formats.sources import write_files
from tests.formats.test_columns import write as write_records
from tests.formats.test_tfrecord import framed
from tests.formats.test_uris import parquet, webdataset
from tests.formats.written import SPLITS, WRITERS, write

ADDRESS_SPACE = 1_500_000_000
MEMORY = 850_000_000  # with the libraries, a gigabyte
SECONDS = 30
LARGEST = 1_000_000
FAILURES = {"unread", "slow", "memory", "allowance", "traceback"}

# --- a sound source of each format ---------------------------------------------------------------


def _written(name):
    def make(folder):
        names = (f"{split}/{at}.jpg" for split in SPLITS for at in range(2))
        write_noise(folder, names, 40, 20)
        write(name, folder)

    return make


def _masks(folder):
    write_noise(folder, ("images/a.jpg", "images/b.jpg"), 40, 20)
    (folder / "masks").mkdir()
    for name in ("a", "b"):
        levels = Image.new("L", (40, 20), 0)
        levels.paste(1, (4, 5, 12, 15))
        levels.save(folder / f"masks/{name}.png")


def _files(folder):
    """Return the images of two classes: names and bytes."""
    return {f"{label}/{at}.jpg": encoded(noise(seed=at), "JPEG") for at, label in enumerate("abab")}


def _zip(folder):
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _files(folder).items():
            archive.writestr(name, data)


def _yolo_in_a_layout(folder):
    write_noise(folder, ("photos/a.jpg", "photos/b.jpg"), 40, 20)
    lines = "0 0.5 0.5 0.2 0.2\n1 0.1 0.1 0.5 0.5 0.1 0.9\n"
    files = {"drawn/a.txt": lines, "drawn/b.txt": lines, "classes.txt": "cat\ndog\n"}
    write_files(folder, files)


TEXTS = {f"{label}/{at}.txt": f"A text of {label}." for at, label in enumerate("abab")}
SENTENCES = {
    "sentences.txt": "John lives in New York .\nHe likes it .\n" * 3,
    "labels.txt": "B-PER O O B-LOC I-LOC O\nO O O O\n" * 3,
}


def _records(kind, folder):
    write_records(folder, kind, "words,kind\n" + "".join(f"Text {at},cat\n" for at in range(4)))


def _tar(folder):
    with tarfile.open(folder / "a.tar", "w") as archive:
        for name, data in _files(folder).items():
            info = tarfile.TarInfo(f"{'long/' * 30}{name}")
            info.size, info.pax_headers = len(data), {"comment": "x"}
            archive.addfile(info, io.BytesIO(data))


def _tfrecord(folder):
    records = [
        {
            "image/encoded": [encoded(noise(seed=at), "JPEG")],
            "image/filename": [f"{at}.jpg".encode()],
            "image/class/text": [b"cat"],
            "image/object/bbox/xmin": [0.1],
            "image/object/bbox/xmax": [0.5],
            "image/object/bbox/ymin": [0.1],
            "image/object/bbox/ymax": [0.5],
            "image/object/class/text": [b"cat"],
        }
        for at in range(3)
    ]
    (folder / "a.tfrecord").write_bytes(framed(*records))


# Samples of odd values: those with outlines and masks are read for two tasks.
ODD = ("yolo_keypoints", "csv_of_boxes", "csv_of_texts", "automl_boxes", "conll")
NAMES = ("0.png", "1.png", "2.png")
RECORDS_WITH_NAMES = ("json", "parquet", "feather", "arrow stream")
SHAPES = ("coco_of_shapes", "cvat_shapes", "labelme_of_shapes")
SAMPLES = {
    **{name: _written(name) for name in WRITERS},
    **{name: partial(Sample, name) for name in (*SHAPES, *ODD)},
    "masks": _masks,
    "zip": _zip,
    "tar": _tar,
    "webdataset": partial(write_files, files={"a.tar": webdataset(NAMES)}),
    "tfrecord": _tfrecord,
    "parquet_of_images": partial(write_files, files={"a.parquet": parquet(NAMES, has_bytes=True)}),
    "texts": partial(write_files, files=TEXTS),
    "sentences": partial(write_files, files=SENTENCES),
    "layout": _yolo_in_a_layout,
    **{kind: partial(_records, kind) for kind in RECORDS_WITH_NAMES},
}
#: The options that a sample is read with, one of them at a time.
OPTIONS = {
    **dict.fromkeys(SHAPES, ({"task": "object_detection"}, {"task": "image_segmentation"})),
    **dict.fromkeys(RECORDS_WITH_NAMES, ({"columns": "text=words,label=kind"},)),
    "layout": ({"layout": "photos/{name}.jpg drawn/{name}.txt"},),
}

# --- changes -------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_TEXT = re.compile(rb'"[^"]*"')
_VALUE = re.compile(rb'[\w."-]+')
_NUMBERS = [b"0", b"-1", b"0.5", b"65536", b"100000", b"268435456", b"99999999999", b"1e308"]
_NUMBERS += [b"NaN", b"null", b"[]", b"{}", b'"x"', b"9" * 300]


def _one_match(rng, pattern, data):
    matches = list(pattern.finditer(data))
    return rng.choice(matches) if matches else None


def _replaced(pattern, make):
    def change(rng, data):
        match = _one_match(rng, pattern, data)
        return data if match is None else data[: match.start()] + make(rng) + data[match.end() :]

    return change


def _nested(rng):
    opened, closed = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b"<a>", b"</a>")])
    depth = rng.choice([3, 300, 60_000])
    return opened * depth + b"1" + closed * depth


def _repeated(rng, data):
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.choice([1, 8, 60, 600])]
    times = min(rng.choice([2, 50, 5_000, 200_000]), LARGEST // max(1, len(part)))
    return data[:start] + part * times + data[start:]


def _flipped(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 4])):
        changed[rng.randrange(len(changed))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 34, 44, 91])
    return bytes(changed)


def _lengthened(rng, data):
    """Replace four or eight bytes by those of a large number."""
    at, size = rng.randrange(len(data)), rng.choice([4, 8])
    number = rng.choice([0xFF, 0xFFFF, 0x7FFFFFFF, 0x10000000]).to_bytes(size, "little")
    return data[:at] + number + data[at + size :]


CHANGES = (
    _replaced(_NUMBER, lambda rng: rng.choice(_NUMBERS)),
    _replaced(_NUMBER, lambda rng: rng.choice(_NUMBERS)),
    _replaced(_TEXT, lambda rng: b'"' + b"x/" * rng.choice([0, 1, 3_000, 400_000]) + b'"'),
    _replaced(_VALUE, _nested),
    _repeated,
    _flipped,
    _lengthened,
    lambda rng, data: data[: rng.randrange(len(data))],
)


def changed(rng, data):
    """Return the bytes with one to three changes, a megabyte at most."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        if data:
            data = rng.choice(CHANGES)(rng, data)[:LARGEST]
    return data


# --- runs ----------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """What a check takes of the processor, with decoding in other processes, and of memory."""

    seconds: float
    bytes: int


def fuzz(name, times, seed, found):
    """Check a sound source of a format, then a changed one each time.

    Returns: how they ended, and the most that one of them took.
    """
    rng = random.Random(f"{name} {seed}")
    ended, most = Counter(), Taken(0, 0)
    with tempfile.TemporaryDirectory() as folder:
        sample, source = Path(folder, "sample"), Path(folder, "source")
        sample.mkdir()
        SAMPLES[name](sample)
        documents = _documents(sample)
        for _ in itertools.chain([None], times):
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(sample, source)
            path = source / rng.choice(documents).relative_to(sample)
            if ended:
                path.write_bytes(changed(rng, path.read_bytes()))
            options = rng.choice(OPTIONS.get(name, ({},)))
            outcome, taken = _checked(source_of(source), options)
            most = Taken(*map(max, most, taken))
            if not ended and outcome != "rows":
                outcome = "unread"
            ended[outcome] += 1
            if outcome in FAILURES:
                kept = Path(found, f"{name}-{outcome}-{sum(ended.values())}")
                shutil.copytree(source, kept)
                print(f"{name}: {outcome}, {options}: {kept}", flush=True)
    return ended, most


def _documents(folder):
    found = [path for path in sorted(folder.rglob("*.*")) if path.suffix not in (".jpg", ".png")]
    return found or sorted(folder.rglob("masks/*"))


def source_of(folder):
    """Return what is passed of the sample in a folder: its only document, or the folder."""
    documents = _documents(folder)
    return documents[0] if len(documents) == 1 else folder


def until(end):
    """Yield until the clock has reached a time."""
    while time.monotonic() < end:
        yield


def _checked(source, options):
    """Return how a check ends, and what it takes."""
    before, began = _memory("VmRSS"), sum(os.times()[:4])
    Path("/proc/self/clear_refs").write_text("5")  # the largest memory so far is that of now
    outcome = _outcome(source, options)
    taken = Taken(sum(os.times()[:4]) - began, _memory("VmHWM") - before)
    if taken.seconds > SECONDS:
        outcome = "slow"
    return "memory" if taken.bytes > MEMORY else outcome, taken


def _memory(name):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) << 10


def _outcome(source, options):
    try:
        result = recordgen.check(str(source), progress=None, **options)
    except RecordgenError as exc:
        is_late = str(exc).startswith("reading the source takes more than")
        return "allowance" if is_late else type(exc).__name__
    except Exception:  # noqa: BLE001 any other error is what the fuzzer looks for
        traceback.print_exc()
        return "traceback"
    codes = {reject.code for reject in result.rejects}
    return "memory" if RejectCode.OUT_OF_MEMORY.value in codes else "rejects" if codes else "rows"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sources", description=__doc__)
    parser.add_argument("samples", nargs="*", help="default: all, each in a process of its own")
    parser.add_argument("--seconds", type=float, default=60, help="for each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", default=None, help="folder for inputs that fail")
    given = parser.parse_args()
    found = given.found or tempfile.mkdtemp(prefix="fuzz-")
    if len(given.samples) == 1:
        [name] = given.samples
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        ended, most = fuzz(name, until(time.monotonic() + given.seconds), given.seed, found)
        took = f"≤ {most.seconds:.1f} s, {most.bytes / 1e6:,.0f} MB"
        print(f"{name:16} {sum(ended.values()):6,}  {took}  {dict(ended.most_common())}")
        raise SystemExit(not ended.keys().isdisjoint(FAILURES))
    failed = 0
    for name in given.samples or SAMPLES:
        arguments = [name, f"--seconds={given.seconds}", f"--seed={given.seed}", f"--found={found}"]
        run = subprocess.run([sys.executable, "-m", "tests.fuzz.sources", *arguments], check=False)
        if run.returncode:
            failed += 1
            print(f"{name}: failed with {run.returncode}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
