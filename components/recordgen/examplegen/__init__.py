"""Recordgen as a TFX component: ``from recordgen.examplegen import AutoMLExampleGen``."""

from recordgen.console.quiet import quiet_imports
from recordgen.errors import MissingPackageError

try:
    with quiet_imports():
        from recordgen.examplegen.component import AutoMLExampleGen, AutoMLExampleGenSpec
except ImportError as exc:
    raise MissingPackageError.of(exc, "recordgen.examplegen") or exc from exc

__all__ = ["AutoMLExampleGen", "AutoMLExampleGenSpec"]
