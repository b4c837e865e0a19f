"""Made-up sentences about travels, and the entities in them.

Some words are a person in one sentence and a city or a month in another (Paris, Sydney, May), so
that a tagger must use the words around them.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from pipelines.samples import Sample, write_lines
from recordgen.sources.automl_jsonl import LABELS_KEY, ML_USE_KEY
from recordgen.tasks.tags import Span
from recordgen.training import TrainingConfig

#: Number of sentences of the demo.
SENTENCES = 1200

# Three of ten sentences name their split.
_ML_USE = ("training", "validation", "test", "", "", "", "", "", "", "")


def _listed(text: str) -> list[str]:
    return text.split(", ")


_FIRST_NAMES = _listed(
    "Anna, Ben, Chloé, Dmitri, Elif, Farid, Grace, Hiro, Inés, Jörg, Kofi, Lena, Musa, Nora, "
    "Oskar, Priya, Quentin, Rosa, Sven, Tariq, Uma, Vera, Wei, Yusuf, Zoë, Paris, Sydney, "
    "Florence, Austin, May, April"
)
_LAST_NAMES = _listed(
    "Abebe, Brown, Costa, Dubois, Eriksen, Fischer, García, Haddad, Ivanova, Jensen, Kim, "
    "Lopes, Meier, Nakamura, O'Neill, Okafor, Petrov, Rossi, Silva, Tanaka, Vogel, Weber, "
    "York"
)
_CITIES = _listed(
    "Paris, Sydney, Florence, Austin, New York, Köln, São Paulo, Nairobi, Hanoi, Kyoto, The "
    "Hague, Oslo, Lima, Porto, Accra, Buenos Aires, Tbilisi, Cape Town, Montréal, Rio de "
    "Janeiro, İzmir, Graz"
)
_MONTHS = _listed(
    "January, February, March, April, May, June, July, August, September, October, November, "
    "December"
)
_DAYS = _listed("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
_TEMPLATES = (
    "{person} flew to {city} on {date}.",
    "On {date}, {person} will be in {city}.",
    "We met {person} in {city}.",
    "{person} and {person} left {city} before {date}.",
    "The train from {city} to {city} leaves on {date}!",
    "Nobody has seen {person} since {date}.",
    "Does {person} still live in {city}?",
    "{city} is lovely, but {person} prefers {city}.",
    "Please book a room in {city} for {person}, from {date} to {date}.",
    "{person} wrote: 'It rained in {city} until {date}.'",
    "The meeting was moved, and nobody knows why.",
    "May I ask where we are going?",
    "Tickets are 20 euros each; ask {person}.",
)


def sentences(count: int) -> Iterator[tuple[str, list[Span]]]:
    """Yield distinct sentences and their entities, always the same."""
    seen: set[str] = set()
    for text, spans in _sentences():
        if text not in seen:
            seen.add(text)
            yield text, spans
        if len(seen) == count:
            return


def _sentences() -> Iterator[tuple[str, list[Span]]]:
    draw = random.Random(0)

    def one(values: Sequence[str]) -> str:
        return values[draw.randrange(len(values))]

    def person() -> str:
        return f"{one(_FIRST_NAMES)} {one(_LAST_NAMES)}" if draw.randrange(2) else one(_FIRST_NAMES)

    def date() -> str:
        day, month = draw.randrange(1, 29), draw.randrange(12)
        year = draw.randrange(2018, 2027)
        return one(
            (
                f"{day} {_MONTHS[month]} {year}",
                f"{_MONTHS[month]} {day}",
                f"{year}-{month + 1:02}-{day:02}",
                f"next {one(_DAYS)}",
                one(_DAYS),
            )
        )

    make: Mapping[str, Callable[[], str]] = {
        "person": person,
        "city": lambda: one(_CITIES),
        "date": date,
    }
    while True:
        text, spans = "", []
        for piece in one(_TEMPLATES).split("{"):
            label, closing, behind = piece.partition("}")
            if not closing:
                text += piece
                continue
            value = make[label]()
            spans.append(Span(len(text), len(text) + len(value), label))
            text += value + behind
        yield text, spans


def write_travels(folder: str, count: int | None = None) -> str:
    """Write ``travels.jsonl`` in Vertex AI's format; return its path."""
    lines = []
    for number, (text, spans) in enumerate(sentences(count or SENTENCES)):
        segments = [
            {"startOffset": span.start, "endOffset": span.end, "displayName": span.label}
            for span in spans
        ]
        line: dict[str, object] = {"textContent": text, "textSegmentAnnotations": segments}
        if ml_use := _ML_USE[number % len(_ML_USE)]:
            line[LABELS_KEY] = {ML_USE_KEY: ml_use}
        lines.append(json.dumps(line, ensure_ascii=False))
    return write_lines(os.path.join(folder, "travels.jsonl"), lines)


TRAVELS = Sample(
    name="travels",
    data="sentences on travels, with persons, cities and dates",
    write=write_travels,
    training=TrainingConfig(batch_size=32, epochs=8, learning_rate=3e-3),
    min_score=0.9,
)
