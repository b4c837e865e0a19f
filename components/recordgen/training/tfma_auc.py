"""A metric of TensorFlow Model Analysis: the AUC of each label, and their mean."""

from recordgen.training.tfma_counts import LabelAUC

__all__ = ["LabelAUC"]
