"""The source of a run: import files or a DataFrame."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Union

from recordgen import storage
from recordgen.core import allowance
from recordgen.core.rows.row import ROW_BYTES, ReadItem, RowBatch
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats.detect import Detection, check_image_root, detect, detect_frame
from recordgen.formats.image_root import ImageRoot, below_root
from recordgen.formats.image_sizes import NeedsSizes, with_image_sizes
from recordgen.formats.import_file import Files, ImportFile, Samples, find_import_files
from recordgen.formats.row_parser import own_columns
from recordgen.formats.row_reader import RowReader, preview_files, preview_rows, without_url_secrets
from recordgen.messages.masking import without_secrets
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS, task_for

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.core.planning.appending import Existing
    from recordgen.formats.frame_images import FrameImages

AnySource = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], "pd.DataFrame"]


def open_source(source: AnySource, options: ConvertOptions) -> tuple[Source, ConvertOptions]:
    """Find the import files, or take the rows of a DataFrame.

    Returns:
        The source, and the options with task and format decided.

    Raises:
        SourceError: an import file is missing or unreadable.
        UsageError: the source is of no known type, or detection needs an option.
    """
    pandas = sys.modules.get("pandas")  # imported if the source is a DataFrame
    if pandas is not None and isinstance(source, pandas.DataFrame):
        from recordgen.formats.frame_images import FrameImages
        from recordgen.formats.named_records import SOURCE

        return _open_frame(source, FrameImages(SOURCE), options)
    paths = [source] if isinstance(source, str | os.PathLike) else source
    are_paths = isinstance(paths, Sequence) and all(isinstance(p, str | os.PathLike) for p in paths)
    if are_paths and paths:
        return open_files(find_import_files([os.fspath(path) for path in paths]), options)
    got = f"{source!r:.80}, of type {type(source).__module__}.{type(source).__name__}"
    raise UsageError(f"source must be a path, several paths or a DataFrame of pandas (got {got})")


def _open_frame(
    frame: pd.DataFrame, own_images: FrameImages, options: ConvertOptions
) -> tuple[Source, ConvertOptions]:
    from recordgen.formats import named_records

    frame = named_records.without_source_id(named_records.as_dense(frame), options)
    frame = own_images.with_paths(frame)
    detection = detect_frame(frame, options)
    options = detection.options
    check_image_root(options)
    task = TASKS[options.task]
    own_images.check(task)
    own = own_columns(task) or named_records
    opened = own.open_frame(frame, options)
    options = opened.options
    columns = detection.columns if opened.columns is None else tuple(opened.columns)
    detection = replace(detection, options=options, columns=columns)
    rows, decided = opened.rows, task_for(options)
    if options.image_root:
        images = ImageRoot.of(options)
        images.check()
        rows = below_root(rows, images, decided)
    rows = own_images.in_file(rows, decided)
    if isinstance(decided, NeedsSizes):
        rows = with_image_sizes(rows, decided, options.access)
    source = replace(Source.of_rows(rows, decided), own_images=own_images)
    shown = preview_rows(chain.from_iterable(source.rows), decided)
    return replace(source, detection=replace(detection, **shown._asdict())), options


@allowance.allowed()
def open_files(files: Files, options: ConvertOptions) -> tuple[Source, ConvertOptions]:
    """Return import files as a source, and the options with task and format decided.

    Raises:
        SourceError: in a pipeline step, an import file is a link to a file that rows may not reach.
    """
    if options.confined:
        for file in files:
            if (refusal := options.access.refusal(file.path, file.path)) is not None:
                raise SourceError(f"{file.path}: this link to a file leaves its folder: {refusal}")
    samples = Samples(options.encoding)
    images = ImageRoot.of(options) if options.image_root else None
    try:
        detection = detect(files, options, samples)
    except SourceError as exc:
        from recordgen.formats.tfrecorder import find_frame

        if (found := find_frame([samples.listing(file.path) for file in files])) is None:
            if isinstance(exc, NotUnderstoodError):
                has_images = any(samples.listing(file.path).images for file in files)
                raise _followed(exc, options, has_images=has_images) from None
            raise
        return _open_frame(*found, options)
    if images is not None:
        images.check()
    with_all = RowReader(detection.options).with_lists(map(samples.whole, detection.files))
    with_all = [file._replace(images=images, lines=None, listing=None) for file in with_all]
    detection = replace(detection, **preview_files(with_all, detection.options, samples)._asdict())
    source = Source.of_files(map(samples.begun, with_all))
    kept = tuple(map(samples.kept, with_all))
    return replace(source, files=kept, detection=detection), detection.options


def _followed(
    refusal: NotUnderstoodError, options: ConvertOptions, *, has_images: bool
) -> NotUnderstoodError:
    """Return the refusal of a folder; if the file that it proposes stops, with that one's options.

    Nothing is proposed if nothing is likely to read that file, or only as a table beside images:
    it names them.
    """
    advice, source = refusal.options, refusal.source
    if not source or advice.keys() - {"image_root"}:
        return refusal
    root = advice.get("image_root", options.image_root)
    try:
        detect(find_import_files(source), replace(options, image_root=root))
    except NotUnderstoodError as exc:
        reason = f"{refusal.reason}; {exc.reason}"
        is_table = "target=" in exc.options.get("columns", "")
        if not exc.options or (is_table and has_images):
            return NotUnderstoodError(reason, shown=refusal.shown)
        found, source = {**advice, **exc.options}, exc.source or source
        return NotUnderstoodError(reason, shown=exc.shown, options=found, source=source)
    except (SourceError, UsageError) as exc:
        return NotUnderstoodError(f"{refusal.reason}; {exc}", shown=refusal.shown)
    return refusal


@dataclass(frozen=True)
class Source:
    """The source of rows: import files, or rows in memory (of a DataFrame).

    Attributes:
        rows: rows and their findings, in parts that can be read independently.
        bytes: size of the whole source, for the number of buckets.
        detection: how it is read.
        own_images: the images that a DataFrame itself holds, in a file that lives as long.
    """

    files: tuple[ImportFile, ...] = ()
    rows: tuple[tuple[ReadItem, ...], ...] = ()
    bytes: int = 0
    detection: Detection | None = None
    own_images: FrameImages | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_files(cls, files: Iterable[ImportFile]) -> Source:
        """Return import files as a source. Raises: SourceError, StorageError."""
        found = tuple(files)
        return cls(files=found, bytes=sum(map(_size, found)))

    @classmethod
    def of_rows(cls, rows: Iterable[ReadItem], task: Task) -> Source:
        """Return rows as a source, which has no secrets of their URLs."""
        parts: list[list[ReadItem]] = [[]]
        size = 0
        for item in without_url_secrets(rows, task):
            parts[-1].append(item)
            if isinstance(item, RowBatch):
                texts = sum(len(text or "") for text in item.annotations)
                size += max(len(item.lines) * ROW_BYTES, texts)
                parts.append([])
        return cls(rows=tuple(tuple(part) for part in parts if part), bytes=size)

    @property
    def paths(self) -> Iterator[str]:
        """The locations of the import files and of their images, or of payloads in memory."""
        yield from (file.path for file in self.files)
        yield from {file.images.root: None for file in self.files if file.images is not None}
        for batch in chain.from_iterable(self.rows):
            if isinstance(batch, RowBatch):
                yield from (storage.resolve(uri, batch.source) for uri in batch.uris if uri)

    @property
    def classes(self) -> tuple[str, ...]:
        """The declared classes of its format, in the order of their numbers."""
        return self.detection.classes if self.detection else ()

    @property
    def keypoints(self) -> Mapping[str, Any]:
        """The declared keypoints of its format, as ``dataset.json`` has them."""
        return self.detection.keypoints if self.detection else {}

    def check_apart(self, output: str) -> None:
        """Check that a run would not write among its own import files. Raises: UsageError."""
        for file in self.files:
            if file.path.endswith("/") and storage.is_inside(output, file.path):
                what = f"the output {output} is inside the source {file.path}"
                raise UsageError(f"{what}, whose files are read; give an output outside it")
            if storage.is_inside(storage.folder_of(file.path), output):
                what = f"the source {file.path} is inside the output {output}"
                raise UsageError(f"{what}; give another, such as {storage.join(output, 'out')}")

    def folder_from(self, output: str) -> str:
        """Return the way from a local output to the folder where relative import files start.

        It is empty if no import file is relative. ``/d/out``, with ``/d`` as the current folder
        → ``..``
        """
        is_relative = any(storage.is_relative(file.path) for file in self.files)
        if not (is_relative and output and storage.is_local(output)):
            return ""
        place = os.path.realpath(storage.local_path(output))
        return storage.from_folder(storage.absolute(""), place, outside=True)

    def check_folder(self, existing: Existing | None) -> None:
        """Check that relative import files start where those of a dataset do.

        The same path would name another file, and its rows would be taken for known ones.

        Raises: UsageError.
        """
        is_relative = any(storage.is_relative(file.path) for file in self.files)
        starts = ("", storage.absolute(""))
        if existing is not None and is_relative and existing.start not in starts:
            what = f"relative paths of its import files start in {existing.start}"
            remedy = f"run there, or give whole paths: {storage.absolute(self.files[0].path)}"
            raise UsageError(f"{existing.output}: {what}; {remedy}")

    def parts(self) -> list[Any]:
        """Return the independently readable parts, at least an empty one."""
        return [*self.files, *self.rows] or [()]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the source in ``dataset.json``."""
        return tuple(without_secrets(file.path) for file in self.files) or ("DataFrame",)


def _size(file: ImportFile) -> int:
    path = file.path
    if file.bytes is not None:
        return file.bytes
    if path.endswith("/"):
        return len(file.around.tree.files) * ROW_BYTES
    try:
        return storage.size(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
