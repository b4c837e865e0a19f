"""What the user should know about data that was accepted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from recordgen.dataset import RowCounts, Split
from recordgen.labels import Vocabulary

# Vertex AI "Prepare image training data": labels of letters, digits and underscore. Its own
# sample holds "Baked goods", so this is advice.
_ADVISED_LABEL = re.compile(r"[A-Za-z0-9_]+")

# AutoML's quotas: at least ten images, or texts, per label.
_ADVISED_EXAMPLES = 10


def advice(
    vocabulary: Vocabulary, splits: Mapping[str, Split], rows: RowCounts, noun: str
) -> tuple[str, ...]:
    """Return one sentence for each thing worth a second look; ``noun``: what an example is."""
    found = list(vocabulary.warnings)
    counts: Counter[str] = Counter()
    for split in splits.values():
        counts.update(split.labels)
    odd = [label for label in vocabulary.names if not _ADVISED_LABEL.fullmatch(label)]
    if odd:
        found.append(
            f"{len(odd)} labels hold more than letters, digits and underscores: {_some(odd)}"
        )
    few = [label for label in sorted(counts) if counts[label] < _ADVISED_EXAMPLES]
    if few:
        found.append(f"{len(few)} labels have fewer than {_ADVISED_EXAMPLES} {noun}s: {_some(few)}")
    if vocabulary.kind == "text":
        without = [label for label in vocabulary.names if not counts[label]]
        if without:
            found.append(f"{len(without)} labels lost all their {noun}s: {_some(without)}")
    unlabelled = sum(split.unlabelled for split in splits.values())
    if unlabelled:
        found.append(f"{unlabelled} examples have no label")
    if splits and "train" in splits and "eval" not in splits:
        found.append("no example is in split eval; TFX's Trainer and Evaluator need one")
    return tuple(found)


def _some(labels: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(map(repr, labels[:limit]))
    return shown if len(labels) <= limit else f"{shown}, …"
