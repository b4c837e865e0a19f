"""Made-up sentences about travels, and the entities in them.

Some words are a person in one sentence and a city or a month in another (Paris, Sydney, May), so
that a tagger must use the words around them.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pipelines.samples import write_lines
from recordgen.formats.automl_jsonl import LABELS_KEY, ML_USE_KEY
from recordgen.tasks.texts.tags import Span

_WORDS: dict[str, list[str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)


def sentences(count: int) -> Iterator[tuple[str, list[Span]]]:
    """Yield distinct sentences and their entities, always the same."""
    draw = random.Random(0)

    def one(words: str) -> str:
        return _WORDS[words][draw.randrange(len(_WORDS[words]))]

    def person() -> str:
        has_last_name = draw.randrange(2)
        return f"{one('first_names')} {one('last_names')}" if has_last_name else one("first_names")

    def date() -> str:
        day, month = draw.randrange(1, 29), draw.randrange(12)
        year, name = draw.randrange(2018, 2027), _WORDS["months"][month]
        ways = [f"{day} {name} {year}", f"{name} {day}", f"{year}-{month + 1:02}-{day:02}"]
        ways += [f"next {one('days')}", one("days")]
        return ways[draw.randrange(len(ways))]

    make: dict[str, Callable[[], str]] = {"person": person, "date": date}
    make["city"] = partial(one, "cities")
    seen: set[str] = set()
    while len(seen) < count:
        text, *pieces = one("templates").split("{")
        spans = []
        for piece in pieces:
            label, _, behind = piece.partition("}")
            value = make[label]()
            spans.append(Span(len(text), len(text) + len(value), label))
            text += value + behind
        if text not in seen:
            seen.add(text)
            yield text, spans


def write_travels(folder: str, count: int | None = None) -> str:
    """Write ``travels.jsonl`` in Vertex AI's format; return its path."""
    lines = []
    for number, (text, spans) in enumerate(sentences(count or 1200)):
        segments = [
            {"startOffset": span.start, "endOffset": span.end, "displayName": span.label}
            for span in spans
        ]
        line: dict[str, object] = {"textContent": text, "textSegmentAnnotations": segments}
        if number % 10 < 3:  # only these name their split
            line[LABELS_KEY] = {ML_USE_KEY: ("training", "validation", "test")[number % 10]}
        lines.append(json.dumps(line, ensure_ascii=False))
    return write_lines(os.path.join(folder, "travels.jsonl"), lines)
