"""How well the trainer learns, compared with hand-written scripts on the same examples.

    python -m benchmarks.results
    python -m benchmarks.results --only digits wine --seeds 5

For each seed, examples are divided anew, written as files with an import file, converted, and
trained on with ``recordgen.training.run_fn``; the saved model predicts the split ``test``, which
training never sees. The other contenders get the same examples as arrays, with the same number of
epochs and the same batch size; tables have the default epochs, plain Keras stops early. Nothing is
downloaded: examples come from packages in the locks.

    digits, digits16     scikit-learn's 1,797 scanned digits, gray, of 8 and 16 bits; accuracy
    cancer, iris, wine   scikit-learn's tables with classes; accuracy
    pixels     the digits as a table of 64 numbers; accuracy
    taxis      2,000 of TFX's rides in Chicago, with texts and gaps: is the tip a big one?; accuracy
    diabetes   scikit-learn's table with a number to predict; R²
               (the import files of tables also name each row and give it a day)
    texts      first paragraphs of docstrings in five installed packages; their names are the
               classes; accuracy

The last line of a contest is how far Recordgen is from the best other contender: the mean over the
seeds, and its standard error.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sysconfig
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from recordgen.console.quiet import quiet_libraries

Array = npt.NDArray[Any]

_DIGIT_SIDE = 16
_TEST_SHARE = 0.25
_PACKAGES = ("keras", "networkx", "numpy", "pandas", "scipy")
_PARAGRAPHS = 800  # most of each package
_LEAST_WORDS = 5
_SITE = Path(sysconfig.get_paths()["purelib"])
_RIDES = _SITE / "tfx/examples/chicago_taxi_pipeline/data/big_tipper_label/data.csv"


# --- examples ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples, divided into training and test.

    Attributes:
        inputs: [n, …]: gray pixels (uint8 or uint16, height, width), texts, or columns of a table.
        answers: [n]: label numbers (int64) or numbers to predict (float64).
        labels: the labels by number; empty for numbers.
        in_test: bool [n].
    """

    inputs: Array | pd.DataFrame
    answers: Array
    labels: Sequence[str]
    in_test: npt.NDArray[np.bool_]

    def write(self, folder: Path) -> str:
        """Write files and an import file into a folder; return the import file's path."""
        splits = np.where(self.in_test, "TEST", "TRAIN")
        answers = np.array(self.labels)[self.answers] if self.labels else self.answers
        if is_table := isinstance(self.inputs, pd.DataFrame):
            numbers = np.arange(len(splits))
            names = [f"no-{number:05d}" for number in numbers]
            days = pd.Timestamp("2020-01-01") + pd.to_timedelta(numbers * 389 % 997, "D")
            rows = self.inputs.assign(ml_use=splits, id=names, day=days, target=answers)
        else:
            inputs = self.inputs if self.inputs.ndim == 1 else self._write_images(folder)
            rows = pd.DataFrame({"ml_use": splits, "input": inputs, "label": answers})
        path = folder / "import.csv"
        rows.to_csv(path, index=False, header=is_table)
        return str(path)

    def _write_images(self, folder: Path) -> Sequence[str]:
        names = [f"{number:05d}.png" for number in range(len(self.inputs))]
        for name, pixels in zip(names, self.inputs, strict=True):
            Image.fromarray(pixels).save(folder / name)
        return names

    def score(self, answers: Array) -> float:
        """Return the accuracy, or R², of answers to the test."""
        measure = accuracy_score if self.labels else r2_score
        return float(measure(self.answers[self.in_test], answers))


def read_digits(dtype: str, seed: int, count: int | None) -> Examples:
    """Return scikit-learn's scanned digits, gray: uint8 or uint16 [n, 8, 8]."""
    digits = datasets.load_digits()
    pixels = (digits.images * np.iinfo(dtype).max / 16).round().astype(dtype)
    labels = [str(number) for number in range(10)]
    return _divided(pixels, digits.target, labels, seed, count)


def read_table(name: str, seed: int, count: int | None) -> Examples:
    """Return a table of scikit-learn: ``wine``, ``diabetes``, …."""
    table = getattr(datasets, f"load_{name}")()
    columns = pd.DataFrame(table.data).add_prefix("column_")
    labels = [f"{label}" for label in table.get("target_names", ())]
    return _divided(columns, table.target, labels, seed, count)


def read_rides(seed: int, count: int | None) -> Examples:
    """Return rides of TFX's example, without the tip; whether it was a big one is the label."""
    rides = pd.read_csv(_RIDES).drop(columns="tips")
    answers = rides.pop("big_tipper").to_numpy()
    return _divided(rides, answers, ["small", "big"], seed, count or 2000)


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
    found = [
        {
            text
            for path in (_SITE / package).rglob("*.py")
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
    inputs: Array | pd.DataFrame,
    answers: Array,
    labels: Sequence[str],
    seed: int,
    count: int | None,
) -> Examples:
    """Put a random quarter of the examples into the test."""
    order = np.random.default_rng(seed).permutation(len(inputs))[:count]
    in_test = np.arange(len(order)) < _TEST_SHARE * len(order)
    return Examples(inputs.take(order, axis=0), answers[order], labels, in_test)


# --- contenders -------------------------------------------------------------------------------


class Training(NamedTuple):
    """The settings that all networks of a contest share."""

    epochs: int | None  # None: the default
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0


#: A hand-written script; returns its score.
Rival = Callable[[Examples, Training], float]


@dataclass(frozen=True, slots=True)
class Contest:
    """Examples, and the contenders that learn from them.

    Attributes:
        make: takes the seed and the number of examples (None for all); returns the examples.
        training: settings of all networks, with seed 0.
        rivals: hand-written scripts by name.
        settings: settings of Recordgen's training that differ from the defaults.
    """

    make: Callable[[int, int | None], Examples]
    training: Training
    rivals: Mapping[str, Rival]
    settings: Mapping[str, Any] = field(default_factory=dict)


def recordgen(contest: Contest, examples: Examples, training: Training, folder: Path) -> float:
    """Convert, train and evaluate as a pipeline does; return the score."""
    from recordgen import convert
    from recordgen.core.dataset.manifest import read_dataset
    from recordgen.kubeflow.models import evaluation_of
    from recordgen.training import run_fn

    output, model = str(folder / "out"), str(folder / "model")
    is_table = isinstance(examples.inputs, pd.DataFrame)
    convert(examples.write(folder), output, columns={"target": "target"} if is_table else {})
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
    found = evaluation_of(model, output, read_dataset(output), "test")
    if found.examples != examples.in_test.sum():
        raise RuntimeError(f"{found.examples} of {examples.in_test.sum()} examples were answered")
    return found.score


def _scikit_learn(model: BaseEstimator, examples: Examples, training: Training) -> float:
    """Fit a model of scikit-learn; images become rows of numbers."""
    train, inputs = ~examples.in_test, examples.inputs
    if isinstance(inputs, np.ndarray) and inputs.ndim > 2:
        inputs = inputs.reshape(len(inputs), -1)
    seeds = [name for name in model.get_params() if name.endswith("random_state")]
    model.set_params(**dict.fromkeys(seeds, training.seed))
    model.fit(inputs[train], examples.answers[train])
    return examples.score(model.predict(inputs[~train]))


def _keras_of_images(examples: Examples, training: Training) -> float:
    """Train a network of the size of ``small_cnn``, augmented alike."""
    import keras
    import tensorflow as tf

    shares = examples.inputs[..., None] / np.iinfo(examples.inputs.dtype).max
    pixels = tf.image.resize(shares, (_DIGIT_SIDE, _DIGIT_SIDE)).numpy()
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
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dropout(0.2)]
    return _keras(layers, pixels, examples, training)


def _keras_of_columns(examples: Examples, training: Training) -> float:
    """Train two hidden layers until a tenth of the training examples has no lower loss."""
    import keras

    columns = _columns().fit(examples.inputs[~examples.in_test])
    layers = [keras.layers.Dense(64, "relu"), keras.layers.Dropout(0.2)]
    layers += [keras.layers.Dense(32, "relu"), keras.layers.Dropout(0.2)]
    return _keras(layers, columns.transform(examples.inputs), examples, training)


def _keras(layers: list[Any], inputs: Array, examples: Examples, training: Training) -> float:
    """Train layers, and one of the answers behind them: plain Keras on arrays."""
    import keras

    keras.utils.set_random_seed(training.seed)
    train, labels = ~examples.in_test, examples.labels
    answers = examples.answers
    mean, deviation = (0, 1) if labels else (answers[train].mean(), answers[train].std())
    last = keras.layers.Dense(len(labels) or 1, activation="softmax" if labels else None)
    model = keras.Sequential([keras.Input(inputs.shape[1:]), *layers, last])
    loss = "sparse_categorical_crossentropy" if labels else "mean_squared_error"
    model.compile(keras.optimizers.Adam(training.learning_rate), loss)
    stop = keras.callbacks.EarlyStopping(patience=10, restore_best_weights=True)
    model.fit(
        inputs[train],
        (answers[train] - mean) / deviation,
        training.batch_size,
        training.epochs or 200,
        verbose=0,
        **({} if training.epochs else {"validation_split": 0.1, "callbacks": [stop]}),
    )
    outputs = model.predict(inputs[~train], verbose=0)
    found = outputs.argmax(-1) if labels else outputs[:, 0] * deviation + mean
    return examples.score(found)


def _columns() -> BaseEstimator:
    """Return what makes numbers of a table: one column for each text, and for gaps."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", min_frequency=2, sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_exclude=object)),
        (texts, make_column_selector(dtype_include=object)),
    )


_LOGISTIC = LogisticRegression(max_iter=1000)
_CLASSIFIERS = {
    "gradient boosting": GradientBoostingClassifier(),
    "logistic regression": _LOGISTIC,
}
_REGRESSORS = {"gradient boosting": GradientBoostingRegressor(), "linear regression": Ridge()}


def _of_digits(dtype: str) -> Contest:
    regression = make_pipeline(StandardScaler(), _LOGISTIC)
    rivals: Mapping[str, Rival] = {
        "Keras, the same layers": _keras_of_images,
        "logistic regression": partial(_scikit_learn, regression),
    }
    settings = {"image_size": [_DIGIT_SIDE, _DIGIT_SIDE]}
    return Contest(partial(read_digits, dtype), Training(epochs=12), rivals, settings)


def _of_table(
    make: Callable[[int, int | None], Examples], models: Mapping[str, BaseEstimator] = _CLASSIFIERS
) -> Contest:
    rivals = {
        name: partial(_scikit_learn, make_pipeline(_columns(), model))
        for name, model in models.items()
    }
    return Contest(make, Training(epochs=None), {**rivals, "plain Keras": _keras_of_columns})


CONTESTS: Mapping[str, Contest] = {
    "digits": _of_digits("uint8"),
    "digits16": _of_digits("uint16"),
    "cancer": _of_table(partial(read_table, "breast_cancer")),
    "iris": _of_table(partial(read_table, "iris")),
    "wine": _of_table(partial(read_table, "wine")),
    "pixels": _of_table(partial(read_table, "digits")),
    "taxis": _of_table(read_rides),
    "diabetes": _of_table(partial(read_table, "diabetes"), _REGRESSORS),
    "texts": Contest(
        read_docstrings,
        Training(epochs=10, learning_rate=3e-3),
        {
            "logistic regression of tf-idf": partial(
                _scikit_learn, make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), _LOGISTIC)
            )
        },
    ),
}


def run(
    name: str, seed: int, count: int | None = None, epochs: int | None = None
) -> Iterator[tuple[str, float]]:
    """Yield the contenders of a contest and their scores with one seed.

    ``count`` and ``epochs``: fewer examples, other passes.
    """
    contest = CONTESTS[name]
    examples = contest.make(seed, count)
    training = contest.training._replace(seed=seed, epochs=epochs or contest.training.epochs)
    with tempfile.TemporaryDirectory(prefix="recordgen-results-") as folder:
        yield "recordgen", recordgen(contest, examples, training, Path(folder))
    for rival, learn in contest.rivals.items():
        yield rival, learn(examples, training)


def print_means(contest: str, scores: Mapping[str, Sequence[float]]) -> None:
    """Print each contender's mean, lowest and highest score, and the distance to the best other."""
    means = {name: statistics.mean(values) for name, values in scores.items()}
    for name, values in scores.items():
        spread = f"({min(values):.3f} to {max(values):.3f})"
        print(f"{contest:9} {name:30} {means[name]:.3f} {spread}")
    best = max(list(scores)[1:], key=means.__getitem__)
    apart = np.subtract(scores["recordgen"], scores[best])
    error = statistics.stdev(apart) / len(apart) ** 0.5 if len(apart) > 1 else float("nan")
    print(f"{contest:9} recordgen - {best:18} {apart.mean():+.3f} ± {error:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        help="runs of each contender; seed 0, by which settings were chosen, is left out",
    )
    args = parser.parse_args()
    quiet_libraries()
    for name in args.only:
        scores: dict[str, list[float]] = defaultdict(list)
        for seed in range(1, args.seeds + 1):
            for contender, score in run(name, seed):
                scores[contender].append(score)
                print(f"seed {seed}  {name:9} {contender:30} {score:.3f}", flush=True)
        print_means(name, scores)


if __name__ == "__main__":
    main()
