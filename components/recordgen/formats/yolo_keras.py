"""keras-yolo3's text: a line for each image, with boxes in pixels; Roboflow's "YOLO Keras TXT".

    train/_classes.txt      cat
                            dog
    train/_annotations.txt  a.jpg 10,20,40,60,1 0,0,9,9,0

becomes the picture ``train/a.jpg`` with the box (10, 20, 40, 60) of a dog and that of a cat.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import ClassVar

from recordgen.core.rows.picture import Marked, Picture
from recordgen.errors import SourceError
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, PictureFormat, Problem, image_or_problem
from recordgen.tasks import ObjectDetection

_DOCUMENT, _CLASSES = "_annotations.txt", "_classes.txt"


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
        return Evidence(reason, self.tasks[0], found, tuple(dict.fromkeys(names)))

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
