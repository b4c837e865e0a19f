"""How well the trainer learns, compared with hand-written scripts on the same examples.

    python -m benchmarks.results
    python -m benchmarks.results --only digits tables --seeds 5

For each seed, examples are made or divided anew, written as files with an import file, converted,
and trained on with ``recordgen.training.run_fn``; the saved model predicts the split ``test``,
which training never sees. The other contenders get the same examples as arrays, with the same
number of epochs and the same batch size; tables have the default epochs.

    digits     scikit-learn's 1,797 scanned digits; accuracy
    pictures   32×32 colour pictures of shapes of ten classes (benchmarks.shapes); accuracy
    boxes      96×96 pictures of one to six shapes that cover each other, of four classes; average
               precision at an overlap of 0.5, mean of the classes
    cancer, iris, wine   scikit-learn's tables with classes; accuracy
    diabetes   scikit-learn's table with a number to predict; R²
               (the import files of tables also name each row and give it a day)
    texts      first paragraphs of docstrings in five installed packages; their names are the
               classes; accuracy

CPU seconds are for training and prediction, in all threads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.labelled import (
    Examples,
    Training,
    make_boxes,
    make_pictures,
    read_digits,
    read_docstrings,
    read_table,
)
from recordgen.console.quiet import quiet_libraries

Array = npt.NDArray[Any]


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


def _keras(
    name: str, size: tuple[int, int] | None, examples: Examples, training: Training
) -> Outcome:
    """Train a classifier of :mod:`benchmarks.by_hand` on images, resized if ``size`` is given."""
    import tensorflow as tf

    from benchmarks import by_hand

    pixels = examples.inputs.astype(np.float32) / 255
    if size is not None:
        pixels = tf.image.resize(pixels, size).numpy()
    train, test = ~examples.in_test, examples.in_test
    found = getattr(by_hand, name)(
        pixels[train], examples.answers[train], pixels[test], len(examples.labels), training
    )
    if examples.has_boxes:
        return Outcome(mean_precision(examples.answers[test], found.values), found.parameters)
    is_right = found.values.argmax(-1) == examples.answers[test]
    return Outcome(float(is_right.mean()), found.parameters)


def mean_precision(true: Array, found: Array) -> float:
    from recordgen.training.measures import BoxAccumulator

    counts = BoxAccumulator(0)
    counts.add(true, found)
    return counts.score()


def _logistic() -> BaseEstimator:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _of_pictures(
    make: Callable[[int, int | None], Examples], epochs: int, side: int, *, enlarged: bool
) -> Contest:
    size = (side, side) if enlarged else None
    return Contest(
        "accuracy",
        make,
        Training(epochs=epochs),
        {
            "Keras, the same layers": partial(_keras, "normalised_convnet", size),
            "Keras, two convolutions": partial(_keras, "simple_convnet", size),
            "logistic regression": partial(_scikit_learn, _logistic()),
        },
        settings={"image_size": [side, side]},
    )


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
    "digits": _of_pictures(read_digits, 12, 16, enlarged=True),
    "pictures": _of_pictures(make_pictures, 15, 32, enlarged=False),
    "boxes": Contest(
        "mAP@0.5",
        make_boxes,
        Training(epochs=12, batch_size=8, learning_rate=3e-3),
        {"Keras, a grid as in YOLO": partial(_keras, "grid_detector", None)},
        settings={"image_size": [96, 96]},
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
