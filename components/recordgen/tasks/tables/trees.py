"""Boosted trees or a line: scikit-learn fits them, Keras's operations answer in the saved model.

Networks draw smooth curves: a few hundred rows do not teach them the exact number at which a target
changes, which trees find at once, nor a plain line. scikit-learn is small, and its trees are public
arrays, which become constants of the saved model: serving needs TensorFlow alone. TensorFlow
Decision Forests ended with Keras 2; models of XGBoost and LightGBM need their libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from recordgen.errors import MissingPackageError

#: Numbers (float32 [batch, columns]) → probabilities of classes, or a number: [batch, outputs].
Answer = Callable[[Any], Any]

_DEPTH = 3
_PARTS, _JUDGED_ROWS, _FEWEST_ROWS = 5, 10_000, 40
_RAREST = 1e-6  # the least probability of a class


class Rows(NamedTuple):
    """What a model learns from.

    Attributes:
        numbers: float32 [rows, columns].
        targets: the numbers of classes (int64 [rows]), or numbers (float32 [rows]).
        weights: float32 [rows].
    """

    numbers: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    weights: npt.NDArray[Any]

    @classmethod
    def joined(cls, batches: Iterable[Sequence[Any]]) -> Rows:
        """Return the rows of batches without those of weight 0; a batch may lack weights."""
        numbers, targets, *weights = map(np.concatenate, zip(*batches, strict=True))
        rows = cls(numbers, targets.ravel(), weights[0] if weights else np.ones(len(numbers)))
        return rows.where(rows.weights > 0)

    def where(self, is_kept: npt.NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(*(values[is_kept] for values in self))

    def fit(self, model: Any) -> Any:
        """Return a model of scikit-learn that has learnt from the rows."""
        return model.fit(self.numbers, self.targets, sample_weight=self.weights)


def better_answer(rows: Rows, classes: int, seed: int) -> Answer | None:
    """Return how boosted trees answer, or a line, whichever predicts unseen rows better.

    ``classes``: their number; 0 if the target is a number. None: there are too few rows, or fewer
    than two classes with some rows.

    Raises: MissingPackageError: scikit-learn is not installed.
    """
    try:
        from sklearn import ensemble, linear_model
        from sklearn.model_selection import cross_val_score
    except ImportError as exc:
        raise MissingPackageError.of(exc, "training on a table") or exc from exc
    settings = {"max_depth": _DEPTH, "subsample": 0.5, "max_features": 0.5, "random_state": seed}
    judged = rows.where(np.arange(len(rows.targets)) < _JUDGED_ROWS)
    models: tuple[Any, ...] = (
        ensemble.GradientBoostingRegressor(**settings),
        linear_model.Ridge(),
    )
    if classes:
        models = (
            ensemble.GradientBoostingClassifier(**settings),
            linear_model.LogisticRegression(max_iter=1000),
        )
        # Each part of the rows has each class.
        judged = judged.where(np.bincount(judged.targets)[judged.targets] >= _PARTS)
    if len(judged.targets) < _FEWEST_ROWS or (classes and len(np.unique(judged.targets)) < 2):
        return None
    measure = "neg_log_loss" if classes else "neg_mean_squared_error"
    score = partial(cross_val_score, X=judged.numbers, y=judged.targets, cv=_PARTS, scoring=measure)
    better = max(models, key=lambda model: score(model).mean())
    return answer_of(rows.fit(better), rows, classes)


def answer_of(model: Any, rows: Rows, classes: int) -> Answer:
    """Return how a model of scikit-learn answers that has learnt from rows."""
    is_line = hasattr(model, "coef_")
    total = _line(model) if is_line else _trees(model)
    if not classes:
        start = 0.0 if is_line else np.average(rows.targets, weights=rows.weights)
        return lambda numbers: total(numbers) + np.float32(start)
    # scikit-learn has one number for two classes, and none for a class without rows.
    known = np.eye(classes, dtype=np.float32)[model.classes_]
    outputs = known[1:] if len(known) == 2 else known
    shares = np.bincount(rows.targets, rows.weights, classes) / np.sum(rows.weights)
    logits = np.log(np.maximum(known.sum(0) if is_line else shares, _RAREST)).astype(np.float32)
    return lambda numbers: keras.ops.softmax(keras.ops.matmul(total(numbers), outputs) + logits)


def _line(model: Any) -> Answer:
    slopes = np.atleast_2d(model.coef_).T.astype(np.float32)
    start = np.atleast_1d(model.intercept_).astype(np.float32)
    return lambda numbers: keras.ops.matmul(numbers, slopes) + start


def _trees(model: Any) -> Answer:
    """Return the sums of the leaves that rows reach; node ``n`` leads to ``2 n + 1`` or ``+ 2``."""
    rounds, outputs = model.estimators_.shape
    trees = [_complete(each.tree_) for each in model.estimators_.ravel()]
    columns, limits, leaves = map(np.stack, zip(*trees, strict=True))
    # A limit that float32 cannot hold becomes the number below.
    near = limits.astype(np.float32)
    near = np.where(near > limits, np.nextafter(near, np.float32(-np.inf)), near)
    steps = (model.learning_rate * leaves).astype(np.float32)
    tree = np.arange(len(trees))
    first_node, first_leaf = limits.shape[1] * tree, leaves.shape[1] * tree

    def total(numbers: Any) -> Any:
        node = keras.ops.zeros_like(numbers[:, :1], "int64") + 0 * tree
        for _ in range(_DEPTH):
            column = keras.ops.take(columns.ravel(), node + first_node)
            limit = keras.ops.take(near.ravel(), node + first_node)
            is_above = keras.ops.take_along_axis(numbers, column, axis=1) > limit
            node = 2 * node + 1 + keras.ops.cast(is_above, "int64")
        leaf = keras.ops.take(steps.ravel(), node - limits.shape[1] + first_leaf)
        return keras.ops.sum(keras.ops.reshape(leaf, (-1, rounds, outputs)), axis=1)

    return total


def _complete(tree: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return columns, limits and leaves of a tree; behind an early leaf, all rows go one way."""
    nodes, columns, limits = np.zeros(1, np.int64), [], []
    for _ in range(_DEPTH):
        is_leaf = tree.children_left[nodes] < 0
        columns.append(np.where(is_leaf, 0, tree.feature[nodes]))
        limits.append(np.where(is_leaf, np.inf, tree.threshold[nodes]))
        children = np.stack([tree.children_left[nodes], tree.children_right[nodes]])
        nodes = np.where(is_leaf, nodes, children).T.ravel()
    return np.concatenate(columns), np.concatenate(limits), tree.value[nodes, 0, 0]
