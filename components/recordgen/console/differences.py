"""The output of ``recordgen diff``: counts, drift, and the first rows of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from recordgen.comparing import wording
from recordgen.console.summaries import aligned
from recordgen.console.terminal import one_line

if TYPE_CHECKING:
    from recordgen.comparing.differences import Compared, Differences
    from recordgen.comparing.drift import SizeStats
    from recordgen.comparing.rows import RowRef

_ROWS_SHOWN = 10
_OPTIONS_SHOWN = 12
_LABELS_SHOWN = 5


def difference_summary(found: Differences, *, lister: str = "--json") -> str:
    """Return the differences as text; reads the records of a few rows that have no uri.

    ``lister`` is the word for what lists all rows.
    """
    lines = [
        f"OLD        {_side(found.old)}",
        f"NEW        {_side(found.new)}",
        "",
        *_split_table(found),
        "",
        f"Added      {len(found.added):,}",
        f"Removed    {len(found.removed):,}",
        f"Changed    {len(found.changed):,}{_kinds(found)}",
        f"Moved      {found.kinds['split']:,}{_moves(found)}",
        f"Unchanged  {found.unchanged:,}",
        f"Leaks      {len(found.leaks):,}",
        *(
            f"           {count:,} {wording.LEAKS[direction]}"
            for direction, count in found.leak_counts.items()
            if count
        ),
    ]
    if found.vocabulary is not None:
        words = wording.vocabulary_words(found.vocabulary)
        lines.append(f"Vocabulary {'; '.join(words) or 'the same'}")
    lines += [*_label_lines(found), *_size_lines(found), *_option_lines(found, lister)]
    lines += _row_lines(found, lister)
    if found.is_same:
        lines += ["", "The rows are the same."]
    return "\n".join(lines)


def _side(side: Compared) -> str:
    task = side.task or "no dataset.json"
    digest = f", digest {side.digest[:16]}…" if side.digest else ""
    return f"{side.path} ({side.examples:,} examples, {task}{digest})"


def _split_table(found: Differences) -> list[str]:
    splits = dict.fromkeys((*found.old.splits, *found.new.splits))
    counts = [
        (name, found.old.splits.get(name, 0), found.new.splits.get(name, 0)) for name in splits
    ]
    rows = [(name, f"{old:,}", f"{new:,}", f"{new - old:+,}") for name, old, new in counts]
    return aligned(("split", "old", "new", "change"), rows)


def _kinds(found: Differences) -> str:
    task = found.new.task
    parts = [f"{wording.kind_word(kind, task)} {n:,}" for kind, n in found.kinds.items() if n]
    return f" ({', '.join(parts)})" if parts else ""


def _moves(found: Differences) -> str:
    parts = [f"{move.old} → {move.new} {move.rows:,}" for move in found.moves]
    return f" ({', '.join(parts)})" if parts else ""


def _label_lines(found: Differences) -> list[str]:
    parts = [f"{item.split} {wording.distance_words(item.distance)}" for item in found.labels]
    if not parts:
        return []
    first = found.labels[0]
    totals = [max(1, sum(counts)) for counts in zip(*first.counts.values(), strict=True)]
    changes = [
        f"{label}: {old / totals[0]:.1%} → {new / totals[1]:.1%}"
        for label, (old, new) in first.counts.items()
        if old / totals[0] != new / totals[1]
    ][:_LABELS_SHOWN]
    return [
        f"Labels     {', '.join(parts)} (total variation, 0 to 1)",
        *([f"           {', '.join(changes)}"] if changes else []),
    ]


def _size_lines(found: Differences) -> list[str]:
    parts = [f"{item.split} {wording.distance_words(item.distance)}" for item in found.sizes]
    if not parts:
        return []
    first = found.sizes[0]
    return [
        f"Sizes      {', '.join(parts)} (Kolmogorov–Smirnov, 0 to 1)",
        f"           median {_median(first.old)} → {_median(first.new)}",
    ]


def _median(stats: SizeStats) -> str:
    if stats.width is None:
        return "none"
    if stats.height is None:
        return f"{stats.width[1]:,} bytes"
    return f"{stats.width[1]:,}×{stats.height[1]:,}"


def _option_lines(found: Differences, lister: str) -> list[str]:
    lines = [
        f"{item.name} {wording.value_words(item.old)} → {wording.value_words(item.new)}"
        for item in found.options[:_OPTIONS_SHOWN]
    ]
    if len(found.options) > _OPTIONS_SHOWN:
        lines.append(f"… and {len(found.options) - _OPTIONS_SHOWN:,} more ({lister} lists all)")
    return [
        f"{'' if number else 'Options':<10} {one_line(line)}" for number, line in enumerate(lines)
    ]


def _row_lines(found: Differences, lister: str) -> list[str]:
    old_names, new_names = wording.shown_names(found, _ROWS_SHOWN)
    task = found.new.task
    leaks = (
        f"{new_names[item.new]} ({item.new.split}) has the content of "
        f"{old_names[item.old]} (OLD's {item.old.split})"
        for item in found.leaks[:_ROWS_SHOWN]
    )
    changed = (
        f"{new_names[item.new]}: {wording.change_words(item, task)}"
        for item in found.changed[:_ROWS_SHOWN]
    )
    added = (_row(row, new_names[row]) for row in found.added[:_ROWS_SHOWN])
    removed = (_row(row, old_names[row]) for row in found.removed[:_ROWS_SHOWN])
    return [
        *_listed("Leaks", leaks, found.leaks, lister),
        *_listed("Changed", changed, found.changed, lister),
        *_listed("Added", added, found.added, lister),
        *_listed("Removed", removed, found.removed, lister),
    ]


def _row(row: RowRef, name: str) -> str:
    labels = f", {wording.labels_words(row.labels)}" if row.labels else ""
    return f"{name} ({row.split}{labels})"


def _listed(title: str, lines: Iterable[str], items: Sequence[object], lister: str) -> list[str]:
    if not items:
        return []
    more = len(items) - _ROWS_SHOWN
    return [
        "",
        f"{title}:",
        *(f"  {one_line(line)}" for line in lines),
        *([f"  … and {more:,} more ({lister} lists all)"] if more > 0 else []),
    ]
