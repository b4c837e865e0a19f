"""Made-up reviews of restaurants, for the tasks of labelled texts.

Sentences are combined from parts at random, with a fixed seed. A few labels are wrong, and some
words are meaningless, so that no model is right about all texts.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pipelines.samples import write_csv

_WORDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_TOPICS: dict[str, list[str]] = _WORDS["topics"]  # the subjects of sentences, by label
_JUDGEMENTS: list[list[str]] = _WORDS["judgements"]  # from 0, the worst, to 4

# Topics and grade of a review, and a random generator → its labels; one in 20 is wrong.
_Label = Callable[[Sequence[str], int, random.Random], Sequence[str]]


def _topic(topics: Sequence[str], _: int, chance: random.Random) -> Sequence[str]:
    return topics if chance.randrange(20) else [chance.choice(sorted(_TOPICS))]


def _all_topics(topics: Sequence[str], _: int, chance: random.Random) -> Sequence[str]:
    return topics if chance.randrange(20) else sorted({*topics, chance.choice(sorted(_TOPICS))})


def _grade(_: Sequence[str], grade: int, chance: random.Random) -> Sequence[str]:
    off = 0 if chance.randrange(20) else chance.choice((-1, 1))
    return [str(min(max(grade + off, 0), len(_JUDGEMENTS) - 1))]


def _reviews(most_topics: int, label: _Label) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield texts and their labels without end; no text comes twice."""
    chance = random.Random(0)
    seen = set()
    while True:
        topics = sorted(chance.sample(sorted(_TOPICS), chance.randint(1, most_topics)))
        grade = chance.randrange(len(_JUDGEMENTS))
        said = [
            f"the {chance.choice(_TOPICS[topic])} {chance.choice(_JUDGEMENTS[grade])}"
            for topic in topics
        ]
        opening, ending = chance.choice(_WORDS["openings"]), chance.choice(_WORDS["endings"])
        middle = f"{chance.choice((', ', ' and ')).join(said)}."
        if not opening.endswith((",", ":")):
            middle = middle[0].upper() + middle[1:]
        text = " ".join(filter(None, (opening, middle, ending)))
        if text not in seen:
            seen.add(text)
            yield text, label(topics, grade, chance)


def _write(folder: str, texts: int | None, *, most_topics: int, label: _Label) -> str:
    """Write ``reviews.csv``, with rows such as ``TRAIN,"Well, the soup was good.",food``."""
    reviews = _reviews(most_topics, label)
    rows = []
    for number in range(900 if texts is None else texts):
        use = "TRAIN" if number % 10 < 7 else "VALIDATION" if number % 10 < 9 else "TEST"
        text, labels = next(reviews)
        rows.append((use, text, *labels))
    return write_csv(os.path.join(folder, "reviews.csv"), rows)


write_topics = partial(_write, most_topics=1, label=_topic)
write_topic_sets = partial(_write, most_topics=3, label=_all_topics)
write_sentiments = partial(_write, most_topics=2, label=_grade)
