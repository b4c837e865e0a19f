"""Folders of images or of texts by label: ``<split>/<label>/<file>``, or ``<label>/<file>``.

    photos/train/cat/1.jpg       →  Row("photos/", 1, "train", "train/cat/1.jpg", "cat")
    photos/cat/1.jpg             →  Row("photos/", 1, None, "cat/1.jpg", "cat")
    aclImdb/train/pos/1_7.txt    →  split train, label pos
    aclImdb/train/unsup/1_0.txt  →  split train, no label

TFRecorder, Stanford's aclImdb and ``keras.utils.…_dataset_from_directory`` have such folders. A
file directly in the folder of a split has no label. :mod:`recordgen.formats.folder_names` decides
which folders are splits or labels. Files without the suffix of an image are skipped. The line of a
row is the file's position in sorted order.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from itertools import accumulate, filterfalse, islice
from typing import TYPE_CHECKING, NamedTuple

from recordgen import storage
from recordgen.core.dataset.splits import TRAIN, is_ml_use
from recordgen.core.dataset.vocabulary import NO_LABELS
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.errors import SourceError
from recordgen.formats import field_kinds, foreign_formats, hugging_face
from recordgen.formats.conll import names_sentences, tagged_files
from recordgen.formats.folder_layout import layout_that_reads, row_of_file
from recordgen.formats.folder_names import (
    ANNOTATIONS,
    PlacedFile,
    layout_of_classes,
    layout_of_names,
    layout_of_pairs,
    placed,
    refusal,
)
from recordgen.formats.folder_parts import HALF, MARK, MOST_PARTS, TEXTS, are_clips, are_parts
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import column_name, find_columns, labels_folders
from recordgen.formats.image_root import folder_of_images
from recordgen.formats.image_sizes import are_versions, header_in_file
from recordgen.formats.import_file import IMPORT_SUFFIXES, files_of_rows, names_images, stems_in
from recordgen.formats.listing import Listing, grouped
from recordgen.formats.mask_folders import masks_of_others, may_be_masks, of_same_numbers
from recordgen.formats.pictures import notes_about
from recordgen.formats.split_names import split_in_path
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import ImageClassification, TextClassification

if TYPE_CHECKING:
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import Files, ImportFile
    from recordgen.options import ConvertOptions

# Files that may describe an image each.
_OF_AN_IMAGE = ("", ".txt", ".xml", ".json")
# Files that may describe others, how many of them are read, and names of files in their text.
_DESCRIBING = (*field_kinds.known_words("ends_of_describing"), *IMPORT_SUFFIXES)
# Tables that are proposed. Other programs write tabs, too, which stop nothing that is read.
_TABLES = (*IMPORT_SUFFIXES, ".tsv")
_DOCUMENTS_READ = 32
_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(r"[\s,;|\"']+")
_LINES_READ = 100
# A path, a label and a box.
_MOST_FIELDS = 6
_FLAGS = frozenset({"-1", "0", "1"})
_SHOWN = 4

_TEXT = ".txt"
# Beside folders of texts, such a file may hold their labels.
_BESIDE_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".xml", ".yaml", ".yml")


# The key of the checked files in what a listing keeps, which is no name of a file.
_FILES = "/"


class ClassFiles(NamedTuple):
    """The files of a folder by label.

    Attributes:
        placed: in order, with their splits and labels.
        others: the files, and folders with ``/`` at their end, that are skipped.
        roles: what was understood about folders that are no classes.
    """

    placed: Sequence[PlacedFile]
    others: Sequence[str]
    roles: Mapping[str, str]

    @property
    def classes(self) -> Collection[str]:
        """The names of the classes."""
        return {item.label for item in self.placed if item.label is not None}


class _ClassFolders(Format):
    """Files of one kind in a folder for each class."""

    heading = "Folders"
    task: type[Task]

    def accepts(self, task: type[Task]) -> bool:
        return task.name == self.task.name

    def files(self, listing: Listing) -> ClassFiles:
        """Return the files of a folder. Raises: SourceError: they are not by label."""
        raise NotImplementedError

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        found = self._checked_files(listing)
        for note in notes_about(sorted(found.others), "files of other kinds were skipped"):
            adjusted.add_line(listing.root, 0, note.code, note.message)
        for line, item in enumerate(found.placed, start=1):
            yield row_of_file(listing, line, item, task, adjusted)

    def roles(self, files: Files) -> Sequence[tuple[str, str]]:
        return [role for file in files for role in self._checked_files(file.around).roles.items()]

    def _checked_files(self, listing: Listing) -> ClassFiles:
        """Return :meth:`files`, which are listed and checked once for detection and rows."""
        files: ClassFiles = listing.parsed(_FILES, lambda listing, _: self.files(listing))
        return files


class TextFolder(_ClassFolders):
    """Texts in files, in a folder for each class."""

    name = "text_folder"
    task = TextClassification
    is_decoded = True
    how_to_label = "put the texts of each class into a folder of its name, or write a CSV"

    def detect(self, listing: Listing) -> Evidence | None:
        if storage.is_http(listing.root) or listing.images:
            return None
        if any(names_sentences(it) or it.lower().endswith(_BESIDE_TEXTS) for it in listing.others):
            return None
        first = next((name for name in listing.others if _is_text(name)), "")
        if not first or foreign_formats.of_file(listing.head(first)):
            return None
        is_other = foreign_formats.of_folder(listing.others, listing.head, images=())
        if is_other or any(tagged_files(listing.at(first))):
            return None  # texts and their annotations, for example
        found = self.files(listing)
        if len(found.classes) < 2 or len(found.placed) < len(found.others):
            return None
        reason = f"{listing.root}: a folder of texts in {len(found.classes)} classes"
        return Evidence(reason, self.task.name)

    def files(self, listing: Listing) -> ClassFiles:
        inside = [*filter(_is_text, listing.others)]
        try:
            found, roles = placed(inside)
        except ValueError as exc:
            raise refusal(listing, str(exc), layout_of_classes(inside)) from None
        labelled = [item for item in found if item.label]
        _check_pairs(listing, labelled)
        files = _without_unlabelled(labelled, roles)
        others = {*listing.others} - {item.name for item in files}
        return ClassFiles(files, sorted(others), roles)


class ImageFolder(_ClassFolders):
    """``<split>/<label>/<file>``, or ``<label>/<file>``."""

    name = "folder"
    task = ImageClassification
    how_to_label = (
        "put the images of each class into a folder, take labels from names of files, such as "
        "--layout '{label}.{n:digits}.jpg', or write a CSV"
    )

    def detect(self, listing: Listing) -> Evidence | None:
        return Evidence(f"{listing.root}: a folder of images", self.task.name, is_weak=True)

    def check(self, files: Files, options: ConvertOptions) -> None:
        for file in files if len(files) == 1 and options.labels != NO_LABELS else ():
            found = self._checked_files(file.around)
            if not found.classes:
                _check_masks(file.around, _of_forms([item.name for item in found.placed]))
                _check_labels(file.around, [item.name for item in found.placed])

    def files(self, listing: Listing) -> ClassFiles:
        tree = listing.tree
        images, others = tree.images, [*tree.skipped, *tree.others]
        if layout := layout_of_pairs(images):
            reason = "the names differ between these masks and images"
            raise refusal(listing, reason, layout if may_be_masks(listing, layout) else "")
        _check_images(listing, images, others)
        found: list[PlacedFile] | None = None
        try:
            found, roles = placed(images)
            found = _without_unlabelled(found, roles)
        except ValueError as exc:
            problem = str(exc)
        _check_documents(listing, found)
        if found is None or any(item.label is not None for item in found):
            _check_masks(listing, _of_forms(images))
        if found is None:
            raise refusal(listing, problem, layout_of_classes(images))
        _check_classes(listing, found)
        roles |= dict.fromkeys(tree.datasets, "skipped, a converted dataset")
        return ClassFiles(found, [*others, *tree.datasets], roles)


def _without_unlabelled(files: Sequence[PlacedFile], roles: dict[str, str]) -> list[PlacedFile]:
    """Return files of which those in folders of unlabelled ones have no class.

    ``roles`` gets these folders.
    """
    found = []
    for item in files:
        if str(item.label).lower() in field_kinds.known_words("unlabelled"):
            roles[posixpath.dirname(item.name)] = "no label"
            item = item._replace(label=None)
        found.append(item)
    return found


def _check_images(listing: Listing, images: Sequence[str], others: Sequence[str]) -> None:
    """Check that a folder has images, and is in no format of another tool.

    Raises: SourceError, StorageError.
    """
    datasets = listing.tree.datasets
    rows = "" if images or "" in datasets else files_of_rows(listing.others)
    has_table = rows.endswith(IMPORT_SUFFIXES)
    names = [*listing.others, *images[:_LINES_READ]]
    found = foreign_formats.of_folder(names, listing.head, images=images)
    if found and not has_table:
        format_, evidence = found
        raise format_.error(listing.root, evidence)
    if images:
        return
    if datasets and not rows:
        what = f"there is no image, only a converted dataset in {datasets[0] or 'this folder'}"
        raise SourceError(f"{listing.root}: {what}; pass import files, or images by label")
    if not has_table and (sentences := [it for it in others if names_sentences(it.lower())]):
        reason = f"{sentences[0]} has no tags; name both, such as sentences.txt and labels.txt"
        raise refusal(listing, f"{reason}, or train_sentences.txt and train_labels.txt")
    depth = max((name.count("/") for name in others), default=0)
    deepest = [name for name in others if name.count("/") == depth]
    suffixes = {posixpath.splitext(name)[1].lower() for name in deepest}
    are_rows = has_table or not suffixes.isdisjoint(_BESIDE_TEXTS)
    are_alike = len(suffixes) < 2 or suffixes <= TEXTS
    named = layout_of_classes(deepest) if are_alike and not are_rows else ""
    layout, problem = layout_that_reads(listing, named)
    reason = "there is no image in this folder, and texts or videos need a layout or a CSV"
    source = storage.join(listing.root, rows) if rows and not layout else ""
    raise refusal(listing, f"{reason}{problem}", layout, source)


def _check_labels(listing: Listing, images: Sequence[str]) -> None:
    """Check that images have no labels in their names, and are no stacks of pages.

    Raises: NotUnderstoodError.
    """
    if layout := layout_of_names({*images}):
        raise refusal(listing, "no folder is a class; take labels from the names of files", layout)
    header = header_in_file(listing, images[0]) if images else None
    if header is not None and header.format == "TIFF" and (header.frames or 1) > 1:
        reason = f"{images[0]} has {header.frames} pages; save each page as an image of its own"
        raise refusal(listing, f"no folder is a class, and {reason}")


def _of_forms(images: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return images by their suffix, or else by the form of their names, if each has the same.

    ``1.jpg, 1.png, 2.jpg, 2.png``; ``1_rgb.png, 1_seg.png, 2_rgb.png, 2_seg.png``
    """
    ends = grouped(images, lambda name: posixpath.splitext(name)[1])
    stems = [{name.removesuffix(end) for name in some} for end, some in ends.items()]
    if len(stems) > 1 and all(len(each) * 2 > len(set().union(*stems)) for each in stems):
        return ends
    forms = {name: _DIGITS.sub("#", name) for name in images}
    return of_same_numbers(forms, lambda name: posixpath.splitext(name)[0])


def _check_masks(listing: Listing, kinds: Mapping[str, Sequence[str]], otherwise: str = "") -> None:
    """Check that no kind of images has few gray levels, as the masks of the others have.

    Raises: NotUnderstoodError.
    """
    if masks := masks_of_others(listing, kinds):
        others = [name for some in kinds.values() for name in some if name not in masks]
        reason = f"{masks[0]} and the like have few gray levels, as masks of the others have"
        raise refusal(listing, reason + otherwise, layout_of_pairs(others, masks))


def _check_classes(listing: Listing, files: Sequence[PlacedFile]) -> None:
    """Check that folders are several classes, and no pairs. Raises: NotUnderstoodError."""
    labels = {item.name: str(item.label) for item in files}
    folders, names = of_same_numbers(labels, _stem), [*labels]
    _check_masks(listing, folders, f"; if each folder is a class, {_confirming(names)}")
    classes = {item.label for item in files if item.label is not None}
    for name in filter(_is_table, listing.others):
        if labels_folders(listing.head(name), classes):
            reason = f"{name} has a label for each folder: write a line for each image there, with "
            reason += f"its label; or if each folder is a class, {_confirming(names)}"
            raise refusal(listing, reason)
    _check_pairs(listing, files, are_pairs=bool(folders) and are_versions(listing, folders))
    if len(classes) == 1:
        reason = f"{classes.pop()!r} is the only folder of a class, and one class is none"
        raise refusal(listing, reason, layout_of_names({*names}))


def _check_pairs(listing: Listing, files: Sequence[PlacedFile], *, are_pairs: bool = False) -> None:
    """Check that no file belongs to one of another folder. Raises: NotUnderstoodError."""
    folders: dict[str, dict[str, str]] = {}
    for item in files:
        if item.label is not None:
            suffix = posixpath.splitext(item.name)[1].lower()
            folders.setdefault(item.label, {})[MARK.sub("?", _stem(item.name))] = suffix
    paths = {posixpath.splitext(item.name)[0] for item in files}
    whole = {(posixpath.dirname(it), HALF.sub("?", posixpath.basename(it))) for it in paths}
    are_twice, have_halves = len(paths) * 4 < len(files) * 3, 1 < len(whole) * 2 <= len(paths)
    are_videos, are_recorded = are_clips(folders), _are_recordings(listing, files)
    is_certain = are_twice or are_videos or are_recorded
    if is_certain or are_pairs or have_halves or are_parts(folders):
        names = [item.name for item in files]
        may_be_classes = not is_certain and len(folders) > MOST_PARTS
        layout = layout_of_classes(names) if may_be_classes else ""
        shown = " and ".join(islice(folders, _SHOWN)) or "these files"
        reason = f"{shown} look like pairs or parts; if"
        raise refusal(listing, f"{reason} each folder is a class, {_confirming(names)}", layout)


def _are_recordings(listing: Listing, files: Sequence[PlacedFile]) -> bool:
    """Return whether folders hold files of the same names, several of which are documents.

    ``boat/1.ppm, boat/H_1_2, boat/H_1_3, wall/1.ppm, wall/H_1_2, wall/H_1_3``; one document is
    enough if names repeat that of their folder: ``a7/a7_B1.tif, a7/a7.json, b2/b2_B1.tif, …``
    """
    items = {item.name for item in files if item.label is not None}
    folders = {*map(posixpath.dirname, items)}
    beside = (it for it in listing.others if posixpath.splitext(it)[1].lower() in _OF_AN_IMAGE)
    documents = [it for it in beside if posixpath.dirname(it) in folders and it not in items]
    files_of = [*items, *documents]
    inside = grouped(files_of, posixpath.dirname).values()
    are_alike = len({frozenset(map(_without_folder, some)) for some in inside}) == 1
    are_ids = all(any(map(str.isdecimal, folder)) for folder in folders)
    are_named = are_ids and all(_without_folder(it) != posixpath.basename(it) for it in files_of)
    return are_alike and len(documents) + are_named > len(folders) > 1


def _without_folder(name: str) -> str:
    """Return the name of a file without that of its folder: ``a/a7/a7_B1.tif`` → ``_B1.tif``."""
    folder, base = posixpath.split(name)
    return base.replace(posixpath.basename(folder), "")


def _confirming(names: Sequence[str]) -> str:
    """Return which option says that the folders of files are classes."""
    layout = layout_of_classes(names)
    return f"--layout '{layout}' says so" if layout else "a --layout with {label} says so"


def _check_documents(listing: Listing, files: Sequence[PlacedFile] | None) -> None:
    """Check that no file beside images names them, as annotations and lists of splits do.

    If no folders are classes, each import file may hold the labels.

    Args:
        listing: the folder.
        files: its images with their classes; None if their folders are not understood.

    Raises: NotUnderstoodError, StorageError.
    """
    images, others = listing.tree.images, listing.tree.others
    if not others:
        return
    classes = layout_of_classes(images)
    labels = {item.label for item in files or ()} - {None}
    has_classes = bool(classes) and (files is None or len(labels) > 1)
    stems = {*map(_stem, images)}
    names = stems.union(map(posixpath.basename, images))  # a.json or a.jpg.json
    twins = [name for name in others if _stem(name) in names]
    folders = {posixpath.dirname(name) for name in images}
    above = {place for folder in folders for place in _places(folder)}
    ends = (*_DESCRIBING, *_OF_AN_IMAGE[1:], ".mat", ".npy")
    documents = [it for it in others if it.lower().endswith(ends)]
    annotations = {it for it in documents if _is_annotation(posixpath.dirname(it), above)}
    documents = [it for it in documents if it in annotations or it.lower().endswith(_DESCRIBING)]
    documents = sorted(documents, key=lambda name: (name.count("/"), name))[:_DOCUMENTS_READ]
    named = {name: stems_in(listing.head(name), stems) for name in documents}
    are_several = len(frozenset[str]().union(*named.values())) > 1
    inner = ["/".join(it.split("/")[-2:]) for it in images[:_LINES_READ]]
    paths = [it.encode("utf-8", "surrogateescape") for it in inner]
    found = [
        name
        for name, some in named.items()
        if name in annotations
        or (some and (are_several or sum(it in listing.head(name) for it in paths) > 1))
        or (_is_table(name) and (not has_classes or names_images(listing.head(name), images)))
    ]
    layout, problem, source = "", "", ("", "")
    if len(twins) * 2 >= len(images) and (len(twins) > 1 or len(images) == 1):
        found = twins
        described = [it for it in twins if posixpath.splitext(it)[1].lower() in _OF_AN_IMAGE]
        pairs = layout_of_pairs(images, described) if described else ""
        layout, problem = layout_that_reads(listing, pairs)
    elif found:
        inside = {_stem(item.name) for item in files or () if item.label}
        labelled = inside if has_classes else set[str]()
        tables = {name for name in found if name.lower().endswith(_TABLES)}
        labelling = {name for name in tables if not inside or named[name] & inside}
        if has_classes:
            splits = {_stem(item.name): item.split for item in files or ()}
            whole = {it for it in labelling if {*map(splits.get, named[it])} >= {*splits.values()}}
            labelling = {name for name in whole if _names_labels(listing.head(name))}
        sources = {
            name: named[name]
            for name in found
            if (name in labelling and "submission" not in field_kinds.words_of(name))
            or (_is_list(listing, name, stems) and named[name] - labelled)
        }
        are_lists = all(it in tables or {*map(len, _rows_of(listing, it))} == {1} for it in found)
        source = _likely_source(listing, sources)
        if not source[0] and are_lists and annotations.isdisjoint(found):
            layout = classes or layout_of_names({*images})
            if "{split}" not in layout and len({*map(split_in_path, found)} - {None}) > 1:
                layout = ""  # it would lose the splits of these files
    else:
        return
    if classes:
        problem += f"; if folders are classes, --layout '{classes}' reads them alone"
    elif not (layout or problem or source[0]):
        problem = "; pass the one with the labels instead of the folder"
    shown = ", ".join(found[:_SHOWN])
    if lacking := [name for name in found if posixpath.basename(name) in hugging_face.NAMES]:
        problem = f"; {lacking[0]} has no column {hugging_face.FILE}{problem}"
    reason = f"these files may hold labels, boxes or splits of the images: {shown}{problem}"
    raise refusal(listing, reason, layout, *source)


def _names_labels(head: bytes) -> bool:
    """Return whether a table has a column of labels that do not only number the classes."""
    lines = head.decode("utf-8", "replace").splitlines()[:_LINES_READ]
    header, *rows = (re.split("[,;\t]", line) for line in lines or [""])
    single = {name for name in map(column_name, header) if field_kinds.have_words("labels", [name])}
    places = find_columns(header, LABEL_COLUMNS | single)
    labels = [field_kinds.field_at(row, at) for at in places for row in rows]
    return not all(map(field_kinds.NUMBER.fullmatch, labels))


def _likely_source(listing: Listing, sources: Mapping[str, Set[str]]) -> tuple[str, str]:
    """Return the file, or the pattern of files, that is likely to hold labels, and its image root.

    ``sources``: the images that each file names, as :func:`stems_in`.
    """
    every = frozenset[str]().union(*sources.values())
    ranks = {
        it: (bool(some), some == every, split_in_path(it) == TRAIN, len(some))
        for it, some in sources.items()
    }
    best = max(sources, key=ranks.__getitem__, default="")
    base = posixpath.basename(best)
    same = [each for each in sources if posixpath.basename(each) == base]
    if len(same) > 1 and all(each.count("/") == 1 for each in same):
        return storage.join(listing.root, "*", base), ""  # each names the images of its own folder
    alike = [it for it in sources if ranks[it] == ranks[best]]
    heads = {(posixpath.dirname(it), listing.head(it)) for it in alike}  # of copies, one
    # Files with the same columns, such as one for each class, describe the same images.
    # Of several lists without columns, nothing says which has the labels.
    firsts = {head.partition(b"\n")[0] if best.endswith(_TABLES) else b"" for _, head in heads}
    are_several = len(firsts) < len(heads)
    if not best or not sources[best] or are_several:
        return "", ""
    source = storage.join(listing.root, best)
    rows = listing.head(best).decode("utf-8", "replace").splitlines()[:_LINES_READ]
    tokens = [it for row in rows for it in _SIGNS.split(row) if _stem(it) in sources[best]]
    root = folder_of_images(tokens, source)
    root = root or folder_of_images(tokens, storage.join(listing.root, base))
    pattern = files_of_rows(listing.others)
    said = [name for name, some in sources.items() if some]
    is_whole = said == [name for name in listing.others if fnmatchcase(name, pattern)]
    firsts = {listing.head(name).partition(b"\n")[0] for name in said}
    are_alike = len(firsts) == 1 or all(stems_in(first, every) for first in firsts)  # no headers
    if is_whole and are_alike and sources[best] != every:
        source = storage.join(listing.root, pattern)  # a file for each split
    return source, root


def _is_annotation(folder: str, with_images: Set[str]) -> bool:
    """Return whether a folder is one of annotations, or in one, without images anywhere below."""
    places = [place for place in _places(folder) if place not in with_images]
    words = (filter(str.isalpha, field_kinds.words_of(posixpath.basename(it))) for it in places)
    own = ({*filterfalse(is_ml_use, each)} for each in words)
    return any(each and each <= ANNOTATIONS for each in own)


def _places(folder: str) -> Iterable[str]:
    """Return a folder and those above it: ``a/b`` → a, a/b."""
    return accumulate(folder.split("/"), posixpath.join)


def _is_text(name: str) -> bool:
    """Return whether a file in a folder is a text."""
    return "/" in name and name.lower().endswith(_TEXT)


def _is_table(name: str) -> bool:
    return name.lower().endswith(IMPORT_SUFFIXES)


def _is_list(listing: Listing, name: str, stems: Set[str]) -> bool:
    """Return whether each line of a text has the path of an image, a label, and perhaps a box.

    Flags, as VOC's lists of a class have them, are no labels.
    """
    rows = _rows_of(listing, name)
    are_paths = (field_kinds.IMAGE_SUFFIX.search(row[0]) or row[0] in stems for row in rows)
    if not all(are_paths) or not all(1 < len(row) <= _MOST_FIELDS for row in rows):
        return False
    return not _FLAGS.issuperset(row[1] for row in rows)


def _rows_of(listing: Listing, name: str) -> Sequence[Sequence[str]]:
    """Return the words in the first lines of a text; none of another file."""
    is_text = name.lower().endswith(_TEXT)
    lines = listing.head(name).decode("utf-8", "replace").splitlines() if is_text else ()
    return [_SIGNS.split(line.strip()) for line in lines[:_LINES_READ]]


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]
