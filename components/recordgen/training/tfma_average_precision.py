"""Compiled pipelines name this module: :class:`recordgen.training.tfma_metrics.BoxPrecision`."""

from recordgen.training.tfma_metrics import BoxPrecision as BoxPrecision
