"""Write the payloads of examples as files, and an import file for them.

DIR/train/cat/a.jpg    the bytes that the record holds; raw pixels as a PNG
DIR/examples.csv       TRAIN,train/cat/a.jpg,cat
"""

from __future__ import annotations

import csv
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from recordgen import features, storage
from recordgen.dataset.splits import EVAL, TEST, TRAIN
from recordgen.errors import RecordError, UsageError
from recordgen.payloads.stored import stored_image
from recordgen.records.boxes import stored_boxes
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_chosen
from recordgen.report.examples import ListedExample, Matches
from recordgen.tasks import TASKS

#: The import file next to the payloads.
EXAMPLES_CSV = "examples.csv"

_ML_USE = {TRAIN: "TRAIN", EVAL: "VALIDATION", TEST: "TEST"}
_SUFFIXES = {"jpeg": "jpg"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80

#: A record's features as lists, by name.
_Record = Mapping[str, Sequence[Any]]


def extract(matches: Matches, to: str) -> list[str]:
    """Write the payloads of examples, and ``examples.csv``, an import file for them.

    Args:
        matches: the examples.
        to: a local folder that is empty or does not exist.

    Returns:
        The files, ``examples.csv`` last.

    Raises:
        UsageError: the folder is not empty or cannot be written, or the task has no payloads that
            an import file could name.
        RecordError: a shard is damaged, or lacks a record that ``examples.parquet`` names.
    """
    rows_of = _writer(matches.dataset.task)
    try:
        os.makedirs(to, exist_ok=True)
        if os.listdir(to):
            raise UsageError(f"{to}: this folder is not empty; choose another one")
        return list(_extracted(matches, to, rows_of))
    except OSError as exc:
        raise UsageError(f"{exc.filename or to}: cannot write: {exc.strerror}") from exc


def _extracted(matches: Matches, to: str, rows_of: _Rows) -> Iterator[str]:
    taken: set[str] = set()
    path = os.path.join(to, EXAMPLES_CSV)
    with open(path, "x", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        for example, record in _records(matches):
            data, suffix = _payload(record, example)
            name = _free_name(example, suffix, taken)
            target = os.path.join(to, *name.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "xb") as out:
                out.write(data)
            table.writerows(
                [_ML_USE[example.split], name, *row] for row in rows_of(example, record)
            )
            yield target
    yield path


def _records(matches: Matches) -> Iterator[tuple[ListedExample, _Record]]:
    for shard, examples in matches.by_shard():
        path = storage.join(matches.root, shard)
        wanted = {example.record: example for example in examples}
        for number, record in read_chosen(path, list(wanted)):
            try:
                yield wanted.pop(number), parse_example(record)
            except ValueError as exc:
                raise RecordError(f"{path}: record {number}: {exc}") from exc
        if wanted:
            raise RecordError(f"{path}: no record {min(wanted)}, but examples.parquet names it")


def _payload(record: _Record, example: ListedExample) -> tuple[bytes, str]:
    if (image := stored_image(record)) is not None:
        kind = _safe(image[1], "bin")
        return image[0], _SUFFIXES.get(kind, kind)
    texts = record.get(features.TEXT, ())
    if len(texts) != 1 or not isinstance(texts[0], bytes):
        name = features.IMAGE_ENCODED if features.IMAGE_ENCODED in record else features.TEXT
        raise RecordError(f"{example.shard}: record {example.record}: there is no {name}")
    return texts[0], "txt"


def _free_name(example: ListedExample, suffix: str, taken: set[str]) -> str:
    """Return an unused file name: ``train/cat/a.jpg``, then ``train/cat/a-2.jpg``.

    Case is ignored, as some file systems do.
    """
    label = example.labels[0] if len(example.labels) == 1 else "several" if example.labels else ""
    stem = posixpath.splitext(posixpath.basename(example.uri))[0]
    folder = posixpath.join(_safe(example.split, "split"), _safe(label, "unlabelled"))
    stem = _safe(stem, f"line-{example.line}")
    name, count = f"{folder}/{stem}.{suffix}", 1
    while name.lower() in taken:
        count += 1
        name = f"{folder}/{stem}-{count}.{suffix}"
    taken.add(name.lower())
    return name


def _safe(text: str, otherwise: str) -> str:
    """Return a text as one safe component of a path."""
    return _UNSAFE.sub("_", text)[:_LONGEST_NAME].strip(".") or otherwise


# --- the fields of a row after its split and its file -----------------------------------------

_Rows = Callable[[ListedExample, _Record], Sequence[Sequence[str]]]


def _label_rows(example: ListedExample, record: _Record) -> Sequence[Sequence[str]]:
    return [example.labels]


def _box_rows(example: ListedExample, record: _Record) -> Sequence[Sequence[str]]:
    """Return a row for each box, ``cat,0.1,0.2,,,0.5,0.6,,``; without boxes, one empty row."""
    try:
        boxes = stored_boxes(record)
    except ValueError as exc:
        raise RecordError(f"{example.shard}: record {example.record}: {exc}") from exc
    rows = []
    for box in boxes:
        left, top, right, bottom = (f"{value:.9g}" for value in box[2:])  # float32, exactly
        rows.append([box.label, left, top, "", "", right, bottom, "", ""])
    return rows or [[""] * 9]


_WRITERS: Mapping[str, _Rows] = {
    "image_classification": _label_rows,
    "image_multi_label": _label_rows,
    "object_detection": _box_rows,
    "text_classification": _label_rows,
    "text_multi_label": _label_rows,
    "text_sentiment": _label_rows,
}


def _writer(task: str) -> _Rows:
    if task not in _WRITERS:
        noun = TASKS[task].noun if task in TASKS else "example"
        raise UsageError(
            f"--where with --to writes images and labelled texts ({', '.join(_WRITERS)}), but not "
            f"the {noun}s of {task}; omit --to to list them, or use --json"
        )
    return _WRITERS[task]
