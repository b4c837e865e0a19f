"""Templates of texts; what compiles them once for all processes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import resources
from importlib.util import cache_from_source
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, in the folder where Python keeps compiled modules.

    Compiling them anew would be a large part of the time of a small conversion.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):  # the folder is missing, read-only or full
                super().dump_bytecode(bucket)


def file_text(name: str) -> str:
    """Return the text of a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def environment(**options: Any) -> Environment:
    """Return what renders the templates of this folder; ``options`` are further ones of Jinja."""
    found = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # a text is rendered once: optimizing costs more than it saves
        loader=PackageLoader(__package__, ""),
        bytecode_cache=_CompiledTemplates(os.path.dirname(cache_from_source(__file__))),
        **options,
    )
    found.filters["count"] = lambda number: f"{number:,}"
    return found
