"""Mean IoU of classes of pixels, as VOC and DeepLab compute it over a whole split.

The IoU of a class is the number of pixels that have it in both the mask and the answer, divided by
the number of pixels that have it in either. Pixels without a class do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordgen.core.records.class_masks import IGNORED
from recordgen.training.config import MEAN_IOU
from recordgen.training.measures import Array, EvalAccumulator, TfmaMetric

#: A class that the model does not know; a pixel that has it is a wrong answer.
UNKNOWN_CLASS = -1


class MaskAccumulator(EvalAccumulator):
    """Mean IoU of the classes that have pixels.

    Attributes:
        pairs: pixels by true class and answer.
    """

    needs = "mask"
    tfma = TfmaMetric(MEAN_IOU, "PixelIoU")
    sums = ("pairs",)

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.pairs: Counter[tuple[int, int]] = Counter()

    def add(self, y_true: Array, y_pred: Array, weight: Any = 1.0) -> None:
        """Count a batch of masks and answers, int32 [batch, height, width].

        ``y_true`` has 255 for no class, and -1 for a class that the model does not know.
        """
        self.examples += len(y_true)
        true, answers = y_true.ravel().astype(np.int64), y_pred.ravel().astype(np.int64)
        counts = true != IGNORED
        codes, sizes = np.unique((true[counts] << 8) + answers[counts], return_counts=True)
        for code, size in zip(codes.tolist(), sizes.tolist(), strict=True):
            self.pairs[code >> 8, code & IGNORED] += size
        # The loss is the share of wrong pixels.
        self._loss_sum += float((true[counts] != answers[counts]).sum())
        self._losses += int(counts.sum())

    def known(self) -> int:
        return sum(size for (true, _), size in self.pairs.items() if true != UNKNOWN_CLASS)

    def by_label(self) -> Mapping[int, float]:
        """Return the IoU, 0..1, of each class that has true pixels, by number."""
        true: Counter[int] = Counter()
        answers: Counter[int] = Counter()
        for (label, answer), size in self.pairs.items():
            true[label] += size
            answers[answer] += size
        return {
            number: self.pairs[number, number]
            / (true[number] + answers[number] - self.pairs[number, number])
            for number in sorted(true)
            if number != UNKNOWN_CLASS
        }
