"""A metric of TensorFlow Model Analysis: F1 of the entities in texts, and of each label."""

from recordgen.training.tfma_counts import EntityF1

__all__ = ["EntityF1"]
