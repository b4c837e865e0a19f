"""Open Images: CSV files of boxes, or of labels of whole images.

    train-annotations-bbox.csv  ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,…,IsGroupOf
                                0001,xclick,/m/0bt9lr,1,0.1,0.4,0.2,0.6,…,0
    class-descriptions-boxable.csv  /m/0bt9lr,Dog
    train/0001.jpg

becomes the picture ``train/0001.jpg`` of split train with a dog from (0.1, 0.2) to (0.4, 0.6), in
shares of the image. Rules: "Open Images V7 description", data formats. An image is used if it is
there: few have all 1.9 million.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import ClassVar, TypeAlias

from recordgen.core.limits import CLASSES
from recordgen.errors import SourceError
from recordgen.features import GROUP_OF, IS_CROWD, OCCLUDED, TRUNCATED
from recordgen.formats import pictures
from recordgen.formats.csv_records import Record
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.rejects import RejectCode
from recordgen.subjects.details import NOTHING, Details
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks import ImageMultiLabel, ObjectDetection

_IMAGE, _LABEL, _CONFIDENCE = "imageid", "labelname", "confidence"
_FLAGS = {GROUP_OF: "isgroupof", OCCLUDED: "isoccluded", TRUNCATED: "istruncated"}
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_OF_LABELS = frozenset({_IMAGE, _LABEL, _CONFIDENCE})
_OF_BOXES = frozenset({_IMAGE, _LABEL, *_SIDES})
# The second is FiftyOne's.
_DESCRIPTIONS = ("class-descriptions", "metadata/classes.csv")
# Codes of classes; other names need no description.
_CODES = ("/m/", "/g/", "/t/")

# The number of a line, and its fields by the names of their columns.
_Line: TypeAlias = tuple[int, Mapping[str, str]]


class OpenImages(pictures.PictureFormat):
    """Open Images' ``…-annotations-bbox.csv`` or ``…-imagelabels.csv``."""

    name = "open_images"
    tasks: ClassVar = (ObjectDetection.name, ImageMultiLabel.name)
    has_lines = True

    def detect(self, listing: Listing) -> Evidence | None:
        headers = {name: _header(listing, name) for name in listing.candidates(".csv")}
        boxes = [name for name, header in headers.items() if _OF_BOXES.issubset(header)]
        # Labels often lie beside the boxes.
        found = boxes or [name for name, header in headers.items() if _OF_LABELS.issubset(header)]
        if not found:
            return None
        what = "boxes" if boxes else "labels"
        return Evidence(f"{found[0]} has Open Images' {what}", self.tasks[0 if boxes else 1], found)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        names, folders = _names(listing, document), _folders(document)
        used = missing = 0
        unnamed: dict[str, None] = {}
        rows = pictures.columns_of(listing, document, _IMAGE, _LABEL, named=str.lower)
        for image, group in groupby(rows, key=_image_of):
            items = list(group)
            yield from (item for item in items if isinstance(item, pictures.Problem))
            if not (lines := [item for item in items if not isinstance(item, pictures.Problem)]):
                continue
            name = image if image in listing.tree.by_base else f"{image}.jpg"
            found = pictures.image_or_problem(listing, name, *folders, line=lines[0][0])
            if isinstance(found, pictures.Problem) and found.code == RejectCode.MISSING_FILE:
                missing += 1
                continue
            used += 1
            if isinstance(found, pictures.Problem):
                yield found
                continue
            codes = (fields[_LABEL].strip() for _, fields in lines)
            unnamed.update((it, None) for it in codes if it.startswith(_CODES) and it not in names)
            yield _picture(found, lines, names)
        if not used:
            what = f"none of its {missing:,} images is here, such as IMAGEID.jpg in {listing.root}"
            raise SourceError(f"{listing.root}{document}: {what}")
        if missing:
            yield pictures.Note(0, f"{missing:,} images are not in this folder, and were skipped")
        if unnamed:
            what = f"{len(unnamed):,} classes have no name, such as {next(iter(unnamed))}"
            yield pictures.Note(0, f"{what}; add {_DESCRIPTIONS[0]}.csv to the folder")


def _header(listing: Listing, name: str) -> Sequence[str]:
    first = listing.head(name).partition(b"\n")[0].decode("utf-8-sig", "replace")
    return [field.strip().lower() for field in first.split(",")]


def _image_of(line: _Line | pictures.Problem) -> str:
    return line.uri if isinstance(line, pictures.Problem) else line[1][_IMAGE].strip()


def _details(fields: Mapping[str, str]) -> Details:
    """Return what flags say: a box around a group is one around a crowd."""
    flags = {flag for flag, column in _FLAGS.items() if fields.get(column, "").strip() == "1"}
    if not flags:
        return NOTHING
    return Details(frozenset(flags | ({IS_CROWD} if GROUP_OF in flags else set())))


def _names(listing: Listing, document: str) -> Mapping[str, str]:
    """Return the names of classes by their codes, from the descriptions beside a document."""
    found: dict[str, str] = {}
    folder = posixpath.dirname(document)
    files = [name for name in listing.others if any(part in name for part in _DESCRIPTIONS)]
    # The nearest file wins, then the one of boxes.
    for name in sorted(files, key=lambda name: (posixpath.dirname(name) != folder, name)):
        for item in islice(pictures.records_of(listing, name), CLASSES.most):
            if isinstance(item, Record) and len(item.fields) >= 2:
                found.setdefault(item.fields[0].strip(), item.fields[1].strip())
    return found


def _folders(document: str) -> Sequence[str]:
    """Return the folders in which the images of a document may be, the likeliest first."""
    name = posixpath.basename(document)
    split = next((word for word in ("train", "validation", "test") if word in name), "")
    beside = (split, f"{split}/data", f"images/{split}", f"data/{split}", "", "images", "data")
    return pictures.places_of(document, *beside)


def _picture(
    image: str, lines: Sequence[_Line], names: Mapping[str, str]
) -> Picture | pictures.Problem:
    labels, objects = [], []
    for number, fields in lines:
        code, confidence = fields[_LABEL].strip(), fields.get(_CONFIDENCE, "").strip() or "1"
        label = names.get(code, code)
        texts = [fields[side] for side in _SIDES] if fields.keys() >= _OF_BOXES else []
        try:
            if float(confidence) == 0:
                continue  # verified: the image does not show this class
            corners = [float(text) for text in texts]
        except ValueError:
            shown = ",".join((confidence, *texts))
            return pictures.Problem(number, f"expected numbers (got {shown:.80})", image)
        if corners:
            xmin, ymin, xmax, ymax = corners
            objects.append(Marked(label, (xmin, ymin, xmax, ymax), _details(fields)))
        else:
            labels.append(label)
    return Picture(lines[0][0], image, objects=objects, labels=labels)
