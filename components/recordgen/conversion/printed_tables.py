"""What ``recordgen diff`` and ``recordgen inspect`` print: differences and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from recordgen import features
from recordgen.console.terminal import aligned, one_line
from recordgen.core.rows.row import is_content_uri
from recordgen.messages import shortened
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.exports.diff import differences
    from recordgen.exports.inspection import Record

_Item = TypeVar("_Item")

_LEAKS: Mapping[str, str] = {
    "train_to_evaluation": "in OLD's train and outside of NEW's train",
    "evaluation_to_train": "outside of OLD's train and in NEW's train",
}

_ROWS_SHOWN = 10
_OPTIONS_SHOWN = 12
_LABELS_SHOWN = 5
_NAME_CHARACTERS = 100
_VALUE_CHARACTERS = 60


def difference_summary(found: differences.Differences) -> str:
    """Return the differences as text."""
    kinds = [f"{_kind(kind, found)} {count:,}" for kind, count in found.kinds.items() if count]
    moves = [f"{move.old} → {move.new} {move.rows:,}" for move in found.moves]
    leaks = [f"{count:,} {_LEAKS[name]}" for name, count in found.leak_counts.items() if count]
    lines = [
        f"OLD        {_side(found.old)}",
        f"NEW        {_side(found.new)}",
        "",
        *_split_table(found),
        "",
        f"Added      {len(found.added):,}",
        f"Removed    {len(found.removed):,}",
        f"Changed    {len(found.changed):,}{_in_parentheses(kinds)}",
        f"Moved      {found.kinds['split']:,}{_in_parentheses(moves)}",
        f"Unchanged  {found.unchanged:,}",
        *_block("Leaks", [f"{len(found.leaks):,}", *leaks]),
        *_block("Vocabulary", [_vocabulary(found.vocabulary)]),
        *_block("Options", _options(found)),
        *_listed("Leaks:", found.leaks, _leak_words),
        *_listed("Changed:", found.changed, partial(_changed_words, found=found)),
        *_listed("Added:", found.added, _row_words),
        *_listed("Removed:", found.removed, _row_words),
        *(["", "The rows are the same."] if found.is_same else []),
    ]
    return "\n".join(lines)


def _in_parentheses(words: Sequence[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _block(title: str, lines: Iterable[str]) -> list[str]:
    """Return lines of which the first begins with a title; nothing without lines."""
    return [f"{'' if at else title:<10} {one_line(line)}" for at, line in enumerate(lines)]


def _side(side: differences.Compared) -> str:
    return f"{side.path} ({side.examples:,} examples, {side.task}, digest {side.digest[:16]}…)"


def _split_table(found: differences.Differences) -> list[str]:
    counts = [
        (name, found.old.splits.get(name, 0), found.new.splits.get(name, 0))
        for name in {**found.old.splits, **found.new.splits}
    ]
    rows = [(name, f"{old:,}", f"{new:,}", f"{new - old:+,}") for name, old, new in counts]
    return aligned(("split", "old", "new", "change"), rows)


def _vocabulary(change: differences.VocabularyChange) -> str:
    """Return ``1 added (bee); 2 renumbered (cat: 0 → 1, …)``."""
    renumbered = [f"{label}: {old} → {new}" for label, (old, new) in change.renumbered.items()]
    parts = {"added": change.added, "removed": change.removed, "renumbered": renumbered}
    words = [f"{len(items):,} {word} ({_some(items)})" for word, items in parts.items() if items]
    return "; ".join(words) or "the same"


def _some(items: Sequence[str]) -> str:
    return ", ".join(items[:_LABELS_SHOWN]) + (", …" if len(items) > _LABELS_SHOWN else "")


def _options(found: differences.Differences) -> list[str]:
    lines = [
        f"{item.name} {_value(item.old)} → {_value(item.new)}"
        for item in found.options[:_OPTIONS_SHOWN]
    ]
    return [*lines, *_more("", len(found.options) - _OPTIONS_SHOWN)]


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or None
    return shortened("none" if value is None else str(value), _VALUE_CHARACTERS)


def _leak_words(leak: differences.Leak) -> str:
    return (
        f"{_name(leak.new)} ({leak.new.split}) has the content of {_name(leak.old)} "
        f"(OLD's {leak.old.split})"
    )


def _changed_words(item: differences.ChangedRow, found: differences.Differences) -> str:
    """Return ``a.jpg: label dog → bee, boxes 3 → 4``."""
    old, new = item.old, item.new
    values = {
        "label": f" {_label_words(old)} → {_label_words(new)}",
        "split": f" {old.split} → {new.split}",
        "annotation": f" {old.objects:,} → {new.objects:,}" if old.objects != new.objects else "",
    }
    words = (f"{_kind(kind, found)}{values.get(kind, '')}" for kind in item.kinds)
    return f"{_name(new)}: {', '.join(words)}"


def _row_words(row: differences.RowRef) -> str:
    return f"{_name(row)} ({row.split}{f', {_label_words(row)}' if row.labels else ''})"


def _kind(kind: str, found: differences.Differences) -> str:
    """Return the word for a kind of difference, such as boxes instead of annotation."""
    task = TASKS.get(found.new.task)
    return kind if kind != "annotation" or task is None else task.details_noun


def _label_words(row: differences.RowRef) -> str:
    more = f", … {len(row.labels)} labels" if len(row.labels) > _LABELS_SHOWN else ""
    return ", ".join(row.labels[:_LABELS_SHOWN]) + more or "none"


def _name(row: differences.RowRef) -> str:
    """Return the uri of a row, or its import file and line if its payload has none."""
    has_uri = row.uri and not is_content_uri(row.uri)
    return shortened(row.uri if has_uri else f"{row.source}:{row.line}", _NAME_CHARACTERS)


def _listed(title: str, items: Sequence[_Item], words: Callable[[_Item], str]) -> list[str]:
    if not items:
        return []
    lines = (f"  {one_line(words(item))}" for item in items[:_ROWS_SHOWN])
    return ["", title, *lines, *_more("  ", len(items) - _ROWS_SHOWN)]


def _more(indent: str, count: int) -> list[str]:
    return [f"{indent}… and {count:,} more"] if count > 0 else []


# --- records -------------------------------------------------------------------------------------


_CELL_VALUES = 4
_CELL_CHARACTERS = 40


def records_table(records: Sequence[Record]) -> str:
    """Return one line per record, and where images were written."""
    if any(features.IMAGE_ENCODED in record.features for record in records):
        lines = _image_table(records)
    else:
        names = sorted({name for record in records for name in record.features})
        header = ("#", *names)
        rows = [
            (str(record.index), *(_cell(record.to_json().get(name, "")) for name in names))
            for record in records
        ]
        lines = aligned(header, rows, left=tuple(range(1, len(header))))
    lines += [f"wrote {record.image_file}" for record in records if record.image_file]
    return "\n".join(lines)


def _image_table(records: Sequence[Record]) -> list[str]:
    """Return a table of images with their labels, or with their boxes if any image has boxes."""
    names, cells = ("label", "text"), _label_cells
    if any(features.BBOX[0] in record.features for record in records):
        names, cells = ("boxes", "by label"), _box_cells
    header = ("#", "source id", "format", "size", "bytes", *names)
    rows = [(*_image_cells(record), *cells(record)) for record in records]
    return aligned(header, rows, left=(1, 2, 6))


def _image_cells(record: Record) -> tuple[str, ...]:
    shown = record.to_json()
    image = record.features.get(features.IMAGE_ENCODED, b"")
    return (
        str(record.index),
        str(shown.get(features.IMAGE_SOURCE_ID, "")),
        str(shown.get(features.IMAGE_FORMAT, "")),
        f"{shown.get(features.IMAGE_WIDTH, '?')}×{shown.get(features.IMAGE_HEIGHT, '?')}",
        f"{len(image):,}",
    )


def _label_cells(record: Record) -> tuple[str, ...]:
    shown = record.to_json()
    found = (
        shown.get(name, "") for name in (features.IMAGE_CLASS_LABEL, features.IMAGE_CLASS_TEXT)
    )
    return tuple(_first(value) if isinstance(value, list) else str(value) for value in found)


def _box_cells(record: Record) -> tuple[str, ...]:
    """Return the number of an image's boxes, in total and by label, most frequent first."""
    shown = record.to_json()
    labels = shown.get(features.IMAGE_OBJECT_TEXT) or shown.get(features.IMAGE_OBJECT_LABEL, [])
    counts = Counter(labels).most_common()
    by_label = _first([f"{count:,}× {label}" for label, count in counts])
    return f"{len(shown.get(features.BBOX[0], [])):,}", by_label


def _first(values: Sequence[object]) -> str:
    """Return the first values as text, and the number of values if there are more."""
    first = ", ".join(map(str, values[:_CELL_VALUES]))
    return first if len(values) <= _CELL_VALUES else f"{first}, … {len(values)} values"


def _cell(value: object) -> str:
    if isinstance(value, list) and len(value) > _CELL_VALUES:
        return f"[{_first(value)}]"
    return shortened(" ".join(str(value).split()), _CELL_CHARACTERS)
