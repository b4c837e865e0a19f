"""Results show themselves in Python as the command prints them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Shown:
    """Base of results: ``print`` and notebooks show the summary that the command prints."""

    __slots__ = ()

    def __repr__(self) -> str:
        # By name: results are made far below the modules that describe them.
        results: Any = import_module("recordgen.console.results")
        return str(results.text_of(self))

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"
