"""Measures how many planted faults the checks find, and their false findings.

    python -m benchmarks.lint
    python -m benchmarks.lint --images DIR
    python -m benchmarks.lint --texts FILE
    python -m benchmarks.lint --tables 10

Plants known faults in pictures and texts of several kinds, in the images of DIR, or in the lines of
FILE, and prints for each fault the share of pictures or texts in which it was found:

    near-duplicates   a copy is found if it is in one group with its original; an original in one
                      group with another one is false
    looks             any code of a picture without a fault, and any code that a fault should not
                      have, is false
    wrong encoding    a finding about a text without a fault is false

*photos* are parts of scikit-learn's two photographs, *digits* its scanned digits, and *scenes* are
made of shapes of all sizes that cover each other ("dead leaves": their sizes and edges resemble
photos), half of them under a sky. Pictures are encoded as JPEG of quality 92. Paragraphs come from
Python's own reference; sentences are random. Words with accents or signs are planted in texts
before they are decoded wrongly, one for each 20 words. The last lines are the cost of a look.

Tables have columns of many kinds without a fault, and a further column for each known fault, which
is found if its code is; findings about other columns, and other codes, are false. Half of the
tables have a target of two classes, half an amount.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps
from sklearn.datasets import load_digits, load_sample_images

import recordgen
from recordgen.checks.copies import LEAST_SIMILARITY, group_texts
from recordgen.checks.examples import PICTURE_CHECKS
from recordgen.core.facts.columns import SIGNATURE_BYTES
from recordgen.measures.likeness import find_alike
from recordgen.measures.pictures import PictureFacts, SmallPicture, jpeg_factor, look_at, measured
from recordgen.measures.texts import SeenText
from recordgen.registry import CHECKS

Picture = Image.Image
Random = np.random.Generator
Fault = Callable[[Picture], bytes]
TableFault = Callable[[Random, Mapping[str, Any]], Any]
#: (words, random numbers) → words
TextFault = Callable[[list[str], random.Random], list[str]]

QUALITY = 92
BATCH = 16
TICK = 1e-6  # seconds that a clock can tell
THRESHOLDS = {code: check.threshold for code, check in CHECKS.items() if check.threshold}
_COLUMN = re.compile(r"column '([^']*)'")
_SUFFIXES = (".jpg", ".jpeg", ".png")
SIZE = (500, 375)  # width, height
_PARTS = 3  # of a photograph, in each direction
_ACCENTED = (
    "café",
    "naïve",
    "Köln",
    "señor",
    "façade",
    "smörgåsbord",
    "„quote“",
    "it\u2019s",
    "5 €",
)


def encoded(image: Picture, quality: int = QUALITY) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def facts_of(pictures: Iterable[bytes]) -> PictureFacts:
    return measured(look_at([small_jpeg(data) for data in pictures]))


def small_jpeg(data: bytes, colorspace: str = "GRAY") -> SmallPicture:
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    factor = jpeg_factor(height, width)
    pixels = simplejpeg.decode_jpeg(
        data,
        colorspace=colorspace,
        min_height=math.ceil(height / factor),
        min_width=math.ceil(width / factor),
        min_factor=factor,
    )
    return SmallPicture(pixels, height, width, factor)


# --- pictures --------------------------------------------------------------------------------


@cache
def _photographs() -> Sequence[Image.Image]:
    return [Image.fromarray(pixels) for pixels in load_sample_images().images]


def photos(count: int) -> Sequence[Image.Image]:
    parts = (
        photo.crop((column * width, row * height, (column + 1) * width, (row + 1) * height))
        for photo in _photographs()
        for width, height in [(photo.width // _PARTS, photo.height // _PARTS)]
        for row in range(_PARTS)
        for column in range(_PARTS)
    )
    return list(islice(parts, count))


def digits(count: int) -> Sequence[Image.Image]:
    images = load_digits().images[:count]
    small = (Image.fromarray(np.minimum(image * 16, 255).astype(np.uint8)) for image in images)
    return [image.resize((64, 64), Image.Resampling.NEAREST) for image in small]


def _scene(random: Random) -> Image.Image:
    colours = np.asarray(_photographs()[int(random.integers(2))]).reshape(-1, 3)
    image = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(image)
    # Sizes with a density of 1 / radius**3, like objects in photos.
    radii = (4**-2 - random.random(600) * (4**-2 - 150**-2)) ** -0.5
    nearness = radii * np.exp(random.normal(0, 0.7, len(radii)))
    for radius in radii[np.argsort(-nearness)]:
        _draw_leaf(draw, float(radius), colours, random)
    pixels = np.asarray(image).astype(np.float64)
    if random.random() < 0.5:
        pixels = _with_sky(pixels, random)
    return _in_light(pixels, random)


def _draw_leaf(
    draw: ImageDraw.ImageDraw, radius: float, colours: npt.NDArray[np.uint8], random: Random
) -> None:
    x, y = random.random(2) * SIZE
    tone = colours[random.integers(len(colours))] * 0.8 + random.normal(20, 18, 3)
    red, green, blue = (int(level) for level in np.clip(tone, 0, 255))
    tall = random.uniform(0.4, 1.6)
    if random.random() < 0.6:
        outline = (x - radius, y - radius * tall, x + radius, y + radius * tall)
        draw.ellipse(outline, fill=(red, green, blue))
        return
    angles = random.random() * 7 + np.linspace(0, 2 * np.pi, int(random.integers(4, 7)))[:-1]
    corners = [(x + radius * np.cos(a), y + radius * tall * np.sin(a)) for a in angles]
    draw.polygon(corners, fill=(red, green, blue))


def _with_sky(pixels: npt.NDArray[np.float64], random: Random) -> npt.NDArray[np.float64]:
    horizon = int(SIZE[1] * random.uniform(0.3, 0.6))
    sky = np.linspace(200, 160, horizon)[:, None, None] * [0.9, 0.97, 1.05]
    pixels[:horizon] = pixels[:horizon] * 0.15 + sky
    return pixels


def _in_light(pixels: npt.NDArray[np.float64], random: Random) -> Image.Image:
    height, width, _ = pixels.shape
    left, right, top, bottom = random.uniform(0.65, 1, 4).tolist()
    across = np.linspace(left, right, width)[None, :, None]
    down = np.linspace(top, bottom, height)[:, None, None]
    coarse = random.normal(0, 8, (height // 2, width // 2)).astype(np.float32)
    texture = np.asarray(Image.fromarray(coarse).resize((width, height)))
    noise = random.normal(0, 4, (height, width)) + texture
    lit = pixels * across * down * 1.1 + noise[:, :, None]
    return Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))


def _made(make: Callable[[Random], Image.Image]) -> Callable[[int], Sequence[Image.Image]]:
    return lambda count: [make(np.random.default_rng(number)) for number in range(count)]


#: By name: returns this many pictures, all different, or all there are.
PICTURES: Mapping[str, Callable[[int], Sequence[Image.Image]]] = {
    "photos": photos,
    "scenes": _made(_scene),
    "digits": digits,
}


def read_images(folder: Path, count: int) -> Sequence[Picture]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    if not paths:
        raise SystemExit(f"{folder} holds no images ({', '.join(_SUFFIXES)})")
    return [Image.open(path).convert("RGB") for path in paths[:count]]


# --- their faults ----------------------------------------------------------------------------


def _resized(image: Picture, scale: float) -> Picture:
    return image.resize(
        (round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS
    )


def _cropped(image: Picture, percent: float) -> Picture:
    """Cut a part of the width and height, equally at both ends."""
    left, top = round(image.width * percent / 200), round(image.height * percent / 200)
    return image.crop((left, top, image.width - left, image.height - top))


def _lit(image: Picture, percent: float) -> Picture:
    return ImageEnhance.Brightness(image).enhance(percent / 100)


def _brighter(image: Picture, percent: float) -> Picture:
    return _lit(image, 100 + percent)


def _blurred(image: Picture, percent: float) -> Picture:
    """Blur by a part of the shorter side (sigma of a Gaussian)."""
    return image.filter(ImageFilter.GaussianBlur(min(image.size) * percent / 100))


def _veiled(image: Picture, percent: float) -> Picture:
    """Mix a picture with white."""
    return Image.blend(image, Image.new(image.mode, image.size, "white"), percent / 100)


def _gray(image: Picture) -> Picture:
    return ImageOps.grayscale(image).convert(image.mode)


def _plain(image: Picture, deviation: float) -> Picture:
    """Replace a picture by one colour, with noise."""
    random = np.random.default_rng(image.tobytes()[0])
    noise = random.normal(random.integers(20, 235), deviation, (image.height, image.width))
    return Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).convert(image.mode)


def _faults(name: str, change: Callable[..., Picture], *values: float) -> dict[str, Fault]:
    """Return functions that change a picture by each value, and encode it; by name."""

    def fault(image: Picture, value: float) -> bytes:
        return encoded(change(image, value))

    return {name.format(value): partial(fault, value=value) for value in values}


COPIES: Mapping[str, Fault] = {
    "exact copy": encoded,
    **{f"quality {quality}": partial(encoded, quality=quality) for quality in (95, 80, 65, 50)},
    **_faults("resize {}", _resized, 0.9, 0.75, 0.5),
    **_faults("crop {} %", _cropped, 1, 2, 4, 6, 10),
    **_faults("brightness {:+} %", _brighter, -30, -10, 10, 30),
    "gray": lambda image: encoded(_gray(image)),
    **_faults("blur {} %", _blurred, 0.5),
    "flip": lambda image: encoded(ImageOps.mirror(image)),
}

# Codes, and faults that should have any of them.
_OF_CODES = (
    ((), {"none": encoded}),
    (("DARK", "ONE_COLOUR"), _faults("brightness {} %", _lit, 20, 10, 5, 1)),
    (("LIGHT", "ONE_COLOUR"), _faults("white veil {} %", _veiled, 60, 80, 90, 95)),
    (("LIGHT", "ONE_COLOUR"), _faults("exposure ×8", _lit, 800)),
    (("BLURRED",), _faults("blur {} %", _blurred, 0.25, 0.5, 1, 1.5, 2, 3, 5)),
    (("ONE_COLOUR",), _faults("one colour, noise {}", _plain, 0, 4)),
)
LOOKS: Mapping[str, tuple[frozenset[str], Fault]] = {
    name: (frozenset(codes), fault) for codes, faults in _OF_CODES for name, fault in faults.items()
}


def share_of_copies(pictures: Sequence[Picture], fault: Fault) -> str:
    data = [*map(encoded, pictures), *map(fault, pictures)]
    return share_in_groups(find_alike(facts_of(data)))


def share_of_looks(pictures: Sequence[Picture], look: tuple[frozenset[str], Fault]) -> str:
    """Return the share of pictures with an expected code, and the counts of other codes."""
    expected, fault = look
    facts = facts_of(map(fault, pictures))
    found = {
        check.code: set(check().of_pictures(facts, THRESHOLDS).rows.tolist())
        for check in PICTURE_CHECKS
    }
    right = set[int]().union(*(found[code] for code in expected))
    others = [
        f"{len(rows)} {code}"
        for code, rows in sorted(found.items())
        if rows and code not in expected
    ]
    return ", ".join([f"{len(right) / len(pictures):.0%}" if expected else "-", *others])


def measure_cost(pictures: Sequence[Picture]) -> None:
    for width, height in (SIZE, (2 * SIZE[0], 2 * SIZE[1])):
        data = [encoded(picture.resize((width, height))) for picture in pictures[:BATCH]]
        gray, colour, look, look_at_colour = best_times(
            partial(_decode_all, data, "GRAY"),
            partial(_decode_all, data, "RGB"),
            partial(_look_at_all, _decode_all(data, "GRAY")),
            partial(_look_at_all, _decode_all(data, "RGB")),
        )
        gray = max(gray, TICK)  # a few small pictures may take less
        print(
            f"{width}×{height}, {sum(map(len, data)) / len(data) / 1000:.0f} kB: a look takes "
            f"{look / gray:.2f} of the decode at 1/8; with colours "
            f"{(look_at_colour + colour) / gray - 1:.2f}"
        )


def _decode_all(data: Sequence[bytes], colorspace: str) -> Sequence[SmallPicture]:
    return [small_jpeg(each, colorspace) for each in data]


def _look_at_all(pictures: Sequence[SmallPicture]) -> PictureFacts:
    return measured(look_at(pictures))


# --- texts and their faults ------------------------------------------------------------------


def read_paragraphs(least: int, most: int) -> list[str]:
    """Return the paragraphs of Python's reference with ``least`` to ``most`` - 1 words."""
    from pydoc_data.topics import topics

    parts = {part for text in topics.values() for part in text.split("\n\n")}
    return sorted(part for part in parts if least <= len(part.split()) < most)


def make_sentences(count: int, words: int) -> list[str]:
    """Return sentences of random words that are as frequent as in a language (Zipf's law)."""
    draw = random.Random(1)
    letters = "abcdefghijklmnoprstuvw"
    known = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(5000)]
    weights = [1 / rank for rank in range(1, len(known) + 1)]
    return [" ".join(draw.choices(known, weights, k=words)) for _ in range(count)]


def _edited(words: list[str], draw: random.Random, *, share: float) -> list[str]:
    """Replace, drop, add or swap words, at least one, like typing errors and edits."""
    found = list(words)
    for _ in range(max(1, round(share * len(words)))):
        at = draw.randrange(len(found))
        kind = draw.randrange(4)
        if kind == 0:
            found[at] = f"{found[at]}x"
        elif kind == 1 and len(found) > 1:
            del found[at]
        elif kind == 2:
            found.insert(at, draw.choice(words))
        else:
            found[at : at + 2] = reversed(found[at : at + 2])
    return found


def _respelt(words: list[str], draw: random.Random) -> list[str]:
    """Change capitals and punctuation."""
    return [draw.choice((str.upper, str.capitalize, str.strip))(word) + "," for word in words]


def _cut(words: list[str], draw: random.Random, *, share: float) -> list[str]:
    """Cut the end."""
    del draw
    return words[: max(1, round((1 - share) * len(words)))]


def _shuffled(words: list[str], draw: random.Random) -> list[str]:
    return draw.sample(words, len(words))


TEXT_COPIES: Mapping[str, TextFault] = {
    **{f"{percent} % edited": partial(_edited, share=percent / 100) for percent in (1, 5, 10, 20)},
    "capitals, punctuation": _respelt,
    **{f"last {percent} % cut": partial(_cut, share=percent / 100) for percent in (10, 20, 40)},
    "words shuffled": _shuffled,
}


def _decoded(text: str, encoding: str) -> str:
    return text.encode().decode(encoding, "replace")


def _encoded(text: str, encoding: str) -> str:
    return text.encode(encoding, "replace").decode("utf-8", "replace")


GARBLED: Mapping[str, Callable[[str], str]] = {
    "UTF-8 read as Windows-1252": partial(_decoded, encoding="cp1252"),
    "UTF-8 read as Latin-1": partial(_decoded, encoding="latin-1"),
    "UTF-8 read as Mac Roman": partial(_decoded, encoding="mac-roman"),
    "Windows-1252 read as UTF-8": partial(_encoded, encoding="cp1252"),
}


def facts_of_texts(texts: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    return SeenText.columns([SeenText(text.encode(), len(text)) for text in texts])


def share_of_text_copies(texts: Sequence[str], fault: TextFault) -> str:
    draw = random.Random(2)
    copies = [" ".join(fault(text.split(), draw)) for text in texts]
    signatures = np.frombuffer(b"".join(facts_of_texts([*texts, *copies])["signature"]), np.uint8)
    groups = group_texts(signatures.reshape(-1, SIGNATURE_BYTES), LEAST_SIMILARITY)
    return share_in_groups(groups)


def with_accents(text: str, draw: random.Random) -> str:
    words = text.split()
    for at in range(0, len(words), 20):
        words[at] = draw.choice(_ACCENTED)
    return " ".join(words)


def share_of_garbled(texts: Sequence[str], garble: Callable[[str], str]) -> str:
    draw = random.Random(3)
    right = [with_accents(text, draw) for text in texts]
    found = sum(part is not None for part in facts_of_texts(list(map(garble, right)))["garbled"])
    false = sum(part is not None for part in facts_of_texts(right)["garbled"])
    return f"{found / len(texts):.0%}" + (f", {false} false" if false else "")


# --- figures ---------------------------------------------------------------------------------


def share_in_groups(groups: npt.NDArray[np.int32]) -> str:
    """Return the share of copies that were found, and the number of originals in a false group.

    ``groups`` has the groups of the originals, then the groups of their copies.
    """
    originals, copies = np.split(groups, 2)
    false = (originals != np.arange(len(originals))).sum()
    return f"{(copies == originals).mean():.0%}" + (f", {false} false" if false else "")


_Item = TypeVar("_Item")
_Fault = TypeVar("_Fault")


def print_table(
    name: str,
    kinds: Mapping[str, Sequence[_Item]],
    faults: Mapping[str, _Fault],
    cell: Callable[[Sequence[_Item], _Fault], str],
) -> None:
    """Print a line for each fault, with a cell for each kind of data."""
    titles = [f"{len(items)} {kind}" for kind, items in kinds.items()]
    lines = [[name, *titles]]
    for fault_name, fault in faults.items():
        lines.append([fault_name, *(cell(items, fault) for items in kinds.values())])
    first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line[1:], widths, strict=True))
        print(f"{line[0]:{first}}  {'  '.join(cells)}")
    print()


def best_times(*runs: Callable[[], object], rounds: int = 20) -> Sequence[float]:
    """Return the CPU seconds of each function's fastest round; the functions alternate."""
    times = [math.inf] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            started = time.process_time()
            run()
            times[number] = min(times[number], time.process_time() - started)
    return times


def make_columns(random: Random, rows: int, *, has_labels: bool) -> dict[str, Any]:
    """Return columns without a fault; the target depends on some of them, with noise."""
    size = random.normal(50, 10, rows)
    signal = size + random.normal(0, 12, rows)
    days = np.datetime64("2026-01-01") + random.integers(0, 300, rows)
    return {
        "split": random.choice(["TRAIN", "TRAIN", "TRAIN", "VALIDATE", "TEST"], rows),
        "id": np.arange(rows),
        "size": size.round(3),
        "pay (lognormal)": random.lognormal(3, 1, rows).round(2),
        "waiting (exponential)": random.exponential(30, rows).round(2),
        "balance (normal, both signs)": random.normal(1500, 3000, rows).round(2),
        "calls (mostly 0)": random.poisson(0.2, rows),
        "wealth (Pareto)": (random.pareto(2, rows) + 1).round(3),
        "return (Student's t)": random.standard_t(3, rows).round(4),
        "age": random.integers(18, 95, rows),
        "is new": (random.random(rows) < 0.01).astype(int),
        "gaps": np.where(random.random(rows) < 0.3, "", random.normal(0, 1, rows).round(3)),
        "job": random.choice(["cook", "smith", "clerk", "nurse"], rows, p=[0.6, 0.3, 0.09, 0.01]),
        "city": [f"city {number}" for number in random.integers(0, rows // 4, rows)],
        "postcode": [f"{number:05d}" for number in random.integers(0, 99999, rows)],
        "day": days,
        "related": (signal + random.normal(0, 3, rows)).round(3),
        "target": np.where(signal > 55, "yes", "no") if has_labels else signal.round(3),
    }


# --- tables and their faults ------------------------------------------------------------------


def _with(share: float, value: Any, of: str) -> TableFault:
    """Replace a part of a column, at least one value."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = np.array(columns[of]).astype(object)
        count = max(1, round(share * len(found)))
        found[random.choice(len(found), count, replace=False)] = value
        return found

    return plant


def _times(factor: float, of: str) -> TableFault:
    """Multiply one value."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = np.array(columns[of])
        found[np.argsort(found)[len(found) // 2]] *= factor
        return found

    return plant


def _shifted(deviations: float) -> TableFault:
    """Return random numbers with another mean in split test."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        found = random.normal(0, 1, len(columns["id"]))
        found[columns["split"] == "TEST"] += deviations
        return found.round(4)

    return plant


def _copied(noise: float) -> TableFault:
    """Return the target in other words; a part of the rows does not follow it."""

    def plant(random: Random, columns: Mapping[str, Any]) -> Any:
        target = columns["target"]
        is_other = random.random(len(target)) < noise
        if target.dtype.kind == "U":
            return np.where((target == "yes") ^ is_other, "paid", "open")
        return (2.54 * target + np.std(target) * noise * random.normal(0, 2.54, len(target))).round(
            5
        )

    return plant


def _filled_after(random: Random, columns: Mapping[str, Any]) -> Any:
    """Fill a column only where the target is high."""
    target = columns["target"]
    is_high = target == "yes" if target.dtype.kind == "U" else target > np.median(target)
    return np.where(is_high, random.normal(0, 1, len(target)).round(4), "")


def _by_threshold(random: Random, columns: Mapping[str, Any]) -> Any:
    """Return numbers in the order of the target: a threshold divides the classes."""
    target = columns["target"]
    order = target == "yes" if target.dtype.kind == "U" else np.exp((target - 50) / 10)
    return (order + random.random(len(target)) * (0.9 if target.dtype.kind == "U" else 0)).round(6)


def _of_two(random: Random, columns: Mapping[str, Any]) -> Any:
    """Return one of two texts at random, other texts in split test."""
    rows = len(columns["id"])
    old, new = random.choice(["a", "b"], rows), random.choice(["b", "c"], rows)
    return np.where(columns["split"] == "TEST", new, old)


# TableFault: its code, and the function that plants it.
TABLE_FAULTS: Mapping[str, tuple[str, TableFault]] = {
    "one value": ("ODD_COLUMN", lambda _, columns: np.full(len(columns["id"]), 7)),
    "no value": ("ODD_COLUMN", lambda _, columns: np.full(len(columns["id"]), "")),
    "one word among numbers": ("ODD_COLUMN", _with(0, "old", "size")),
    "words in 1 %": ("ODD_COLUMN", _with(0.01, "unknown", "size")),
    "words in 8 %": ("ODD_COLUMN", _with(0.08, "young", "age")),
    "words in 15 %": ("ODD_COLUMN", _with(0.15, "young", "age")),
    "one word among dates": ("ODD_COLUMN", _with(0, "today", "day")),
    "target in other words": ("GIVE_AWAY", _copied(0)),
    "target, 0.2 % noise": ("GIVE_AWAY", _copied(0.002)),
    "target, 2 % noise": ("GIVE_AWAY", _copied(0.02)),
    "target, 10 % noise": ("GIVE_AWAY", _copied(0.1)),
    "order of the target": ("GIVE_AWAY", _by_threshold),
    "filled for high targets": ("GIVE_AWAY", _filled_after),
    "one 9999 in an age": ("OUTLIER", _with(0, 9999, "age")),
    "999 in 1 % of ages": ("OUTLIER", _with(0.01, 999, "age")),
    "-1 in 3 % of ages": ("OUTLIER", _with(0.03, -1, "age")),
    "one size × 10": ("OUTLIER", _times(10, "size")),
    "one size × 3": ("OUTLIER", _times(3, "size")),
    "one pay × 1000": ("OUTLIER", _times(1000, "pay (lognormal)")),
    "one balance × 100": ("OUTLIER", _times(100, "balance (normal, both signs)")),
    "test shifted by 0.25 deviations": ("SKEW", _shifted(0.25)),
    "test shifted by 0.5 deviations": ("SKEW", _shifted(0.5)),
    "test shifted by 1 deviation": ("SKEW", _shifted(1)),
    "other words in test": ("SKEW", _of_two),
}


# --- findings in tables -----------------------------------------------------------------------


def findings_of(columns: Mapping[str, Any], folder: Path) -> set[tuple[str, str]]:
    """Return the code and column of each finding about a table's columns."""
    source = folder / "table.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    result = recordgen.check(str(source), columns="target=target,split=split", lint="ALL")
    if result.lint is None:
        raise RuntimeError("nothing was checked")
    return {
        (item.code, found[1])
        for item in result.lint.findings()
        if (found := _COLUMN.match(item.message))
    }


def share_in_tables(
    tables: int, rows: int, *, has_labels: bool
) -> tuple[Counter[str], Counter[str]]:
    """Return how often each fault was found, and the counts of false findings."""
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="recordgen-tables-") as folder:
        for seed in range(tables):
            random = np.random.default_rng(seed)
            columns = make_columns(random, rows, has_labels=has_labels)
            planted = {name: plant(random, columns) for name, (_, plant) in TABLE_FAULTS.items()}
            for code, name in findings_of({**columns, **planted}, Path(folder)):
                if name in TABLE_FAULTS and code == TABLE_FAULTS[name][0]:
                    found[name] += 1
                else:
                    false[f"{code} of {name!r}"] += 1
    return found, false


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, metavar="DIR", help="default: made here")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="a text in each line")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="pictures of a kind")
    parser.add_argument("--count-texts", type=int, default=1000, metavar="N", help="of each kind")
    parser.add_argument("--tables", type=int, metavar="N", help="only tables, so many of each kind")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000], help="of tables")
    args = parser.parse_args()
    if args.tables:
        measure_tables(args.tables, args.rows)
        return
    if args.images or not args.texts:
        measure_pictures(args.images, args.count)
    if args.texts or not args.images:
        measure_texts(args.texts, args.count_texts)


def measure_tables(tables: int, all_rows: Sequence[int]) -> None:
    """Print the table of faults in tables, and the false findings."""
    kinds = {
        f"{rows:,} rows, {name}": share_in_tables(tables, rows, has_labels=has_labels)
        for rows in all_rows
        for name, has_labels in (("classes", True), ("amounts", False))
    }
    print(f"| fault | code | {' | '.join(kinds)} |")
    print(f"|---|---|{'---|' * len(kinds)}")
    for fault, (code, _) in TABLE_FAULTS.items():
        cells = (f"{found[fault] / tables:.0%}" for found, _ in kinds.values())
        print(f"| {fault} | {code} | {' | '.join(cells)} |")
    for kind, (_, false) in kinds.items():
        said = ", ".join(f"{count} {what}" for what, count in sorted(false.items()))
        print(f"\nFalse, {kind}: {said or 'none'}", end="")
    print()


def measure_pictures(folder: Path | None, count: int) -> None:
    """Print the tables of pictures made here, or of a folder."""
    if folder:
        kinds = {"images": read_images(folder, count)}
    else:
        kinds = {name: make(count) for name, make in PICTURES.items()}
    print_table("near-duplicates", kinds, COPIES, share_of_copies)
    print_table("looks", kinds, LOOKS, share_of_looks)
    measure_cost(kinds["images" if folder else "scenes"])


def measure_texts(file: Path | None, count: int) -> None:
    """Print the tables of texts made here, or of a file's lines."""
    if file:
        lines = file.read_text(encoding="utf-8").splitlines()
        kinds = {"lines": [line for line in lines if line.strip()]}
    else:
        kinds = {
            "paragraphs": read_paragraphs(30, 1000),
            "short paragraphs": read_paragraphs(8, 30),
            "sentences of 10 words": make_sentences(count, 10),
        }
    kinds = {name: texts[:count] for name, texts in kinds.items()}
    print_table("near-duplicates", kinds, TEXT_COPIES, share_of_text_copies)
    print_table("wrong encoding", kinds, GARBLED, share_of_garbled)
    for name, texts in kinds.items():
        some = texts[:256]
        [seconds] = best_times(partial(facts_of_texts, some), rounds=5)
        size = sum(len(text.encode()) for text in some) / len(some)
        print(f"{name}: {seconds / len(some) * 1e6:.1f} µs for a text of {size:,.0f} bytes")


if __name__ == "__main__":
    main()
