"""Real data sets → their boxes beside those that another program reads in them.

    python -m benchmarks.real_data --oracle PYTHON FOLDER…

Each folder, or document, is converted with no option but its path. A line says the format that was
found, rows, rejects, boxes, and how far corners are from those of the other program, in pixels
(``benchmarks/oracles.py`` names the programs). ``--oracle`` may be repeated: the first interpreter
that has the program counts. ``FOLDER:format=NAME`` passes an option to a folder that needs one.
Labels of whole images must be equal.

Records are written to a temporary folder, and nothing of a data set stays.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ORACLES = Path(__file__).with_name("oracles.py")

#: label, and xmin, ymin, xmax, ymax in pixels; a label of the whole image has no corners
Box = tuple[str, Sequence[float]]

_SIDES = ("xmin", "ymin", "xmax", "ymax")


class Stored(NamedTuple):
    """An image in the records."""

    size: tuple[int, int]
    boxes: Sequence[Box]


def stored(folder: Path) -> Mapping[str, list[Stored]]:
    """Return the images of a dataset by their file name."""
    import recordgen

    found = defaultdict(list)
    for split in recordgen.read_dataset(folder).splits:
        for record in recordgen.source(folder, split):
            size = int(record["image/width"]), int(record["image/height"])
            corners = zip(
                *(record.get(f"image/object/bbox/{it}", ()) for it in _SIDES), strict=True
            )
            pixels = [[n * side for n, side in zip(c, size * 2, strict=True)] for c in corners]
            texts = record.get("image/object/class/text", ())
            boxes: list[Box] = list(zip(texts, pixels, strict=True))
            whole = record.get("image/class/text", ())
            labels = [whole] if isinstance(whole, str) else list(whole)
            name = record["image/source_id"].rsplit("/", 1)[-1]
            found[name].append(Stored(size, boxes or [(label, ()) for label in labels]))
    return found


def expected(source: str, format_: str, oracles: Sequence[str]) -> Mapping[str, list[Box]] | None:
    """Return the boxes that another program reads, or None if no interpreter has it."""
    for python in oracles:
        done = subprocess.run(
            [python, str(ORACLES), format_, source], capture_output=True, text=True, check=False
        )
        if not done.returncode:
            return json.loads(done.stdout.splitlines()[-1])
        print(f"  {python}: {done.stderr.strip().splitlines()[-1]:.200}")
    return None


def differences(
    ours: Mapping[str, list[Stored]], theirs: Mapping[str, list[Box]], classes: Sequence[str]
) -> tuple[list[float], list[str]]:
    """Return how far each box is from the other program's, and what only one of the two has."""
    names = {name.rsplit(".", 1)[0]: name for name in theirs}  # some leave the suffix out
    far, alone = [], []
    for name, images in ours.items():
        size = tuple(max(image.size[at] for image in images) for at in (0, 1))
        key = name if name in theirs else names.get(name.rsplit(".", 1)[0], name)
        # Several documents may describe an image, and images of two folders have one name.
        named = (
            (_named(label, classes), _clipped(box, size)) for label, box in theirs.get(key, ())
        )
        left = list(dict.fromkeys(named))
        boxes = ((label, tuple(box)) for image in images for label, box in image.boxes)
        for label, box in dict.fromkeys(boxes):
            same = [each for each in left if each[0] == label and len(each[1]) == len(box)]
            if not same:
                alone.append(f"{name}: only here: {label} {box}")
                continue
            nearest = min(same, key=lambda each: _distance(each[1], box))
            left.remove(nearest)
            far.append(_distance(nearest[1], box))
        alone += [f"{name}: only there: {label} {box}" for label, box in left]
    return far, alone


def _named(label: str, classes: Sequence[str]) -> str:
    """Return the class of a number, which is all that some programs say."""
    is_number = label.isdecimal() and label not in classes and int(label) < len(classes)
    return classes[int(label)] if is_number else label


def _clipped(box: Sequence[float], size: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(min(max(0.0, n), side) for n, side in zip(box, size * 2, strict=False))


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return max(map(abs, map(float.__sub__, map(float, one), map(float, other))), default=0.0)


def _options(text: str) -> tuple[str, dict[str, Any]]:
    source, *given = text.split(":")
    return source, dict(item.split("=", 1) for item in given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oracle", action="append", default=[], metavar="PYTHON")
    parser.add_argument("sources", nargs="+", metavar="FOLDER[:OPTION=VALUE]")
    args = parser.parse_args()
    import recordgen

    for text in args.sources:
        source, options = _options(text)
        with tempfile.TemporaryDirectory(prefix="recordgen-benchmark-") as folder:
            result = recordgen.convert(
                source, Path(folder, "out"), max_reject_fraction=1, lint="-ALL", **options
            )
            ours = stored(Path(folder, "out"))
        rows, format_ = result.dataset.rows, result.dataset.options["format"]
        count = sum(len(image.boxes) for images in ours.values() for image in images)
        print(f"{source}: {format_}, {rows.read} rows, {dict(rows.rejected)}, {count} boxes")
        if (theirs := expected(source, format_, args.oracle)) is not None:
            far, alone = differences(ours, theirs, result.dataset.labels)
            worst = max(far, default=math.nan)
            print(f"  {len(far)} in both, at most {worst:.1e} pixels apart", dict(rows.adjusted))
            print(f"  {len(alone)} in one of the two", *alone[:3], sep="\n    ")


if __name__ == "__main__":
    main()
