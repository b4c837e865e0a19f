"""A folder whose paths the user describes, with the option ``layout``.

    {split}/{label}/{name}.jpg                   train/cat/1.jpg  →  split train, label cat
    {label}/{name}                               images, texts and videos alike, by their suffixes
    images/{name}.jpg masks/{name}_mask.png      images with masks
    JPEGImages/{name}.jpg labels/{name}.txt      YOLO's, KITTI's or DOTA's lines
    images/{name}.jpg documents/{name}.xml       VOC's .xml, LabelMe's .json

:mod:`recordgen.tables.path_layout` has the patterns. Files that no pattern matches are counted
and named, never read.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

from recordgen import tasks
from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError, check_uri
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, PayloadError, SourceError, UsageError
from recordgen.formats import dota, labelme, pascal_voc, pictures, yolo
from recordgen.formats.field_kinds import IMAGE_SUFFIX, NUMBER, VIDEO_SUFFIX, known_words
from recordgen.formats.folder_names import PlacedFile, refusal
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given
from recordgen.formats.import_file import Files, ImportFile
from recordgen.formats.listing import Listing
from recordgen.formats.mask_folders import MaskFolders, colours_of, mask_classes
from recordgen.formats.yolo import CLASS_FILES, configs_in, is_class_file, read_config, read_yaml
from recordgen.options import AUTO, ConvertOptions
from recordgen.registry import OF_LAYOUTS
from recordgen.rejects import Reject, RejectCode
from recordgen.subjects.picture import Picture
from recordgen.tables.path_layout import LABEL, SPLIT, MatchedFile, Matches, PathLayout
from recordgen.tasks.texts.task import TextContent, stored

_SHOWN = 8
_PROBED = 3

#: Makes the picture of a line, the second file of an image, and the image.
_Read: TypeAlias = Callable[[int, str, str], "Picture | pictures.Problem | None"]


class _Second(NamedTuple):
    """How the second files are read: ``format`` makes rows of the pictures of ``read``."""

    format: pictures.PictureFormat
    read: _Read

    def picture(self, line: int, file: MatchedFile) -> Picture | pictures.Problem:
        """Return the picture of a file with its second file, or the problem with it."""
        missing = f"{file.others[0]} has no labels of an image"
        item = self.read(line, file.others[0], file.path)
        return item or pictures.Problem(line, missing, file.path)

    def row(
        self, listing: Listing, line: int, file: MatchedFile, task: Task, adjusted: Adjustments
    ) -> Row | Reject:
        """Return the row of a file with its second file, or its reject."""
        item = self.picture(line, file)
        if isinstance(item, pictures.Problem):
            return item.reject(listing.root)
        labels = [file.words[LABEL]] if LABEL in file.words else item.labels
        item = item._replace(uri=file.path, labels=labels, split=None)
        return self.format.row(item, listing, listing.root, "", task, adjusted)


class _Kind(NamedTuple):
    """What the files of a layout are.

    Attributes:
        tasks: the possible tasks; the first is the one without ``--task``.
        second: how the second files are read; None if there are none.
        classes: the declared classes.
    """

    tasks: Sequence[str]
    second: _Second | None = None
    classes: Sequence[str] = ()


#: What describes an image in a document of its own, by its suffix: the format, and its reader.
_DOCUMENTS = {
    ".xml": (pascal_voc.PascalVoc, pascal_voc.picture_of),
    ".json": (labelme.LabelMe, labelme.picture_of),
}

# How a document without a suffix begins.
_BEGINS = {b"<annotation": ".xml", b"{": ".json"}

_IMAGES = _Kind((tasks.ImageClassification.name, tasks.ImageMultiLabel.name))
_VIDEOS = _Kind((tasks.VideoClassification.name,))
_TEXTS = _Kind((tasks.TextClassification.name, tasks.TextMultiLabel.name))


class FolderLayout(Format):
    """A folder whose paths the option ``layout`` describes."""

    name = OF_LAYOUTS
    is_decoded = True
    heading = "Folders"
    how_to_label = "write {label} in the layout"

    def detect(self, listing: Listing) -> Evidence | None:
        return None  # only the option says it

    def accepts(self, task: type[Task]) -> bool:
        formats = (MaskFolders(), yolo.Yolo(), pascal_voc.PascalVoc(), labelme.LabelMe())
        plain = (*_IMAGES.tasks, *_VIDEOS.tasks, *_TEXTS.tasks)
        return task.name in plain or any(each.accepts(task) for each in formats)

    def evidence(self, listing: Listing, options: ConvertOptions) -> Evidence:
        """Return what a layout finds in a folder.

        Raises:
            UsageError: the source is no folder, or the task is none of its files.
            NotUnderstoodError: the layout does not fit the folder.
        """
        if listing.only:
            raise UsageError(f"layout describes a folder (got {listing.root}{listing.only})")
        kind = _kind(listing, listing.parsed(options.layout, _matches))
        if options.task not in (AUTO, *kind.tasks):
            known = " or ".join(kind.tasks)
            raise UsageError(f"{listing.root}: this layout is {known} (got {options.task})")
        return Evidence(f"the layout {options.layout}", kind.tasks[0], classes=kind.classes)

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        matches: Matches = listing.parsed(file.layout, _matches)
        kind = _kind(listing, matches)
        lost = [] if kind.second is None else [it.path for it in matches.files if not it.others]
        notes = [
            *pictures.notes_about(matches.unused, "files match no pattern, and were skipped"),
            *pictures.notes_about(lost, "files lack that of the second pattern, and were skipped"),
        ]
        for note in notes:
            adjusted.add_line(listing.root, 0, note.code, note.message)
        for line, found in enumerate(matches.files, start=1):
            words, label = found.words, found.words.get(LABEL)
            label = None if str(label).lower() in known_words("unlabelled") else label
            split = parse_ml_use(words.get(SPLIT, ""))
            if kind.second is None:
                placed = PlacedFile(found.path, split, label)
                row = row_of_file(listing, line, placed, task, adjusted)
            elif found.others:
                row = kind.second.row(listing, line, found, task, adjusted)
            else:
                continue
            if isinstance(row, Row):
                row = row._replace(split=split, group=words.get(given.group))
            yield row
        for line, path in enumerate(matches.alone, start=len(matches.files) + 1):
            message = f"no file of the first pattern belongs to {path}"
            yield Reject(listing.root, line, path, RejectCode.MISSING_FILE.value, message)

    def roles(self, files: Files) -> Sequence[tuple[str, str]]:
        """Return how many files each pattern matches, and what is skipped."""
        roles = []
        for file in files:
            layout = PathLayout.of(file.layout)
            matches: Matches = file.around.parsed(file.layout, _matches)
            seconds = {path for each in matches.files for path in each.others}
            counts = [len(matches.files), len(seconds) + len(matches.alone)]
            patterns = zip(filter(None, (layout.first, layout.second)), counts, strict=False)
            roles += [(pattern.text, f"{count:,} files") for pattern, count in patterns]
            suffixes = Counter(posixpath.splitext(name)[1] for name in matches.unused)
            most = suffixes.most_common(_SHOWN)
            roles += [(f"*{suffix}", f"skipped, {count:,} files") for suffix, count in most]
        return roles


def _matches(listing: Listing, text: str) -> Matches:
    """Return the files of a layout. Raises: NotUnderstoodError: it does not fit the folder."""
    layout = PathLayout.of(text)
    try:
        names = listing.names
        if layout.second is not None:  # classes.txt is no file of labels
            names = [name for name in names if not is_class_file(name)]
        matches = layout.matches(names)
    except ValueError as exc:
        raise refusal(listing, f"{exc}") from None
    if not matches.files:
        raise refusal(listing, f"no file matches {layout.first.text}")
    if layout.second is not None and not any(each.others for each in matches.files):
        words, first = ", ".join(f"{{{word}}}" for word in layout.shared), matches.files[0].path
        raise refusal(listing, f"no file of {layout.second.text} has the {words} of {first}")
    several = next((each for each in matches.files if len(each.others) > 1), None)
    if several is not None:
        some = " and ".join(several.others[:2])
        raise refusal(listing, f"{several.path} has several second files, such as {some}")
    return matches


def _kind(listing: Listing, matches: Matches) -> _Kind:
    """Return what the files are. Raises: NotUnderstoodError, SourceError: it cannot be read."""
    plain = _plain_kind(listing, [each.path for each in matches.files])
    seconds = [path for each in matches.files for path in each.others]
    if not seconds:
        return plain
    suffixes = {posixpath.splitext(path)[1].lower() for path in seconds}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    if not suffix:
        head = listing.head(seconds[0]).lstrip()
        suffix = next((end for begin, end in _BEGINS.items() if head.startswith(begin)), "")
    if plain is _IMAGES and all(map(IMAGE_SUFFIX.search, seconds)):
        return _of_masks(listing, seconds)
    if plain is _IMAGES and suffix == ".txt":
        return _of_lines(listing, seconds)
    if plain is _IMAGES and suffix in _DOCUMENTS:
        format_, picture_of = _DOCUMENTS[suffix]
        return _Kind(format_.tasks, _Second(format_(), partial(picture_of, listing)))
    known = "a mask, a .txt of YOLO, KITTI or DOTA, an .xml of VOC or a .json of LabelMe"
    raise refusal(listing, f"{seconds[0]} is not read: expected {known}")


def _plain_kind(listing: Listing, paths: Sequence[str]) -> _Kind:
    """Return what the first files are. Raises: NotUnderstoodError: they are of several kinds."""
    kinds = {_kind_of_file(path): path for path in reversed(paths)}
    if len(kinds) > 1:
        some = " and ".join(kinds.values())
        raise refusal(listing, f"{some} are of several kinds; write their suffix in the layout")
    [kind] = kinds
    if kind is _TEXTS and b"\0" in listing.head(paths[0]):
        raise refusal(listing, f"{paths[0]} is not read: it is no image, video or text")
    return kind


def _kind_of_file(path: str) -> _Kind:
    """Return the kind of a file by its suffix: an image, a video, or else a text."""
    if IMAGE_SUFFIX.search(path):
        return _IMAGES
    return _VIDEOS if VIDEO_SUFFIX.search(path) else _TEXTS


def _of_masks(listing: Listing, masks: Sequence[str]) -> _Kind:
    colours, notes = colours_of(listing, masks)

    def read(line: int, mask: str, image: str) -> Picture:
        return Picture(line, image, notes=notes, mask=mask, colours=colours)

    return _Kind(MaskFolders.tasks, _Second(MaskFolders(), read), mask_classes(listing).names)


def _of_lines(listing: Listing, seconds: Sequence[str]) -> _Kind:
    """Return the kind of texts with a line for each object: KITTI's, DOTA's, or else YOLO's.

    Raises: NotUnderstoodError: no file names the classes of YOLO's numbers.
    """
    lines = (line.split() for name in seconds[:_PROBED] for _, line in listing.lines(name))
    first = next((line for line in lines if not line[0].startswith(pictures.HEADERS)), [])
    for parse in (dota.object_of_kitti, dota.object_of_dota):
        with suppress(ValueError):
            parse(first)
            read = partial(pictures.picture_of_lines, listing, parse)
            return _Kind(dota.Dota.tasks, _Second(dota.Dota(), read))
    is_yolo = len(first) > 4 and first[0].isdecimal() and all(map(NUMBER.fullmatch, first))
    if first and not is_yolo:
        raise refusal(listing, f"{seconds[0]} is not read: it has no lines of YOLO, KITTI or DOTA")
    configs = [*configs_in(listing), *listing.candidates(*CLASS_FILES)]
    if not configs:
        for name in listing.candidates("data.yaml", "data.yml"):
            read_yaml(listing, name)  # it may say why it was not understood
        remedy = "add a classes.txt with a name in each line"
        raise refusal(
            listing, f"{seconds[0]} has YOLO's numbers of classes without names; {remedy}"
        )
    config = read_config(listing, configs[0])
    parse_object = partial(yolo.parse_object, config=config)
    read = partial(pictures.picture_of_lines, listing, parse_object)
    return _Kind(yolo.Yolo.tasks, _Second(yolo.Yolo(), read), config.classes)


def layout_that_reads(listing: Listing, layout: str) -> tuple[str, str]:
    """Return a layout; or "", and why it does not read its first files, as the end of a message."""
    if not layout:
        return "", ""
    try:
        matches = _matches(listing, layout)
        kind = _kind(listing, matches)
        pairs = (it for it in matches.files if it.others)
        item = None if kind.second is None else kind.second.picture(1, next(pairs))
    except NotUnderstoodError as exc:
        return "", f"; {exc.reason.removeprefix(f'{listing.root}: ')}"
    except SourceError as exc:
        return "", f"; {exc}"
    return ("", f"; {item.message}") if isinstance(item, pictures.Problem) else (layout, "")


def row_of_file(
    listing: Listing, line: int, file: PlacedFile, task: Task, adjusted: Adjustments
) -> Row | Reject:
    """Return the row of a file whose path says everything, or its reject."""
    path, split, label = file
    try:
        said = task.from_fields([label] if label else [], adjusted)
        uri = check_uri(path)
        content = stored(uri, TextContent.decode(said).said) if task.kind == "text" else (uri, said)
        addresses = pictures.in_addresses([listing.payload(path)])
    except PayloadError as exc:
        return Reject(listing.root, line, path, exc.code, exc.message)
    except AnnotationError as exc:
        return exc.reject(listing.root, line, path)
    return Row(listing.root, line, split, *content, addresses=addresses)
