"""Sources that tests write, and what is read of them before any payload is opened."""

import json
from collections import Counter, defaultdict
from itertools import chain

from recordgen.core.rows.row import Adjustments, Row
from recordgen.errors import NotUnderstoodError
from recordgen.formats.header import NOTHING_GIVEN
from recordgen.formats.named_records import dataframe_rows
from recordgen.formats.row_reader import RowReader
from recordgen.formats.source import open_source
from recordgen.options import make_options
from recordgen.rejects import SKIPPED, Counted, OddLine, Reject
from recordgen.tasks import ObjectDetection, task_for
from recordgen.tasks.object_detection.annotation import Boxes
from tests.conftest import error_of, write_file
from tests.rows import row_by_row


def write_files(root, files):
    """Write texts or bytes below a folder, and return the folder."""
    for name, content in files.items():
        write_file(root / name, content)
    return root


def json_lines(*records):
    """Return lines of JSON."""
    return "".join(json.dumps(record) + "\n" for record in records)


def parsed(parse_lines, lines, source, task):
    """Return what a parser of lines yields."""
    given = {"adjusted": Adjustments(), "given": NOTHING_GIVEN}
    return list(parse_lines(lines, source=source, task=task, **given))


def refusal(read, *args, **options):
    """Return the refusal of a source that a function reads."""
    return error_of(NotUnderstoodError, read, *args, **options)


def frame_rows(frame, task):
    """Return the rows and rejects of a DataFrame one by one."""
    return list(row_by_row(dataframe_rows(frame, task, Adjustments())))


class Reading:
    """How a source is read.

    Attributes:
        detection: what was detected.
        options: the options, with task and format decided.
        classes: the declared classes in the order of their numbers.
        keypoints: the declared keypoints.
        items: rows, rejects and findings in the order of lines.
        rows: the rows.
        rejects: the rejects.
        codes: the codes of the rejects.
    """

    def __init__(self, source, **options):
        opened, self.options = open_source(source, make_options(options))
        self.detection = opened.detection
        self.classes, self.keypoints = opened.classes, opened.keypoints
        items = chain.from_iterable(map(RowReader(self.options).read_part, opened.parts()))
        self.items = row_by_row(item for item in items if not isinstance(item, Counted))
        self.rows = [item for item in self.items if isinstance(item, Row)]
        self.rejects = [item for item in self.items if isinstance(item, Reject)]
        self.codes = [item.code for item in self.rejects]


class Outcome(Reading):
    """What is read of the images of a folder.

    Attributes:
        task: the name of the task.
        rejected: the code of each image that is rejected.
        images: for each other image its boxes, label and rounded corners, or its labels.
        splits: the split of each, None if it is to be assigned.
        details: what else is known of the objects of each.
        adjusted: how often which change was made.
        skipped: the messages about what was skipped.
    """

    def __init__(self, source, **options):
        super().__init__(source, **options)
        self.task = self.options.task
        self.rejected = {item.uri: item.code for item in self.rejects}
        findings = [item for item in self.items if not isinstance(item, Row | Reject)]
        odd = [item for item in findings if isinstance(item, OddLine)]
        self.adjusted = Counter(item.code for item in findings if item not in odd)
        self.skipped = [item.message for item in odd if item.code == SKIPPED]
        rows = [row for row in self.rows if row.uri not in self.rejected]
        self.splits = {row.uri: row.split for row in rows}
        task, annotations = task_for(self.options), defaultdict(list)
        for row in rows:
            annotations[row.uri].append(row.annotation)
        said = {uri: task.merge(each).annotation for uri, each in annotations.items()}
        if self.task != ObjectDetection.name:
            self.images = {uri: [*task.labels(text)] if text else [] for uri, text in said.items()}
            return
        boxes = {uri: Boxes.from_json(text) for uri, text in said.items()}
        self.details = {uri: each.details for uri, each in boxes.items()}
        self.images = {
            uri: [(box.label, [round(side, 4) for side in box[1:]]) for box in each.boxes]
            for uri, each in boxes.items()
        }
