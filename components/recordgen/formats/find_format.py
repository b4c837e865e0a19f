"""The format of a source: the only one that finds evidence of itself.

    photos/             folder (nothing but its name), yolo (data.yaml names 2 classes)  →  yolo
    photos/             yolo (data.yaml …), coco (_annotations.coco.json …)  →  UsageError

Evidence in a file has precedence over a name. If two formats find evidence, or
an import file beside the documents of one names their images, nothing is guessed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from recordgen import storage
from recordgen.core.dataset.manifest import COPY_FILE, DATASET_FILE, EXAMPLES
from recordgen.core.dataset.splits import TRAIN
from recordgen.core.task.annotation import AnnotationError, check_text, printable
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats import import_file
from recordgen.formats.archives import is_archive
from recordgen.formats.format import Evidence, Format
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile, Samples
from recordgen.formats.json_values import items, json_value, mapping, text
from recordgen.formats.listing import Listing, dataset_of
from recordgen.formats.split_names import split_in_name
from recordgen.options import AUTO, ConvertOptions
from recordgen.registry import DOCUMENTS, FORMATS
from recordgen.tables.columns import Schema, Table
from recordgen.tables.path_layout import PathLayout
from recordgen.tables.roles import TABLE_ROLES
from recordgen.tasks import TASKS

# A copy's description of itself has the names of all classes.
_COPY_BYTES = 16 << 20

# What the names of lists of splits end with.
_LISTS = (".txt", ".lst", ".tsv")

# What the names of the files of Hugging Face's datasets end with.
_TABLES = (".parquet", ".arrow")

# The format of the files whose columns or features hold images, if options name these.
_OF_COLUMNS = "named_records"

# What checks the options that outputs and copies of them say.
_CHECKED = {"layout": PathLayout.of, "schema": Schema.from_json, "table": Table.from_json}


class Found(NamedTuple):
    """The format of a source.

    Attributes:
        evidence: what shows the format, of the first file, with the declared classes of all files.
        options: the given ones, with those that outputs and copies of them say.
        are_own: the sources are outputs and copies of them, whose names say splits.
    """

    format: Format
    files: Sequence[ImportFile]
    evidence: Evidence
    options: ConvertOptions
    are_own: bool


def find_format(files: Sequence[ImportFile], options: ConvertOptions, samples: Samples) -> Found:
    """Return the format of import files and folders.

    Raises:
        UsageError: several formats are possible, or the files have different formats.
        SourceError: a file is unreadable, or has not the given format.
        StorageError: storage failed.
    """
    access = options.access if options.confined else None
    files = [_opened(file, options, samples) for file in files]
    listings = [samples.listing(file.path, access) for file in files]
    said = [*map(_said, listings)]
    options = _with_own(said, options)
    files = [file._replace(layout=options.layout) for file in files]
    found = [_format_of(*each, options) for each in zip(files, listings, said, strict=True)]
    places = (options.image_root, *(each.root for each in listings))
    is_local = all(each.only for each in listings) and all(map(storage.is_local, places))
    if options.image_root and is_local and not found[0][0].has_columns:
        # The images that documents name are below the folder of both.
        listings = [samples.listing(file.path, access, options.image_root) for file in files]
        options = replace(options, image_root="")
        found = [_format_of(*each, options) for each in zip(files, listings, said, strict=True)]
    pairs = [*zip(files, found, strict=True)]
    names = {each.name: file.path for file, (each, _) in reversed(pairs)}  # the first of each
    if len(names) > 1:
        read = " and ".join(f"{path} as {name}" for name, path in reversed(names.items()))
        raise UsageError(f"files must have the same format (got {read}); convert them separately")
    format_, evidence = found[0]
    documents = [
        item
        for file, listing, (_, each) in zip(files, listings, found, strict=True)
        for item in _documents(listing, file, each)
    ]
    classes = dict.fromkeys(name for _, each in found for name in each.classes)
    for name in classes:  # which dataset.json and text files hold
        try:
            check_text(name)
        except AnnotationError as exc:
            raise SourceError(f"{files[0].path}: the class {printable(name)!s:.80}: {exc}") from exc
    evidence = evidence._replace(classes=tuple(classes))
    return Found(format_, documents, evidence, options, are_own=all(said))


def _said(listing: Listing) -> Mapping[str, Any]:
    """Return what an output, or a copy of one, says of its dataset; empty for other sources.

    Raises:
        SourceError: a copy says it in another form.
        UsageError: it is an output of ``recordgen.write``.
    """
    is_output = not listing.only and "" in listing.tree.datasets
    dataset = dataset_of(listing) if is_output else None
    if dataset is not None and dataset.task == EXAMPLES:
        raise UsageError(
            f"{listing.root}: recordgen.read or recordgen.source reads what recordgen.write wrote"
        )
    path = storage.join(listing.root, COPY_FILE if dataset is None else DATASET_FILE)
    is_whole = listing.only in ("", "import.csv") and not storage.is_http(path)
    if dataset is None and not (is_whole and storage.is_file(path)):
        return {}
    try:
        if dataset is None:
            listing.check_link(COPY_FILE)
            copied = mapping(json_value(listing.read(COPY_FILE, _COPY_BYTES)), COPY_FILE)
        else:
            copied = dataset.description
        labels = [text(label, "a label") for label in items(copied.get("labels"), "labels")]
        points = mapping(copied.get("keypoints", {}), "keypoints")
        names = [text(name, "a keypoint") for name in items(points.get("names"), "names")]
        options = mapping(copied.get("options", {}), "options")
        for name, value in options.items():
            _CHECKED[name](text(value, name))
        if sorted(items(points.get("flip_idx"), "flip_idx")) != [*range(len(names))]:
            raise ValueError(f"keypoints need a place for each (got {points!r:.80})")
    except (LookupError, TypeError, ValueError, UsageError) as exc:
        raise SourceError(f"{path}: not what Recordgen writes: {exc}") from exc
    if dataset is None and not copied.get("finished", True):
        remedy = "the same recordgen export finishes it"
        raise SourceError(f"{path}: this copy of a dataset was interrupted; {remedy}")
    task = str(copied.get("task", ""))
    return {"task": task, "labels": labels, "keypoints": points, "options": options}


def _with_own(said: Sequence[Mapping[str, Any]], options: ConvertOptions) -> ConvertOptions:
    """Return options with those that all sources say alike, unless given ones say how to read."""
    first = said[0].get("options", {})
    is_open = options.task in (AUTO, said[0].get("task")) and options.format == AUTO
    is_open &= not (options.schema or options.layout or options.columns.roles)
    is_same = all(each.get("options", {}) == first for each in said)
    return replace(options, **first) if first and is_open and is_same else options


def _opened(file: ImportFile, options: ConvertOptions, samples: Samples) -> ImportFile:
    """Return a ZIP or tar archive as a folder, unless a format reads the archive itself."""
    if not is_archive(file.path):
        return file
    if options.layout:
        return file._replace(path=f"{file.path}/", bytes=None)
    listing = samples.listing(file.path)
    formats = _possible(listing) if options.format == AUTO else [FORMATS[options.format]()]
    evidence = (found.detect(listing) for found in formats)
    is_read = any(item is not None and not item.is_weak for item in evidence)
    return file if is_read else file._replace(path=f"{file.path}/", bytes=None)


def _possible(listing: Listing) -> list[Format]:
    """Return the formats that documents with such a name may have."""
    name = listing.only.lower()
    names = (each for each in FORMATS if not name or name.endswith(DOCUMENTS.get(each, "")))
    return [FORMATS[each]() for each in names]


def _format_of(
    file: ImportFile, listing: Listing, said: Mapping[str, Any], options: ConvertOptions
) -> tuple[Format, Evidence]:
    """Return the format of a file, as far as options and an output's own words leave it open.

    Raises: as :func:`find_format`.
    """
    format_, evidence = _found_in(listing, file.path, options)
    if said:
        evidence = evidence._replace(
            task=evidence.task or (said["task"] if said["task"] in TASKS else ""),
            classes=evidence.classes or said["labels"],
            keypoints=evidence.keypoints or said["keypoints"] or None,
        )
    if options.confined:
        from recordgen.formats.pictures import PictureFormat  # rows of lines do not need it

        # Labels become a part of the dataset or of messages.
        for name in listing.others if isinstance(format_, PictureFormat) else ():
            listing.check_link(name)
    return format_, evidence


def _found_in(listing: Listing, path: str, options: ConvertOptions) -> tuple[Format, Evidence]:
    if options.layout:
        from recordgen.formats.folder_layout import FolderLayout  # most sources have none

        return FolderLayout(), FolderLayout().evidence(listing, options)
    given = Given.of(options)
    if options.format != AUTO:
        format_: Format = FORMATS[options.format]()
        if format_.has_roles and given.roles:
            format_ = FORMATS[_OF_COLUMNS]()
        if options.task != AUTO:
            check_task(format_, options.task)
        if listing.only and DOCUMENTS.get(format_.name) == ():  # it reads folders
            return format_, _without_evidence(format_, path)
        return format_, format_.detect_given(listing, given) or _without_evidence(format_, path)
    formats = _possible(listing)
    if options.columns.roles:  # `--columns` needs a format with columns
        if options.columns.roles.keys() & {"path", "text", *TABLE_ROLES}:
            names = [_OF_COLUMNS if it.has_roles else it.name for it in formats]
            formats = [FORMATS[name]() for name in dict.fromkeys(names)]
        if listing.only:
            formats = [it for it in formats if it.has_columns or it.has_roles]
    if given.are_declared:  # others may stop at a column that only the schema explains
        own = [it for it in formats if it.accepts(TASKS[options.task])]
        formats = own if any(it.detect_given(listing, given) for it in own) else formats
    evidence = ((item, item.detect_given(listing, given)) for item in formats)
    known = [(item, found) for item, found in evidence if found is not None]
    certain = [item for item in known if not item[1].is_weak]
    known = certain or known
    if options.task != AUTO:
        # The task rules formats out; the error about a task without any comes later.
        known = [item for item in known if item[0].accepts(TASKS[options.task])] or known
    if certain and len(known) > 1:
        shown = "; ".join(f"{item.name}: {found.reason}" for item, found in known)
        choices = " or ".join(
            f"--format {item.name}" + f" for {found.task}" * bool(found.task)
            for item, found in known
        )
        what = f"the source may have more than one format ({shown}); choose {choices}"
        advice = {"format": known[0][0].name}
        raise NotUnderstoodError(f"{path}: {what}, or pass the document itself", options=advice)
    if certain and not listing.only:
        _check_import_files(listing, *known[0])
        _check_configurations(listing, *known[0])
    return known[0]


def _check_configurations(listing: Listing, format_: Format, evidence: Evidence) -> None:
    """Check that tables are one dataset: only one folder has a split train of its own.

    Raises: NotUnderstoodError: Hugging Face's configurations of a dataset have a folder each.
    """
    tables = (name for name in evidence.documents if name.endswith(_TABLES))
    train = (name for name in tables if split_in_name(posixpath.basename(name)) == TRAIN)
    folders = sorted({*map(posixpath.dirname, train)})
    if len(folders) > 1:
        what = f"{' and '.join(folders[:2])} have a split {TRAIN} each, and may be datasets"
        remedy = f"pass one of them, or --format {format_.name} for all of them"
        raise NotUnderstoodError(f"{listing.root}: {what}; {remedy}")


def _check_import_files(listing: Listing, format_: Format, evidence: Evidence) -> None:
    """Check that no file beside documents has labels or splits of the same images, too.

    Raises: NotUnderstoodError: one names an image; what it says would be lost.
    """
    has_own = any(format_.own_lists in name for name in listing.others if format_.own_lists)
    for name in listing.others:
        is_list = not has_own and _is_list(name)
        is_other = is_list or name.lower().endswith(import_file.IMPORT_SUFFIXES)
        if name in evidence.documents or not is_other:
            continue
        head = listing.head(name)
        if import_file.names_images(head, listing.images) or (
            is_list and _lists_images(head, listing)
        ):
            pairs = _lists_of_pairs(listing, name) if is_list else ""
            what = f"{name} names images, too, and the format {format_.name} ignores it"
            reason = f"{listing.root}: {what} ({evidence.reason}); or pass that file"
            advice = {} if pairs else {"format": format_.name}
            raise NotUnderstoodError(reason, options=advice, source=pairs)


def _is_list(name: str) -> bool:
    """Return whether the name of a text says that it lists the files of a split."""
    base = posixpath.basename(name)
    return base.lower().endswith(_LISTS) and split_in_name(base) is not None


def _lists_images(head: bytes, listing: Listing) -> bool:
    """Return whether most lines of a text begin with the name of an image, or of its folder."""
    parts = {part for image in listing.images for part in posixpath.splitext(image)[0].split("/")}
    first = [line.split()[0] for line in head.splitlines() if line.strip()]
    return sum(bool(import_file.stems_in(word, parts)) for word in first) * 2 > len(first)


def _lists_of_pairs(listing: Listing, name: str) -> str:
    """Return the pattern of lists whose lines have an image and its mask; empty for others.

    ``train_list.txt`` and ``val_list.txt``, with lines such as ``1.jpg 1.png``  →  ``*.txt``
    """
    first = listing.head(name).decode("utf-8", "replace").split("\n")[0].split()
    pattern = import_file.files_of_rows(listing.others)
    lists = [each for each in listing.others if fnmatchcase(each, pattern)]
    are_pairs = len(first) == 2 and {*listing.images}.issuperset(first)
    is_whole = name in lists and all(map(_is_list, lists))
    return storage.join(listing.root, pattern) if are_pairs and is_whole else ""


def check_task(format_: Format, task: str) -> None:
    """Check that rows of a format can be rows of a task. Raises: UsageError."""
    if format_.accepts(TASKS[task]):
        return
    if not format_.has_columns:
        tasks = [name for name, found in TASKS.items() if format_.accepts(found)]
        raise UsageError(f"rows of {format_.name} are those of {' or '.join(tasks)} (got {task})")
    formats = [name for name, found in FORMATS.items() if found().accepts(TASKS[task])]
    hint = "; if it lists other files, pass those files instead" if format_.has_headers else ""
    raise UsageError(f"{task} needs the format {' or '.join(formats)} (got {format_.name}){hint}")


def _without_evidence(format_: Format, path: str) -> Evidence:
    """Return the evidence of a format that the user names. Raises: SourceError.

    A reader of lines needs none: whoever names CSV may pass a file of any name.
    """
    if (format_.has_columns or format_.numbered_roles) and not path.endswith("/"):
        tasks = [name for name, task in TASKS.items() if format_.accepts(task)]
        only = "".join(tasks) if len(tasks) == 1 else ""
        return Evidence(f"the format {format_.name} is given", only, is_weak=True)
    what = (format_.__doc__ or "its own files.").partition("\n")[0].replace("``", "").rstrip(".")
    raise SourceError(f"{path}: nothing is what {format_.name} reads: {what}; or omit the format")


def _documents(listing: Listing, file: ImportFile, evidence: Evidence) -> list[ImportFile]:
    """Return the files to read: the documents in a listing, or the source itself."""
    names = list(evidence.documents)
    if names == [""]:
        return [file]
    root, archive = listing.root, listing.archive
    return [
        file._replace(
            path=storage.join(root, name),
            bytes=archive.range_of(name).length if archive and name in archive.entries else None,
            folder=root,
        )
        for name in names
    ]
