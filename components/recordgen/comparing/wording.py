"""Words for differences, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recordgen import storage
from recordgen.comparing.differences import ChangedRow, Differences, Leak, VocabularyChange
from recordgen.comparing.rows import RowRef
from recordgen.features import TEXT
from recordgen.quoting import shortened
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_chosen
from recordgen.rows.row import is_content_uri

# Words for annotations by task; other tasks say "annotation".
_ANNOTATIONS: Mapping[str | None, str] = {
    "object_detection": "boxes",
    "text_entities": "entities",
    "video_classification": "segment",
}

#: Descriptions of leaks by direction.
LEAKS: Mapping[str, str] = {
    "train_to_evaluation": "in OLD's train and outside of NEW's train",
    "evaluation_to_train": "outside of OLD's train and in NEW's train",
}

_NAME_CHARACTERS = 100
_VALUE_CHARACTERS = 60
_LABELS_SHOWN = 5


def kind_word(kind: str, task: str | None) -> str:
    """Return the word for a kind of change, such as boxes instead of annotation."""
    return _ANNOTATIONS.get(task, kind) if kind == "annotation" else kind


def change_words(item: ChangedRow, task: str | None) -> str:
    """Return the differences of a row: ``label dog → bee, boxes 3 → 4``."""
    return ", ".join(_change(kind, item, task) for kind in item.kinds)


def _change(kind: str, item: ChangedRow, task: str | None) -> str:
    old, new = item.old, item.new
    word = kind_word(kind, task)
    if kind == "label":
        return f"{word} {labels_words(old.labels)} → {labels_words(new.labels)}"
    if kind == "split":
        return f"{word} {old.split} → {new.split}"
    if kind == "annotation" and old.objects != new.objects:
        return f"{word} {old.objects:,} → {new.objects:,}"
    return word


def labels_words(labels: Sequence[str]) -> str:
    """Return the labels of a row: ``cat, dog``."""
    more = f", … {len(labels)} labels" if len(labels) > _LABELS_SHOWN else ""
    return ", ".join(labels[:_LABELS_SHOWN]) + more or "none"


def vocabulary_words(change: VocabularyChange) -> list[str]:
    """Return changes of the vocabulary: ``1 added (bee)``, ``2 renumbered (cat: 0 → 1, …)``."""
    renumbered = [f"{label}: {old} → {new}" for label, (old, new) in change.renumbered.items()]
    parts = {"added": change.added, "removed": change.removed, "renumbered": renumbered}
    return [f"{len(items):,} {word} ({_first(items)})" for word, items in parts.items() if items]


def _first(items: Sequence[str]) -> str:
    return ", ".join(items[:_LABELS_SHOWN]) + (", …" if len(items) > _LABELS_SHOWN else "")


def value_words(value: object) -> str:
    """Return an option's value, shortened if it is long; ``none`` if it is missing."""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or None
    text = "none" if value is None else str(value)
    return shortened(text, _VALUE_CHARACTERS)


def distance_words(value: float | None) -> str:
    """Return a distance of labels or sizes; ``none`` if it is unknown."""
    return "none" if value is None else f"{value:.3f}"


def names_of(root: str, rows: Iterable[RowRef]) -> dict[RowRef, str]:
    """Return names of rows: the uri, or else the beginning of the text, or the table's values.

    Texts and values are read again from their shards.

    Args:
        root: the folder of the dataset.
        rows: the few rows to show.
    """
    names: dict[RowRef, str] = {}
    hidden: dict[str, list[RowRef]] = {}
    for row in rows:
        if row.uri and not is_content_uri(row.uri):
            names[row] = shortened(row.uri, _NAME_CHARACTERS)
        else:
            hidden.setdefault(row.file, []).append(row)
    for file, wanted in hidden.items():
        by_place = {row.record: row for row in wanted}
        for number, record in read_chosen(storage.join(root, file), by_place):
            names[by_place[number]] = shortened(_content(record), _NAME_CHARACTERS)
    return names


def shown_names(
    differences: Differences, limit: int
) -> tuple[dict[RowRef, str], dict[RowRef, str]]:
    """Return the names of the first rows in each list, for OLD and for NEW."""
    pairs: list[ChangedRow | Leak] = [*differences.changed[:limit], *differences.leaks[:limit]]
    old = [*differences.removed[:limit], *(pair.old for pair in pairs)]
    new = [*differences.added[:limit], *(pair.new for pair in pairs)]
    return names_of(differences.old.path, old), names_of(differences.new.path, new)


def _content(record: bytes) -> str:
    values = parse_example(record)
    if TEXT in values:
        return _text(values[TEXT])
    return ", ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(values: Sequence[object]) -> str:
    return " ".join(" ".join(map(_value, values[:_LABELS_SHOWN])).split())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode("utf-8")[:_NAME_CHARACTERS]
    except UnicodeDecodeError:
        return f"{len(value):,} bytes"
