"""Labelled examples for comparing models, as arrays and as files with an import file.

Nothing is downloaded: examples are made, or come from packages in the lock files.
"""

from __future__ import annotations

import ast
import csv
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn import datasets

from benchmarks.shapes import OUTLINES, one_shape, several_shapes

Array = npt.NDArray[Any]

_TEST_SHARE = 0.25
_PICTURES, _PICTURE_SIDE = 6000, 32
_SCENES, _SCENE_SIDE, _MOST_SHAPES = 1400, 96, 6
_FORMS = ("disc", "square", "star", "triangle")
_PACKAGES = ("keras", "networkx", "numpy", "pandas", "scipy")
_PARAGRAPHS = 800  # most of each package
_LEAST_WORDS = 5


class Training(NamedTuple):
    """The settings that all networks of a contest share."""

    epochs: int | None  # None: the default
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples, divided into training and test.

    Attributes:
        inputs: [n, …]: pixels (uint8, height, width, 3), numbers of a row (float64), or text.
        answers: [n]: label numbers (int64) or numbers to predict (float64); boxes are float32
            [n, k, 5]: left, top, right, bottom in shares of the image, label number; -1
            pads.
        labels: the labels by number; empty for numbers.
        in_test: bool [n].
    """

    inputs: Array
    answers: Array
    labels: Sequence[str]
    in_test: npt.NDArray[np.bool_]

    @property
    def has_boxes(self) -> bool:
        """Whether the answers are boxes."""
        return self.answers.ndim == 3

    def write(self, folder: Path) -> str:
        """Write files and an import file into a folder; return the import file's path."""
        path = folder / "import.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(self._rows(folder))
        return str(path)

    def _rows(self, folder: Path) -> Iterator[Sequence[object]]:
        if self.inputs.ndim == 2:
            columns = [f"column_{number}" for number in range(self.inputs.shape[1])]
            yield ["ml_use", "id", "day", *columns, "target"]
        for number, (given, answer) in enumerate(zip(self.inputs, self.answers, strict=True)):
            split = "TEST" if self.in_test[number] else "TRAIN"
            name = self.labels[answer] if self.labels and not self.has_boxes else answer
            if self.inputs.ndim == 1:
                yield split, given, name
            elif self.inputs.ndim == 2:
                day = date(2020, 1, 1) + timedelta(days=number * 389 % 997)
                yield split, f"no-{number:05d}", day.isoformat(), *given, name
            else:
                file = f"{number:05d}.png"
                Image.fromarray(given).save(folder / file)
                if not self.has_boxes:
                    yield split, file, name
                    continue
                for left, top, right, bottom, label in answer[answer[:, 4] >= 0]:
                    corners = (left, top, "", "", right, bottom, "", "")
                    yield split, file, self.labels[int(label)], *corners


def read_digits(seed: int, count: int | None) -> Examples:
    """Return scikit-learn's scanned digits, uint8 [n, 8, 8, 3]."""
    digits = datasets.load_digits()
    pixels = (digits.images * 255 / 16).round().astype(np.uint8)[..., None]
    labels = [str(number) for number in range(10)]
    return _divided(np.repeat(pixels, 3, axis=-1), digits.target, labels, seed, count)


def make_pictures(seed: int, count: int | None) -> Examples:
    """Make pictures of one shape in ten classes, uint8 [n, 32, 32, 3]."""
    random, labels = np.random.default_rng(seed), sorted(OUTLINES)
    answers = np.arange(count or _PICTURES) % len(labels)
    made = [np.asarray(one_shape(labels[answer], _PICTURE_SIDE, random)) for answer in answers]
    return _divided(np.stack(made), answers, labels, seed, count)


def make_boxes(seed: int, count: int | None) -> Examples:
    """Make pictures of one to six shapes in four classes, uint8 [n, 96, 96, 3]."""
    random = np.random.default_rng(seed)
    made = [
        several_shapes(_FORMS, _SCENE_SIDE, _MOST_SHAPES, random) for _ in range(count or _SCENES)
    ]
    answers = np.full((len(made), _MOST_SHAPES, 5), -1, np.float32)
    for number, (_, boxes) in enumerate(made):
        for place, (label, *corners) in enumerate(boxes):
            shares = (corner / _SCENE_SIDE for corner in corners)
            answers[number, place] = (*shares, _FORMS.index(label))
    pixels = np.stack([np.asarray(image) for image, _ in made])
    return _divided(pixels, answers, _FORMS, seed, count)


def read_table(name: str, seed: int, count: int | None) -> Examples:
    """Return a table of scikit-learn, float64 [n, columns]: ``wine``, ``diabetes``, …."""
    found = getattr(datasets, f"load_{name}")()
    labels = [str(label) for label in found.get("target_names", ())]
    return _divided(found.data, found.target, labels, seed, count)


def read_docstrings(seed: int, count: int | None) -> Examples:
    """Return first paragraphs of docstrings in installed packages; the package is the label."""
    texts, answers = [], []
    for number, own in enumerate(_paragraphs_of_packages()):
        chosen = np.random.default_rng(seed).permutation(len(own))[:_PARAGRAPHS]
        texts += [own[place] for place in chosen]
        answers += [number] * len(chosen)
    return _divided(np.array(texts), np.array(answers), _PACKAGES, seed, count)


@cache
def _paragraphs_of_packages() -> Sequence[Sequence[str]]:
    """Return the paragraphs of each package that no other package contains."""
    site = Path(sysconfig.get_paths()["purelib"])
    found = [
        {
            text
            for path in (site / package).rglob("*.py")
            if "tests" not in path.parts
            for text in _paragraphs(path)
        }
        for package in _PACKAGES
    ]
    uses = Counter(text for texts in found for text in texts)
    return [sorted(text for text in texts if uses[text] == 1) for texts in found]


def _paragraphs(path: Path) -> Iterator[str]:
    """Yield the first paragraph of each docstring in a file, unless it names the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SyntaxWarnings about other projects' files
        tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            if len(text.split()) >= _LEAST_WORDS and not any(
                package in text.lower() for package in _PACKAGES
            ):
                yield text


def _divided(
    inputs: Array, answers: Array, labels: Sequence[str], seed: int, count: int | None
) -> Examples:
    """Put a random quarter of the examples into the test."""
    order = np.random.default_rng(seed).permutation(len(inputs))[:count]
    in_test = np.arange(len(order)) < _TEST_SHARE * len(order)
    return Examples(inputs[order], answers[order], labels, in_test)
