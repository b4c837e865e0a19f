"""Made-up reviews of restaurants, for the tasks of labelled texts.

Sentences are combined from parts at random, with a fixed seed. A few labels are wrong, and some
words are meaningless, so that no model is right about all texts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from pipelines.samples import Sample, write_csv
from recordgen.training import TrainingConfig

_TEXTS = 900
_ML_USE = ("TRAIN",) * 7 + ("VALIDATION", "VALIDATION", "TEST")

# The subjects of sentences, by label.
_TOPICS: Mapping[str, Sequence[str]] = {
    "food": ("soup", "pasta", "bread", "salad", "cake", "fish", "coffee"),
    "place": ("garden", "music", "terrace", "room", "view", "window seat"),
    "price": ("bill", "price", "menu of the day", "tip", "discount"),
    "service": ("waiter", "staff", "host", "kitchen team", "reservation"),
}

# The judgements, from 0, the worst, to 4.
_JUDGEMENTS: Sequence[Sequence[str]] = (
    ("was a disaster", "made us leave", "was awful", "ruined the evening"),
    ("was below what we hoped for", "was rather poor", "disappointed us a little"),
    ("was all right", "was as expected", "was neither good nor bad"),
    ("was good", "pleased us", "was better than we thought"),
    ("was wonderful", "was the best in town", "delighted everybody"),
)

_OPENINGS = (
    "",
    "",
    "On Monday,",
    "Last week,",
    "With my aunt:",
    "Second visit.",
    "Well,",
    "For once,",
)
_ENDINGS = (
    "",
    "",
    "",
    "We sat near the door.",
    "It rained.",
    "Parking took a while.",
    "So it goes!",
)

# One in this many texts has a wrong label.
_WRONG_ONE_IN = 20


# Topics, grade and random generator of a review → its labels.
_Label = Callable[[Sequence[str], int, random.Random], Sequence[str]]


def _topic(topics: Sequence[str], grade: int, chance: random.Random) -> Sequence[str]:
    is_wrong = chance.randrange(_WRONG_ONE_IN) == 0
    return [chance.choice(sorted(_TOPICS))] if is_wrong else topics


def _all_topics(topics: Sequence[str], grade: int, chance: random.Random) -> Sequence[str]:
    is_wrong = chance.randrange(_WRONG_ONE_IN) == 0
    return sorted({*topics, chance.choice(sorted(_TOPICS))} if is_wrong else topics)


def _grade(topics: Sequence[str], grade: int, chance: random.Random) -> Sequence[str]:
    is_off = chance.randrange(_WRONG_ONE_IN) == 0
    off = chance.choice((-1, 1)) if is_off else 0
    return [str(min(max(grade + off, 0), len(_JUDGEMENTS) - 1))]


def _reviews(most_topics: int) -> Iterator[tuple[str, Sequence[str], int, random.Random]]:
    """Yield (text, topics, grade, chance) without end; no text comes twice."""
    chance = random.Random(0)
    seen = set()
    while True:
        topics = sorted(chance.sample(sorted(_TOPICS), chance.randint(1, most_topics)))
        grade = chance.randrange(len(_JUDGEMENTS))
        said = [
            f"the {chance.choice(_TOPICS[topic])} {chance.choice(_JUDGEMENTS[grade])}"
            for topic in topics
        ]
        opening, ending = chance.choice(_OPENINGS), chance.choice(_ENDINGS)
        middle = f"{chance.choice((', ', ' and ')).join(said)}."
        if not opening.endswith((",", ":")):
            middle = middle[0].upper() + middle[1:]
        text = " ".join(filter(None, (opening, middle, ending)))
        if text not in seen:
            seen.add(text)
            yield text, topics, grade, chance


def _write(folder: str, texts: int | None, *, most_topics: int, label: _Label) -> str:
    """Write reviews as ``reviews.csv``; return its path."""
    found = _reviews(most_topics)
    rows = []
    for number in range(_TEXTS if texts is None else texts):
        text, topics, grade, chance = next(found)
        rows.append((_ML_USE[number % len(_ML_USE)], text, *label(topics, grade, chance)))
    return write_csv(os.path.join(folder, "reviews.csv"), rows)


_TRAINING = TrainingConfig(batch_size=16, epochs=10, learning_rate=1e-2)

TOPICS = Sample(
    "reviews",
    "made-up reviews",
    partial(_write, most_topics=1, label=_topic),  # TRAIN,"Well, the soup was good.",food
    _TRAINING,
    min_score=0.85,
)

TOPIC_SETS = Sample(
    "review-topics",
    "made-up reviews of one to three topics",
    partial(_write, most_topics=3, label=_all_topics),
    _TRAINING,
    min_score=0.9,
)

SENTIMENTS = Sample(
    "review-sentiments",
    "made-up reviews from 0 to 4",
    partial(_write, most_topics=2, label=_grade),
    _TRAINING,
    min_score=0.85,
)
