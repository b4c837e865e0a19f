"""Import files made at random, and an independent reader of them.

`python -m tests.fuzz.import_files --files 100000` makes files of every shape: headers, ML_USE,
quotes, blanks, separators, odd labels, damaged bytes. None may raise anything but Recordgen's own
errors. Each file that is accepted is read once more by :func:`read_independently`, which knows only
the preview: every row must be the same, and no line may be lost.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recordgen.core.rows.row import Row, is_content_uri
from recordgen.errors import RecordgenError
from recordgen.tasks import TASKS
from recordgen.tasks.texts.task import TextContent
from tests.formats.sources import Reading

TASKS_OF_TEXTS = "text_classification", "text_multi_label", "text_sentiment"
WORDS = {"train": "train", "training": "train", "validation": "eval", "validate": "eval"}
WORDS |= dict.fromkeys(("val", "valid", "dev", "eval", "evaluation"), "eval")
WORDS |= {"test": "test", "testing": "test", "unassigned": None, "": None}


class Read(NamedTuple):
    """A row: its split, its path or text, and its labels."""

    split: str | None
    subject: str
    labels: tuple[str, ...]


# --- the independent reader ---------------------------------------------------------------------


def read_independently(data, shown):
    """Return the rows of a CSV file by line, from the preview and with Python's csv module."""
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    reader = csv.reader(text, delimiter=shown.delimiter or ",", skipinitialspace=True)
    rows = {}
    roles = dict(shown.columns)
    given = shown.options.columns.by_role
    given_roles = {name: role for role, names in given for name in names}  # only numbers are given
    header = None
    line = 1
    for fields in reader:
        start, line = line, reader.line_num + 1
        names = [field.strip() for field in fields]
        if not any(names):
            continue
        if shown.header and header is None:
            header = names
            continue
        if header is not None and names == header:  # joined files repeat it
            continue
        if header is not None or given_roles:
            # A column with a number for a name has precedence over the number of a column.
            numbered = {at: role for at, role in given_roles.items() if at not in (header or ())}
            role_of = [
                numbered.get(str(at), None if role in numbered.values() else role)
                for at, role in enumerate(map(roles.get, header or names), start=1)
            ]
        else:
            has_split = len(names) > 1 and names[0].lower() in WORDS
            role_of = (["split"] if has_split else []) + ["subject"] + ["label"] * len(fields)
        found = {"split": [], "subject": [], "label": []}
        for role, field in zip(role_of, fields, strict=False):
            if role is not None:
                found["subject" if role in ("path", "text") else role].append(field)
        word = "".join(found["split"]).strip().lower()
        labels = [label.strip() for label in found["label"] if label.strip()]
        subject = next((field for field in found["subject"] if field.strip()), "")
        subject = _normal(subject.strip())
        rows[start] = Read(WORDS.get(word, word), subject, tuple(sorted(set(labels))))
    return rows


def _normal(path):
    """Return a path without ``.`` and empty folders, as source ids have it; texts change alike."""
    while "://" not in path and (shorter := path.replace("/./", "/").replace("//", "/")) != path:
        path = shorter
    return path if "://" in path else path.removeprefix("./") or path


# --- files at random -----------------------------------------------------------------------------

PATHS = ["{n}.jpg", "images/{n}.png", "gs://b/{n}.jpg", "my photo {n}.jpg", "a,b {n}.jpg"]
PATHS += ["img{n}", "./{n}.JPG", "https://a.example/{n}.jpg", "/data/{n}.bmp", 'q"{n}.jpg']
PATHS += ["é{n}.gif"]
TEXTS = ["Good and cheap number {n}.", "Good, and cheap {n}.", "Fine {n}", "{n}", "a.txt"]
TEXTS += ['She said "no" {n}.', "Très bien, {n} fois.", "多谢{n}多谢", "train", "text | pipe {n}"]
TEXTS += ["two\nlines {n}"]
LABELS = ["cat", "dog", "owl", "Baked goods", "salt/pepper", "chat, noir", "été", *"0127"]
ODD_LABELS = ["train", "TEST", "[1, 2]", "cat|dog", "dog|owl", ".5", "label", "{}", "a.jpg", ""]
SPLITS = ["TRAIN", "train", "TEST", "Validation", "val", "UNASSIGNED", "", "training", "dev"]
ODD_SPLITS = ["TRIAN", "fold1", "x", "7"]
PATH_NAMES = ["image_uri", "path", "Image URI", "filename", "image", "file_name", "picture", "id"]
TEXT_NAMES = ["text", "review", "sentence", "content", "note"]
LABEL_NAMES = ["label", "class", "category", "Label", "breed", "labels", "stars"]
SPLIT_NAMES = ["split", "ml_use", "set", "subset", "fold"]
OTHERS = ["id", "width", "height", "age", "xmin", "mask", "note", "", "x"]


def odd(rng, words):
    """Return one of the words in a file of four."""
    return rng.sample(words, rng.choice([0, 0, 0, 1]))


def random_file(rng):
    """Return a name, the bytes of an import file, and options."""
    is_text = rng.random() < 0.4
    subjects = rng.sample(TEXTS if is_text else PATHS, rng.randint(1, 3))
    labels = rng.sample(LABELS, rng.randint(1, 4)) + odd(rng, ODD_LABELS)
    splits = rng.sample(SPLITS, rng.randint(1, 3)) + odd(rng, ODD_SPLITS)
    most = rng.choice([0, 1, 1, 1, 2, 3])
    has_split, per_row = rng.random() < 0.6, rng.random() < 0.2
    rows = []
    for number in range(rng.choice([0, 1, 2, 3, 5, 12, 30])):
        row = [rng.choice(subjects).format(n=number)]
        count = most if rng.random() < 0.8 else rng.randint(0, 3)
        row += [rng.choice(labels) for _ in range(count)]
        if has_split and not (per_row and rng.random() < 0.5):
            row.insert(0, rng.choice(splits))
        rows.append(row)
    options = {}
    if rng.random() < 0.5:
        _add_header(rng, rows, has_split=has_split, is_text=is_text)
    if rng.random() < 0.1:
        subject = "text" if is_text else "path"
        options["columns"] = f"{subject}={1 + has_split},label={2 + has_split}"
    if rng.random() < 0.1:
        header = f"header={rng.choice(['yes', 'no'])}"
        options["columns"] = ",".join(filter(None, (options.get("columns"), header)))
    if rng.random() < 0.05:
        options["task"] = rng.choice(["image_classification", "text_classification", "tabular"])
    name = rng.choice(["a.csv", "a.csv", "a.txt", "a.tsv", "train.csv"])
    return name, _written(rng, rows, name), options


def _add_header(rng, rows, *, has_split, is_text):
    width = max(map(len, rows), default=1)
    header = [rng.choice(SPLIT_NAMES)] if has_split else []
    header.append(rng.choice(TEXT_NAMES if is_text else PATH_NAMES))
    name = rng.choice(LABEL_NAMES)
    header += [name] * max(0, width - len(header))
    if rng.random() < 0.2:
        header.append(rng.choice(OTHERS))
        for row in rows:
            row += [""] * (len(header) - 1 - len(row)) + [rng.choice(["3", "x", ""])]
    if rng.random() < 0.2 and len(rows) > 1:
        order = rng.sample(range(len(header)), len(header))
        header[:] = [header[at] for at in order]
        for row in rows:
            row += [""] * (len(header) - len(row))
            row[:] = [row[at] for at in order] + row[len(header) :]
    rows.insert(0, header)
    if rng.random() < 0.1:
        rows.insert(rng.randint(1, len(rows)), list(header))


def _written(rng, rows, name):
    text = io.StringIO(newline="")
    delimiter = "\t" if name.endswith("tsv") else rng.choice([",", ",", ",", ";", "\t"])
    end = rng.choice(["\n", "\n", "\r\n"])
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    for row in rows:
        pad = [""] * rng.choice([0, 0, 0, 0, 1, 3])
        writer.writerow([*row, *pad])
        if rng.random() < 0.03:
            text.write(rng.choice([end, f" {end}", f",,{end}"]))
    data = text.getvalue().encode(rng.choice(["utf-8"] * 18 + ["utf-8-sig", "utf-16"]))
    if rng.random() < 0.15:  # damage
        data = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 2)] = rng.choice(
                [b'"', b"\0", b"\r", b"\xff", b",", b"\n", b"\xef\xbb\xbf", b"|", b";", b"\\"]
            )
        return bytes(data)
    return data


# --- the comparison ------------------------------------------------------------------------------


def check_file(folder, name, data, options):
    """Read a file in both ways. Returns how it ended. Raises: AssertionError."""
    path = folder / name
    path.write_bytes(data)
    try:
        read = Reading(path, **options)
    except RecordgenError as exc:
        return type(exc).__name__
    shown = read.detection
    rows = {item.line: item for item in read.rows}
    others = {item.line for item in read.items if not isinstance(item, Row)}
    if not _is_comparable(data, read.options.task, shown.delimiter or ","):
        return "accepted"
    expected = read_independently(data, shown)
    by_name = dict(shown.named_splits).get(str(path))
    for line, row in rows.items():
        found = _read(row, read.options.task)
        want = expected[line]._replace(split=expected[line].split or by_name)
        assert found == want, (line, found, want)
    lost = expected.keys() - rows.keys() - others
    assert not lost, f"lines {sorted(lost)} are lost"
    return "compared"


def _is_comparable(data, task, delimiter):
    """Return whether Python's csv module reads the same records, and labels are all of a row."""
    if b"\0" in data or b"\r" in data.replace(b"\r\n", b"") or b"\xef\xbb\xbf" in data[1:]:
        return False
    try:
        text = data.decode("utf-8-sig")
        lines = io.StringIO(text, newline="")
        list(csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        return False
    return task in ("image_classification", "image_multi_label", *TASKS_OF_TEXTS)


def _read(row, name):
    task = TASKS[name]()
    labels = () if row.annotation is None else tuple(task.labels(row.annotation))
    if task.kind != "text":
        return Read(row.split, row.uri, tuple(sorted(labels)))
    content = TextContent.decode(row.annotation)
    subject = content.text if is_content_uri(row.uri) else row.uri
    return Read(row.split, _normal((subject or "").strip()), tuple(sorted(map(str, labels))))


def run(files, seed):
    """Check so many files, and yield how each ended. Raises: AssertionError with the file."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        for number in range(files):
            name, data, options = random_file(random.Random(seed + number))
            try:
                yield check_file(Path(folder), name, data, options)
            except Exception as exc:
                shown = f"seed {seed + number}: {name} {options}\n{data!r}"
                raise AssertionError(shown) from exc


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    ended = Counter()
    for how in run(given.files, given.seed):
        ended[how] += 1
    print(dict(ended), file=sys.stdout)


if __name__ == "__main__":
    main()
