"""Conversions whose bytes must stay: samples of each task, dirty lines, options, appending.

    python -m tests.golden    writes tests/golden.json anew, after a change of bytes that is meant

Payloads are passed through and shards are not compressed, so no version of an encoder or of zlib
decides a byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from recordgen import convert

ROOT = Path(__file__).parents[1]
DIGESTS = Path(__file__).with_name("golden.json")

SAMPLES = {
    "image_classification": "image_classification/digits.csv",
    "image_folder": "image_classification/images/",
    "image_multi_label": "image_multi_label/digits.csv",
    "object_detection": "object_detection/digits.csv",
    "text_classification": "text_classification/reviews.csv",
    "text_multi_label": "text_multi_label/reviews.csv",
    "text_sentiment": "text_sentiment/reviews.csv",
    "text_entities": "text_entities/travels.jsonl",
    "text_entities_iob": "text_entities/iob/",
    "tabular": "tabular/wines.csv",
    "video_classification": "video_classification/videos.csv",
}

# What is done to some lines of a sample: line, generator of random numbers → lines.
SPOILT: Sequence[Callable[[str, random.Random], Sequence[str]]] = (
    lambda line, draw: [line, line],
    lambda line, draw: [line.replace("TRAIN", "TRIAN").replace("training", "trainnig")],
    lambda line, draw: [line, line.replace("TRAIN", "TEST")],
    lambda line, draw: [line[: draw.randrange(1, len(line))]],
    lambda line, draw: [line.replace(".png", ".jpg").replace(".gif", ".mp4")],
    lambda line, draw: [f"{line},surplus"],
    lambda line, draw: ["", f"  {line}  ", ",,,"],
    lambda line, draw: [line.replace(",", ',"', 1)],
    lambda line, draw: [f"{line}\r"],
    lambda line, draw: [line.replace("TRAIN,", "").replace("VALIDATION,", "UNASSIGNED,")],
)


def spoil(path: Path, seed: int) -> None:
    """Spoil a third of an import file's lines behind the first, in ways that the seed decides."""
    draw = random.Random(seed)
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    spoilt = [first]
    for line in lines:
        kept = [line]
        spoilt += draw.choice(SPOILT)(line, draw) if line and draw.random() < 1 / 3 else kept
    path.write_text("".join(f"{line}\n" for line in spoilt), encoding="utf-8")


def convert_dirty(source: str, out: str, *, task: str, seed: int) -> None:
    """Convert a sample with spoilt lines."""
    spoil(Path(source), seed)
    convert(source, out, task=task, max_reject_fraction=1.0, check="header")


def convert_twice(source: str, out: str, **options: Any) -> None:
    """Convert every second line of a file, then append the others."""
    path = Path(source)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part, append in (("first", lines[::2], False), ("second", lines[1::2], True)):
        half = path.with_name(f"{name}{path.suffix}")
        half.write_text("".join(part), encoding="utf-8")
        convert(str(half), out, append=append, max_reject_fraction=1.0, **options)


def cases() -> Mapping[str, tuple[str, Callable[[str, str], object]]]:
    """Return by name the sample that is converted, and how: (source, output) → anything."""
    images, texts, table = "image_classification", "text_multi_label", "tabular"
    found: dict[str, tuple[str, Callable[[str, str], object]]] = {
        name: (name, convert) for name in SAMPLES if name != "text_entities_iob"
    }
    found["text_entities_iob"] = ("text_entities_iob", partial(convert, task="text_entities"))
    for name, path in SAMPLES.items():
        if not path.endswith("/"):
            for seed in (1, 2):
                found[f"{name} dirty {seed}"] = (
                    name,
                    partial(convert_dirty, task=name, seed=seed),
                )
    options: Sequence[tuple[str, dict[str, Any]]] = (
        (images, dict(seed=7, shard_mb=0.001)),
        (images, dict(shard_by="label")),
        (images, dict(split_by="content", labels="integer")),
        (images, dict(missing_split="drop", split_fractions="50,25,25")),
        ("object_detection", dict(bad_boxes="reject", shard_mb=0.001)),
        (texts, dict(shard_mb=0.001, seed=3)),
        (table, dict(target_column="cultivar", shard_mb=0.001)),
        ("video_classification", dict(shard_by="label", seed=5)),
    )
    for name, chosen in options:
        words = " ".join(f"{key}={value}" for key, value in chosen.items())
        found[f"{name} {words}"] = (name, partial(convert, **chosen))
    for name in (images, "image_multi_label", "text_classification", "text_entities"):
        found[f"{name} appended"] = (name, partial(convert_twice, task=name))
    return found


def digests(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of each case and the digests of the files that it writes."""
    for number, (name, (sample, run)) in enumerate(cases().items()):
        place = folder / f"{number}"
        top, _, rest = SAMPLES[sample].partition("/")
        shutil.copytree(ROOT / "examples" / top, place)
        try:
            run(os.path.join(place, rest), str(place / "out"))
        except Exception as exc:
            raise AssertionError(f"case {name!r}: {exc}") from exc
        yield name, digest_files(place / "out", str(place))


def digest_files(out: Path, place: str) -> dict[str, str]:
    """Return the sha256 of a conversion's files, without what depends on place and version."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if not path.is_file() or name == "report.html":
            continue
        data = path.read_bytes()
        if name == "dataset.json":
            dataset = json.loads(data)
            del dataset["recordgen_version"]
            data = json.dumps(dataset, sort_keys=True).encode()
        found[name] = hashlib.sha256(data.replace(place.encode(), b"")).hexdigest()[:16]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = dict(digests(Path(folder)))
    DIGESTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
