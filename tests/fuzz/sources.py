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

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import recordgen
from recordgen.core.records import RECORDS
from recordgen.core.records.example import serialize_example
from recordgen.errors import RecordgenError
from recordgen.rejects import RejectCode
from tests.conftest import encoded, noise
from tests.formats.odd_values import Sample
from tests.formats.written import SPLITS, WRITERS, write

ADDRESS_SPACE = 1_500_000_000
SECONDS = 30
LARGEST = 1_000_000
FAILURES = {"unread", "slow", "memory", "traceback"}

# --- a sound source of each format ---------------------------------------------------------------


def _photos(folder, *names):
    for seed, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(noise(40, 20, seed), "JPEG"))


def _written(name):
    def make(folder):
        _photos(folder, *(f"{split}/{at}.jpg" for split in SPLITS for at in range(2)))
        write(name, folder)

    return make


def _masks(folder):
    _photos(folder, "images/a.jpg", "images/b.jpg")
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


def _tar(folder, kind=tarfile.PAX_FORMAT, members=None):
    with tarfile.open(folder / "a.tar", "w", format=kind) as archive:
        for name, data in (members or _files(folder)).items():
            info = tarfile.TarInfo(name if members else f"{'long/' * 30}{name}")
            info.size, info.pax_headers = len(data), {"comment": "x"}
            archive.addfile(info, io.BytesIO(data))


def _webdataset(folder):
    photos = [encoded(noise(seed=at), "JPEG") for at in range(3)]
    members = {f"{at}.jpg": data for at, data in enumerate(photos)}
    labels = {f"{at}.cls": b"1" for at in range(3)}
    about = {f"{at}.json": b'{"label": "cat", "bbox": [[1, 2, 3, 4]]}' for at in range(3)}
    _tar(folder, members=dict(sorted({**members, **labels, **about}.items())))


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
    data = b"".join(b"".join(RECORDS.frame(serialize_example(each))) for each in records)
    (folder / "a.tfrecord").write_bytes(data)


def _parquet(folder):
    photos = [{"bytes": encoded(noise(seed=at), "JPEG"), "path": f"{at}.jpg"} for at in range(4)]
    table = pa.table({"image": photos, "label": ["cat", "dog"] * 2})
    pq.write_table(table, folder / "a.parquet", compression="ZSTD")


# Samples of odd values, and the tasks of those with outlines and masks.
ODD = ("yolo_keypoints", "csv_of_boxes", "automl_boxes", "conll")
TASKS = ("object_detection", "image_segmentation")
SHAPES = dict.fromkeys(("coco_of_shapes", "cvat_shapes", "labelme_of_shapes"), TASKS)
SAMPLES = {
    **{name: _written(name) for name in WRITERS},
    **{name: partial(Sample, name) for name in (*SHAPES, *ODD)},
    "masks": _masks,
    "zip": _zip,
    "tar": _tar,
    "webdataset": _webdataset,
    "tfrecord": _tfrecord,
    "parquet": _parquet,
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
    return data[:start] + part * rng.choice([2, 50, 5_000, 200_000]) + data[start:]


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


def fuzz(name, times, seed, found):
    """Check a sound source of a format, then a changed one each time; return how they ended."""
    rng = random.Random(f"{name} {seed}")
    ended = Counter()
    with tempfile.TemporaryDirectory() as folder:
        sample, source = Path(folder, "sample"), Path(folder, "source")
        sample.mkdir()
        SAMPLES[name](sample)
        files = sorted(sample.rglob("*.*"))
        documents = [path for path in files if path.suffix not in (".jpg", ".png")]
        documents = documents or sorted(sample.rglob("masks/*"))
        for _ in itertools.chain([None], times):
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(sample, source)
            path = source / rng.choice(documents).relative_to(sample)
            if ended:
                path.write_bytes(changed(rng, path.read_bytes()))
            task = rng.choice(SHAPES.get(name, ("auto",)))
            began = time.process_time()
            outcome = _checked(source if len(documents) != 1 else path, task)
            if time.process_time() - began > SECONDS:
                outcome = "slow"
            if not ended and outcome != "rows":
                outcome = "unread"
            ended[outcome] += 1
            if outcome in FAILURES:
                kept = Path(found, f"{name}-{outcome}-{sum(ended.values())}")
                shutil.copytree(source, kept)
                print(f"{name}: {outcome}, task {task}: {kept}", flush=True)
    return ended


def until(end):
    """Yield until the clock has reached a time."""
    while time.monotonic() < end:
        yield


def _checked(source, task):
    try:
        result = recordgen.check(str(source), task=task, progress=None)
    except RecordgenError as exc:
        return "memory" if "memory" in str(exc) else type(exc).__name__
    except Exception:  # noqa: BLE001 any other error is what the fuzzer looks for
        traceback.print_exc()
        return "traceback"
    codes = {reject.code for reject in result.rejects}
    return "memory" if RejectCode.OUT_OF_MEMORY.value in codes else "rejects" if codes else "rows"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sources", description=__doc__)
    parser.add_argument("formats", nargs="*", help="default: all, each in a process of its own")
    parser.add_argument("--seconds", type=float, default=60, help="for each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--found", default=None, help="folder for inputs that fail")
    given = parser.parse_args()
    found = given.found or tempfile.mkdtemp(prefix="fuzz-")
    if len(given.formats) == 1:
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        times = until(time.monotonic() + given.seconds)
        ended = fuzz(given.formats[0], times, given.seed, found)
        print(f"{given.formats[0]:16} {sum(ended.values()):6,}  {dict(ended.most_common())}")
        raise SystemExit(not ended.keys().isdisjoint(FAILURES))
    failed = 0
    for name in given.formats or SAMPLES:
        arguments = [name, f"--seconds={given.seconds}", f"--seed={given.seed}", f"--found={found}"]
        run = subprocess.run([sys.executable, "-m", "tests.fuzz.sources", *arguments], check=False)
        if run.returncode:
            failed += 1
            print(f"{name}: failed with {run.returncode}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
