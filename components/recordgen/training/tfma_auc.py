"""Compiled pipelines name this module: :class:`recordgen.training.tfma_metrics.LabelAUC`."""

from recordgen.training.tfma_metrics import LabelAUC as LabelAUC
