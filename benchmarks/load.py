"""Many conversions, many shards, killed commands: results and cost.

    python -m benchmarks.load
    python -m benchmarks.load --only kills --kills 20 --seed 1

Each case runs the command in its own processes and prints a line: the case, its result and its
seconds. If a dataset's bytes differ from the bytes of an undisturbed run, the benchmark ends with
an error. The moments of the kills are random, from the seed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

COMPONENTS = Path(__file__).resolve().parents[1] / "components"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=CASES, help="one case (default: all)")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="kills (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    args = parser.parse_args()
    print("| what | outcome | s |\n|---|---|---|")
    for name, case in CASES.items():
        if args.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            what, outcome = case(Path(folder), args)
            print(f"| {what} | {outcome} | {time.monotonic() - started:.0f} |", flush=True)


def ten(folder: Path, _: argparse.Namespace) -> tuple[str, str]:
    """Convert one import file ten times concurrently, each to its own output."""
    source = texts(folder, 20_000)
    finish(convert(source, folder / "alone", "--shard-mb=0.5"))
    runs = [convert(source, folder / f"out{number}", "--shard-mb=0.5") for number in range(10)]
    for run in runs:
        finish(run)
    for number in range(10):
        check_same(folder / f"out{number}", folder / "alone")
    return "ten conversions at once, 20,000 texts each", "ten datasets with the same bytes"


def shards(folder: Path, _: argparse.Namespace) -> tuple[str, str]:
    """Write a thousand shards."""
    source = texts(folder, 20_000)
    finish(convert(source, folder / "out", "--shard-mb=0.0014"))
    count = len(list(folder.glob("out/Split-*/*")))
    if count < 1_000:
        raise SystemExit(f"only {count} shards")
    return "a thousand shards", f"{count:,} shards; peak of memory {peak()} MB"


def plan(folder: Path, _: argparse.Namespace) -> tuple[str, str]:
    """Plan a hundred thousand shards."""
    source = texts(folder, 400_000)
    run = convert(source, folder / "out", "--shard-mb=0.0003", "--dry-run", "--json")
    said = finish(run)
    count = sum(int(number) for number in re.findall(r'"shards": (\d+)', said))
    if count < 100_000:
        raise SystemExit(f"only {count} shards: {said[:1000]}")
    return "the plan of a hundred thousand shards", f"{count:,} shards; peak of memory {peak()} MB"


def kills(folder: Path, args: argparse.Namespace) -> tuple[str, str]:
    """Kill the command at random moments, then resume."""
    source = images(folder, 60)
    options = ("--shard-mb=0.5", "--task=image_classification")
    started = time.monotonic()
    finish(convert(source, folder / "whole", *options))
    seconds = time.monotonic() - started
    moments = random.Random(args.seed)
    output = folder / "out"
    finished = 0
    for _ in range(args.kills):
        run = convert(source, output, *options)
        time.sleep(moments.uniform(0, seconds))
        run.kill()
        run.communicate(timeout=120)
        finished += run.returncode == 0
        if run.returncode and (output / "dataset.json").exists():
            raise SystemExit(f"exit {run.returncode}, but there is a dataset")
        finish(convert(source, output, *options, "--resume"))
        check_same(output, folder / "whole")
        shutil.rmtree(output)
    return (
        f"kill -9 of the command at {args.kills} random moments, then `--resume`",
        f"{finished} had finished; {args.kills} datasets with the bytes of an undisturbed run",
    )


CASES = {"ten": ten, "shards": shards, "plan": plan, "kills": kills}


# --- helpers -----------------------------------------------------------------------------------


def texts(folder: Path, count: int) -> Path:
    """Write an import file of short texts, which needs no other files."""
    source = folder / "texts.csv"
    with source.open("w") as file:
        for number in range(count):
            file.write(
                f'TRAIN,"The text number {number} says little and has a label",{number % 3}\n'
            )
    return source


def images(folder: Path, count: int, side: int = 600) -> Path:
    """Write an import file of JPEGs of noise."""
    random_bytes = np.random.default_rng(0)
    source = folder / "images.csv"
    with source.open("w") as file:
        for number in range(count):
            noise = random_bytes.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
            image = Image.fromarray(noise).resize((side, side))
            image.save(folder / f"{number}.jpg", quality=90)
            file.write(f"TRAIN,{number}.jpg,{number % 3}\n")
    return source


def convert(source: Path, output: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command."""
    command = [sys.executable, "-m", "recordgen.cli", "convert", str(source), str(output), "-q"]
    return subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(COMPONENTS)},
    )


def finish(run: subprocess.Popen[str]) -> str:
    """Wait for a run that must succeed; return its stdout."""
    said, errors = run.communicate(timeout=1_800)
    if run.returncode:
        raise SystemExit(f"exit {run.returncode}: {errors[-2_000:]}")
    return said


def check_same(output: Path, expected: Path) -> None:
    """Exit with an error if two datasets differ."""
    found, wanted = (
        {
            path.relative_to(root): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
        for root in (output, expected)
    )
    if found != wanted:
        different = [str(name) for name in wanted if found.get(name) != wanted[name]]
        raise SystemExit(
            f"{output} differs from {expected}: {different or set(found) - set(wanted)}"
        )


def peak() -> int:
    """Return the largest peak memory of the child processes so far, in MB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 // 10**6


if __name__ == "__main__":
    main()
