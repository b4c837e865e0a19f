"""Compiled pipelines name this module: :class:`recordgen.training.tfma_metrics.EntityF1`."""

from recordgen.training.tfma_metrics import EntityF1 as EntityF1
