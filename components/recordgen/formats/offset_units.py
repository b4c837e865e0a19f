"""The unit of the offsets of entities, as the first lines of import files show it.

A tool in JavaScript counts an emoji as two. Read as code points, its spans after an emoji are
shifted: they cut words, or begin with blanks. If most spans do so, and none in another unit, the
run stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from typing import NamedTuple

from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import UsageError
from recordgen.formats.head import Head
from recordgen.options import AUTO, ConvertOptions
from recordgen.registry import FORMATS
from recordgen.tasks import TASKS, TextEntities
from recordgen.tasks.text_entities.tags import (
    BYTES,
    NAMES,
    UTF16,
    inner_places,
    places,
    tokenize,
)
from recordgen.tasks.text_entities.task import spans_in
from recordgen.tasks.texts.task import TextContent, row_of_line

# The share of spans that may cut words in the right unit: annotators sometimes mark part of a word.
_MAY_CUT = 0.05


def check_offsets(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check the unit of offsets. Raises: UsageError: the spans show another, or there are none."""
    is_spans = (
        bool(heads)
        and TASKS[options.task].kind == "entities"
        and FORMATS[options.format].has_columns
    )
    if options.columns.offsets != AUTO:
        if not is_spans:
            raise UsageError(
                f"columns: offsets={options.columns.offsets} is for JSONL files of "
                f"{TextEntities.name}, and this source is none; omit it"
            )
        return
    if not is_spans:
        return
    for head in heads:
        for unit in (UTF16, BYTES):
            moved = list(_moved_spans(head, unit))
            cut = [span for span in moved if not span.is_whole]
            cut_in_unit = sum(not span.is_whole_in_unit for span in moved)
            if len(cut) * 2 > len(moved) and cut_in_unit <= _MAY_CUT * len(moved):
                first = next(span.shown for span in cut if span.is_whole_in_unit)
                raise UsageError(
                    f"the offsets of entities seem to count {NAMES[unit]}, not characters: of "
                    f"{len(moved):,} spans for which it matters, {len(cut):,} cut words if they "
                    f"count characters, and {cut_in_unit:,} if they count {NAMES[unit]}, such as "
                    f"{first}; use --columns offsets={unit}, or --columns offsets=codepoints if "
                    f"they do count characters"
                )


class _MovedSpan(NamedTuple):
    """A span that is another one in another unit: in which it is whole, and both texts."""

    is_whole: bool
    is_whole_in_unit: bool
    shown: str


def _moved_spans(head: Head, unit: str) -> Iterator[_MovedSpan]:
    """Yield the spans of a file that differ between code points and another unit."""
    for number, record in head.objects:
        with suppress(AnnotationError):  # the reader of the rows reports it
            text = TextContent.decode(row_of_line(record, None).annotation).text
            place_of = places(text or "", unit)
            if text is None or place_of is None:
                continue
            inner = inner_places(tokenize(text))
            for start, end, _ in spans_in(record):
                place = place_of.get(start, -1), place_of.get(end, -1)
                if place != (start, end):
                    read, meant = text[start:end], text[slice(*place)]
                    yield _MovedSpan(
                        _is_whole(text, (start, end), inner),
                        _is_whole(text, place, inner),
                        f"{read!r:.60} instead of {meant!r:.60} in {head.path}:{number}",
                    )


def _is_whole(text: str, place: tuple[int, int], inner: Set[int]) -> bool:
    """Return whether a span is in its text, begins and ends with words, and cuts none."""
    marked = text[slice(*place)]
    is_inside = min(place) >= 0 and place[1] <= len(text)
    return is_inside and marked == marked.strip() != "" and inner.isdisjoint(place)
