"""Findings of an import file, and facts about examples that do not exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np
import pyarrow as pa

import recordgen
from recordgen.checks import labels
from recordgen.checks.check import Check, Examined, ExampleFacts
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts.columns import FactsBuilder, of_shard, with_facts
from recordgen.options import ConvertOptions


def findings(source, **options):
    """Check an import file, and return the findings."""
    lint = recordgen.check(source, **options).lint
    assert lint is not None
    return list(lint.findings())


class Noun:
    """A task with a noun for messages, and no checks of its own."""

    noun: ClassVar[str] = "image"
    by_address: ClassVar[bool] = False
    facts: ClassVar[Collection[str]] = ()

    def shown(self, annotation):
        """Return an annotation as messages show it."""
        return annotation

    def nearly_agree(self, one, other):
        """Return whether different annotations of one payload mean the same."""
        return False


def facts_of(rows):
    """Return facts about examples, given split, content and annotation of each."""
    parts = []
    for line, (split, content, annotation) in enumerate(rows, start=1):
        columns = pa.table({"source": ["rows.csv"], "line": [line], "uri": [f"{line}.jpg"]})
        columns = columns.set_column(0, "source", columns["source"].dictionary_encode())
        facts = FactsBuilder.of(np.array([content], np.uint64), [])
        noted = with_facts(columns, facts, [[annotation]], (), 0)
        parts += of_shard(split, f"Split-{split}/x", noted)
    return ExampleFacts(parts)


NO_LABELS = Vocabulary("text", ())


def examined_of(about, *, lint=(), vocabulary=NO_LABELS, splits=None):
    """Return what checks examine, with the thresholds of ``lint``."""
    thresholds = ConvertOptions(lint=tuple(lint)).selection.thresholds
    return Examined(about, Noun(), thresholds, vocabulary=vocabulary, splits=splits or {})


def label_findings(examined):
    """Yield codes and messages of the checks of classes and splits."""
    for check in vars(labels).values():
        if isinstance(check, type) and issubclass(check, Check) and check is not Check:
            yield from ((check.code, str(text)) for text in check().findings(examined))
