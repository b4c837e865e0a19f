"""How well the trainer learns, compared with hand-written scripts on the same examples.

    python -m benchmarks.results
    python -m benchmarks.results --only digits wine --seeds 5

For each seed, examples are divided anew, written as files with an import file, converted, and
trained on with ``recordgen.training.run_fn``; the saved model predicts the split ``test``, which
training never sees. The other contenders get the same examples as arrays, with the same number of
epochs and the same batch size; tables have the default epochs. Nothing is downloaded: examples come
from packages in the locks.

    digits     scikit-learn's 1,797 scanned digits; accuracy
    cancer, iris, wine   scikit-learn's tables with classes; accuracy
    diabetes   scikit-learn's table with a number to predict; R²
               (the import files of tables also name each row and give it a day)
    texts      first paragraphs of docstrings in five installed packages; their names are the
               classes; accuracy

CPU seconds are for training and prediction, in all threads.
"""

from __future__ import annotations

import argparse
import ast
import csv
import itertools
import json
import statistics
import sysconfig
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from recordgen.console.quiet import quiet_libraries

Array = npt.NDArray[Any]

_DIGIT_SIDE = 16
_TEST_SHARE = 0.25
_PACKAGES = ("keras", "networkx", "numpy", "pandas", "scipy")
_PARAGRAPHS = 800  # most of each package
_LEAST_WORDS = 5


# --- examples ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples, divided into training and test.

    Attributes:
        inputs: [n, …]: pixels (uint8, height, width, 3), numbers of a row (float64), or text.
        answers: [n]: label numbers (int64) or numbers to predict (float64).
        labels: the labels by number; empty for numbers.
        in_test: bool [n].
    """

    inputs: Array
    answers: Array
    labels: Sequence[str]
    in_test: npt.NDArray[np.bool_]

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
            name = self.labels[answer] if self.labels else answer
            if self.inputs.ndim == 1:
                yield split, given, name
            elif self.inputs.ndim == 2:
                day = date(2020, 1, 1) + timedelta(days=number * 389 % 997)
                yield split, f"no-{number:05d}", day.isoformat(), *given, name
            else:
                file = f"{number:05d}.png"
                Image.fromarray(given).save(folder / file)
                yield split, file, name


def read_digits(seed: int, count: int | None) -> Examples:
    """Return scikit-learn's scanned digits, uint8 [n, 8, 8, 3]."""
    digits = datasets.load_digits()
    pixels = (digits.images * 255 / 16).round().astype(np.uint8)[..., None]
    labels = [str(number) for number in range(10)]
    return _divided(np.repeat(pixels, 3, axis=-1), digits.target, labels, seed, count)


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


# --- contenders -------------------------------------------------------------------------------


class Training(NamedTuple):
    """The settings that all networks of a contest share."""

    epochs: int | None  # None: the default
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0


class Outcome(NamedTuple):
    """The score of a contender, and its number of weights (None if it is not a network)."""

    score: float
    parameters: int | None


@dataclass(frozen=True, slots=True)
class Score:
    """One run of one contender; ``cpu_seconds`` are for training and prediction."""

    contest: str
    contender: str
    seed: int
    score: float
    parameters: int | None
    cpu_seconds: float


#: The result of a hand-written script.
Rival = Callable[[Examples, Training], Outcome]


@dataclass(frozen=True, slots=True)
class Contest:
    """Examples, and the contenders that learn from them.

    Attributes:
        measure: name of the score.
        make: takes the seed and the number of examples (None for all); returns the examples.
        training: settings of all networks, with seed 0.
        rivals: hand-written scripts by name.
        settings: settings of Recordgen's training that differ from the defaults.
        options: options of the conversion.
    """

    measure: str
    make: Callable[[int, int | None], Examples]
    training: Training
    rivals: Mapping[str, Rival]
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def recordgen(
    contest: Contest, examples: Examples, training: Training, folder: Path
) -> tuple[Outcome, float]:
    """Convert, train and evaluate as a pipeline does; CPU seconds exclude the conversion."""
    import tensorflow as tf

    from recordgen import convert
    from recordgen.core.dataset.manifest import read_dataset
    from recordgen.kubeflow.evaluate import evaluate
    from recordgen.training import run_fn

    output, model = str(folder / "out"), str(folder / "model")
    convert(examples.write(folder), output, **contest.options)
    started = time.process_time()
    run_fn(
        SimpleNamespace(
            train_files=[f"{output}/Split-train/*"],
            eval_files=[],
            train_steps=None,
            eval_steps=None,
            custom_config={**training._asdict(), **contest.settings},
            serving_model_dir=model,
            model_run_dir=str(folder / "logs"),
        )
    )
    found = evaluate(model, output, read_dataset(output), "test")
    seconds = time.process_time() - started
    if found.examples != examples.in_test.sum():
        raise RuntimeError(f"{found.examples} of {examples.in_test.sum()} examples were answered")
    parameters = sum(int(tf.size(weight)) for weight in tf.saved_model.load(model).weights)
    return Outcome(found.score, parameters), seconds


def _scikit_learn(model: BaseEstimator, examples: Examples, training: Training) -> Outcome:
    """Fit a model of scikit-learn; images become rows of numbers."""
    train = ~examples.in_test
    inputs = examples.inputs
    if inputs.ndim > 2:
        inputs = inputs.reshape(len(inputs), -1) / 255
    if "random_state" in model.get_params():
        model.set_params(random_state=training.seed)
    model.fit(inputs[train], examples.answers[train])
    score = model.score(inputs[examples.in_test], examples.answers[examples.in_test])
    return Outcome(float(score), None)


def _keras(examples: Examples, training: Training) -> Outcome:
    """Train a network of the size of ``small_cnn``, augmented alike: plain Keras on arrays."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(training.seed)
    pixels = tf.image.resize(examples.inputs / 255, (_DIGIT_SIDE, _DIGIT_SIDE)).numpy()
    layers: list[keras.layers.Layer] = [
        keras.layers.RandomTranslation(0.05, 0.05, fill_mode="nearest"),
        keras.layers.RandomRotation(0.05, fill_mode="nearest"),
        keras.layers.RandomZoom(0.05, fill_mode="nearest"),
    ]
    for number in range(int(np.log2(_DIGIT_SIDE)) - 1):
        layers += [keras.layers.MaxPooling2D()] if number else []
        layers += [
            keras.layers.Conv2D(min(256, 32 << number), 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
        ]
    layers += [
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(len(examples.labels), activation="softmax"),
    ]
    model = keras.Sequential([keras.Input(pixels.shape[1:]), *layers])
    model.compile(keras.optimizers.Adam(training.learning_rate), "sparse_categorical_crossentropy")
    train, test = ~examples.in_test, examples.in_test
    model.fit(
        pixels[train], examples.answers[train], training.batch_size, training.epochs, verbose=0
    )
    is_right = model.predict(pixels[test], verbose=0).argmax(-1) == examples.answers[test]
    return Outcome(float(is_right.mean()), model.count_params())


def _logistic() -> BaseEstimator:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _of_table(name: str, measure: str, rivals: Mapping[str, BaseEstimator]) -> Contest:
    return Contest(
        measure,
        partial(read_table, name),
        Training(epochs=None),
        {rival: partial(_scikit_learn, model) for rival, model in rivals.items()},
        options={"columns": "target=target"},
    )


def _of_classes(name: str) -> Contest:
    rivals = {"gradient boosting": GradientBoostingClassifier(), "logistic regression": _logistic()}
    return _of_table(name, "accuracy", rivals)


CONTESTS: Mapping[str, Contest] = {
    "digits": Contest(
        "accuracy",
        read_digits,
        Training(epochs=12),
        {
            "Keras, the same layers": _keras,
            "logistic regression": partial(_scikit_learn, _logistic()),
        },
        settings={"image_size": [_DIGIT_SIDE, _DIGIT_SIDE]},
    ),
    "cancer": _of_classes("breast_cancer"),
    "iris": _of_classes("iris"),
    "wine": _of_classes("wine"),
    "diabetes": _of_table(
        "diabetes",
        "R²",
        {
            "gradient boosting": GradientBoostingRegressor(),
            "linear regression": make_pipeline(StandardScaler(), Ridge()),
        },
    ),
    "texts": Contest(
        "accuracy",
        read_docstrings,
        Training(epochs=10, learning_rate=3e-3),
        {
            "logistic regression of tf-idf": partial(
                _scikit_learn,
                make_pipeline(
                    TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000)
                ),
            )
        },
    ),
}


def run(name: str, seed: int, count: int | None, epochs: int | None) -> Iterator[Score]:
    """Run all contenders of a contest with one seed."""
    contest = CONTESTS[name]
    examples = contest.make(seed, count)
    training = contest.training._replace(seed=seed)
    if epochs is not None:
        training = training._replace(epochs=epochs)
    with tempfile.TemporaryDirectory(prefix="recordgen-results-") as folder:
        outcome, seconds = recordgen(contest, examples, training, Path(folder))
    yield Score(name, "recordgen", seed, *outcome, seconds)
    for rival, learn in contest.rivals.items():
        started = time.process_time()
        outcome = learn(examples, training)
        yield Score(name, rival, seed, *outcome, time.process_time() - started)


def _print_means(scores: Iterable[Score]) -> None:
    """Print a line for each contender of each contest: mean over seeds, lowest, highest."""
    of_each: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        of_each[score.contest, score.contender].append(score)
    for (contest, contender), found in of_each.items():
        values = [score.score for score in found]
        weights = found[0].parameters
        print(
            f"{contest:9} {contender:30} {CONTESTS[contest].measure:8} "
            f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})  "
            f"{statistics.mean(score.cpu_seconds for score in found):5.0f} s CPU"
            f"{'' if weights is None else f'  {weights:,} weights'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument(
        "--seeds",
        type=int,
        default=2,
        help="runs of each contender; seed 0, by which settings were chosen, is left out",
    )
    parser.add_argument("--examples", type=int, help="fewer examples, for a first look")
    parser.add_argument("--epochs", type=int, help="other passes than each contest has")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    quiet_libraries()
    scores: list[Score] = []
    for name, seed in itertools.product(args.only, range(1, args.seeds + 1)):
        for score in run(name, seed, args.examples, args.epochs):
            scores.append(score)
            if not args.json:
                print(f"seed {seed}  {name:9} {score.contender:30} {score.score:.3f}", flush=True)
    if args.json:
        print(json.dumps([asdict(score) for score in scores], indent=2))
        return
    _print_means(scores)


if __name__ == "__main__":
    main()
