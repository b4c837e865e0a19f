"""Recordgen as a TFX component: ``from recordgen.examplegen import AutoMLExampleGen``."""

from recordgen.examplegen.component import AutoMLExampleGen, AutoMLExampleGenSpec

__all__ = ["AutoMLExampleGen", "AutoMLExampleGenSpec"]
