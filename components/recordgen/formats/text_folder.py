"""A folder of texts by label: ``<split>/<label>/<file>.txt``, or ``<label>/<file>.txt``.

    aclImdb/train/pos/1_7.txt    →  split train, label pos
    aclImdb/train/unsup/1_0.txt  →  split train, no label
    aclImdb/train/urls_pos.txt   →  skipped: it is in no folder of a class

Stanford's aclImdb and ``keras.utils.text_dataset_from_directory`` have such folders. As in a folder
of images, :mod:`recordgen.formats.folder_names` decides which folders are splits or labels.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recordgen import storage
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import RowContent, check_uri
from recordgen.core.task.task import Task
from recordgen.formats import foreign_formats, iob
from recordgen.formats.folder_names import Folders, Placed
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given
from recordgen.formats.image_folder import add_skipped, rows_of
from recordgen.formats.import_file import ImportFile
from recordgen.formats.listing import Listing
from recordgen.tasks import TextClassification
from recordgen.tasks.texts.text_task import TextContent, stored

_SUFFIX = ".txt"

# Folders of texts without labels, beside those of classes.
_UNLABELLED = frozenset({"unsup", "unsupervised", "unlabeled", "unlabelled"})

# Beside folders of texts, such a file may hold their labels.
_IMPORT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".xml", ".yaml", ".yml")


class _Found(NamedTuple):
    """The texts of a folder.

    Attributes:
        placed: the texts in folders of classes, in order; without labels in ``unsup``.
        others: the files in no such folder, or without the suffix of a text.
        roles: what was understood about folders that are no classes.
    """

    placed: Sequence[Placed]
    others: Sequence[str]
    roles: Mapping[str, str]

    @property
    def classes(self) -> Sequence[str]:
        """The names of the classes."""
        return sorted({item.labels[0] for item in self.placed if item.labels})


class TextFolder(Format):
    """Texts in files, in a folder for each class."""

    name = "text_folder"
    is_decoded = True
    how_to_label = "put the texts of each class into a folder of its name, or write a CSV"
    heading = "Folders"

    def detect(self, listing: Listing) -> Evidence | None:
        if listing.only or storage.is_http(listing.root) or not _may_hold_texts(listing):
            return None
        found = _understood(listing)
        is_mine = len(found.classes) > 1 and len(found.placed) >= len(found.others)
        first = next((item.name for item in found.placed if item.labels), "")
        if not is_mine or foreign_formats.of_file(listing.head(first)) is not None:
            return None
        if foreign_formats.of_folder(listing.others, listing.head, images=()) is not None:
            return None  # texts and their annotations, for example
        reason = f"{listing.root}: a folder of texts in {len(found.classes)} classes"
        return Evidence(reason, TextClassification.name)

    def accepts(self, task: type[Task]) -> bool:
        return task.name == TextClassification.name

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        found = _understood(listing)
        what = f"files that are no {_SUFFIX} in the folder of a class"
        add_skipped(listing.root, found.others, what, adjusted)

        def content(name: str, label: str | None) -> RowContent:
            said = task.from_fields([label] if label else [], adjusted)
            return stored(check_uri(name), TextContent.decode(said).said)

        yield from rows_of(listing, found.placed, content)

    def roles(self, files: Sequence[ImportFile]) -> Sequence[tuple[str, str]]:
        found = (_understood(file.around) for file in files)
        return [item for each in found for item in each.roles.items()]


def _may_hold_texts(listing: Listing) -> bool:
    """Return whether the names of files may be those of texts by label, and of nothing else."""
    if listing.images or any(map(iob.names_sentences, listing.others)):
        return False
    return not any(name.lower().endswith(_IMPORT_SUFFIXES) for name in listing.others)


def _understood(listing: Listing) -> _Found:
    """Return the texts of a folder. Raises: SourceError: as :meth:`Folders.place`."""
    inside = [name for name in listing.others if "/" in name and name.lower().endswith(_SUFFIX)]
    names = Folders(listing.root)
    placed: list[Placed] = []
    roles: dict[str, str] = {}
    for item in names.place(inside):
        if item.labels and item.labels[0].lower() in _UNLABELLED:
            folder = posixpath.dirname(item.name)
            roles[folder] = "no label"
            placed.append(item._replace(labels=()))
        elif item.labels:
            placed.append(item)
    taken = {item.name for item in placed}
    others = [name for name in listing.others if name not in taken]
    return _Found(placed, others, {**names.roles, **roles})
