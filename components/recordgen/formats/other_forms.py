"""Forms of rows that no reader takes, although a line of them can be read as something else.

    __label__praise Good, and cheap.     fastText: a text without a label, if it were read
    images/1.jpg 0                       a path and its label, separated by a blank
    Good, and cheap.|praise              separated by |
    1::1193::5                           separated by ::
    5.1,3.5,1.4,0.2,setosa               a table without a header: the "image" 5.1
    a.jpg,4,5,8,10,cat                   a box before its label: no row could be read
    {"text": "…", "label": [[0, 4, "PER"]]}   spans: the class 0,4,PER

Each function returns the message that names the form and the remedy, or "".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recordgen.formats.field_kinds import NUMBER, is_sentence, mostly, names_media
from recordgen.formats.head import Head, Line
from recordgen.formats.other_columns import FLAGS, are_spans
from recordgen.tables.roles import Columns
from recordgen.tasks import TASK_OF_TABLES

_FASTTEXT = re.compile(r"__label__\S")

#: Separators of other tools; MovieLens has ``::``.
OTHER_SEPARATORS = ("::", "|")

#: The remedy for them.
SEPARATE = (
    "separate fields with commas, semicolons, tabs or bars, and quote fields that contain one"
)

#: The message for a table whose columns blanks separate.
SEPARATED_BY_BLANKS = (
    "this looks like a table whose columns are separated by blanks; separate them with commas or "
    "tabs, and add a header that names the columns"
)


# Keys of objects with spans, and of the spans.
_SPANS = ("label", "labels", "entities", "spans", "ents")

# Fewer lines may look like a table by chance, and a narrower table like labelled payloads.
_LINES_OF_A_TABLE = 3
_COLUMNS_OF_A_TABLE = 3


def of_boxes(head: Head) -> str:
    """Return the message for lines whose boxes come before their labels: ``a.jpg,4,5,8,10,cat``."""
    rows = [] if head.header is not None else boxes_before_labels(head.rows)
    if not rows:
        return ""
    remedy = "--columns path=1,xmin=2,ymin=3,xmax=4,ymax=5,label=6"
    return (
        f"{head.where}: these lines have a box before its label ({','.join(rows[0]):.80} was read "
        f"as path, xmin, ymin, xmax, ymax, label); use "
        f"{'--format retinanet' if in_pixels(rows) else remedy}"
    )


def boxes_before_labels(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return rows of a path, a box and its label, if most rows are some; else none."""
    rows = [row for row in rows if any(row[1:])]  # a.jpg,,,,, has no object
    found = [row for row in rows if _has_box_and_label(row)]
    return found if len(found) * 2 > len(rows) else []


def in_pixels(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether boxes behind a path are in pixels, and not in shares of the image."""
    return any(float(text) > 1 for row in rows for text in row[1:5])


def _has_box_and_label(row: Sequence[str]) -> bool:
    *box, label = (*row, *[""] * 6)[1:6]
    is_label = bool(label) and NUMBER.fullmatch(label) is None
    return is_label and all(map(NUMBER.fullmatch, box)) and names_media(row[0])


def of_lines(head: Head, columns: Columns) -> str:
    """Return the form of lines without a header whose fields are not those of a CSV.

    ``columns``: those that the user names, which may also be in another order.
    """
    if head.header is not None or not head.rows:
        return ""
    lines = [head.delimiter.join(row) for row in head.rows]
    if mostly(_FASTTEXT.match, lines):
        return (
            f"{head.where}: the lines are fastText's (__label__LABEL TEXT); write a CSV with the "
            f"header text,label"
        )
    firsts = [row[0] for row in head.rows]
    if mostly(_is_path_and_values, firsts):
        return (
            f"{head.where}: a blank separates the path from what follows ({lines[0]:.80}); "
            f"separate the fields with commas or tabs, as PATH,LABEL; write each box on a line of "
            f"its own"
        )
    are_files = any(line.kind in ("image", "video") for line in head.lines)
    for sign in () if are_files else OTHER_SEPARATORS:
        counts = {line.count(sign) for line in lines}
        # Only in the first of several fields, they are characters of texts.
        are_last = sign != "|" or all(sign in row[-1] for row in head.rows)
        is_read = sign == head.delimiter
        are_alike = len(lines) > 1 and len(counts) == 1 and any(counts)
        if are_alike and are_last and not is_read:
            return (
                f"{head.where}: each line has as many {sign} as the others ({lines[0]:.80}); "
                f"{SEPARATE}"
            )
    are_whole = all(len(row) == 1 for row in head.rows)
    if mostly(is_separated_by_blanks, firsts) or (
        are_whole and _are_records([line.split() for line in lines], least=1 / 3)
    ):
        return f"{head.where}: {SEPARATED_BY_BLANKS}"
    return "" if columns.roles else of_boxes(head)


def _is_path_and_values(field: str) -> bool:
    """Return whether a path and a label, or numbers, share a field: ``1.jpg 0``, ``1.jpg 10``.

    Caffe's lists have these, and keras-yolo3's, whose boxes follow: ``1.jpg 10,20,30,40,0``.
    CUB's lists have a number before the path: ``1 001.Albatross/1.jpg``.
    """
    path, blank, rest = field.partition(" ")
    if not blank:
        return False
    values = rest.split()
    are_values = len(values) == 1 or (values and all(map(NUMBER.fullmatch, values)))
    is_numbered = path.isdecimal() and len(values) == 1 and names_media(rest)
    return is_numbered or bool(are_values and names_media(path) and not names_media(field))


def is_separated_by_blanks(field: str) -> bool:
    """Return whether a field holds several numbers: blanks separate the columns of a table."""
    parts = field.split()
    numbers = sum(NUMBER.fullmatch(part) is not None for part in parts)
    return numbers >= _COLUMNS_OF_A_TABLE and numbers * 3 >= len(parts)


def of_table(head: Head) -> str:
    """Return the message for lines that look like a table without a header."""
    rows = [line.fields for line in head.lines]
    is_split = all(line.has_ml_use and line.fields[0] for line in head.lines)
    if any(line.kind for line in head.lines) or not _are_records([row[is_split:] for row in rows]):
        return ""
    texts = [at for at, field in enumerate(rows[0]) if is_sentence(field)]
    if texts:
        text = max(texts, key=lambda at: len(rows[0][at]))  # a date may read as a sentence, too
        label = 2 if text == 0 else 1
        remedy = f"if column {text + 1} holds texts: --columns text={text + 1},label={label}"
    else:
        remedy = "if a column holds paths, name it: --columns path=1,label=2"
    return (
        f"{head.where}: this looks like a table without a header ({','.join(rows[0]):.80}); add a "
        f"header that names the columns, or number them: --task {TASK_OF_TABLES} --columns "
        f"header=no,target={len(rows[0])}; {remedy}"
    )


def _are_records(rows: Sequence[Sequence[str]], least: float = 0) -> bool:
    """Return whether rows have the same columns, of numbers or of few words.

    ``least``: the share of columns that must hold numbers.
    """
    width = max(map(len, rows), default=0)
    whole = [row for row in rows if len(row) == width]
    if width < 2 or len(whole) < _LINES_OF_A_TABLE or len(whole) * 10 < len(rows) * 9:
        return False
    columns = list(zip(*whole, strict=True))
    numbers = [mostly(NUMBER.fullmatch, [text for text in column if text]) for column in columns]
    if width < _COLUMNS_OF_A_TABLE:
        return all(numbers)
    if any(is_sentence(text) for text in columns[0]):
        return False
    repeat = [len(set(column)) * 2 <= len(column) for column in columns]
    return (any(numbers) and sum(numbers) >= least * width) or all(repeat)


def of_bare_labels(lines: Sequence[Line]) -> str:
    """Return the message for lines without a header whose labels are flags."""
    labels = [line.annotation for line in lines if line.labels]
    widths = {len(row) for row in labels}
    if len(widths) != 1 or min(widths) < 2 or not all(FLAGS.issuperset(row) for row in labels):
        return ""
    return (
        f"{lines[0].where}: the labels are 0 and 1, as one-hot labels are; add a header with the "
        f"names of the classes, such as filename,cat,dog"
    )


def of_objects(objects: Sequence[tuple[int, Mapping[str, Any]]], path: str) -> str:
    """Return the message for JSON objects whose labels are spans of a text."""
    for number, record in objects:
        for key, value in record.items():
            if key in _SPANS and isinstance(value, list) and value and are_spans(value):
                return (
                    f"{path}:{number}: {key} holds spans, as doccano and spaCy write entities; "
                    f'write {{"textContent": …, "textSegmentAnnotations": [{{"startOffset": 0, '
                    f'"endOffset": 4, "displayName": "PER"}}]}}'
                )
    return ""
