"""Tables: a network over the images, texts, numbers and vectors of a row, and trees beside it.

Each column of images has its own small CNN; a text becomes the mean of its words' vectors; a date
becomes numbers; numbers and vectors are normalised. A missing number is replaced by the mean of its
column; a column with missing numbers in training gets a second input, 1 where the number is
missing. A column whose texts name rows, such as an id, is left out.

The network has two hidden layers, and a linear path beside them. Vectors of texts are dropped more
often than hidden units: words of a few rows were learnt by heart. The answer is a mean of the
network's and that of boosted trees or a line (:mod:`recordgen.tasks.tables.trees`), which see
numbers and frequent words; of images and sentences, these are too little.

A request has the columns by name, as in a row of JSON:
``{"instances": [{"alcohol": 14.2, "colour": "red", "photo": {"b64": "…"}}]}``
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from recordgen.errors import DataError, UsageError
from recordgen.reading import read, train_dataset
from recordgen.reading.attempts import answered, readable
from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.levels import typed
from recordgen.reading.options import AUTO
from recordgen.reading.parsing import NO_WHOLE, gaps_as_nan
from recordgen.reading.words import learn_words, split_words
from recordgen.tables.columns import Table, table_of
from recordgen.tasks.tables.reading import TableReader, column_specs, given_columns
from recordgen.tasks.tables.trees import answer_of, better_model
from recordgen.training.config import ACCURACY, FLOAT32, LABEL, RMSE, SCORES, WEIGHT
from recordgen.training.learner import EXAMPLES, Signature, TaskTrainer, in_order
from recordgen.training.measures import NOTHING, Moments, Scale
from recordgen.training.model import Models, augmented, movement, predicted, small_cnn
from recordgen.training.model_files import EarlierModel
from recordgen.training.words import MOST_TOKENS, NGRAMS, has_words, mean_of_words

NUMBERS = "numbers"

_UNITS = (64, 32)
_WIDTH_OF_WORDS = 8
_NETWORK_SHARE = 0.4  # in the answer, if trees or a line have the rest

# Trees take some seconds for this many cells, of rows, columns and classes. They need this many
# rows, unless there are no more.
_CELLS = 2_000_000
_ENOUGH_ROWS = 10_000
_FREQUENT_WORDS = 64  # of a column

_ROWS_AT_ONCE = 1024

# What the texts of a column are: ROW_NAME has no input in the model.
TEXT, SENTENCE, DATE, ROW_NAME = "text", "sentence", "date", "name of a row"

# How a column of texts is judged: by the rows of some batches. Names of rows are shorter than
# sentences, and most of their words never come again; fewer texts than these may differ by chance.
_JUDGED_BATCHES = 100
_SENTENCE_WORDS = 3
_FEWEST_NAMES = 20
_DATES_SHARE = 0.9

# Year, month, day and hour of a date.
_DATE = r"^\s*(\d{4})[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12]\d|3[01])(?:[T ]+(\d\d?):.*)?\s*$"

_log = logging.getLogger("recordgen.training")

# The first entries of Keras's vocabularies: padding, and all unknown words.
_NO_WORDS = ("", "[UNK]")


#: The signature that takes columns by name.
COLUMNS = "columns"


class TableTrainer(TaskTrainer):
    """Predicts a class or a number from columns of any kinds."""

    # Examples are serialised, as usual for tables in TFX; they need no target.
    request = (EXAMPLES,)

    # Ten passes over few rows are too few steps; too many, and a network learns rows by heart.
    repeats = ((300, 200), (2000, 60))
    patience = 10
    learning_rate = 3e-3
    weight_decay = 1.0

    @cached_property
    def table(self) -> Table:
        """The columns. Raises: DataError: dataset.json does not name them."""
        table = table_of(self.dataset)
        if table is None:
            raise DataError(f"{self.root}: dataset.json does not name the table's columns")
        return table

    @property
    def are_classes(self) -> bool:
        """Whether the target is a class, not a number."""
        return self.table.has_labels

    # Inputs have names of their own: not every column name is allowed as the name of an input.

    @property
    def _images(self) -> Mapping[str, str]:
        """The columns of images, by the model's input."""
        return {f"image_{at}": name for at, name in enumerate(self.table.inputs_of("image"))}

    @property
    def _texts(self) -> Mapping[str, str]:
        """The columns of texts, by the model's input."""
        texts = [name for name, kind in self._text_kinds.items() if kind in (TEXT, SENTENCE)]
        return {f"text_{at}": name for at, name in enumerate(texts)}

    @property
    def _numbers(self) -> Sequence[str]:
        """The columns that become numbers: numbers, vectors and dates."""
        numbers = {column.name for column in self.table.number_inputs}
        numbers.update(self.table.inputs_of("floats"))
        numbers.update(name for name, kind in self._text_kinds.items() if kind == DATE)
        return [name for name in self._columns if name in numbers]

    @cached_property
    def _text_kinds(self) -> Mapping[str, str]:
        """What the texts of each column are; the same as for the earlier model, if any.

        Columns of names are left out, unless there are no others.
        """
        names = self.table.inputs_of("text")
        if self.earlier is not None:
            before = self.earlier.inputs.get("columns", {})
            others = {SENTENCE, DATE, ROW_NAME}
            return {name: before[name] if before.get(name) in others else TEXT for name in names}
        kinds = {}
        for name in names:
            texts = [rows[name] for rows in self._rows([name]).take(_JUDGED_BATCHES)]
            kinds[name] = kind_of_texts(tf.concat(texts, 0))
        left_out = [name for name, kind in kinds.items() if kind == ROW_NAME]
        if len(left_out) == len(self.table.inputs):
            return dict.fromkeys(names, TEXT)
        for name in left_out:
            _log.warning(
                "column %r is left out: its texts name rows (nearly all differ, and none is a "
                "sentence); dates are read as 2024-03-14, 14.3.2024 or 3/14/2024",
                name,
            )
        return kinds

    def check(self) -> None:
        if self.table.target is None:
            raise DataError(
                f"{self.root}: no column is the target, only {', '.join(self.table.names)}; "
                f"convert with --columns target=NAME, or declare it as label, int_label or "
                f"float_label in the schema"
            )
        if not self.table.inputs:
            raise DataError(f"{self.root}: there is no column other than the target")
        if self.are_classes:
            split = self.dataset.splits.get(self.split)
            seen = [label for label, count in split.labels.items() if count] if split else []
            if len(seen) < 2:
                raise DataError(
                    f"{self.root}: the target has {', '.join(seen) or 'no class'} in split "
                    f"{self.split!r} (splits: {', '.join(self.dataset.splits)}): there is nothing "
                    f"to learn"
                )
        if self.earlier is not None:
            self._check_earlier(self.earlier)

    def _check_earlier(self, earlier: EarlierModel) -> None:
        """Check that an earlier model has the same columns. Raises: UsageError."""
        if "sixteenths" in earlier.inputs:
            raise UsageError(f"base_model {earlier.path} is of an older kind: train without it")
        before, now = earlier.inputs.get("columns", {}), self._columns
        if list(before.items()) != list(now.items()):
            changed = sorted({name for name, _ in before.items() ^ now.items()}) or list(before)
            raise UsageError(
                f"base_model {earlier.path} was trained on other columns, or in another order: "
                f"{', '.join(changed)}; train without it"
            )

    @property
    def _columns(self) -> Mapping[str, str]:
        """The kind of each column for the model: the inputs in order, then the target."""
        kinds = {column.name: str(column.type) for column in self.table.inputs}
        # All numbers are one kind here: the first 0.5 of a column may come with a later span.
        numbers = [column.name for column in self.table.number_inputs]
        target = "the target, a class" if self.are_classes else "the target, a number"
        kinds |= {**dict.fromkeys(numbers, "number"), **self._text_kinds}
        return {**kinds, str(self.table.target): target}

    @property
    def settings(self) -> Set[str]:
        """Classes can be weighted if no column holds weights."""
        return {"class_weights"} if self.are_classes and self.table.weight is None else set()

    def can_validate(self, split: str) -> bool:
        """Return whether a split exists and, if the target is a class, has a labelled example."""
        if self.are_classes:
            return super().can_validate(split)
        return split in self.dataset.splits

    @property
    def reading(self) -> Mapping[str, Any]:
        """Arguments that read rows as the model's inputs, targets and, if any, weights."""
        return {
            **super().reading,
            "columns": {column.name: None for column in self.table.inputs} | self._defaults,
            "padding": "ragged",
            **({"image_size": self.config.size} if self._images else {}),
        }

    def prepared(self, data: tf.data.Dataset) -> tf.data.Dataset:
        return in_order(data, lambda columns, *rest: (self._inputs(columns), *rest))

    @property
    def _defaults(self) -> dict[str, Any]:
        whole = [column.name for column in self.table.number_inputs if column.dtype == "int64"]
        return dict.fromkeys(whole, NO_WHOLE)

    def _reader(self, names: Sequence[str], defaults: Mapping[str, Any]) -> TableReader:
        decoder = ImageDecoder(self.config.size)
        raw = self.dataset.encoding.pixels != ""
        known = self.table.features()
        return TableReader(self.table, known, names, defaults, decoder, is_ragged=True, has_raw=raw)

    def _inputs(self, columns: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        found = {at: columns[name] for at, name in {**self._images, **self._texts}.items()}
        numbers = [to_numbers(columns[name]) for name in self._numbers]
        if numbers:
            found[NUMBERS] = tf.concat(numbers, axis=1)
        return found

    @cached_property
    def _given(self) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
        """The model's inputs, the words of texts, and normalised numbers with their gaps."""
        inputs = {name: keras.Input((*self.config.size, 3), name=name) for name in self._images}
        inputs |= {name: keras.Input((), name=name, dtype="string") for name in self._texts}
        words = {name: self._words(column) for name, column in self._texts.items()}
        numbers = []
        if count := self._count:
            given = inputs[NUMBERS] = keras.Input((count,), name=NUMBERS)
            is_missing = keras.ops.isnan(given)
            mean, variance = self._scale.mean[:count], self._scale.divisor[:count] ** 2
            scaled = keras.layers.Normalization(mean=mean, variance=variance, dtype=FLOAT32)(given)
            numbers.append(keras.ops.where(is_missing, 0.0, scaled))
            if gaps := self._gaps:
                numbers.append(keras.ops.cast(keras.ops.take(is_missing, gaps, axis=1), FLOAT32))
        return inputs, words, numbers

    def models(self) -> Models:
        inputs, words, numbers = self._given
        parts = [small_cnn(inputs[name], self.config.size) for name in self._images]
        for name, layer in words.items():
            vectors = mean_of_words(layer, inputs[name], _WIDTH_OF_WORDS)
            parts.append(keras.layers.Dropout(self.config.dropout**0.5)(vectors))
        answer = self._network([*parts, *numbers])
        network = keras.Model(inputs, answer)
        trained = augmented(network, self.config, self._moved) if self._images else network
        if self._answer_beside is not None:
            answer = _NETWORK_SHARE * answer + (1 - _NETWORK_SHARE) * self._answer_beside
        return Models(trained, keras.Model(inputs, answer))

    @cached_property
    def _answer_beside(self) -> Any:
        """The answer of trees or a line; None for images and sentences, or if too few rows fit."""
        if self._images or SENTENCE in self._text_kinds.values():
            return None
        given, words, numbers = self._given
        frequent = [has_words(words[name], given[name], _FREQUENT_WORDS) for name in words]
        columns = keras.Model(given, keras.ops.concatenate([*numbers, *frequent], axis=1))
        classes = len(self.dataset.labels) if self.are_classes else 0
        most = _CELLS // (columns.output.shape[1] * (classes if classes > 2 else 1))
        if most == 0:
            return None
        settings = {**self.reading, **self.training, "batch_size": _ROWS_AT_ONCE}
        data = train_dataset(self.root, split=self.split, seed=self.config.seed, **settings)
        batches = list(self.prepared(data).take(math.ceil(most / _ROWS_AT_ONCE)))
        cells = np.concatenate([columns(x) for x, *_ in batches])
        targets = np.concatenate([y for _, y, *_ in batches]).ravel()
        weights = np.concatenate([w[0] if w else np.ones(len(y)) for _, y, *w in batches])
        if most <= len(cells) < _ENOUGH_ROWS:
            return None
        learnt = [values[weights > 0] for values in (cells, targets, weights)]
        model = better_model(learnt, classes, self.config.seed)
        return None if model is None else answer_of(model, classes, columns.output)

    def _moved(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return inputs whose images are moved."""
        return inputs | {name: movement(self.config)(inputs[name]) for name in self._images}

    @cached_property
    def _moments(self) -> Moments:
        """Of the rows' numbers, the inputs first, then the target if it is a number."""
        names = [*self._numbers, *([] if self.are_classes else [str(self.table.target)])]
        return reduce(add, map(Moments.of, self._columns_of(names))) if names else NOTHING

    @cached_property
    def _scale(self) -> Scale:
        """How numbers are normalised: as by the earlier model, so that its weights fit."""
        now = self._moments.scale
        return now if self.earlier is None else Scale.of(self.earlier.inputs["scale"]).kept(now)

    @property
    def _gaps(self) -> Sequence[int]:
        """The inputs that may be missing, as places among all numbers."""
        found = self._moments.with_gaps if self.earlier is None else self.earlier.inputs["gaps"]
        return [column for column in found if column < self._count]

    @property
    def _count(self) -> int:
        """The number of columns of numbers among the inputs; a list is several."""
        return len(self._scale.mean) - (0 if self.are_classes else 1)

    def _columns_of(self, names: Sequence[str]) -> Iterator[npt.NDArray[np.float32]]:
        """Yield columns of the training rows as numbers, float32 [rows, n]."""
        for rows in self._rows(names):
            yield tf.concat([to_numbers(rows[name]) for name in names], axis=1).numpy()

    def _rows(self, names: Sequence[str]) -> tf.data.Dataset:
        """Return the training rows as stored, including rows without a target."""
        spec = self._reader(names, self._defaults).spec
        return read(self.root, split=self.split, batch_size=_ROWS_AT_ONCE, feature_spec=spec)

    def _words(self, column: str) -> keras.layers.TextVectorization:
        texts = self._rows([column]).map(lambda rows: rows[column])
        layer = learn_words(texts, MOST_TOKENS, ngrams=NGRAMS)
        if layer.vocabulary_size() <= len(_NO_WORDS):
            layer.set_vocabulary(["-"])  # Keras cannot look words up in an empty vocabulary
        # A word of one row alone is learnt by heart, as the name of a product is.
        words = layer.get_vocabulary()
        rows = np.zeros(len(words), np.int64)
        for ids in map(layer, texts):
            once = tf.sparse.bincount(ids, axis=-1, binary_output=True)  # of each row
            rows += np.bincount(once.indices[:, 1], minlength=len(words))
        known = [word for word, count in zip(words, rows, strict=True) if count > 1]
        layer.set_vocabulary([word for word in known if word not in _NO_WORDS] or ["-"])
        return layer

    def _network(self, parts: Sequence[Any]) -> Any:
        """Return the network's answer, float32 [batch, outputs]."""
        hidden = given = keras.ops.concatenate(parts, axis=1)
        for units in _UNITS:
            hidden = keras.layers.Dense(units, activation="relu")(hidden)
            hidden = keras.layers.Dropout(self.config.dropout)(hidden)
        outputs = len(self.dataset.labels) if self.are_classes else 1
        settings = {"kernel_initializer": _last_weights, "dtype": FLOAT32, "name": SCORES}
        last = keras.layers.Dense(outputs, "softmax" if self.are_classes else None, **settings)
        answer = last(keras.layers.Concatenate()([hidden, given]))
        if self.are_classes:
            return answer
        # The network predicts the target's distance from the mean, in standard deviations.
        deviation, mean = float(self._scale.divisor[-1]), float(self._scale.mean[-1])
        return keras.layers.Rescaling(deviation, offset=mean, dtype=FLOAT32)(answer)

    def known_inputs(self, model: keras.Model) -> Mapping[str, Any]:
        """Return the words, the columns, and the scale of numbers and of the target."""
        scale = {"scale": self._scale.to_dict(), "gaps": self._gaps}
        return {**super().known_inputs(model), "columns": self._columns, **scale}

    def loss(self) -> Any:
        if self.are_classes:
            return "sparse_categorical_crossentropy"
        # In standard deviations: the gradients of large numbers do not fit into 16 bits.
        deviation, squared = float(self._scale.divisor[-1]), keras.losses.mean_squared_error
        return lambda truth, answer: squared(truth / deviation, answer / deviation)

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        if self.are_classes:
            return [keras.metrics.SparseCategoricalAccuracy(name=ACCURACY)]
        return [keras.metrics.RootMeanSquaredError(name=RMSE)]

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``examples`` → ``labels`` and ``scores``, or ``predictions`` of numbers; ``error``."""
        images = set(self._images.values())
        reader = self._reader([column.name for column in self.table.inputs], self._defaults)
        encoded = [self.table.image_feature(name, "encoded") for name in images]
        missing = dict.fromkeys(encoded, tf.io.FixedLenFeature((), tf.string, ""))
        parsed, error = readable(request[0], {**reader.spec, **missing})
        others = replace(reader, names=[name for name in reader.names if name not in images])
        stored = {name: reader.stored_images(name, parsed) for name in images}
        return self._answers(model, others.columns(parsed), stored, error)

    def more_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """``columns``: the columns by name → the answers of ``serving_default``."""
        specs, images = column_specs(self.table), self._images.values()

        @tf.function(input_signature=list(specs.values()), autograph=False)
        def of_columns(*columns: tf.Tensor) -> dict[str, tf.Tensor]:
            given = given_columns(self.table, dict(zip(specs, columns, strict=True)))
            no_error = tf.fill(tf.shape(columns[0])[:1], "") if images else None
            return self._answers(model, given, {name: (given[name],) for name in images}, no_error)

        return {COLUMNS: of_columns}

    def _answers(
        self,
        model: keras.Model,
        columns: Mapping[str, Any],
        images: Mapping[str, tuple[Any, ...]],
        error: tf.Tensor | None,
    ) -> dict[str, tf.Tensor]:
        """Return the answers to rows whose images are not yet decoded.

        ``error`` (string [batch]) says which rows have none; None if each has an answer.
        """
        pixels, error = decode_columns(images, ImageDecoder(self.config.size), error)
        found = predicted(model, self._inputs({**columns, **pixels}))
        answers = self.best(found) if self.are_classes else {"predictions": found[:, 0]}
        return answers if error is None else answered(answers, error)

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each class, float32 [batch, classes], or the number, [batch, 1]."""
        reader = self._reader([column.name for column in self.table.inputs], self._defaults)
        columns = reader.columns(tf.io.parse_example(records, reader.spec))
        return predicted(model, self._inputs(columns))

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each class, int64 [batch], or the target, float32 [batch].

        All rows with a target have weight 1: a column of weights only applies to training.
        """
        if self.table.label is not None:
            return self.truth_of_labels(records, self.table.label_features[0])
        name = str(self.table.target)
        dtype = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}
        spec = {name: tf.io.RaggedFeature(dtype[self.table.column(name).dtype])}
        stored = tf.io.parse_example(records, spec)[name]
        is_there = stored.row_lengths() > 0
        target = stored.to_tensor(shape=[None, 1])[:, 0]  # 0 or "" if missing
        if self.are_classes:
            texts = target if target.dtype == tf.string else tf.strings.as_string(target)
            return self.truth_of_texts(tf.where(is_there, texts, ""))
        return {LABEL: tf.cast(target, tf.float32), WEIGHT: tf.cast(is_there, tf.float32)}


def _last_weights(shape: Sequence[int], dtype: Any) -> Any:
    """Return random weights for hidden units, and zeros for the linear path behind them.

    A few rows are too few steps to unlearn a random linear path.
    """
    inputs, outputs = shape
    hidden = keras.initializers.GlorotUniform()((_UNITS[-1], outputs), dtype)
    return keras.ops.pad(hidden, [[0, inputs - _UNITS[-1]], [0, 0]])


def to_numbers(values: Any) -> tf.Tensor:
    """Return a column as float32 [batch, n], NaN where a number is missing.

    A list of any length becomes five numbers: count, mean, standard deviation, minimum, maximum.
    A date becomes four: see :func:`date_numbers`.
    """
    if values.dtype == tf.string:
        return date_numbers(values)
    if not isinstance(values, tf.RaggedTensor):
        floats = gaps_as_nan(values) if values.dtype == tf.int64 else tf.cast(values, tf.float32)
        return floats[:, None] if len(floats.shape) == 1 else floats
    count = tf.cast(values.row_lengths(), tf.float32)
    there = tf.maximum(count, 1.0)  # an empty list becomes five zeros
    mean = tf.reduce_sum(values, 1) / there
    apart = values.flat_values - tf.gather(mean, values.value_rowids())
    spread = tf.reduce_sum(values.with_flat_values(tf.square(apart)), 1)
    ends = [tf.reduce_min(values, 1), tf.reduce_max(values, 1)]
    numbers = tf.stack([count, mean, tf.sqrt(spread / there), *ends], axis=1)
    return tf.where(count[:, None] > 0, numbers, 0.0)


def kind_of_texts(texts: tf.Tensor) -> str:
    """Return what the texts of a column (string [n], "" if missing) are.

    ``["2024-03-14", "2024-03-15", …]`` → ``DATE``; ``["A-4711", "A-4712", …]`` → ``ROW_NAME``;
    ``["red", "blue", "red", …]`` → ``TEXT``; texts of three and more words that differ →
    ``SENTENCE``
    """
    given = tf.boolean_mask(texts, texts != "")
    words = split_words(given).flat_values.numpy()
    is_date = tf.strings.regex_full_match(_year_first(given), _DATE).numpy()
    if is_date.sum() > _DATES_SHARE * len(is_date):
        return DATE
    if len(words) < _SENTENCE_WORDS * len(is_date):
        is_rare = len({*words}) > len(words) / 2
        return ROW_NAME if is_rare and len(is_date) >= _FEWEST_NAMES else TEXT
    return SENTENCE if len({*given.numpy()}) > len(is_date) / 2 else TEXT


def date_numbers(texts: tf.Tensor) -> tf.Tensor:
    """Return days since 1970, month, weekday (from 0, Monday) and hour of dates (string [batch]).

    float32 [batch, 4]; NaN where a text is no date.
    """
    dates = _year_first(texts)
    is_date = tf.strings.regex_full_match(dates, _DATE)
    dates = tf.where(is_date, dates, "1970-01-01")
    year, month, day, hour = [
        tf.strings.to_number(tf.strings.regex_replace(dates, _DATE, rf"0\{group}"), tf.int64)
        for group in range(1, 5)
    ]
    # A year that begins in March ends with the leap day.
    months = (month + 9) % 12
    years = year - months // 10
    leap_days = years // 4 - years // 100 + years // 400
    days = 365 * years + leap_days + (153 * months + 2) // 5 + day - 719_469
    numbers = tf.stack([days, month, (days + 3) % 7, hour], axis=1)
    return tf.where(is_date[:, None], tf.cast(numbers, tf.float32), math.nan)


def _year_first(dates: tf.Tensor) -> tf.Tensor:
    """Return dates, ``14.3.2024`` and ``3/14/2024`` as ``2024-3-14``."""
    dates = tf.strings.regex_replace(dates, r"^\s*(\d\d?)\.(\d\d?)\.(\d{4})", r"\3-\2-\1")
    return tf.strings.regex_replace(dates, r"^\s*(\d\d?)/(\d\d?)/(\d{4})", r"\3-\1-\2")


def decode_columns(
    images: Mapping[str, tuple[Any, ...]], decoder: ImageDecoder, error: tf.Tensor | None
) -> tuple[dict[str, tf.Tensor], tf.Tensor | None]:
    """Decode columns of images, given what :meth:`ImageDecoder.attempt` takes.

    Returns:
        float32 [batch, height, width, 3] by column; and ``error`` (string [batch]), in which ""
        becomes the first bad column and what is wrong with its image.
    """
    found = {}
    for name, given in images.items():
        pixels, why = decoder.attempt(*given)
        found[name] = typed(pixels, AUTO, "float32")
        why = tf.where(why == "", "", tf.strings.join([f"{name}: ", why]))
        error = tf.where(error == "", why, error)
    return found, error
