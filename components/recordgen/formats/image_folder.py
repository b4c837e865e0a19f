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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recordgen import storage
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, RowContent, check_label, check_text
from recordgen.core.task.task import Task
from recordgen.errors import PayloadError, SourceError
from recordgen.formats import foreign_formats
from recordgen.formats.folder_names import Folders, Placed, is_no_image
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.import_file import IMPORT_SUFFIXES, names_images
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import in_addresses
from recordgen.rejects import SKIPPED, Reject, RejectCode
from recordgen.tasks import ImageClassification

if TYPE_CHECKING:
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile


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
        raise SourceError(f"{folder}: {_without_images(others, tree.datasets)}")
    names = Folders(folder)
    placed = names.place(images)
    _check_import_files(listing, others, placed, ["", *names.roles])
    return _Found(placed, others, tree.datasets, names.roles)


def _check_import_files(
    listing: Listing, others: Sequence[str], placed: Sequence[Placed], inside: Collection[str]
) -> None:
    """Check that no import file holds the labels of images. Raises: SourceError, StorageError.

    A file such as ``history.csv`` beside folders of classes is none, unless it names their images.
    """
    folder = listing.root
    for name in others:
        place, suffix = posixpath.dirname(name), posixpath.splitext(name)[1]
        if place not in inside or suffix.lower() not in IMPORT_SUFFIXES:
            continue
        below = [image for image in placed if image.name.startswith(f"{place}/" if place else "")]
        has_classes = any(image.labels for image in below)
        if has_classes and not names_images(listing.head(name), (image.name for image in below)):
            continue
        if listing.archive is not None:
            raise SourceError(
                f"{folder}: this archive contains the import file {name}; unpack the archive, and "
                f"pass that file"
            )
        base = posixpath.basename(name)
        same = [name for name in others if posixpath.basename(name) == base]
        pattern = storage.join(folder, place, f"*{suffix}")
        if len(same) > 1 and place and all(name.count("/") == 1 for name in same):
            pattern = f"{storage.join(folder, '*', base)} for all splits"
        other = "; or move it elsewhere, to take labels from the folders" if has_classes else ""
        raise SourceError(
            f"{folder}: this folder contains the import file {name}; pass that file, or "
            f"{pattern}{other}"
        )


def _without_images(others: Sequence[str], datasets: Sequence[str]) -> str:
    if datasets:
        return (
            f"there is no image in this folder, only a converted dataset in {datasets[0]}; "
            f"pass import files, or a folder of images by label"
        )
    if not others:
        return "there is no file in this folder"
    shown = ", ".join(others[:_NAMES_SHOWN])
    message = f"there is no image in this folder, only files such as {shown}"
    if any(name.lower().endswith(".txt") for name in others):
        message += (
            "; to convert texts, put them into a folder for each class, or write a CSV with the "
            "columns text_uri and label, and a row for each file"
        )
    return message


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
    how_to_label = "put the images of each class into a folder of its name, or write a CSV"
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
