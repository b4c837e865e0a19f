"""Import files made at random of known rows: read as these rows, or refused."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import NamedTuple

from recordgen.core.rows.row import is_content_uri
from recordgen.errors import RecordgenError
from recordgen.tasks import TASKS
from recordgen.tasks.texts.task import TextContent
from tests.formats.sources import Reading

PATHS = ["{n}.jpg", "images/{n}.png", "gs://b/{n}.jpg", "my photo {n}.jpg", "a,b {n}.jpg"]
PATHS += ["https://a.example/{n}.jpg", "/data/{n}.bmp", 'q"{n}.jpg', "é{n}.gif"]
TEXTS = ["Good and cheap number {n}.", "多谢{n}多谢", "Good, and cheap {n}.", "text | pipe {n}"]
TEXTS += ['She said "no" {n}.', "Très bien, {n} fois.", "two\nlines {n}"]
SUBJECTS = {"image": PATHS, "text": TEXTS}
LABELS = ["cat", "dog", "owl", "Baked goods", "salt/pepper", "chat, noir", "été", ""]
SPLITS = {"TRAIN": "train", "training": "train", "Validation": "eval", "val": "eval"}
SPLITS |= {"TEST": "test", "UNASSIGNED": None, "": None}
NAMES = {
    "image": ["image_uri", "path", "Image URI", "filename", "image", "file_name"],
    "text": ["text", "review", "sentence", "content"],
    "label": ["label", "class", "category", "Label", "breed", "labels"],
    "split": ["split", "ml_use", "set", "subset", "fold"],
}


class Read(NamedTuple):
    """A row: its split, its path or text, and its labels."""

    split: str | None
    subject: str
    labels: tuple[str, ...]


def random_file(rng):
    """Return the bytes of an import file, and its rows by line."""
    kind = rng.choice(["image", "text"])
    labels = ["label"] * rng.choice([0, 1, 1, 1, 2, 3])
    has_split, has_header = rng.random() < 0.5, rng.random() < 0.5
    columns = [*["split"] * has_split, kind, *labels]
    rows = {}
    file = io.StringIO(newline="")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    end = rng.choice(["\n", "\r\n"])
    delimiter = rng.choice(",,;\t")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)
    if has_header:
        rng.shuffle(columns)
        header = [rng.choice(NAMES[role]) for role in columns]
        writer.writerow(header)
    for number in range(rng.choice([1, 2, 3, 5, 12, 30])):
        line = file.getvalue().count("\n") + 1
        # Other separators are told by what few fields hold: lines of one width without other signs.
        plain = SUBJECTS[kind] if delimiter == "," else SUBJECTS[kind][:2]
        subject = rng.choice(plain).format(n=number)
        split = rng.choice([*SPLITS][: None if delimiter == "," else -1]) if has_split else ""
        said = rng.choices(LABELS, k=len(labels))
        rows[line] = Read(SPLITS[split], subject, tuple(sorted({*said} - {""})))
        fields = {"split": [split], kind: [subject], "label": [*said]}
        # A semicolon at the end of a text may be its own.
        padding = [""] * rng.choice([0, 0, 0, 3, 1 if kind == "image" or delimiter != ";" else 3])
        writer.writerow([fields[role].pop() for role in columns] + padding)
        if rng.random() < 0.03:
            file.write(rng.choice([end, f" {end}"]))
        if has_header and rng.random() < 0.03:
            writer.writerow(header)
    return file.getvalue().encode(rng.choice(["utf-8", "utf-8-sig", "utf-16"])), rows


def read_of(row, name):
    """Return what a row of a task says."""
    task = TASKS[name]()
    labels = () if row.annotation is None else tuple(sorted(task.labels(row.annotation)))
    is_text = task.kind == "text" and is_content_uri(row.uri)
    return Read(row.split, TextContent.decode(row.annotation).text if is_text else row.uri, labels)


def run(files, seed, folder):
    """Read so many files, and yield how each ended. Raises: AssertionError with the seed."""
    for number in range(seed, seed + files):
        data, expected = random_file(random.Random(number))
        path = Path(folder, "a.csv")
        path.write_bytes(data)
        try:
            found = Reading(path)
        except RecordgenError as exc:
            yield type(exc).__name__
            continue
        task = found.options.task
        read = {row.line: read_of(row, task) for row in found.rows}
        assert read == {line: expected[line] for line in read}, (number, data)
        assert expected.keys() <= {item.line for item in found.items}, (number, data)
        yield "read"
