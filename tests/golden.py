"""Conversions whose bytes must not change: samples, dirty lines, options, resumed runs.

    python -m tests.golden    writes tests/golden.json again, after an intended change of bytes

Payloads are passed through and shards are not compressed, so the bytes do not depend on the version
of an encoder or of zlib.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyarrow.parquet import read_table

from recordgen import convert
from tests.deaths import DEATHS, convert_and_die

ROOT = Path(__file__).parents[1]
DIGESTS = Path(__file__).with_name("golden.json")

IMAGE_TASKS = (
    "image_classification",
    "image_multi_label",
    "object_detection",
    "image_segmentation",
)

SAMPLES = {
    "image_classification": "image_classification/digits.csv",
    "image_folder": "image_classification/images/",
    "image_multi_label": "image_multi_label/digits.csv",
    "object_detection": "object_detection/digits.csv",
    "image_segmentation": "image_segmentation/shapes.csv",
    "text_classification": "text_classification/reviews.csv",
    "text_multi_label": "text_multi_label/reviews.csv",
    "text_sentiment": "text_sentiment/reviews.csv",
    "text_entities": "text_entities/travels.jsonl",
    "text_entities_iob": "text_entities/iob/",
    "tabular": "tabular/wines.csv",
    "video_classification": "video_classification/videos.csv",
    "declared": "declared/meters.csv",
}

METERS = {
    **{"split": "split", "day": "image", "night": "image", "note": "text"},
    **{"usual": "int", "verdict": "label"},
}

# sample: options that it needs to be converted or appended to
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "image_folder": {"task": "image_classification", "labels": "none"},
    "text_entities_iob": {"task": "text_entities"},
    "tabular": {"task": "tabular"},
    "declared": {"schema": METERS},
}

# Rows of these have no name, so nothing can be appended to them.
NAMELESS = ("tabular", "declared")

# Columns of examples.parquet that do not depend on a decoder.
EXAMPLES = ["split", "shard", "record", "source", "line", "uri", "annotation", "content"]

# Changes of some lines of a sample: line, generator of random numbers → lines.
SPOILT: Sequence[Callable[[str, random.Random], Sequence[str]]] = (
    lambda line, rng: [line, line],
    lambda line, rng: [line.replace("TRAIN", "TRIAN").replace("training", "trainnig")],
    lambda line, rng: [line, line.replace("TRAIN", "TEST")],
    lambda line, rng: [line[: rng.randrange(1, len(line))]],
    lambda line, rng: [line.replace(".png", ".jpg").replace(".gif", ".mp4")],
    lambda line, rng: [f"{line},surplus"],
    lambda line, rng: ["", f"  {line}  ", ",,,"],
    lambda line, rng: [line.replace(",", ',"', 1)],
    lambda line, rng: [f"{line}\r"],
    lambda line, rng: [line.replace("TRAIN,", "").replace("VALIDATION,", "UNASSIGNED,")],
)


def spoil(path: Path, seed: int) -> None:
    """Spoil a third of an import file's lines after the first, chosen by the seed."""
    rng = random.Random(seed)
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    spoilt = [first]
    for line in lines:
        kept = [line]
        spoilt += rng.choice(SPOILT)(line, rng) if line and rng.random() < 1 / 3 else kept
    path.write_text("".join(f"{line}\n" for line in spoilt), encoding="utf-8")


def convert_dirty(source: str, out: str, *, seed: int, **options: Any) -> None:
    """Convert a sample with spoilt lines."""
    spoil(Path(source), seed)
    has_images = "schema" in options or options["task"] in IMAGE_TASKS
    check = {"check": "header"} if has_images else {}
    convert(source, out, max_reject_fraction=1.0, **check, **options)


def convert_resumed(source: str, out: str, *, point: str, **options: Any) -> None:
    """Convert in a process that is killed at a point, then resume."""
    convert_and_die(DEATHS[point], source, Path(out), **options)
    convert(source, out, resume=True, **options)


def halves(source: str, task: str) -> Sequence[str]:
    """Write the lines of an import file alternately to two files; return the paths.

    For boxes, each file gets one half, because the boxes of an image must stay together.
    """
    path = Path(source)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    middle = len(lines) // 2
    boxes = task == "object_detection"
    parts = (lines[:middle], lines[middle:]) if boxes else (lines[::2], lines[1::2])
    found = [path.with_name(f"{name}{path.suffix}") for name in ("first", "second")]
    for half, part in zip(found, parts, strict=True):
        half.write_text("".join(part), encoding="utf-8")
    return [str(half) for half in found]


def convert_twice(source: str, out: str, *, point: str = "", **options: Any) -> None:
    """Convert one half of a file's lines, then append the other half.

    With a ``point``, the appending run is killed there and resumed.
    """
    first, second = halves(source, options["task"])
    options["max_reject_fraction"] = 1.0
    convert(first, out, **options)
    append = partial(convert_resumed, point=point) if point else convert
    append(second, out, append=True, **options)


def cases() -> Mapping[str, tuple[str, Callable[[str, str], object]]]:
    """Return by name the sample of each case, and its conversion: (source, output) → anything."""
    images, texts, table = "image_classification", "text_multi_label", "tabular"
    found: dict[str, tuple[str, Callable[[str, str], object]]] = {
        name: (name, partial(convert, **NEEDED.get(name, {}))) for name in SAMPLES
    }
    for name, path in SAMPLES.items():
        if not path.endswith("/"):
            needed = NEEDED.get(name, {"task": name})
            for seed in (1, 2):
                dirty = partial(convert_dirty, seed=seed, **needed)
                found[f"{name} dirty {seed}"] = (name, dirty)
            if name not in NAMELESS:
                found[f"{name} appended"] = (name, partial(convert_twice, **needed))
    options: Sequence[tuple[str, dict[str, Any]]] = (
        (images, dict(seed=7, shard_mb=0.001)),
        (images, dict(shard_by="label")),
        (images, dict(group_by="content", labels="integer")),
        (images, dict(missing_split="drop", split="50,25,25")),
        ("object_detection", dict(bad_boxes="reject", shard_mb=0.001)),
        (texts, dict(shard_mb=0.001, seed=3)),
        (table, dict(columns="target=cultivar", shard_mb=0.001)),
        ("video_classification", dict(shard_by="label", seed=5)),
    )
    for name, chosen in options:
        words = " ".join(f"{key}={value}" for key, value in chosen.items())
        found[f"{name} {words}"] = (name, partial(convert, **chosen))
    # Ten shards of ten images, or dozens of texts and rows.
    for name, shard_mb in ((images, 0.0002), (texts, 0.001), (table, 0.001), ("declared", 0.0002)):
        small = {**NEEDED.get(name, {"task": name}), "shard_mb": shard_mb}
        for point in ("after five shards", "while moving"):
            resumed = partial(convert_resumed, point=point, **small)
            found[f"{name} killed {point}, resumed"] = (name, resumed)
        if name not in NAMELESS:
            resumed = partial(convert_twice, point="while moving", **small)
            found[f"{name} killed while appending, resumed"] = (name, resumed)
    return found


def digests(name: str, place: Path, run: Callable[..., object] | None = None) -> dict[str, str]:
    """Return the digests of the files of a case; its input and output are in ``place``.

    Args:
        name: of the case.
        place: a folder that does not exist.
        run: what converts instead of the case itself.
    """
    sample, own = cases()[name]
    top, _, rest = SAMPLES[sample].partition("/")
    shutil.copytree(ROOT / "examples" / top, place)
    (run or own)(os.path.join(place, rest), str(place / "out"))
    return digest_files(place / "out", str(place))


def digest_files(out: Path, place: str) -> dict[str, str]:
    """Return the sha256 of a conversion's files, without values that depend on place or version."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        # The index follows from the shards: tests/access compares both.
        if not path.is_file() or name in ("report.html", "records.npy"):
            continue
        data = path.read_bytes()
        if name == "dataset.json":
            dataset = json.loads(data)
            del dataset["recordgen_version"], dataset["index"]
            data = json.dumps(dataset, sort_keys=True).encode()
        elif path.suffix == ".parquet":  # its bytes depend on Arrow's version
            rows = read_table(path, columns=EXAMPLES).to_pylist()
            rows.sort(key=itemgetter("source", "line"))
            data = json.dumps(rows).encode()
        found[name] = hashlib.sha256(data.replace(place.encode(), b"")).hexdigest()[:16]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: digests(name, Path(folder, str(number))) for number, name in enumerate(cases())
        }
    DIGESTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
