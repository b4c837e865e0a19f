"""The return values of ``check``, ``convert``, ``plan`` and :mod:`recordgen.parts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recordgen.core.dataset.lint import Lint
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.runs.staging import StagedPlan
from recordgen.formats.detect import Detection
from recordgen.messages import Shown
from recordgen.rejects import Finding, Reject


@dataclass(frozen=True, repr=False)
class PlanResult(Shown, StagedPlan):
    """The result of a dry run: the plan.

    Attributes:
        detection: detected format, task and columns of the source.
    """

    detection: Detection | None = None


@dataclass(frozen=True, repr=False)
class PartsResult(PlanResult):
    """The result of planning a run in parts.

    Attributes:
        output: the folder or URL prefix whose staging folder has the plan.
        parts: number of parts; those from ``shards`` on have nothing to do.
    """

    output: str = ""
    parts: int = 0


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """The result of work on a part.

    Attributes:
        part: its number; -1 if the dataset is committed.
        parts: number of parts of the run; 0 if the dataset is committed, as are ``shards``.
        shards: number of shards of the part.
        was_done: the part was finished already, or has no shards.
        is_committed: the dataset of all parts is committed already.
    """

    output: str
    part: int = -1
    parts: int = 0
    shards: int = 0
    seconds: float = 0.0
    was_done: bool = False
    is_committed: bool = False


def _no_findings() -> Lint:
    return Lint({}, {}, (), lambda _: iter(()))


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckResult(Shown):
    """The result of a check: what a conversion would write.

    Attributes:
        dataset: the content that ``dataset.json`` would have; its shards have no bytes.
        rejects: rejected rows, as in ``rejects.jsonl``.
        findings: the first 10,000 changes in rows; ``rows.adjusted`` counts all.
        seconds: wall-clock time.
        counts: counts by the names in :mod:`recordgen.core.runs.counters`.
        detection: detected format, task and columns of the source.
        lint: findings of the checks, as in ``lint.jsonl``.
        phases: seconds of each phase, see :mod:`recordgen.core.progress`.
    """

    dataset: Dataset
    rejects: tuple[Reject, ...]
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    detection: Detection | None = None
    lint: Lint = field(default_factory=_no_findings)
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False)
class ConversionResult(CheckResult):
    """The result of a conversion, with the attributes of :class:`CheckResult`.

    Attributes:
        output: the folder or URL prefix that was written.
        kept_shards: shards of an interrupted run that were kept; None if nothing was resumed.
        unchanged: the output held the same dataset already, so nothing was written.
    """

    output: str
    kept_shards: int | None = None
    unchanged: bool = False
