"""A metric of TensorFlow Model Analysis: the score of predictions from a table."""

from recordgen.training.tfma_counts import TableScore

__all__ = ["TableScore"]
