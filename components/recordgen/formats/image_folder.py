"""A folder of images as rows: ``<split>/<label>/<file>``, or ``<label>/<file>`` without splits.

    photos/train/cat/1.jpg   →  Row("photos/", 1, "train", "train/cat/1.jpg", "cat")
    photos/cat/1.jpg         →  Row("photos/", 1, None, "cat/1.jpg", "cat")

TFRecorder and ``keras.utils.image_dataset_from_directory`` read such folders. A file directly in
the folder of a split has no label. :mod:`recordgen.formats.folder_names` decides which folders are
splits or labels, and which files are skipped because they are no images. The line of a row is the
file's position in sorted order.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recordgen import storage
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, RowContent, check_label, check_text
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, PayloadError, SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.field_kinds import IMAGE_SUFFIX
from recordgen.formats.folder_advice import layout_of_classes, layout_of_pairs, refusal
from recordgen.formats.folder_names import ANNOTATIONS, Folders, Placed, is_no_image
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.import_file import IMPORT_SUFFIXES, names_images
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import in_addresses
from recordgen.rejects import SKIPPED, Reject, RejectCode
from recordgen.tasks import ImageClassification

if TYPE_CHECKING:
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile


# Documents whose heads are read.
_DOCUMENTS_READ = 32
_SHOWN = 4

# Skipped files or folders that a message names.
_NAMES_SHOWN = 3


class _Found(NamedTuple):
    """The files of a folder of images.

    Attributes:
        placed: all files that may be images, in order, with their splits and labels.
        others: files, and folders with ``/`` at their end, whose names show that they are no
            images.
        datasets: folders with converted datasets, which are not searched.
        roles: what was understood about folders that are no classes.
    """

    placed: Sequence[Placed]
    others: Sequence[str]
    datasets: Sequence[str]
    roles: Mapping[str, str]


def _understood(listing: Listing) -> _Found:
    """Return all files below a folder except hidden ones.

    Raises:
        SourceError: the folder has no images, is a dataset, or has a known format of another tool;
            or an import file holds the labels; or as :meth:`Folders.place`.
        StorageError: storage failed.
    """
    folder, tree = listing.root, listing.tree
    images = [name for name in tree.files if not is_no_image(name)]
    others = [*tree.skipped, *filter(is_no_image, tree.files)]
    if "" in tree.datasets:
        raise SourceError(
            f"{folder}: this folder contains a converted dataset; pass import files, or a folder "
            f"of images by label"
        )
    if not images:
        _check_import_files(listing, others, [], [""])
    _check_format(listing)
    if not images:
        texts = [name for name in others if name.lower().endswith(".txt") and "/" in name]
        depth = max((name.count("/") for name in texts), default=0)
        layout = layout_of_classes([name for name in texts if name.count("/") == depth])
        raise _refusal(listing, _without_images(others, tree.datasets), layout)
    names = Folders(folder)
    placed = names.place(images)
    _check_classes(listing, placed)
    _check_import_files(listing, others, placed, ["", *names.roles])
    _check_annotations(listing, others, placed)
    _check_several(listing, placed)
    return _Found(placed, others, tree.datasets, names.roles)


def _check_classes(listing: Listing, placed: Sequence[Placed]) -> None:
    """Check that folders are classes of images. Raises: NotUnderstoodError."""
    names = [item.name for item in placed]
    classes: dict[str, set[str]] = {}
    for item in placed:
        for label in item.labels[:1]:
            classes.setdefault(label, set()).add(_stem(item.name))
    deep = [item.name for item in placed if len(item.labels) > 1]
    are_deep = len(deep) * 2 > len(placed)
    reason, layout = "", ""
    if not listing.images:
        reason = f"{names[0]} is no image by its name; these may be texts or videos"
        layout = layout_of_classes(names)
    elif (len(classes) != 1 or are_deep) and (layout := layout_of_pairs(names)):
        reason = "masks lie beside these images"
    elif are_deep:
        reason = f"{deep[0]} is too deep for a folder of a class, and may be one of several masks"
    elif len(classes) == 2 and _are_twins(*classes.values()):
        reason = f"files in {' and '.join(classes)} have the same names, as images and masks do"
    if reason:
        raise _refusal(listing, reason, layout)


def _check_several(listing: Listing, placed: Sequence[Placed]) -> None:
    """Check that there is not one class only. Raises: NotUnderstoodError."""
    classes = {item.labels[0] if item.labels else None for item in placed}
    if len(classes) == 1 and None not in classes:
        layout = layout_of_classes([item.name for item in placed])
        reason = f"{classes.pop()!r} is the only folder of a class, and one class is none"
        raise _refusal(listing, reason, layout)


def _refusal(
    listing: Listing, reason: str, layout: str = "", source: str = ""
) -> NotUnderstoodError:
    return refusal(listing.root, listing.names, reason, layout, source)


def _are_twins(one: Collection[str], other: Collection[str]) -> bool:
    """Return whether two folders have files of the same names, which are no mere numbers."""
    shared = [stem for stem in one if stem in other and not stem.isdecimal()]
    return len(shared) > 1 and len(shared) * 2 > min(len(one), len(other))


# Files that may describe images, and names of files in their text.
_DESCRIBING = (".txt", ".csv", ".tsv", ".json", ".xml")
_TOKEN = re.compile(r"[^\s,;:\"'/<>|]+")


def _check_annotations(listing: Listing, others: Sequence[str], placed: Sequence[Placed]) -> None:
    """Check that no file beside images names them, as annotations and lists of splits do.

    Raises: NotUnderstoodError, StorageError.
    """
    stems = {_stem(item.name) for item in placed}
    documents = [name for name in others if name.lower().endswith(_DESCRIBING)]
    documents.sort(key=lambda name: (name.count("/"), name))
    twins = [name for name in documents if _stem(name) in stems]
    found = twins if len(twins) * 2 >= len(placed) and len(twins) > 1 else []
    found = found or [name for name in documents[:_DOCUMENTS_READ] if _names(listing, name, stems)]
    if found:
        reason = "these files name the images, and may hold their labels, boxes or splits, which "
        reason = f"{reason}the folders do not say: {', '.join(found[:_SHOWN])}"
        are_tables = all(name.lower().endswith(IMPORT_SUFFIXES) for name in found)
        layout = layout_of_classes([item.name for item in placed]) if are_tables else ""
        raise _refusal(listing, reason, layout)


def _names(listing: Listing, name: str, stems: Collection[str]) -> bool:
    """Return whether a file names several images, or lies in a folder of annotations."""
    return not ANNOTATIONS.isdisjoint(name.split("/")[:-1]) or _named(listing, name, stems) > 1


def _named(listing: Listing, name: str, stems: Collection[str]) -> int:
    """Return how many images a file names; two digits may be any number, such as an epoch's."""
    tokens = set(_TOKEN.findall(listing.head(name).decode("utf-8", "replace")))
    return sum(len(stem) > 2 and stem in stems for stem in {_image_stem(each) for each in tokens})


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


def _image_stem(name: str) -> str:
    """Return a file name without the suffix of an image."""
    return IMAGE_SUFFIX.sub("", name)


def _check_import_files(
    listing: Listing, others: Sequence[str], placed: Sequence[Placed], inside: Collection[str]
) -> None:
    """Check that no import file holds the labels of images. Raises: SourceError, StorageError.

    A file such as ``history.csv`` beside folders of classes is none, unless it names their images.
    """
    folder, stems = listing.root, {_stem(item.name) for item in placed}
    files = [name for name in others if name.lower().endswith(IMPORT_SUFFIXES)]
    for name in sorted(files, key=lambda name: -_named(listing, name, stems)):
        place = posixpath.dirname(name)
        if place not in inside:
            continue
        below = [image for image in placed if image.name.startswith(f"{place}/" if place else "")]
        has_classes = any(image.labels for image in below)
        if has_classes and not names_images(listing.head(name), (image.name for image in below)):
            continue
        if listing.archive is not None:
            reason = f"the archive contains the import file {name}; unpack it, and pass that file"
            raise _refusal(listing, reason)
        base = posixpath.basename(name)
        same = [name for name in others if posixpath.basename(name) == base]
        source = storage.join(folder, name)
        if len(same) > 1 and place and all(name.count("/") == 1 for name in same):
            source = storage.join(folder, "*", base)
        raise _refusal(listing, f"the import file {name} may hold the labels", source=source)


def _without_images(others: Sequence[str], datasets: Sequence[str]) -> str:
    if datasets:
        return (
            f"there is no image in this folder, only a converted dataset in {datasets[0]}; "
            f"pass import files, or a folder of images by label"
        )
    if not others:
        return "there is no file in this folder"
    shown = ", ".join(others[:_NAMES_SHOWN])
    return f"there is no image in this folder, only files such as {shown}; these may be texts"


def _check_format(listing: Listing) -> None:
    """Check that a folder has no format of another tool. Raises: SourceError, StorageError."""
    tree = listing.tree
    found = foreign_formats.of_folder(tree.others, listing.head, images=tree.images)
    # One document describes all images, or each image has one: the first shows the format.
    document = next((name for name in tree.others if name.lower().endswith(".json")), None)
    if found is None and document is not None:
        format_ = foreign_formats.of_file(listing.head(document))
        found = None if format_ is None else (format_, document)
    if found is not None:
        format_, evidence = found
        raise format_.error(listing.root, evidence)


def add_skipped(folder: str, names: Sequence[str], what: str, adjusted: Adjustments) -> None:
    """Report files or folders that are skipped; ``what`` they are, in words."""
    if names:
        more = ", …" if len(names) > _NAMES_SHOWN else ""
        shown = f"{', '.join(names[:_NAMES_SHOWN])}{more}"
        adjusted.add_line(folder, 0, SKIPPED, f"{len(names):,} {what} were skipped: {shown}")


def rows_of(
    listing: Listing, placed: Iterable[Placed], content: Callable[[str, str | None], RowContent]
) -> Iterator[Row | Reject]:
    """Yield a row for each file of a folder, or its reject.

    ``content`` makes the row of a file's name and its label.
    """
    folder = listing.root
    for line, (name, split, labels) in enumerate(placed, start=1):
        try:
            check_text(name)
            row = content(name, check_label(labels[0]) if labels else None)
            addresses = in_addresses(listing.payload(name))
        except PayloadError as exc:
            yield Reject(folder, line, name, exc.code, exc.message)
            continue
        except AnnotationError as exc:
            yield exc.reject(folder, line, name)
            continue
        if len(labels) > 1:
            message = (
                f"expected <split>/<label>/<file> or <label>/<file> (got {name}, which is too deep)"
            )
            yield Reject(folder, line, name, RejectCode.BAD_ANNOTATION.value, message)
            continue
        yield Row(folder, line, split, *row, addresses=addresses)


class ImageFolder(Format):
    """``<split>/<label>/<file>``, or ``<label>/<file>``."""

    name = "folder"
    how_to_label = (
        "put the images of each class into a folder of its name, take labels from the names of "
        "files, such as --layout '{label}.{n}.jpg', or write a CSV"
    )
    heading = "Folders"

    def detect(self, listing: Listing) -> Evidence | None:
        if listing.only:
            return None
        reason = f"{listing.root}: a folder of images"
        return Evidence(reason, ImageClassification.name, is_weak=True)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == ImageClassification.name

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        found = _understood(listing)
        what = "files or folders whose names show that they are no images"
        add_skipped(listing.root, sorted(found.others), what, adjusted)
        what = "folders with a converted dataset"
        add_skipped(listing.root, found.datasets, what, adjusted)
        yield from rows_of(listing, found.placed, RowContent)

    def roles(self, files: Sequence[ImportFile]) -> Sequence[tuple[str, str]]:
        roles: list[tuple[str, str]] = []
        for file in files:
            found = _understood(file.around)
            skipped = dict.fromkeys(found.datasets, "skipped, a converted dataset")
            roles += {**found.roles, **skipped}.items()
        return roles
