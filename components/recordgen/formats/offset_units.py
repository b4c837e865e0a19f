"""The unit of the offsets of entities, as the first lines of import files show it.

A tool in JavaScript counts an emoji as two. Read as code points, its spans after an emoji are
shifted: they cut words, or begin with blanks. If most spans do so, and none in another unit, the
run stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

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
    Span,
    inner_places,
    places,
    tokenize,
)
from recordgen.tasks.text_entities.task import spans_in
from recordgen.tasks.texts.text_task import TextContent, row_of_line

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
        for unit, evidence in _evidence_in(head).items():
            if evidence.shows_unit:
                raise UsageError(
                    f"the offsets of entities seem to count {NAMES[unit]}, not characters: of "
                    f"{evidence.moved:,} spans for which it matters, {evidence.cut:,} cut words if "
                    f"they count characters, and {evidence.cut_in_unit:,} if they count "
                    f"{NAMES[unit]}, such as {evidence.first}; use --columns offsets={unit}, or "
                    f"--columns offsets=codepoints if they do count characters"
                )


@dataclass
class _Evidence:
    """Counts of the spans that differ between code points and another unit.

    Attributes:
        moved: number of these spans.
        cut: number of them that cut words as code points.
        cut_in_unit: number of them that cut words in the other unit.
        first: the first span that is whole only in the other unit.
    """

    moved: int = 0
    cut: int = 0
    cut_in_unit: int = 0
    first: str = ""

    @property
    def shows_unit(self) -> bool:
        """Whether most spans cut words as code points, and hardly any in the other unit."""
        return self.cut * 2 > self.moved and self.cut_in_unit <= _MAY_CUT * self.moved

    def add(
        self,
        where: str,
        text: str,
        spans: Sequence[Span],
        inner: Set[int],
        place_of: Mapping[int, int],
    ) -> None:
        """Count the spans of a text."""
        for span in spans:
            start, end = place_of.get(span.start), place_of.get(span.end)
            if (start, end) == span[:2]:
                continue
            self.moved += 1
            is_cut = not _fits(text, span.start, span.end, inner)
            self.cut += is_cut
            if start is None or end is None or not _fits(text, start, end, inner):
                self.cut_in_unit += 1
            elif is_cut and not self.first:
                read, meant = text[span.start : span.end], text[start:end]
                self.first = f"{read!r:.60} instead of {meant!r:.60} in {where}"


def _evidence_in(head: Head) -> dict[str, _Evidence]:
    """Return the evidence of a file for each unit, from texts that are not ASCII."""
    found = {unit: _Evidence() for unit in (UTF16, BYTES)}
    for number, record in head.objects:
        with suppress(AnnotationError):  # the reader of the rows reports it
            text = TextContent.decode(row_of_line(record, None).annotation).text
            if text is None or text.isascii():
                continue
            spans, inner = list(spans_in(record)), inner_places(tokenize(text))
            for unit, evidence in found.items():
                if (place_of := places(text, unit)) is not None:
                    evidence.add(f"{head.path}:{number}", text, spans, inner, place_of)
    return found


def _fits(text: str, start: int, end: int, inner: Set[int]) -> bool:
    """Return whether a span is in its text, begins and ends with words, and cuts none."""
    marked = text[start:end]
    is_whole = end <= len(text) and marked == marked.strip() != ""
    return is_whole and start not in inner and end not in inner
