"""Pictures for TensorBoard: the confusion matrix, the worst mistakes, and predicted boxes."""

from __future__ import annotations

import heapq
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont

from recordgen.payloads.drawing import draw_boxes, writable
from recordgen.payloads.stored import stored_image
from recordgen.payloads.thumbnail import to_thumbnail
from recordgen.records.boxes import StoredBox
from recordgen.records.example import parse_example
from recordgen.tasks import TASKS
from recordgen.training.config import LABEL, WEIGHT
from recordgen.training.learner import Root, TaskTrainer, shard_files
from recordgen.training.measures import OneLabelAccumulator, record_batches

Pixels = npt.NDArray[np.uint8]

# Pixels.
_THUMBNAIL = 128
_LINE = 14
_BOXES_SIDE = 320
_MATRIX_SIDE, _LEAST_CELL, _MOST_CELL = 640, 3, 40

_MOST_MISTAKES = 16
_MOST_IMAGES = 8
_LEAST_SCORE = 0.3  # boxes below are not shown


class Mistake(NamedTuple):
    """A wrong answer. The first field orders mistakes, the worst first.

    Attributes:
        probability: the model's probability of the true label.
        place: the example's number in the split.
        record: the example.
        true: the number of the true label; -1 if the model does not know it.
        answer: the number of the model's answer.
        score: the model's probability of its answer.
    """

    probability: float
    place: int
    record: bytes
    true: int
    answer: int
    score: float


class Pictures(keras.callbacks.Callback):
    """Writes pictures of a split after each epoch, for TensorBoard's page Images."""

    def __init__(
        self,
        trainer: TaskTrainer,
        model: keras.Model,
        root: Root,
        split: str,
        folder: str,
        most: int = 0,
    ) -> None:
        """Prepare to evaluate ``model`` on a split of ``root``.

        ``most`` is the approximate number of records, 0 for all. Event files go to ``folder``.
        """
        super().__init__()
        self._trainer = trainer
        self._root = root
        self._split = split
        self._most = most
        self._writer = tf.summary.create_file_writer(folder)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def answer(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            truth = trainer.truth(records)
            return trainer.scores(model, records), truth[LABEL], truth[WEIGHT]

        self._answer = answer

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the pictures of the task."""
        labels = self._trainer.dataset.labels
        accumulator = TASKS[self._trainer.dataset.task].declared("measure")(len(labels))
        with self._writer.as_default(step=epoch):
            if isinstance(accumulator, OneLabelAccumulator):
                mistakes = self._mistakes(accumulator)
                counts = np.zeros((len(labels), len(labels)), int)
                for (true, given), count in accumulator.counts.items():
                    if true >= 0:
                        counts[true, given] = count
                _write("confusion", [draw_confusion(counts, labels)])
                _write("worst mistakes", draw_mistakes(mistakes, labels))
            else:
                for number, picture in enumerate(self._boxes(labels)):
                    _write(f"boxes, true and found/{number}", [picture])
        self._writer.flush()

    def _mistakes(self, accumulator: OneLabelAccumulator) -> list[Mistake]:
        """Count the answers, and return the worst mistakes, the worst first."""
        mistakes: list[Mistake] = []
        place = 0
        for records in record_batches(shard_files(self._root, self._split)):
            scores, truth, weight = (
                tensor.numpy() for tensor in self._answer(tf.constant(records))
            )
            labelled = np.flatnonzero(weight > 0)
            accumulator.add(truth[labelled], scores[labelled])
            for row in labelled:
                true, given = int(truth[row]), int(scores[row].argmax())
                if true != given:
                    probability = float(scores[row, true]) if true >= 0 else 0.0
                    mistakes.append(
                        Mistake(
                            *(probability, place + int(row), records[row]),
                            *(true, given, float(scores[row, given])),
                        )
                    )
            mistakes = heapq.nsmallest(_MOST_MISTAKES, mistakes)
            place += len(records)
            if 0 < self._most <= place:
                break
        return mistakes

    def _boxes(self, labels: Sequence[str]) -> Iterator[Pixels]:
        """Yield the first images: on the left with true boxes, on the right with found ones."""
        records = next(record_batches(shard_files(self._root, self._split), _MOST_IMAGES))
        found, truth, _ = (tensor.numpy() for tensor in self._answer(tf.constant(records)))
        for record, rows, true in zip(records, found, truth, strict=True):
            image = _enlarged(record)
            true_boxes = [_box(row, labels) for row in true if row[2] > row[0]]
            found_boxes = [_box(row, labels) for row in rows if row[5] >= _LEAST_SCORE]
            sides = [_pixels(draw_boxes(image, boxes).data) for boxes in (true_boxes, found_boxes)]
            yield np.concatenate(sides, axis=1)


def draw_confusion(counts: npt.NDArray[np.int_], labels: Sequence[str]) -> Pixels:
    """Draw a confusion matrix: a row for each true label, a column for each answer.

    The larger a cell's share of its row, the darker it is. Names and counts are omitted if cells
    are too small for them.

    Args:
        counts: the examples by true label and answer, int [labels, labels].
        labels: the names.

    Returns:
        uint8 [height, width, 3].
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
    names = [writable(label, number) for number, label in enumerate(labels)]
    wide = min(_THUMBNAIL, 8 + max(int(draw.textlength(name, font=font)) for name in names))
    strip = Image.new("RGB", (wide, matrix.height), "white")
    for number, name in enumerate(names):
        middle = (4, number * cell + cell / 2)
        ImageDraw.Draw(strip).text(middle, name, fill="black", font=font, anchor="lm")
    canvas = Image.new("RGB", (wide + matrix.width, wide + matrix.height), "white")
    canvas.paste(strip, (0, wide))
    canvas.paste(strip.rotate(90, expand=True), (wide, 0))
    canvas.paste(matrix, (wide, wide))
    return np.asarray(canvas)


def draw_mistakes(mistakes: Iterable[Mistake], labels: Sequence[str]) -> list[Pixels]:
    """Draw the images of mistakes in one size, with ``true: cat`` and ``found: dog 93 %`` below.

    Returns:
        uint8 [height, width, 3] each; examples without an image are skipped.
    """
    pictures, font = [], ImageFont.load_default(_LINE - 4)
    for mistake in mistakes:
        stored = stored_image(parse_example(mistake.record))
        if stored is None:
            continue
        canvas = Image.new("RGB", (_THUMBNAIL, _THUMBNAIL + 2 * _LINE), "white")
        thumbnail = Image.fromarray(_pixels(to_thumbnail(stored[0], _THUMBNAIL).data))
        canvas.paste(thumbnail.resize(_fitting(thumbnail.size, _THUMBNAIL)))
        true = writable(labels[mistake.true], mistake.true) if mistake.true >= 0 else "unknown"
        given = writable(labels[mistake.answer], mistake.answer)
        text = f"true: {true}\nfound: {given} {mistake.score:.0%}"
        ImageDraw.Draw(canvas).text((2, _THUMBNAIL), text, fill="black", font=font)
        pictures.append(np.asarray(canvas))
    return pictures


def _write(name: str, pictures: Sequence[Pixels]) -> None:
    """Write pictures of equal size under one name."""
    if pictures:
        tf.summary.image(name, np.stack(pictures), max_outputs=len(pictures))


def _box(row: npt.NDArray[np.float32], labels: Sequence[str]) -> StoredBox:
    """Return a box from left, top, right, bottom, number of the label and, if any, score."""
    number = int(row[4])
    name = labels[number] if number >= 0 else "unknown"
    score = "".join(f" {score:.0%}" for score in row[5:])
    return StoredBox(f"{name}{score}", number, *map(float, row[:4]))


def _enlarged(record: bytes) -> bytes:
    """Return the image of a record as a PNG that is large enough for labels of boxes."""
    stored = stored_image(parse_example(record))
    if stored is None:
        raise ValueError("a record of object_detection has an image")
    image = Image.fromarray(_pixels(draw_boxes(stored[0], ()).data))
    out = io.BytesIO()
    image.resize(_fitting(image.size, _BOXES_SIDE)).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _pixels(data: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _fitting(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Return the width and height of an image whose longer side becomes ``side``."""
    scale = side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
