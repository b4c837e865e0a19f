"""The confusion matrix of split eval in TensorBoard, after each epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont

from recordgen.payloads.drawing import writable
from recordgen.training.measures import EvalAccumulator

# Pixels.
_MATRIX_SIDE, _LEAST_CELL, _MOST_CELL = 640, 3, 40
_LINE, _MOST_NAME = 14, 128


class Confusion(keras.callbacks.Callback):
    """Draws the confusion matrix of a model's answers on TensorBoard's page Images."""

    def __init__(
        self, count_answers: Callable[[], EvalAccumulator], labels: Sequence[str], folder: str
    ) -> None:
        """Prepare to call ``count_answers`` after each epoch; event files go to ``folder``."""
        super().__init__()
        self._count_answers = count_answers
        self._labels = labels
        self._writer = tf.summary.create_file_writer(folder)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the matrix."""
        names, counts = self._count_answers().confusion(self._labels)
        with self._writer.as_default(step=epoch):
            tf.summary.image("confusion", draw_confusion(counts, names)[None])
        self._writer.flush()


def draw_confusion(counts: npt.NDArray[np.int_], labels: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Draw a confusion matrix: a row for each true label, a column for each answer.

    The larger a cell's share of its row, the darker it is. Names and counts are omitted if cells
    are too small for them. int [labels, labels] → uint8 [height, width, 3].
    """
    cell = int(np.clip(_MATRIX_SIDE // max(1, len(labels)), _LEAST_CELL, _MOST_CELL))
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    blue = 255 - shares[..., None] * np.array([220, 150, 60])  # white to blue
    matrix = Image.fromarray(np.kron(blue, np.ones((cell, cell, 1))).astype(np.uint8))
    if cell < _LINE:
        return np.asarray(matrix)
    draw, font = ImageDraw.Draw(matrix), ImageFont.load_default(_LINE - 4)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            middle = (column * cell + cell / 2, row * cell + cell / 2)
            ink = "white" if shares[row, column] > 0.5 else "black"
            draw.text(middle, str(count), fill=ink, font=font, anchor="mm")
    strip = Image.new("RGB", (_MOST_NAME, matrix.height), "white")
    for number, label in enumerate(labels):
        place = (4, number * cell + cell / 2)
        ImageDraw.Draw(strip).text(
            place, writable(label, number), fill="black", font=font, anchor="lm"
        )
    canvas = Image.new("RGB", (_MOST_NAME + matrix.width, _MOST_NAME + matrix.height), "white")
    canvas.paste(strip, (0, _MOST_NAME))
    canvas.paste(strip.rotate(90, expand=True), (_MOST_NAME, 0))
    canvas.paste(matrix, (_MOST_NAME, _MOST_NAME))
    return np.asarray(canvas)
