"""Formats of images with labels or boxes, whose documents belong to other tools.

Such a format yields a :class:`Picture` for each image. The task turns it into an annotation and
checks it like a row of any other format.

A broken line of a CSV costs itself, and the image that it is about if one of its fields names one:
an image never loses a box in silence.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from recordgen import storage
from recordgen.core.dataset.splits import word_in_folders
from recordgen.core.limits import IMAGE_KEYPOINTS, YOLO_BYTES
from recordgen.core.rows.row import Adjustments, Range, Row
from recordgen.core.task.annotation import AnnotationError, bad_annotation, named_split
from recordgen.core.task.task import PARTS
from recordgen.errors import PayloadError, SourceError
from recordgen.formats.csv_records import Record, read_blocks
from recordgen.formats.format import Format, Rows
from recordgen.formats.header import names_without_blanks, other_width, too_many_fields
from recordgen.formats.image_sizes import size_in_file
from recordgen.formats.json_values import list_items
from recordgen.formats.lines import bounded_lines
from recordgen.formats.listing import Listing
from recordgen.formats.shapes import SHAPES_DROPPED
from recordgen.formats.split_names import split_in_path
from recordgen.rejects import SKIPPED, Reject, RejectCode
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.picture import Marked, Picture, is_size

if TYPE_CHECKING:
    from recordgen.core.task.task import Task
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile

#: Name in ``rows.adjusted``: images whose size a document does not say, although it has a place.
SIZE_MISSING = "size_missing"

_Item = TypeVar("_Item")
_Example = TypeVar("_Example")

#: How the lines of DOTA begin that are no objects.
HEADERS = ("imagesource:", "gsd:", "acquisition dates:")

_SIDE = re.compile("left|right", re.IGNORECASE)
_SHOWN = 5


class Problem(NamedTuple):
    """An example that cannot be used, which becomes a reject.

    Attributes:
        line: as in :class:`Picture`.
        message: what was found, what was expected, and the remedy.
        uri: the image, if it is known.
        code: a :class:`recordgen.rejects.RejectCode`.
    """

    line: int
    message: str
    uri: str = ""
    code: RejectCode = RejectCode.BAD_ANNOTATION

    def reject(self, source: str, prefix: str = "") -> Reject:
        """Return its reject; ``prefix`` begins the message."""
        return Reject(source, self.line, self.uri, self.code.value, f"{prefix}{self.message}")


class ExampleError(ValueError):
    """What is wrong with an example, for :func:`examples`.

    Attributes:
        uri: the image, if it is known.
        code: a :class:`recordgen.rejects.RejectCode`.
    """

    def __init__(
        self, message: str, uri: str = "", code: RejectCode = RejectCode.BAD_ANNOTATION
    ) -> None:
        super().__init__(message)
        self.uri = uri
        self.code = code


@contextmanager
def about(uri: str) -> Iterator[None]:
    """Name the image that errors are about."""
    try:
        yield
    except (ValueError, PayloadError) as exc:
        raise ExampleError(str(exc), uri) from exc


def examples(
    items: Iterable[tuple[int, _Item] | Problem], make: Callable[[int, _Item], _Example]
) -> Iterator[_Example | Problem]:
    """Yield what ``make`` returns for each numbered item, and the problem of each other one.

    ``make`` takes the number and the item, and raises ValueError if the item cannot be used.
    """
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        try:
            example = make(*item)
        except ExampleError as exc:
            yield Problem(item[0], str(exc), exc.uri, exc.code)
        except ValueError as exc:
            yield Problem(item[0], str(exc))
        else:
            yield example


class Note(NamedTuple):
    """Something odd in a document that costs no example, such as labels of an unknown image.

    Attributes:
        line: as in :class:`Picture`; 0 if it is about the whole document.
        message: what was found, and what was done.
        code: the check that reports it.
    """

    line: int
    message: str
    code: str = SKIPPED


#: The numbers of records and what they hold, and the problems of others.
Numbered: TypeAlias = Iterator[tuple[int, Any] | Problem]

#: What a document says of its images, and what is odd in it.
Pictures: TypeAlias = Iterator[Picture | Problem | Note]


def notes_about(names: Sequence[str], what: str) -> Iterator[Note]:
    """Yield a note about files, of which it names the first ones; nothing if there are none.

    ``images have no JSON, and were skipped: 7 (a.jpg, b.jpg, c.jpg, d.jpg, e.jpg)``
    """
    if names:
        yield Note(0, f"{what}: {len(names):,} ({', '.join(names[:_SHOWN])})")


def notes_about_twins(classes: Sequence[str]) -> Iterator[Note]:
    """Yield a note about each name that several classes have."""
    for name, count in Counter(classes).items():
        if count > 1:
            what = f"{count} classes are named {name!r}; they were merged"
            yield Note(0, f"{what}, so that later classes have smaller numbers")


class PictureFormat(Format):
    """A format whose documents describe images.

    Class attributes:
        tasks: names of the tasks whose annotations its documents hold.
        has_lines: the line of a picture is a line of its document. Otherwise it only counts, and
            the picture is named by its image.
        names_files: messages of the format name the file that they are about, so that the name of
            the document would add nothing.
        in_pixels: boxes are in pixels. If a document does not say the size of an image, the size is
            read from the image.
        has_sizes: documents have a place for the size, so that a missing one is counted.
    """

    tasks: ClassVar[Sequence[str]]
    has_lines: ClassVar[bool] = False
    names_files: ClassVar[bool] = False
    in_pixels: ClassVar[bool] = False
    has_sizes: ClassVar[bool] = False

    def accepts(self, task: type[Task]) -> bool:
        return task.name in self.tasks

    @abstractmethod
    def read(self, listing: Listing, document: str) -> Pictures:
        """Yield the images of one document of :attr:`Evidence.documents`.

        Raises: SourceError: the document cannot be read as a whole; StorageError: storage failed.
        """

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        root, document = listing.root, listing.only
        # Addresses are relative to the root. So a document in a folder of its own is named in
        # messages, and the root takes its place in the row.
        is_named = self.has_lines and "/" not in document
        source = file.path if is_named else root
        prefix = "" if is_named or self.names_files or not document else f"{document}: "
        by_name = given.names_splits and file.split is None
        named = split_in_path(file.path) if by_name and document else None
        for item in task.together(self.read(listing, document)):
            if isinstance(item, Note):
                adjusted.add_line(source, item.line, item.code, f"{prefix}{item.message}")
            elif isinstance(item, Problem):
                yield item.reject(source, prefix)
            else:
                if by_name and not item.split:
                    found = named or word_in_folders(item.document) or word_in_folders(item.uri)
                    item = item._replace(split=found) if found else item
                yield self.row(item, listing, source, prefix, task, adjusted)

    def row(
        self,
        picture: Picture,
        listing: Listing,
        source: str,
        prefix: str,
        task: Task,
        adjusted: Adjustments,
    ) -> Row | Reject:
        """Return the row of a picture, or its reject; ``prefix`` begins messages about it."""
        try:
            picture = self._sized(picture, listing)
            if len(picture.payloads) > 1:  # a container holds a mask beside the image
                picture = picture._replace(mask=f"{picture.uri}/mask")
            check_details(picture)
            check_shapes(picture)
            check_labels(picture)
            if picture.mask is None and picture.labels and task.labelling == PARTS:
                raise bad_annotation(f"an image has labels only, and {task.name} needs more")
            split = named_split(picture.split or "")
            content = task.from_picture(picture, adjusted)
            names = filter(None, (picture.uri, picture.mask))
            addresses = in_addresses(picture.payloads or map(listing.payload, names))
        except PayloadError as exc:
            return Reject(source, picture.line, picture.uri, exc.code, f"{prefix}{exc.message}")
        except ValueError as exc:
            error = exc if isinstance(exc, AnnotationError) else bad_annotation(str(exc))
            reject = error.reject(source, picture.line, picture.uri)
            return reject._replace(message=f"{prefix}{reject.message}")
        for code, message in picture.notes:
            adjusted.add(code, f"{prefix}{message}")
        return Row(source, picture.line, split, *content, addresses=addresses)

    def _sized(self, picture: Picture, listing: Listing) -> Picture:
        """Return a picture with the size that its boxes need. Raises: AnnotationError."""
        if self.in_pixels:
            check_pixels(picture)
        if picture.size is not None or not (self.in_pixels and picture.objects):
            return picture
        size = size_in_file(listing, picture.uri) if picture.uri in listing else None
        if size is None:
            raise bad_annotation("the size of the image cannot be read, and boxes are in pixels")
        message = f"the size of {picture.uri} is missing; it was read from the image"
        notes = (*picture.notes, (SIZE_MISSING, message)) if self.has_sizes else picture.notes
        return picture._replace(size=size, notes=notes, measured=None)


def picture_of_lines(
    listing: Listing, parse: Callable[[Sequence[str]], Marked], line: int, name: str, image: str
) -> Picture | Problem:
    """Return an image with the object in each line of a text, or the problem with one of them.

    Args:
        listing: the folder.
        parse: returns the object in the fields of a line, or raises ValueError.
        line: the line of the picture.
        name: the text, in which DOTA's :data:`HEADERS` are no objects.
        image: the name of the image.
    """
    try:
        data = listing.read(name, YOLO_BYTES.most)
    except ValueError as exc:
        return Problem(line, f"{name}: {exc}", image)
    objects = []
    for number, text in enumerate(data.decode("utf-8-sig", "replace").splitlines(), start=1):
        if text.strip() and not text.startswith(HEADERS):
            try:
                objects.append(parse(text.split()))
            except ValueError as exc:
                return Problem(line, f"{name}:{number}: {exc}", image)
    return Picture(line, image, objects=objects, document=name)


def items_of(listing: Listing, document: str) -> Iterator[tuple[int, Any]]:
    """Yield the items of a JSON list with their numbers. Raises: SourceError: it is none."""
    with listing.whole(document, "JSON list") as file:
        yield from enumerate(list_items(file), start=1)


def check_shapes(picture: Picture) -> None:
    """Check that an image is not without objects only because none of its shapes has an area.

    Raises: AnnotationError: it would teach that there is nothing in it.
    """
    dropped = [message for code, message in picture.notes if code == SHAPES_DROPPED]
    if dropped and not (picture.objects or picture.labels):
        remedy = "and nothing else is marked in the image; draw boxes, or delete it"
        raise bad_annotation(f"{dropped[0]}, {remedy}")


def check_details(picture: Picture) -> None:
    """Check that masks have the size of their picture, and keypoints are numbers, not too many.

    Raises: AnnotationError.
    """
    most = 0
    for _, _, details in picture.objects:
        if details.keypoints:
            most = max(most, len(details.keypoints))
            if not math.isfinite(sum(details.keypoints)):
                raise bad_annotation("keypoints must be finite numbers; correct or delete them")
        mask = details.mask
        if mask and picture.size and picture.size != (mask.width, mask.height):
            width, height = picture.size
            sizes = f"{mask.width}×{mask.height} pixels, but its image {width}×{height}"
            raise bad_annotation(f"a mask has {sizes}; export it with the size of the image")
    try:
        IMAGE_KEYPOINTS.check(most // KEYPOINT * len(picture.objects))
    except ValueError as exc:
        raise bad_annotation(str(exc)) from None


def check_labels(picture: Picture) -> None:
    """Check that labels are UTF-8, or two could become the same. Raises: AnnotationError."""
    labels = [*picture.labels, *(each.label for each in picture.objects)]
    if wrong := [label for label in labels if "\ufffd" in label]:
        raise bad_annotation(f"labels must be UTF-8 (got {wrong[0]!r}); convert their file to it")


def check_pixels(picture: Picture) -> None:
    """Check that boxes are in pixels, as their format has them.

    Raises: AnnotationError: all are fractions up to 2, as shares of an image and their sums are.
    """
    boxes = [each.corners for each in picture.objects]
    if all(max(box) <= 2 for box in boxes) and any(side % 1 for box in boxes for side in box):
        remedy = "which look like shares of the image; multiply them by its width and height"
        raise bad_annotation(f"boxes must be in pixels (got the corners {boxes[0]}), {remedy}")


def in_addresses(payloads: Iterable[Range | None]) -> str | None:
    """Return the addresses of a row whose image, and mask, are in a container; None for files."""
    addresses = [payload and payload.address for payload in payloads]
    return json.dumps(addresses) if any(addresses) else None


def keypoints(names: Sequence[str], flip: Sequence[int] = ()) -> Mapping[str, Any]:
    """Return keypoints as ``dataset.json`` has them.

    Without ``flip``, left and right ones of a name become each other in a mirrored image:
    ``nose, left_eye, right_eye`` → ``{"names": […], "flip_idx": [0, 2, 1]}``.
    """
    places = {name.lower(): at for at, name in enumerate(names)}
    twins = [places.get(_mirrored_name(name), at) for at, name in enumerate(names)]
    return {"names": list(names), "flip_idx": list(flip) or twins}


def _mirrored_name(name: str) -> str:
    return _SIDE.sub(lambda found: "right" if found[0].lower() == "left" else "left", name.lower())


def size_of(width: Any, height: Any) -> tuple[int, int] | None:
    """Return a size that a document says with numbers, or with their texts; None if it is none."""
    try:
        size = int(float(width)), int(float(height))
    except (TypeError, ValueError, OverflowError):
        return None
    return size if is_size(size) else None


def places_of(document: str, *beside: str) -> Sequence[str]:
    """Return folders beside a document and above it, relative to the root, each once."""
    folder = posixpath.dirname(document)
    places = dict.fromkeys((folder, posixpath.dirname(folder)))
    return [posixpath.join(place, each) for place in places for each in beside]


def image_or_problem(
    listing: Listing, name: str, *folders: str, line: int, split: str | None = None
) -> str | Problem:
    """Return the image that a document names, or the problem that there is not exactly one."""
    try:
        return image_named(listing, name, *folders, split=split)
    except ExampleError as exc:
        return Problem(line, str(exc), exc.uri, exc.code)


def image_named(listing: Listing, name: str, *folders: str, split: str | None = None) -> str:
    """Return the image that a document names. Raises: ExampleError: there is not exactly one."""
    split = split or split_in_path(f"{listing.root}{listing.only}")
    image = listing.image_at(name, *folders, split=split)
    if isinstance(image, str):
        return image
    where = storage.join(listing.root, folders[0]) if folders and folders[0] else listing.root
    if not image:
        message = f"there is no image {name} in {where}, and none of this name below it"
        raise ExampleError(message, name, RejectCode.MISSING_FILE)
    shown = " and ".join(image[:2])
    message = f"{name} may be {shown}; write the path from the document's folder"
    raise ExampleError(message, name, RejectCode.AMBIGUOUS_PATH)


# --- CSV documents -------------------------------------------------------------------------------


def records_of(listing: Listing, document: str) -> Iterator[Record | Problem]:
    """Yield the records of a CSV, and a problem for each line that is none.

    Raises: SourceError: the file as a whole is no CSV; StorageError.
    """
    where, image_in = f"{listing.root}{document}", partial(_image_in, listing, document)
    with listing.open(document) as file:
        for item in read_blocks(bounded_lines(file, where), where, uri_in=image_in):
            if isinstance(item, Reject):
                yield Problem(item.line, item.message, item.uri, RejectCode(item.code))
            else:
                yield from item.each()


def columns_of(
    listing: Listing, document: str, *needed: str, named: Callable[[str], str] = str
) -> Iterator[tuple[int, Mapping[str, str]] | Problem]:
    """Yield the line and the fields of each record below the header, by the names in it.

    A record with more or fewer fields is a problem. Blanks, and the # of a comment, do not belong
    to a name, which ``named`` may change.

    Raises: as :func:`records_of`; SourceError: the header has not the needed names.
    """
    header: Sequence[str] = ()
    for item in records_of(listing, document):
        if isinstance(item, Problem):
            yield item
        elif not header:
            header = [named(name.lstrip("#")) for name in names_without_blanks(item.fields)]
            if not {*needed} <= {*header}:
                where, got = f"{listing.root}{document}:{item.line}", ", ".join(header)
                raise SourceError(f"{where}: expected {', '.join(needed)} (got {got:.200})")
        elif len(item.fields) == len(header):
            yield item.line, dict(zip(header, item.fields, strict=True))
        else:
            has_more = len(item.fields) > len(header)
            problem = (too_many_fields if has_more else other_width)(len(header), len(item.fields))
            uri = _image_in(listing, document, item.fields)
            yield Problem(item.line, str(problem), uri, RejectCode.TOO_MANY_FIELDS)


def _image_in(listing: Listing, document: str, fields: Sequence[str]) -> str:
    """Return the image that a field names, as other lines may be about the same one; or ""."""
    folder = posixpath.dirname(document)
    names = [f"{field}{suffix}" for field in fields if field.strip() for suffix in ("", ".jpg")]
    found = (listing.image_at(name, folder) for name in names)
    return next((image for image in found if isinstance(image, str)), "")
