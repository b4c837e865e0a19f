"""Recordgen as a TFX component: ``from recordgen.examplegen import AutoMLExampleGen``."""

from recordgen.console.quiet import quiet_tensorflow

with quiet_tensorflow():
    from recordgen.examplegen.component import AutoMLExampleGen, AutoMLExampleGenSpec

__all__ = ["AutoMLExampleGen", "AutoMLExampleGenSpec"]
