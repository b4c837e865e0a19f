"""A bad element costs itself, not its batch: for saved models, whose graphs have no ``try``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from recordgen.core.records.example import serialize_example
from recordgen.subjects.masks import IGNORED

#: The output of a signature that says why an element has no answer; "" if it has one.
ERROR = "error"

# What an element without an answer gets.
_NOTHING = {tf.float32: math.nan, tf.string: "", tf.int32: IGNORED}


def attempted(
    function: Callable[..., Any],
    elements: tuple[tf.Tensor, ...],
    spec: tf.TensorSpec,
    finish: Callable[[Any], Any] = tf.identity,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Apply a function to each element of a batch, several at a time.

    Only a dataset skips what fails. A batch is one element of it, and only if that fails, each of
    its elements is one: a dataset's own work takes as long as decoding a small image.

    Returns:
        What ``finish``, which cannot fail, makes of the results ([batch, …] of ``spec``, zeros
        where the function fails), and where it does not (bool [batch]).
    """

    def whole(*element: tf.Tensor) -> tf.Tensor:
        return finish(function(*element))

    return tf.cond(
        tf.shape(elements[0])[0] == 1,
        lambda: _alone(function, elements, finish),
        lambda: _together(whole, elements, spec),
    )


def _alone(
    function: Callable[..., Any], elements: tuple[tf.Tensor, ...], finish: Callable[[Any], Any]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Apply a function to a batch of one.

    The dataset prepares its functions again for each request, so ``finish`` stays outside.
    """
    data = tf.data.Dataset.from_tensors(tuple(each[0] for each in elements))
    data = data.map(lambda *element: (True, function(*element))).ignore_errors()
    _, made = data.element_spec
    zeros = tf.zeros([side or 1 for side in made.shape], made.dtype)
    nothing = tf.data.Dataset.from_tensors((False, zeros))
    is_good, found = _only(data.concatenate(nothing).take(1))
    return finish(found)[None], is_good[None]


def _together(
    function: Callable[..., Any], elements: tuple[tf.Tensor, ...], spec: tf.TensorSpec
) -> tuple[tf.Tensor, tf.Tensor]:
    count = tf.shape(elements[0], tf.int64)[0]

    def whole(*batch: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(lambda each: function(*each), batch, fn_output_signature=spec)

    nothing = tf.data.Dataset.from_tensors(tf.zeros((0, *spec.shape), spec.dtype))
    data = tf.data.Dataset.from_tensors(elements).map(whole).ignore_errors()
    found = _only(data.concatenate(nothing).take(1))
    return tf.cond(
        tf.shape(found, tf.int64)[0] == count,
        lambda: (found, tf.fill([count], True)),
        lambda: _one_by_one(function, elements, spec),
    )


def _one_by_one(
    function: Callable[..., Any], elements: tuple[tf.Tensor, ...], spec: tf.TensorSpec
) -> tuple[tf.Tensor, tf.Tensor]:
    count = tf.shape(elements[0], tf.int64)[0]
    data = tf.data.Dataset.from_tensor_slices((tf.range(count), *elements))
    data = data.map(
        lambda number, *element: (number, function(*element)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    ).ignore_errors()
    # One more: a batch needs an element, and bad ones need zeros.
    zeros = tf.data.Dataset.from_tensors((count, tf.zeros(spec.shape, spec.dtype)))
    good, found = _only(data.concatenate(zeros).batch(count + 1))
    last = tf.shape(good, tf.int64)[0] - 1
    places = tf.fill([count + 1], last)
    places = tf.tensor_scatter_nd_update(places, good[:, None], tf.range(last + 1))[:-1]
    return tf.gather(found, places), places < last


def _only(data: tf.data.Dataset) -> Any:
    options = tf.data.Options()
    # Optimising and tuning take longer than the work.
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return data.with_options(options).get_single_element()


def readable(records: tf.Tensor, spec: Mapping[str, Any]) -> tuple[dict[str, Any], tf.Tensor]:
    """Parse serialised Examples (string [batch]) as ``tf.io.parse_example``; each on its own.

    Returns:
        The features, zeros and "" for a record that ``spec`` does not fit; and why there are none
        (string [batch], "" for a good record).
    """

    def all_fit(batch: tf.Tensor) -> tf.Tensor:
        value = next(iter(tf.io.parse_example(batch, spec).values()))
        value = value.flat_values if isinstance(value, tf.RaggedTensor) else value
        return tf.strings.length(tf.io.serialize_tensor(value)) > 0  # unused, it were not parsed

    whole = tf.data.Dataset.from_tensors(records).map(all_fit).ignore_errors()
    is_good = tf.cond(
        _only(whole.concatenate(tf.data.Dataset.from_tensors(False)).take(1)),
        lambda: tf.fill(tf.shape(records), True),
        lambda: _one_by_one(
            lambda record: all_fit(record[None]), (records,), tf.TensorSpec((), tf.bool)
        )[1],
    )
    good = tf.where(is_good, records, b"".join(serialize_example(_empty(spec))))
    why = "the bytes are no tf.train.Example with the features of the model's columns"
    return tf.io.parse_example(good, spec), tf.where(is_good, "", why)


def _empty(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that ``spec`` needs: zeros, and empty texts."""
    zeros = {tf.float32: 0.0, tf.int64: 0, tf.string: b""}
    fixed = {name: it for name, it in spec.items() if isinstance(it, tf.io.FixedLenFeature)}
    return {name: [zeros[it.dtype]] * math.prod(it.shape) for name, it in fixed.items()}


def answered(answers: Mapping[str, tf.Tensor], error: tf.Tensor) -> dict[str, tf.Tensor]:
    """Return the answers to a batch, nothing for elements with an error, and :data:`ERROR`.

    Nothing is NaN, "", or the class number of no class; ``error`` is "" for an answer.
    """
    found = {ERROR: error}
    for name, values in answers.items():
        is_bad = tf.reshape(error != "", [-1] + [1] * (len(values.shape) - 1))
        found[name] = tf.where(is_bad, tf.constant(_NOTHING[values.dtype], values.dtype), values)
    return found
