"""Documents of every format, in which one value at a time is odd."""

import csv
import io
import json
import re
import shutil
import traceback
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml
from PIL import Image

from recordgen.errors import RecordgenError
from tests.formats.sources import Reading
from tests.formats.written import WRITERS

_DEEP = 20_000
#: A text stands for itself in all documents; JSON writes the others.
TEXTS = (
    *("", " ", "cat", "5", "-1", "nan", "1e999", "true", "null", "http://[b.png", "gs://", "a\0b"),
    *("\ud800", "=1+1", "../../a.jpg", "/", "9" * 300, "9" * 5000, '"', "{}", "[", "[1,2]", "é\n"),
    *("x" * 140_000, "[" * _DEEP + "]" * _DEEP, '{"a":' * _DEEP),
)
VALUES = (
    *(None, True, False, 0, 5, -1, 2.5, float("nan"), float("inf"), 1e300, 10**300, 1 << 63),
    *([], [[]], [5], [None], ["cat"], {}, {"a": 5}, {"": {}}, [[1, 2], [3]], [[[5]]]),
)
#: What JSON's own writer cannot say, by the text that stands for it.
_RAW = {"<deep list>": "[" * _DEEP + "]" * _DEEP, "<digits>": "9" * 5000, "<cut>": '{"a": ['}
ODD = (*VALUES, *(text for text in TEXTS if len(text) < _DEEP), *_RAW)


def _places(value, path=()):
    """Yield the path to each place in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from _places(inner, (*path, key))


def _replaced(value, path, odd):
    if not path:
        return odd
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _replaced(value[key], rest, odd)
    return copy


def _json_text(value):
    text = json.dumps(value)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def _without(value, path):
    """Return a value without a key of an object; another key has what it held."""
    *above, key = path
    inner = value
    for each in above:
        inner = inner[each]
    kept = {name: each for name, each in inner.items() if name != key}
    return _replaced(value, above, {**kept, "": inner[key], "a\ud800": 1})


# Each function yields functions that make a document, since most are left out.


def _in_json(text):
    value = json.loads(text)
    for path in _places(value):
        for odd in ODD:
            yield lambda path=path, odd=odd: _json_text(_replaced(value, path, odd))
        if path and isinstance(path[-1], str):
            yield lambda path=path: _json_text(_without(value, path))


def _in_json_lines(text):
    lines = text.splitlines()
    for at, line in enumerate(lines):
        for made in _in_json(line):
            yield lambda at=at, made=made: "\n".join([*lines[:at], made(), *lines[at + 1 :], ""])


def _csv_text(rows, y, row):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([*rows[:y], row, *rows[y + 1 :]])
    return out.getvalue()


def _in_csv(text):
    rows = list(csv.reader(io.StringIO(text)))
    for y, row in enumerate(rows):
        for x in range(len(row)):
            marked = _csv_text(rows, y, [*row[:x], "\x01", *row[x + 1 :]])
            for odd in TEXTS:
                quoted = '"' + odd.replace('"', '""') + '"'
                yield lambda marked=marked, odd=odd: marked.replace("\x01", odd)
                yield lambda marked=marked, quoted=quoted: marked.replace("\x01", quoted)
        for changed in (row[: len(row) // 2], [*row, "more"]):
            yield lambda y=y, changed=changed: _csv_text(rows, y, changed)


def _in_words(text):
    """Yield a text with each word replaced: lines of boxes, or YAML."""
    for found in re.finditer(r"[^\s,\[\]{}:]+", text):
        before, after = text[: found.start()], text[found.end() :]
        for odd in TEXTS:
            yield lambda before=before, odd=odd, after=after: f"{before}{odd}{after}"


def _in_yaml(text):
    yield from _in_words(text)
    value = yaml.safe_load(text)
    for path in _places(value):
        for odd in (*VALUES, "", "cat", "\0", "{}", "1:2"):
            yield lambda path=path, odd=odd: yaml.safe_dump(_replaced(value, path, odd))
    yield lambda: f"<<: {{names: [a]}}\n{text}".replace("names: [cat", "nimes: [cat")


def _xml_text(text, at, change):
    root = ElementTree.fromstring(text)
    change([*root.iter()][at])
    return ElementTree.tostring(root, "unicode")


def _in_xml(text):
    texts = [each for each in TEXTS if each.isprintable() and len(each) < _DEEP]
    for at, element in enumerate(ElementTree.fromstring(text).iter()):
        changes = [lambda each, odd=odd: setattr(each, "text", odd) for odd in texts]
        for name in element.attrib:
            changes += [lambda each, name=name, odd=odd: each.set(name, odd) for odd in texts]
            changes.append(lambda each, name=name: each.attrib.pop(name))
        changes += [
            lambda each: each.clear(),
            lambda each: setattr(each, "tag", "odd"),
            lambda each: each.extend(list(each)),
        ]
        for change in changes:
            yield lambda at=at, change=change: _xml_text(text, at, change)
    yield lambda: text.replace(">", ">" + "<a>" * _DEEP, 1)


_KINDS = {
    ".json": _in_json,
    ".jsonl": _in_json_lines,
    ".csv": _in_csv,
    ".xml": _in_xml,
    ".yaml": _in_yaml,
    ".md": _in_yaml,
    ".txt": _in_words,
}

#: Folders of documents; one that is named ``x`` is passed alone.
SAMPLES = Path(__file__).parent / "odd_samples"
TASKS = {
    "masks_and_classes": "image_segmentation",
    "coco_of_shapes": "image_segmentation",
    "automl_polygons": "object_detection",
}


class Sample:
    """The documents of a format in the folder ``root`` with images."""

    def __init__(self, name, root):
        self.passed, self.options = root, {"task": TASKS.get(name, "auto")}
        inner = root / "train" if name in WRITERS else root
        inner.mkdir(exist_ok=True)
        pixels = np.random.default_rng(0).integers(0, 2, (20, 40), np.uint8)
        for each in ("a.jpg", "b.jpg", *["mask.png"] * ("masks" in name)):
            Image.fromarray(pixels).save(inner / each)
        if name in WRITERS:
            WRITERS[name](inner, ["a.jpg", "b.jpg"])
            others = [each for each in root.rglob("*") if each.suffix in _KINDS]
            self.documents = [min(others, key=lambda path: ("annotation" not in path.name, path))]
            return
        shutil.copytree(SAMPLES / name, root, dirs_exist_ok=True)
        files = [each for each in sorted(root.rglob("*")) if each.is_file()]
        for each in files:
            if not each.stat().st_size:  # an image
                Image.fromarray(pixels).save(each)
        self.documents = [each for each in files if each.suffix not in (".jpg", ".png")]
        self.passed = next((each for each in self.documents if each.stem == "x"), root)

    def changed(self, step):
        """Yield every ``step``-th of the documents with an odd value: its path, and its text."""
        made = (
            (document, make)
            for document in self.documents
            for make in _KINDS.get(document.suffix, _in_words)(document.read_text().strip("-\n"))
        )
        for document, make in islice(made, 0, None, step):
            yield document, f"---\n{make()}\n---\n" if document.suffix == ".md" else make()

    def fault(self, document, text):
        """Return the error that is none of Recordgen's own when a document is read, or None."""
        before = document.read_bytes()
        document.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            reading = Reading(str(self.passed) + "/" * self.passed.is_dir(), **self.options)
            for row in reading.rows:
                "".join(part for part in row if isinstance(part, str)).encode()
        except RecordgenError:
            return None
        except Exception as exc:  # noqa: BLE001 this is what is looked for
            return exc
        finally:
            document.write_bytes(before)
        return None


NAMES = (*WRITERS, *sorted(each.name for each in SAMPLES.iterdir()))


def faults(name, root, step=1):
    """Return how many documents were read, and the errors by place; every ``step``-th is read."""
    sample, found, count = Sample(name, root), {}, 0
    for document, text in sample.changed(step):
        count += 1
        if (exc := sample.fault(document, text)) is not None:
            last = traceback.extract_tb(exc.__traceback__)
            own = [each for each in last if "/recordgen/" in each.filename][-1]
            key = f"{Path(own.filename).name}:{own.lineno} {type(exc).__name__} {exc!s:.60}"
            found.setdefault(key, []).append(text)
    return count, found
