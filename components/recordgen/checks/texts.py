"""A check of texts that were decoded wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordgen.checks.check import EACH, Check, Examined, FoundRows
from recordgen.core.facts import MEASURES, TEXTS
from recordgen.measures.texts import REPLACEMENT


class _TextCheck(Check):
    scope = EACH
    needs = (TEXTS, MEASURES)


class Mojibake(_TextCheck):
    """A text that was decoded wrongly."""

    code = "MOJIBAKE"

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        garbled = examined.facts.columns["garbled"].combine_chunks()
        rows = np.flatnonzero(garbled.is_valid().to_numpy(zero_copy_only=False))

        def message(at: int) -> str:
            part = garbled[int(rows[at])].as_py()
            if REPLACEMENT in part:
                return f"a character of the text was lost when it was decoded: {part!r}"
            return f"the text is UTF-8 that was decoded as something else: {part!r}"

        yield FoundRows(rows, message)
