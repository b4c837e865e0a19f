"""DOTA: a text file for each image, with the four corners of each object in pixels.

    images/P0706.png
    labelTxt/P0706.txt  imagesource:GoogleEarth
                        gsd:0.255589285596
                        10 20 40 20 40 60 10 60 ship 1

becomes the picture ``images/P0706.png`` with the box (10, 20, 40, 60) of a difficult ship, and its
outline. Rules: "Annotation format" of the DOTA dataset's page; Roboflow writes the same lines
without the first two. The files of KITTI ("Object development kit") are texts of objects in pixels,
too, which the option ``layout`` names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import ClassVar

from recordgen.errors import SourceError
from recordgen.features import DIFFICULT, OCCLUDED, TRUNCATED
from recordgen.formats import pictures
from recordgen.formats.field_kinds import NUMBER
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.shapes import outlined
from recordgen.subjects.details import Details, flagged
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks import ObjectDetection

_FOLDER = "labelTxt"
_PROBED = 3


class Dota(pictures.PictureFormat):
    """Text files with the four corners of each object, in a folder ``labelTxt``."""

    name = "dota"
    tasks: ClassVar = (ObjectDetection.name,)
    names_files = True
    in_pixels = True

    def detect(self, listing: Listing) -> Evidence | None:
        named = _documents(listing)[:_PROBED]
        found = [name for name in named if any(map(_corners, _lines(listing, name)))]
        if not found:
            return None
        return Evidence(f"{found[0]} has the corners of objects", self.tasks[0])

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        used: dict[str, str] = {}
        for line, name in enumerate(_documents(listing), start=1):
            item = _picture(listing, line, name)
            if item.uri in used:
                twin = used[item.uri]
                raise SourceError(f"{listing.root}{name}: {twin} is of the same image; keep one")
            used[item.uri] = name
            yield item
        others = [] if listing.only else [name for name in listing.images if name not in used]
        yield from pictures.notes_about(others, f"images have no file in {_FOLDER}: skipped")


def is_named(name: str) -> bool:
    """Return whether a file is one of labels, by its folder."""
    return any(part.startswith(_FOLDER) for part in posixpath.dirname(name).split("/"))


def _documents(listing: Listing) -> Sequence[str]:
    """Return the file that the user passed, or those of labels."""
    return [name for name in listing.candidates(".txt") if listing.only or is_named(name)]


def _lines(listing: Listing, name: str) -> Sequence[Sequence[str]]:
    """Return the fields of the first lines of a file, without DOTA's headers."""
    text = listing.head(name).decode("utf-8-sig", "replace")
    return [line.split() for line in text.splitlines() if not line.startswith(pictures.HEADERS)]


def _corners(fields: Sequence[str]) -> bool:
    """Return whether a line has four corners and a class, and perhaps its difficulty."""
    is_like = len(fields) in (9, 10) and all(map(NUMBER.fullmatch, fields[:8]))
    return is_like and NUMBER.fullmatch(fields[8]) is None


def _picture(listing: Listing, line: int, name: str) -> Picture | pictures.Problem:
    folder, base = posixpath.split(posixpath.splitext(name)[0])
    twin = ["images" if part.startswith(_FOLDER) else part for part in folder.split("/")]
    places = ("/".join(twin), posixpath.dirname(folder), folder)
    found = (listing.tree.by_stem.get(posixpath.join(place, base), ()) for place in places)
    beside = next((images[0] for images in found if images), f"{base}.png")
    image = pictures.image_or_problem(listing, beside, line=line)
    if isinstance(image, pictures.Problem):
        return image._replace(message=f"{name}: {image.message}")
    return pictures.picture_of_lines(listing, object_of_dota, line, name, image)


def object_of_dota(fields: Sequence[str]) -> Marked:
    """Return the object of a line. Raises: ValueError: it has no four corners and a class.

    ``10 20 40 20 40 60 10 60 ship 1`` → ship, (10, 20, 40, 60), difficult
    """
    if not _corners(fields):
        raise ValueError(f"expected x1 y1 x2 y2 x3 y3 x4 y4 CLASS (got {' '.join(fields):.80})")
    numbers = [float(text) for text in fields[:8]]
    box, details = outlined(zip(numbers[::2], numbers[1::2], strict=True))
    is_difficult = fields[9:] not in ([], ["0"])
    return Marked(fields[8], box, details._replace(flags=flagged({DIFFICULT: is_difficult})))


def object_of_kitti(fields: Sequence[str]) -> Marked:
    """Return the object of a line of KITTI. Raises: ValueError: it has not its 15 or 16 fields.

    ``Car 0.5 0 -1.6 10 20 40 60 1.7 1.9 3.7 1.1 1.6 8.4 -1.6`` → Car, (10, 20, 40, 60), truncated
    """
    are_numbers = all(map(NUMBER.fullmatch, fields[1:]))
    if len(fields) not in (15, 16) or NUMBER.fullmatch(fields[0]) or not are_numbers:
        raise ValueError(f"expected KITTI's CLASS and 14 numbers (got {' '.join(fields):.80})")
    truncated, occluded, _, xmin, ymin, xmax, ymax = map(float, fields[1:8])
    flags = flagged({TRUNCATED: truncated > 0, OCCLUDED: occluded in (1, 2)})
    return Marked(fields[0], (xmin, ymin, xmax, ymax), Details(flags))
