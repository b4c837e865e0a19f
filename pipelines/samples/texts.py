"""The data of the demos with texts. They are made up; their rows are in files beside this module.

Reviews of restaurants have topics or a sentiment. A few labels are wrong, and some words are
meaningless, so that no model is right about all of them. In sentences about travels, some words are
a person here and a city or a month there (Paris, Sydney, May), so that a tagger must use the words
around them.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pipelines.samples import write_lines


def _write(folder: str, count: int | None = None, *, rows: str, name: str) -> str:
    """Write the first rows of a file beside this module; return the path."""
    lines = Path(__file__).with_name(rows).read_text(encoding="utf-8").splitlines()
    return write_lines(os.path.join(folder, name), lines[:count])


write_topics = partial(_write, rows="topics.csv", name="reviews.csv")
write_topic_sets = partial(_write, rows="topic_sets.csv", name="reviews.csv")
write_sentiments = partial(_write, rows="sentiments.csv", name="reviews.csv")
write_travels = partial(_write, rows="travels.jsonl", name="travels.jsonl")
