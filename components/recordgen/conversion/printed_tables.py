"""What ``recordgen diff`` and ``recordgen inspect`` print: differences and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recordgen import features
from recordgen.console.terminal import aligned
from recordgen.messages import shortened
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.exports.diff import differences
    from recordgen.exports.inspection import Record

_LABELS_SHOWN = 5
_VALUE_CHARACTERS = 60


def split_changes(found: differences.Differences) -> list[str]:
    """Return the examples of each split in both datasets."""
    counts = [
        (name, found.old.splits.get(name, 0), found.new.splits.get(name, 0))
        for name in {**found.old.splits, **found.new.splits}
    ]
    rows = [(name, f"{old:,}", f"{new:,}", f"{new - old:+,}") for name, old, new in counts]
    return aligned(("split", "old", "new", "change"), rows)


def vocabulary_words(change: differences.VocabularyChange) -> str:
    """Return ``1 added (bee); 2 renumbered (cat: 0 → 1, …)``."""
    renumbered = [f"{label}: {old} → {new}" for label, (old, new) in change.renumbered.items()]
    parts = {"added": change.added, "removed": change.removed, "renumbered": renumbered}
    words = [f"{len(items):,} {word} ({_some(items)})" for word, items in parts.items() if items]
    return "; ".join(words) or "the same"


def _some(items: Sequence[str]) -> str:
    return ", ".join(items[:_LABELS_SHOWN]) + (", …" if len(items) > _LABELS_SHOWN else "")


def value_words(value: object) -> str:
    """Return the value of an option."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or None
    return shortened("none" if value is None else str(value), _VALUE_CHARACTERS)


def details_noun(task: str) -> str:
    """Return the word for what annotations of a task hold besides labels, such as boxes."""
    return TASKS[task].details_noun if task in TASKS else "annotation"


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
