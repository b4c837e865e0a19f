"""Tables of records and examples, as recordgen inspect prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recordgen import features
from recordgen.console.terminal import aligned
from recordgen.messages import shortened
from recordgen.rejects import place_of

if TYPE_CHECKING:
    from recordgen.exports.inspection import ListedExample, Record


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


def examples_table(examples: Sequence[ListedExample], count: int) -> str:
    """Return a table of the first of ``count`` examples, each followed by its findings."""
    rows = [
        (place_of(item.source, item.line, item.uri), item.split, _some(item.labels), item.uri)
        for item in examples
    ]
    lines = aligned(("row", "split", "labels", "uri"), rows, left=(0, 1, 2, 3)) if rows else []
    listed = lines[:1]
    for example, line in zip(examples, lines[1:], strict=True):
        listed.append(line)
        listed += [f"    {item.code} {item.message}" for item in example.findings]
    if count > len(examples):
        listed.append(f"… and {count - len(examples):,} more (--num, --json)")
    return "\n".join([*listed, f"{count:,} examples"])


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
    return tuple(_some(value) if isinstance(value, list) else str(value) for value in found)


def _box_cells(record: Record) -> tuple[str, ...]:
    """Return the number of an image's boxes, in total and by label, most frequent first."""
    shown = record.to_json()
    labels = shown.get(features.IMAGE_OBJECT_TEXT) or shown.get(features.IMAGE_OBJECT_LABEL, [])
    counts = Counter(labels).most_common()
    by_label = _some([f"{count:,}× {label}" for label, count in counts])
    return f"{len(shown.get(features.BBOX[0], [])):,}", by_label


def _some(values: Sequence[object]) -> str:
    """Return the first values as text, and the number of values if there are more."""
    first = ", ".join(map(str, values[:_CELL_VALUES]))
    return first if len(values) <= _CELL_VALUES else f"{first}, … {len(values)} values"


def _cell(value: object) -> str:
    if isinstance(value, list) and len(value) > _CELL_VALUES:
        return f"[{_some(value)}]"
    return shortened(" ".join(str(value).split()), _CELL_CHARACTERS)
