"""Templates of texts; what compiles them once for all processes."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, in the user's own folder of Jinja below the temporary one.

    Compiling them anew would be a large part of the time of a small conversion. Beside the
    templates they would stay when the package is removed.
    """

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # the folder is full
            super().dump_bytecode(bucket)


def _compiled_templates() -> _CompiledTemplates | None:
    """Return the compiled templates; None if the user can have no folder of their own."""
    with suppress(OSError, RuntimeError):
        return _CompiledTemplates()
    return None


def file_text(name: str) -> str:
    """Return the text of a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache  # it keeps templates, which take longer to load than to render
def environment(**options: Any) -> Environment:
    """Return what renders the templates of this folder; ``options`` are further ones of Jinja."""
    found = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # a text is rendered once: optimizing costs more than it saves
        loader=PackageLoader(__package__, ""),
        bytecode_cache=_compiled_templates(),
        **options,
    )
    # JSON strings are YAML scalars, too.
    found.filters.update(count=lambda number: f"{number:,}", json=json.dumps)
    return found
