"""A metric of TensorFlow Model Analysis: the average precision of boxes, by label, and its mean."""

from recordgen.training.tfma_counts import BoxPrecision

__all__ = ["BoxPrecision"]
