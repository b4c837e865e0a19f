"""An export for Recordgen: the examples of each label and split, as CSV.

label,train,eval,test
cat,70,9,8
"""

from __future__ import annotations

import csv
import io

from recordgen.exports import FileExport, Output


class LabelCounts(FileExport):
    """Writes ``label_counts.csv`` beside the dataset."""

    file = "label_counts.csv"

    def text(self, output: Output) -> str:
        splits = output.dataset.splits
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(("label", *splits))
        for label in output.dataset.labels:
            table.writerow((label, *(split.labels.get(label, 0) for split in splits.values())))
        return text.getvalue()
