"""Text similarity: ``[ML_USE],FIRST,SECOND,SCORE``, a score from 0 (different) to 1.

TRAIN,A dog runs.,A dog is running.,0.95  →  first: b"A dog runs.", second: …, score: 0.95
"""

from __future__ import annotations

import csv
import json
from typing import ClassVar

from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.records.example import serialize_example
from recordgen.core.rows.row import Row
from recordgen.features import FeatureSpec
from recordgen.formats.format import CsvParser
from recordgen.rejects import Reject
from recordgen.tasks import BuiltExample, Task, each_row


class TextSimilarity(Task):
    """The similarity of two texts; an annotation is ``[FIRST, SECOND, SCORE]`` as JSON."""

    name = "text_similarity"  # as the entry point
    kind = "pair"
    noun = "pair"
    expected = "[ML_USE],FIRST,SECOND,SCORE"
    features: ClassVar = {
        "first": FeatureSpec("bytes", None),
        "second": FeatureSpec("bytes", None),
        "score": FeatureSpec("float32", None),
    }
    names_payloads = False
    csv_parser = "text_pairs.task:PairsParser"
    reading = "text_pairs.model:PAIRS"
    trainer = "text_pairs.model:SimilarityTrainer"
    measure = "recordgen.training.measures:TableAccumulator"  # R²

    @each_row
    def make(self, fetched):
        first, second, score = json.loads(fetched.row.annotation)
        values = {"first": first.encode(), "second": second.encode(), "score": score}
        return BuiltExample(serialize_example(values))


class PairsParser(CsvParser):
    """Makes rows from the lines of a CSV of pairs."""

    @classmethod
    def parse_lines(cls, lines, *, source, task, adjusted, given):
        reader = csv.reader(line.decode("utf-8-sig") for line in lines)
        for fields in reader:
            try:
                ml_use, first, second, score = fields if len(fields) == 4 else ("", *fields)
                annotation = json.dumps([first, second, float(score)])
                yield Row(source, reader.line_num, parse_ml_use(ml_use), "", annotation)
            except ValueError as exc:
                message = f"expected {task.expected}: {exc}"
                yield Reject(source, reader.line_num, "", "bad_line", message)
