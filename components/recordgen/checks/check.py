"""What a check is: a class with one code, which is made without arguments; and how checks run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from recordgen.checks.facts import ExampleFacts
from recordgen.checks.selection import Selection
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.lint import ERROR, WARNING, Found, LineSpool, Lint, LintFinding
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.registry import CHECKS
from recordgen.rejects import Finding

#: What a check must examine together: each example alone, those with the same key
#: (:meth:`Check.keys`), those that are nearly the same, the rows of a table that are kept whole, or
#: no examples: only the splits and the labels.
EACH, KEYED, ALIKE, KEPT, NONE = SCOPES = "each", "keyed", "alike", "kept", "none"

#: Members of a group of copies or near-duplicates that are examined together, at most.
MOST_TOGETHER = 250_000

_Shared = TypeVar("_Shared")
_Key = TypeVar("_Key")


class CheckedTask(Protocol):
    """The part of a task that all checks use; checks of boxes, say, use more."""

    noun: ClassVar[str]
    by_address: ClassVar[bool]
    facts: ClassVar[Collection[str]]

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether different annotations of one payload mean the same."""


TaskT = TypeVar("TaskT", bound=CheckedTask)

_NO_LABELS = Vocabulary("text", ())


@dataclass(frozen=True)
class Examined(Generic[TaskT]):
    """What checks examine.

    Attributes:
        facts: facts about the examples that a check needs together.
        thresholds: the number from which on a check finds something, by code; for checks whose
            threshold is a similarity, only if the user gave it.
        vocabulary: all labels, and ``splits``, the splits with examples, by name: empty for checks
            of examples, which run before they are known.
        are_numbers_given: an option says that whole-number labels are the numbers of classes.
    """

    facts: ExampleFacts
    task: TaskT
    thresholds: Mapping[str, float]
    vocabulary: Vocabulary = _NO_LABELS
    splits: Mapping[str, Split] = field(default_factory=dict)
    eval_from: str = ""
    are_numbers_given: bool = False
    _shared: dict[Any, Any] = field(default_factory=dict)

    def shared(self, compute: Callable[..., _Shared], *args: Any) -> _Shared:
        """Return ``compute(self, *args)``, which several checks need, and compute it once."""
        key = compute, args
        if key not in self._shared:
            self._shared[key] = compute(self, *args)
        found: _Shared = self._shared[key]
        return found


class FoundRows(NamedTuple):
    """The examples that a check has found.

    Attributes:
        rows: the examples, each once.
        message: returns the message of a finding, given its index in ``rows``.
        partners: the example to which each one was compared; None if there was no comparison.
    """

    rows: RowIndices
    message: Callable[[int], str]
    partners: RowIndices | None = None


class Check:
    """A check of one code. Its findings change nothing in the dataset.

    Attributes:
        code: its code, in capitals; the name of the entry point that installs it.
        level: ``error`` if the data misleads a model's training or metrics, else ``warning``.
        threshold: the number from which on it finds something; None if it has none.
        is_similarity: the threshold is the least similarity of two payloads, above 0 and at most
            1; its default depends on the kind of payload.
        scope: the examples that it needs together, such as :data:`EACH`. It has no default.
        most_together: examples with one key that it examines together, at most, if it is one of
            :data:`KEYED`: more are examined in parts, and a warning says so. By default, all are.
        needs: the facts that it needs, see :mod:`recordgen.core.facts`: it runs for tasks that have
            all of them.
        counted_as: the count in ``rows.adjusted`` whose rows are its findings; empty: none.
        remedies: what helps, if the code does not suggest it; one that names an option is only for
            tasks in which the option acts. docs/lint.md has all remedies.
    """

    code: ClassVar[str]
    level: ClassVar[str] = WARNING
    threshold: ClassVar[float | None] = None
    is_similarity: ClassVar[bool] = False
    scope: ClassVar[str]
    most_together: ClassVar[int] = sys.maxsize
    needs: ClassVar[Collection[str]] = ()
    counted_as: ClassVar[str] = ""
    remedies: ClassVar[Sequence[str]] = ()

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows | str]:
        """Yield the examples that it finds, or messages about the dataset as a whole.

        By default nothing: readers of import files find the lines of some codes.
        """
        yield from ()

    @staticmethod
    def keys(facts: ExampleFacts) -> npt.NDArray[np.uint64]:
        """Return a key for each example: those with the same one are examined together.

        For checks of :data:`KEYED`. By default, the same key means the same payload.
        """
        return facts.contents


def check_declaration(name: str, check: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete check."""
    if not (isinstance(check, type) and issubclass(check, Check)):
        raise TypeError(f"a check is a subclass of recordgen.checks.Check (got {check!r})")
    code = getattr(check, "code", None)
    if code != name or name != name.upper():
        raise TypeError(
            f"the code of {check.__name__} must be the name of its entry point, in capitals: the "
            f"code is {code!r}, the entry point is named {name!r}"
        )
    scope = getattr(check, "scope", None)
    if scope not in SCOPES:
        raise TypeError(
            f"{name}: scope must say which examples the check needs together: one of "
            f"{', '.join(SCOPES)} (got {scope!r}); with keyed, a method keys returns the same "
            f"number for those that it needs together"
        )
    if check.level not in (ERROR, WARNING):
        raise TypeError(f"{name}: level must be {ERROR!r} or {WARNING!r} (got {check.level!r})")


def run_checks(
    about_splits: Examined[Any],
    found: Found,
    lines_of: Callable[[str], Iterator[bytes]],
    changes: Iterable[Finding],
    adjusted: Mapping[str, int],
    selection: Selection,
) -> Lint:
    """Run the selected checks that need no examples, and collect all findings.

    ``found`` is what steps have found; ``lines_of`` returns the findings in one of its files, as
    lines of JSON. ``changes`` may be the first of very many, ``adjusted`` has their numbers.
    """
    by_kind = {CHECKS[code].counted_as: code for code in selection.codes if CHECKS[code].counted_as}
    changed = [it._replace(code=by_kind[it.code]) for it in changes if it.code in by_kind]
    checks = {check.code: check for check in checks_of(about_splits.task, selection)}
    about_all, lines = list[LintFinding](), LineSpool()
    counts = Counter({code: adjusted.get(kind, 0) for kind, code in by_kind.items()})
    for code in (code for code in CHECKS if code in selection.codes):
        check, level = checks.get(code), CHECKS[code].level
        texts: list[str] = [*found.about_all.get(code, ())]
        if check is not None and check.scope == NONE:
            texts += map(str, check.findings(about_splits))
        whole = [LintFinding(code, level, "", 0, "", "", text) for text in texts]
        about_all += whole
        lines.add(code, (item.to_line().encode() for item in whole))
        counts[code] += len(whole)
        if code in found.files:
            counts[code] += lines.add(code, lines_of(found.files[code]))
        fixed = (
            LintFinding(code, level, *it[:3], "", it.message) for it in changed if it.code == code
        )
        lines.add(code, (item.to_line().encode() for item in fixed))
    in_order = {code: counts[code] for code in CHECKS if counts[code] and code in selection.codes}
    fatal = {code: count for code, count in in_order.items() if code in selection.fatal}
    return Lint(in_order, fatal, about_all, lines.read, found.remarks)


def checks_of(task: CheckedTask, selection: Selection) -> Iterator[Check]:
    """Yield the selected checks that examine examples of a task, in the order of the registry."""
    for code in CHECKS:
        if code in selection.codes and set(CHECKS[code].needs) <= set(task.facts):
            yield CHECKS[code]()
