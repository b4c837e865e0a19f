"""Detection of the format, the task and the columns of import files.

Given options are never overridden. The file's name decides the format. The known names of a header,
the keys of JSON objects or the shape of the first lines decide the task
(:mod:`recordgen.formats.candidates`). If these contradict each other
(:mod:`recordgen.formats.ambiguities`), nothing is guessed: the run stops before it writes, shows
some rows as they would be read, and names the option that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from recordgen.errors import RecordgenError, SourceError, UsageError
from recordgen.formats.ambiguities import ambiguities
from recordgen.formats.box_lists import with_box_lists
from recordgen.formats.candidates import candidates_in, read_header, settle
from recordgen.formats.column_checks import (
    check_columns,
    check_format,
    check_image_root,
    check_labels,
    check_separator,
    first_lines_shown,
    shown_columns,
)
from recordgen.formats.find_format import find_format
from recordgen.formats.head import Candidate, Head
from recordgen.formats.header import Given
from recordgen.formats.import_file import ImportFile
from recordgen.formats.one_hot import one_hot_classes, with_one_hot
from recordgen.formats.other_forms import of_lines, of_objects
from recordgen.formats.row_reader import PreviewRow, preview_files
from recordgen.formats.samples import Samples
from recordgen.formats.separators import read_separator
from recordgen.formats.split_names import check_submission, check_train, with_names
from recordgen.formats.table_layout import has_row_parser, own_columns
from recordgen.messages.masking import masked
from recordgen.options import AUTO, ConvertOptions
from recordgen.registry import OF_OTHER_RECORDS
from recordgen.tables.csv_fields import DELIMITERS
from recordgen.tasks import TASK_OF_TABLES, TASKS, task_for

if TYPE_CHECKING:
    import pandas as pd

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class Detection:
    """How a source is read.

    Attributes:
        options: the given options, with task and format decided.
        reason: the line or option that decided the task; empty if ``--task`` did.
        header: whether the first line is a header; None if the format has no headers.
        columns: pairs of a column and its role, or of a folder and its role; empty if position or
            AutoML's keys decide.
        rows: some rows as they were understood; empty before the source is opened.
        found_by_name: how many paths of the first rows are not exact, and were found below the
            image root.
        delimiter: the separator of the first CSV file; None for other formats.
        files: the import files, with the split in their name and the header that was found.
        named_splits: pairs of a file and the split in its name, for the files whose rows get it.
        classes: the declared classes of the format, in the order of their numbers.
        keypoints: its declared keypoints, see :class:`recordgen.core.dataset.manifest.Dataset`.
    """

    options: ConvertOptions
    reason: str = ""
    header: bool | None = None
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    found_by_name: int = 0
    delimiter: str | None = None
    files: tuple[ImportFile, ...] = ()
    named_splits: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()
    keypoints: Mapping[str, Any] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """The format in words: ``csv, separated by commas, no header``."""
        if self.delimiter is None:
            return self.options.format
        header = {True: ", with a header", False: ", no header", None: ""}[self.header]
        return f"csv, separated by {DELIMITERS[self.delimiter]}{header}"

    def to_json(self) -> dict[str, Any]:
        """Return the detection as ``--json`` prints it."""
        return {
            "task": self.options.task,
            "reason": self.reason,
            "format": self.options.format,
            "delimiter": self.delimiter,
            "header": self.header,
            "columns": dict(self.columns),
            "splits": dict(self.named_splits),
            "image_root": self.options.image_root,
            "found_by_name": self.found_by_name,
            "rows": [row.to_json() for row in self.rows],
        }


def detect(
    files: Sequence[ImportFile], options: ConvertOptions, samples: Samples | None = None
) -> Detection:
    """Detect the format, task and columns of import files that the options leave open.

    ``samples`` collects what is read of the files, for those who need it after detection.

    Raises:
        UsageError: the files have different formats, or more than one reading is possible; the
            message shows rows and names the option that decides. Or an option does not fit the
            files.
        SourceError: a file is missing or unreadable, or is not a table where it must be one.
        StorageError: storage failed.
    """
    check_submission(files)
    samples = samples or Samples(options.encoding)
    source = find_format(files, options, samples)
    files = source.files
    options = replace(options, format=source.format.name)
    options, reason = _with_given_task(options)
    heads = source.format.heads(files, options, samples)
    for head in heads:
        _check_form(head, options)
    for decided in (with_box_lists, with_one_hot):
        if (found := decided(heads, options)) is not options:
            options, heads = found, source.format.heads(files, found, samples)
    stop = partial(_stop, files, heads, samples)
    if options.task == AUTO:
        if source.evidence.task:
            reading = Candidate(source.evidence.task, source.evidence.reason)
        else:
            readings = candidates_in(heads, options, source.format)
            reading = _one_of(readings, files[0].path, options, stop)
        options, reason = replace(options, task=reading.task), reading.reason
    check_format(source.format, options)
    _check_offsets(heads, options)
    check_columns(heads, options, source.format, is_given=not reason)
    check_image_root(options)
    task, format_ = TASKS[options.task], source.format
    if format_.has_headers and has_row_parser(task):
        for problem in filter(None, ambiguities(heads, options, is_given=not reason)):
            stop(problem, options)
    header, delimiter = None, None
    if format_.has_headers:
        header = heads[0].has_header if heads else None
        path = files[0].path
        delimiter = heads[0].delimiter if heads else read_separator(samples.lines(path), path)[0]
    if (own := own_columns(task)) is not None:
        options, columns, header = own.layout(list(map(samples.whole, files)), options)
    else:
        columns = shown_columns(heads, options, format_, list(map(samples.begun, files)))
    named_files = with_names(files, heads, options)
    named = [
        (masked(file.path), file.split)
        for file, given in zip(named_files, files, strict=True)
        if file.split is not None and given.split is None
    ]
    if options.split.names == AUTO and len(named) == len(files):
        check_train(named, heads, options)
    return Detection(
        options,
        masked(reason),
        header,
        tuple(columns),
        delimiter=delimiter,
        files=named_files,
        named_splits=tuple(named),
        classes=tuple(source.evidence.classes or one_hot_classes(heads)),
        keypoints=source.evidence.keypoints or {},
    )


def _with_given_task(options: ConvertOptions) -> tuple[ConvertOptions, str]:
    """Return the options with the task that others imply, and the reason. Raises: UsageError."""
    given = options.of_tables()
    if given and options.task not in (AUTO, TASK_OF_TABLES):
        raise UsageError(
            f"{given[0]} is for tables, and the task is {options.task}; omit it, or use "
            f"--task {TASK_OF_TABLES}"
        )
    reason = f"{given[0]} is given" if given and options.task == AUTO else ""
    if given:
        options = replace(options, task=TASK_OF_TABLES)
    own = None if options.task == AUTO else own_columns(TASKS[options.task])
    if own is not None and (wrong := own.wrong_role(options.columns.roles)):
        raise UsageError(wrong)
    return options, reason


def _one_of(
    readings: Iterator[Candidate], path: str, options: ConvertOptions, stop: Callable[..., NoReturn]
) -> Candidate:
    """Return the only possible reading; ``stop`` takes the problem if there are several."""
    found = settle(readings) or [Candidate(OF_OTHER_RECORDS, "", 0)]
    if len(found) > 1:
        shown = "; ".join(f"{reading.task}: {reading.reason}" for reading in found)
        stop(
            f"the import files may have more than one task ({shown}); set --task, and keep the "
            f"rows of different tasks in separate files",
            replace(options, task=found[0].task),
        )
    reason = found[0].reason if found[0].lines else f"{path}: no line has an annotation"
    return found[0]._replace(reason=reason)


def _check_form(head: Head, options: ConvertOptions) -> None:
    """Check that lines have a form that a reader takes. Raises: SourceError."""
    form = of_objects(head.objects, head.path) or of_lines(head, options.columns)
    if form:
        raise SourceError(form)
    if options.task == AUTO and head.header is None:
        _check_list(head)


def _check_list(head: Head) -> None:
    """Check that a file is not a list of JSONL files. Raises: SourceError."""
    named = [line for line in head.lines if line.subject.lower().endswith(_JSON_SUFFIXES[:2])]
    if len(named) * 2 > len(head.lines):
        raise SourceError(
            f"{named[0].where}: this file lists JSONL files, as AutoML's CSV for entities does; "
            f"pass those files instead"
        )


def _stop(
    files: Sequence[ImportFile],
    heads: Sequence[Head],
    samples: Samples,
    problem: str,
    options: ConvertOptions,
) -> NoReturn:
    """Stop the run. Raises: UsageError, with some rows as they would be read."""
    rows: Sequence[PreviewRow] = ()
    with suppress(RecordgenError):
        rows = preview_files(files, options, samples).rows
    if not rows:
        with first_lines_shown(heads[0]):
            raise UsageError(f"{problem}; {options.task} would reject the first rows")
    subject = "text" if TASKS[options.task].kind in ("text", "entities") else "path"
    shown = "".join(f"\n  {row}" for row in rows)
    raise UsageError(
        f"{problem}\nrows as {options.task} would read them (split | {subject} | labels):{shown}"
    )


def _check_offsets(heads: Sequence[Head], options: ConvertOptions) -> None:
    if options.columns.offsets != AUTO or (heads and TASKS[options.task].kind == "entities"):
        from recordgen.formats.offset_units import check_offsets  # most rows have no spans

        check_offsets(heads, options)


def detect_frame(frame: pd.DataFrame, options: ConvertOptions) -> Detection:
    """Detect the task and the columns of a DataFrame, as :func:`detect` does for files.

    Raises: UsageError: its columns have no known names, or a given column is missing.
    """
    from recordgen.formats.dataframe import head_of_frame  # files do not need it

    if options.columns.header != AUTO:
        raise UsageError("header is for CSV files, not for a DataFrame; omit it")
    if options.encoding:
        raise UsageError("encoding is for import files, not for a DataFrame; omit it")
    _check_offsets((), options)
    options, reason = _with_given_task(options)
    if options.task != AUTO and own_columns(TASKS[options.task]) is not None:
        return Detection(options, reason)
    given, is_given = Given.of(options), options.task != AUTO
    head = head_of_frame(frame, given)
    if (found := with_one_hot([head], options)) is not options:
        options, given = found, Given.of(found)
        head = head_of_frame(frame, given)
    if not is_given:
        reading = read_header(head, head.where)
        options, reason = replace(options, task=reading.task), reading.reason
    check_separator(options, "")
    if own_columns(TASKS[options.task]) is not None:
        return Detection(options, reason)
    check_labels(head, given, task_for(options), is_given=is_given)
    for problem in filter(None, ambiguities([head], options, is_given=is_given)):
        raise UsageError(problem)
    columns = shown_columns([head], options)
    return Detection(options, reason, columns=columns, classes=one_hot_classes([head]))
