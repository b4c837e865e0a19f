"""Whether the defaults of a training learn as well as plain Keras with the same network.

    python -m benchmarks.learning
    python -m benchmarks.learning --data cifar10 flowers --train 5000 --test 1000

Besides scikit-learn's digits and drawn shapes (``benchmarks.shapes``), ``--data`` takes folders
whose images lie in a folder for each class. Each seed divides the images anew, and decides about
the weights. All contenders have the same epochs, batches and optimizer, and images of the size that
Recordgen's defaults choose. They answer the images of ``test``, which no training sees.

    recordgen         ``convert`` and ``run_fn``; only epochs and seed are set
    Keras             ``fit`` on arrays, without changes of the images
    Keras, changed    behind RandomFlip, but for digits, and RandomTranslation(0.1)
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from benchmarks.labelled import Examples, make_pictures, read_digits
from recordgen.console.quiet import quiet_libraries

DIGITS = "digits"

_BATCH = 32
_RATE = 1e-3
_SHIFT = 0.1
_SUFFIXES = (".jpg", ".jpeg", ".png")

#: Writes an import file for a seed and numbers of images, into a folder; returns its path.
Source = Callable[[int, int, int, Path], str]


class Score(NamedTuple):
    """One training of one contender."""

    data: str
    contender: str
    seed: int
    accuracy: float
    size: tuple[int, int]
    cpu_seconds: float


def from_folder(source: str, seed: int, train: int, test: int, folder: Path) -> str:
    """Write an import file of some images of a folder; classes are the names of their folders."""
    found = sorted(path for path in Path(source).rglob("*") if path.suffix.lower() in _SUFFIXES)
    order = np.random.default_rng(seed).permutation(len(found))
    test = min(test, len(found) // 4)
    path = folder / "import.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        for place, number in enumerate(order[: test + train]):
            image = found[number].resolve()
            split = "TEST" if place < test else "TRAIN"
            csv.writer(file).writerow([split, image, image.parent.name])
    return str(path)


def made(
    make: Callable[[int, int | None], Examples], seed: int, train: int, test: int, folder: Path
) -> str:
    """Write made examples and their import file; a quarter is for the test."""
    return make(seed, train + test).write(folder)


def recordgen(path: str, epochs: int, seed: int, folder: Path) -> tuple[float, tuple[int, int]]:
    """Convert and train with the defaults; return accuracy and the size of images."""
    from recordgen import convert
    from recordgen.core.dataset.manifest import read_dataset
    from recordgen.exports.lineage import find_lineage
    from recordgen.kubeflow.evaluate import evaluate
    from recordgen.training import run_fn

    output, model = str(folder / "out"), str(folder / "model")
    convert(path, output, lint="-ALL")
    run_fn(
        SimpleNamespace(
            train_files=[f"{output}/Split-train/*"],
            eval_files=[],
            train_steps=None,
            eval_steps=None,
            custom_config={"epochs": epochs, "seed": seed},
            serving_model_dir=model,
            model_run_dir=str(folder / "logs"),
        )
    )
    found = find_lineage(model).model
    if found is None:
        raise RuntimeError(f"{model} has no lineage")
    height, width = found.settings["image_size"]
    return evaluate(model, output, read_dataset(output), "test").score, (height, width)


def keras_fit(
    path: str, size: tuple[int, int], epochs: int, seed: int, *, change: bool, flip: bool
) -> float:
    """Fit the same network on arrays; return its accuracy."""
    import keras

    from recordgen.training import TrainingConfig
    from recordgen.training.model import build_model

    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    labels = sorted({label for _, _, label in rows})
    pixels, answers = {}, {}
    for split in ("TRAIN", "TEST"):
        mine = [(Path(path).parent / image, label) for use, image, label in rows if use == split]
        pixels[split] = np.stack([_pixels(image, size) for image, _ in mine])
        answers[split] = np.array([labels.index(label) for _, label in mine])
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Rescaling(1 / 255)]
    if change:
        layers += [keras.layers.RandomFlip("horizontal")] if flip else []
        layers += [keras.layers.RandomTranslation(_SHIFT, _SHIFT)]
    built = build_model(TrainingConfig(image_size=size, seed=seed), len(labels), "softmax")
    model = keras.Sequential([keras.Input((*size, 3)), *layers, built])
    steps = epochs * -(-len(answers["TRAIN"]) // _BATCH)
    model.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(_RATE, steps)),
        "sparse_categorical_crossentropy",
    )
    model.fit(pixels["TRAIN"], answers["TRAIN"], _BATCH, epochs, verbose=0)
    found = model.predict(pixels["TEST"], verbose=0).argmax(-1)
    return float((found == answers["TEST"]).mean())


def _pixels(path: Path, size: tuple[int, int]) -> Any:
    height, width = size
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))


def run(
    name: str, source: Source, seed: int, *, train: int, test: int, epochs: int
) -> Iterator[Score]:
    """Train all contenders with one seed."""
    with tempfile.TemporaryDirectory(prefix="recordgen-learning-") as made_here:
        folder = Path(made_here)
        path = source(seed, train, test, folder)
        started = time.process_time()
        accuracy, size = recordgen(path, epochs, seed, folder)
        yield Score(name, "recordgen", seed, accuracy, size, time.process_time() - started)
        for contender, change in (("Keras", False), ("Keras, changed", True)):
            started = time.process_time()
            accuracy = keras_fit(path, size, epochs, seed, change=change, flip=name != DIGITS)
            yield Score(name, contender, seed, accuracy, size, time.process_time() - started)


def print_means(scores: Sequence[Score]) -> None:
    """Print mean, lowest and highest accuracy of each contender."""
    for data, contender in dict.fromkeys((score.data, score.contender) for score in scores):
        mine = [score for score in scores if (score.data, score.contender) == (data, contender)]
        found = [score.accuracy for score in mine]
        print(
            f"{data:12} {contender:15} {statistics.mean(found):.3f} ({min(found):.3f} to "
            f"{max(found):.3f})  {mine[0].size[0]}×{mine[0].size[1]}  "
            f"{statistics.mean(score.cpu_seconds for score in mine):5.0f} s CPU"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", nargs="*", choices=(DIGITS, "pictures"), default=[DIGITS, "pictures"])
    add("--data", nargs="+", default=[], metavar="FOLDER", help="folders of images by class")
    add("--train", type=int, default=1500, help="most images of the training")
    add("--test", type=int, default=500, help="most images of the test")
    add("--epochs", type=int, default=10)
    add("--seeds", type=int, nargs="+", default=[1, 2, 3])
    add("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    quiet_libraries()
    makers = {DIGITS: read_digits, "pictures": make_pictures}
    sources: dict[str, Source] = {name: partial(made, makers[name]) for name in args.only}
    sources |= {Path(folder).name: partial(from_folder, folder) for folder in args.data}
    scores = []
    for name, source in sources.items():
        for seed in args.seeds:
            for score in run(
                name, source, seed, train=args.train, test=args.test, epochs=args.epochs
            ):
                scores.append(score)
                if not args.json:
                    print(f"seed {seed}  {name:12} {score.contender:15} {score.accuracy:.3f}")
    if args.json:
        print(json.dumps([score._asdict() for score in scores], indent=2))
    else:
        print_means(scores)


if __name__ == "__main__":
    main()
