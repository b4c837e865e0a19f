"""Boosted trees or a line: scikit-learn fits them, Keras's operations answer in the saved model.

Networks draw smooth curves: a few hundred rows do not teach them the exact number at which a target
changes, which trees find at once, nor a plain line. scikit-learn is small, and its trees are public
arrays, which become constants of the saved model: serving needs TensorFlow alone. TensorFlow
Decision Forests ended with Keras 2; models of XGBoost and LightGBM need their libraries.

The better one answers alone: a mean of both fell as far behind the better one in a simulation, was
0.0015 better on average, and would put both into each saved model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from recordgen.errors import MissingPackageError

_PARTS, _JUDGED_ROWS, _FEWEST_ROWS = 5, 10_000, 40
_RAREST = 1e-6  # the least probability of a class


def better_model(rows: Sequence[npt.NDArray[Any]], classes: int, seed: int) -> Any:
    """Return boosted trees or a line of scikit-learn, whichever predicts unseen rows better.

    Args:
        rows: numbers (float32 [rows, columns]); targets (int64 [rows] for classes, or float32); and
            weights above 0 ([rows]).
        classes: the number of classes; 0 if the target is a number.
        seed: decides the columns that each tree sees.

    Returns: None if there are too few rows, or fewer than two classes with some rows.

    Raises: MissingPackageError: scikit-learn is not installed.
    """
    try:
        from sklearn import ensemble, linear_model
        from sklearn.model_selection import cross_val_predict
    except ImportError as exc:
        raise MissingPackageError.of(exc, "training on a table") or exc from exc
    # Each tree sees half of the columns, but all rows: few rows are too few to be divided.
    settings = {"max_features": 0.5, "random_state": seed}
    numbers, targets, weights = rows
    x, y = numbers[:_JUDGED_ROWS], targets[:_JUDGED_ROWS]
    if classes:
        trees = ensemble.GradientBoostingClassifier(**settings)
        line = linear_model.LogisticRegression(max_iter=1000)
        is_judged = np.bincount(y)[y] >= _PARTS  # each part of the rows needs each class
        x, y = x[is_judged], y[is_judged]
        method, expected = "predict_proba", y[:, None] == np.unique(y)
    else:
        trees, line = ensemble.GradientBoostingRegressor(**settings), linear_model.Ridge()
        method, expected = "predict", y
    if len(y) < _FEWEST_ROWS or (classes and expected.shape[1] < 2):
        return None
    predict = partial(cross_val_predict, X=x, y=y, cv=_PARTS, method=method)
    # Not the log loss: trees are often too sure of a class, and right all the same.
    losses = [np.mean(np.square(predict(model) - expected)) for model in (trees, line)]
    better = trees if losses[0] < losses[1] else line
    return better.fit(numbers, targets, sample_weight=weights)


def answer_of(model: Any, classes: int, numbers: Any) -> Any:
    """Return the answer of a model of scikit-learn, boosted trees or a line.

    ``numbers`` (float32 [batch, columns]) → probabilities of classes, or a number: [batch, outputs]
    """
    is_line = hasattr(model, "coef_")
    total = _line(model, numbers) if is_line else _trees(model, numbers)
    if not classes:
        return total
    # scikit-learn has one number for two classes, and none for a class without rows.
    known = np.eye(classes, dtype=np.float32)[model.classes_]
    outputs = known[1:] if len(known) == 2 else known
    shares = known.sum(0) if is_line else model.init_.class_prior_ @ known
    logits = np.log(np.maximum(shares, _RAREST)).astype(np.float32)
    return keras.ops.softmax(keras.ops.matmul(total, outputs) + logits)


def _line(model: Any, numbers: Any) -> Any:
    slopes = np.atleast_2d(model.coef_).T.astype(np.float32)
    start = np.atleast_1d(model.intercept_).astype(np.float32)
    return keras.ops.matmul(numbers, slopes) + start


def _trees(model: Any, numbers: Any) -> Any:
    """Return the sums of the leaves that rows reach; a number's with what boosting begins with."""
    start = 0.0 if hasattr(model, "classes_") else model.init_.constant_.item()
    trees = [each.tree_ for each in model.estimators_.ravel()]
    counts = [tree.node_count for tree in trees]
    roots = np.cumsum(counts) - counts
    columns, exact, left, right, values = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("feature", "threshold", "children_left", "children_right", "value")
    )
    children = np.stack([left, right], axis=1) + np.repeat(roots, counts)[:, None]
    # A leaf leads to itself.
    children = np.where(left[:, None] < 0, np.arange(len(left))[:, None], children).ravel()
    columns = np.maximum(columns, 0)
    # A limit that float32 cannot hold becomes the number below.
    limits = exact.astype(np.float32)
    limits = np.where(limits > exact, np.nextafter(limits, np.float32(-np.inf)), limits)
    steps = (model.learning_rate * values.ravel()).astype(np.float32)
    node = keras.ops.zeros_like(numbers[:, :1], "int64") + roots
    for _ in range(model.max_depth):
        number = keras.ops.take_along_axis(numbers, keras.ops.take(columns, node), axis=1)
        is_above = keras.ops.cast(number > keras.ops.take(limits, node), "int64")
        node = keras.ops.take(children, 2 * node + is_above)
    reached = keras.ops.reshape(keras.ops.take(steps, node), (-1, *model.estimators_.shape))
    return keras.ops.sum(reached, axis=1) + start
