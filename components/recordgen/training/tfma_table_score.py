"""Compiled pipelines name this module: :class:`recordgen.training.tfma_metrics.TableScore`."""

from recordgen.training.tfma_metrics import TableScore as TableScore
