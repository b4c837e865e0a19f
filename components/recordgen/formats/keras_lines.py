"""Lines of boxes in pixels, as keras-yolo3 and keras-retinanet read them, and Roboflow writes them.

    train/_annotations.txt  a.jpg 10,20,40,60,1 0,0,9,9,0       train/_classes.txt  cat
                                                                                    dog
    train/_annotations.csv  a.jpg,10,20,40,60,dog               train/_classes.csv  cat,0
                            b.jpg,,,,,                                              dog,1

become the picture ``train/a.jpg`` with the box (10, 20, 40, 60) of a dog, and that of a cat in the
first. ``b.jpg`` has no objects. Rules: "CSV datasets" of github.com/fizyr/keras-retinanet. VoTT's
CSV has such lines below a header; SKU-110K's also have the size of the image, which is read from
the image.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import ClassVar

from recordgen.errors import SourceError
from recordgen.formats.csv_documents import records_of
from recordgen.formats.csv_records import Record, read_records
from recordgen.formats.field_kinds import NUMBER, names_media
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, PictureFormat, Problem, image_or_problem, notes_about
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks import ObjectDetection

_DOCUMENT, _CLASSES = "_annotations.txt", "_classes.txt"
_CLASS_TABLES = ("_classes.csv", "classes.csv")
_HEADERS = {("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2")}
_LINES_READ = 10_000


class YoloKeras(PictureFormat):
    """``_annotations.txt`` beside images, with the names of classes in ``_classes.txt``."""

    name = "yolo_keras"
    tasks: ClassVar = (ObjectDetection.name,)
    in_pixels = True
    has_lines = True

    def detect(self, listing: Listing) -> Evidence | None:
        found = [
            name for name in listing.candidates(".txt") if posixpath.basename(name) == _DOCUMENT
        ]
        if not found:
            return None
        classes = {name: _classes(listing, name) for name in found}
        if len({*classes.values()}) > 1:
            raise SourceError(
                f"{listing.root}: the {_CLASSES} of {' and '.join(found[:2])} differ; convert the "
                f"folders separately"
            )
        names = classes[found[0]]
        reason = f"{_classes_file(found[0])} names {len(names)} classes"
        return Evidence(reason, self.tasks[0], found, names)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        classes = _classes(listing, document)
        for number, text in listing.lines(document):
            yield _picture(listing, document, number, text.split(), classes)


def _classes_file(document: str) -> str:
    return posixpath.join(posixpath.dirname(document), _CLASSES)


def _classes(listing: Listing, document: str) -> tuple[str, ...]:
    """Return the names of the classes beside a document. Raises: SourceError: there are none."""
    name = _classes_file(document)
    if name not in listing:
        raise SourceError(
            f"{listing.root}{document}: {_CLASSES} is missing beside it, so that the numbers of "
            f"classes have no names"
        )
    lines = listing.head(name).decode("utf-8-sig", "replace").rstrip().splitlines()
    return tuple(line.strip() or str(at) for at, line in enumerate(lines))


def _picture(
    listing: Listing,
    document: str,
    line: int,
    fields: Sequence[str],
    classes: Sequence[str],
) -> Picture | Problem:
    start = len(fields)
    while start > 1 and "," in fields[start - 1]:  # the name may contain blanks
        start -= 1
    name = " ".join(fields[:start])
    image = image_or_problem(listing, name, posixpath.dirname(document), line=line)
    if isinstance(image, Problem):
        return image
    try:
        objects = [_object(text, classes) for text in fields[start:]]
    except ValueError as exc:
        return Problem(line, str(exc), image)
    return Picture(line, image, objects=objects)


def _object(text: str, classes: Sequence[str]) -> Marked:
    """Return the object of ``10,20,40,60,1``. Raises: ValueError."""
    fields = text.split(",")
    try:
        xmin, ymin, xmax, ymax = map(float, fields[:4])
        [kind] = map(int, fields[4:])
    except ValueError:
        raise ValueError(f"expected xmin,ymin,xmax,ymax,class (got {text:.80})") from None
    if not 0 <= kind < len(classes):
        raise ValueError(f"the class is {kind}, but there are {len(classes)} names")
    return Marked(classes[kind], (xmin, ymin, xmax, ymax))


class RetinaNet(PictureFormat):
    """Lines of a path, a box in pixels and its class; a header may name them in this order."""

    name = "retinanet"
    tasks: ClassVar = (ObjectDetection.name,)
    in_pixels = True
    has_lines = True

    def detect(self, listing: Listing) -> Evidence | None:
        names = listing.candidates(".csv")
        found = [name for name in names if _is_retinanet(_head(listing, name))]
        if not found:
            return None
        # Of one split, all lines may be blank.
        same = {posixpath.basename(name) for name in found}
        documents = [name for name in names if posixpath.basename(name) in same]
        reason = f"{found[0]} has lines of a path, a box and its class"
        return Evidence(reason, self.tasks[0], documents, _numbered_classes(listing, found[0]))

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        folder = posixpath.dirname(document)
        used = set()
        for name, group in groupby(records_of(listing, document), key=_name):
            rows = []
            for item in group:
                if isinstance(item, Problem):
                    used.add(item.uri)
                    yield item
                elif _is_row(item.fields):
                    rows.append(item)
            if rows:
                yield (found := _picture_of_rows(listing, folder, name, rows))
                used.add(found.uri)
        beside = (name for name in listing.images if posixpath.dirname(name) == folder)
        others = [name for name in beside if name not in used]
        yield from notes_about(others, "images are not in it, and were skipped")


def _head(listing: Listing, name: str) -> list[list[str]]:
    """Return the first rows of a file; none if it is no CSV, or is not there."""
    lines = listing.head(name).split(b"\n")[:_LINES_READ] if name in listing else ()
    with suppress(SourceError):
        records = [item for item in read_records(lines, name) if isinstance(item, Record)]
        return [item.fields for item in records if _is_row(item.fields)]
    return []


def _is_row(fields: Sequence[str]) -> bool:
    """Return whether a line is not blank, and not a header of corners in the usual order."""
    return any(fields) and tuple(field.strip().lower() for field in fields[1:5]) not in _HEADERS


def _is_retinanet(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are boxes in pixels, below no header of another order of columns."""
    words = [field.strip() for field in rows[0][1:5]] if rows else []
    is_header = len(words) == 4 and all(map(str.isidentifier, words))
    return not is_header and _are_boxes(rows)


def _numbered_classes(listing: Listing, document: str) -> Sequence[str]:
    """Return the names of classes by number, as a file beside a document says them."""
    for base in _CLASS_TABLES:
        name = posixpath.join(posixpath.dirname(document), base)
        names = {row[-1].strip(): row[0].strip() for row in _head(listing, name)}
        if names and names.keys() == set(map(str, range(len(names)))):
            return [names[str(number)] for number in range(len(names))]
    return ()


def _name(record: Record | Problem) -> str:
    return record.fields[0].strip() if isinstance(record, Record) else record.uri


def _picture_of_rows(
    listing: Listing, folder: str, name: str, rows: Sequence[Record]
) -> Picture | Problem:
    number = rows[0].line
    image = image_or_problem(listing, name, folder, line=number)
    if isinstance(image, Problem):
        return image
    objects = []
    for line, _, fields in rows:
        if any(fields[1:6]):
            try:
                *corners, label = fields[1:6]
                xmin, ymin, xmax, ymax = map(float, corners)
            except ValueError:
                shown = ",".join(fields)
                return Problem(line, f"expected PATH,x1,y1,x2,y2,CLASS (got {shown:.80})", image)
            objects.append(Marked(label.strip(), (xmin, ymin, xmax, ymax)))
    return Picture(number, image, objects=objects)


def _are_boxes(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether most rows are a path, a box in pixels and its label."""
    rows = [row for row in rows if any(row[1:])]  # a.jpg,,,,, has no object
    found = [row for row in rows if _has_box_and_label(row)]
    in_pixels = any(float(text) > 1 for row in found for text in row[1:5])
    return in_pixels and len(found) * 2 > len(rows)


def _has_box_and_label(row: Sequence[str]) -> bool:
    *box, label = (*row, *[""] * 6)[1:6]
    is_label = bool(label) and NUMBER.fullmatch(label) is None
    return is_label and all(map(NUMBER.fullmatch, box)) and names_media(row[0])
