"""Turn labelled data into TFRecords that you can trust, and read them back for training."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from recordgen.version import __version__ as __version__

if TYPE_CHECKING:
    from recordgen import errors as errors
    from recordgen import examplegen as examplegen
    from recordgen import features as features
    from recordgen import parts as parts
    from recordgen import reading as reading
    from recordgen import training as training
    from recordgen.access.api import source as source
    from recordgen.console import logs as logs
    from recordgen.console import quiet as quiet
    from recordgen.conversion import results as results
    from recordgen.conversion.api import check as check
    from recordgen.conversion.api import convert as convert
    from recordgen.conversion.api import plan as plan
    from recordgen.core import progress as progress
    from recordgen.core.dataset.manifest import Dataset as Dataset
    from recordgen.core.dataset.manifest import read_dataset as read_dataset
    from recordgen.errors import RecordgenError as RecordgenError
    from recordgen.exports.diff import diff as diff
    from recordgen.reading import eval_dataset as eval_dataset
    from recordgen.reading import input_fn as input_fn
    from recordgen.reading import load as load
    from recordgen.reading import read as read
    from recordgen.reading import steps_per_epoch as steps_per_epoch
    from recordgen.reading import train_dataset as train_dataset
    from recordgen.tables import types as types
    from recordgen.tables.columns import Schema as Schema
    from recordgen.writing.api import write as write

# Public name → module. Imported on first use (PEP 562): `recordgen --help` must not load Beam.
_EXPORTS = {
    name: module
    for module, names in (
        ("access.api", ["source"]),
        ("conversion.doors", ["check", "convert", "plan"]),
        ("core.dataset.manifest", ["Dataset", "read_dataset"]),
        ("errors", ["RecordgenError"]),
        ("exports.diff", ["diff"]),
        ("reading", ["eval_dataset", "input_fn", "load", "read"]),
        ("reading", ["steps_per_epoch", "train_dataset"]),
        ("tables.columns", ["Schema"]),
        ("writing.api", ["write"]),
    )
    for name in names
}

# Public modules, loaded on first use: `recordgen.features` after a bare `import recordgen`.
_MODULES = {
    path.rpartition(".")[2]: path
    for path in (
        *("console.logs", "console.quiet", "conversion.results", "core.progress", "errors"),
        *("examplegen", "features", "parts", "reading", "tables.types", "training"),
    )
}

# Other tools' functions.
_FUNCTIONS = {
    "DataLoader": "torch.utils.data.DataLoader(recordgen.source(…).images(…))",
    "convert_and_load": "recordgen.convert(source, output), then recordgen.load(output)",
    "create_tfrecords": "recordgen.convert(source, output)",
    "image_dataset_from_directory": "recordgen.convert(folder, out), then recordgen.load(out)",
    "inspect": "recordgen.source(output)[0], or the command recordgen inspect OUTPUT",
}

__all__ = sorted((*_EXPORTS, "__version__"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(_MODULES[name], name)
    if name not in _EXPORTS:
        ours = f"; write {_FUNCTIONS[name]}" if name in _FUNCTIONS else ""
        raise AttributeError(f"module 'recordgen' has no attribute {name!r}{ours}")
    value = getattr(_load(_EXPORTS[name], name), name)
    globals()[name] = value
    return value


def _load(module: str, name: str) -> Any:
    try:
        from recordgen.console.quiet import quiet_imports

        with quiet_imports():
            return importlib.import_module(f"recordgen.{module}")
    except ImportError as exc:
        from recordgen.errors import MissingPackageError

        if (missing := MissingPackageError.of(exc, f"recordgen.{name}")) is None:
            raise
        raise missing from exc


def _summary(result: Any) -> str:
    from recordgen.conversion.summaries import text_of

    return text_of(result)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


# TensorFlow reads it while it loads; Python raises what fails. A value of the user stays.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# TFRecorder's order of imports: with pandas first, `import recordgen` provides `df.tensorflow`.
if "pandas" in sys.modules:
    importlib.import_module("recordgen.pandas")
