"""What a run hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recordgen.dataset.manifest import Dataset
from recordgen.lint.run import Lint
from recordgen.rejects import Finding, Reject
from recordgen.sources.detect import Detection


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """A finished check: what a conversion would give.

    Attributes:
        dataset: what ``dataset.json`` would hold; its shards have no bytes.
        rejects: the rows that are left out, as in ``rejects.jsonl``.
        findings: what is changed in rows, the first 10,000; ``rows.adjusted`` counts all.
        seconds: wall-clock time.
        counts: what was counted, by the names in :mod:`recordgen.runs.counters`.
        detection: how the source was read.
        lint: what is wrong with the data, as in ``lint.jsonl``.
    """

    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    detection: Detection | None = None
    lint: Lint | None = None


@dataclass(frozen=True, kw_only=True)
class ConversionResult(CheckResult):
    """A finished conversion: also the attributes of :class:`CheckResult`, of what was written.

    Attributes:
        output: the folder or URL prefix that was written.
        kept_shards: shards of an interrupted run that were kept; None: there was nothing to go
            on with, or it was not asked for.
        unchanged: the finished dataset that was there is what would have been written; nothing
            was.
    """

    output: str
    kept_shards: int | None = None
    unchanged: bool = False
