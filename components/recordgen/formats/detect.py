"""Detection of the format, the task and the columns of import files.

Given options are never overridden. The file's name decides the format. The known names of a header,
the keys of JSON objects or the shape of the first lines decide the task
(:mod:`recordgen.formats.evidence`). If these contradict each other
(:mod:`recordgen.formats.conflicts`), nothing is guessed: the run stops before it writes, shows some
rows as they would be read, and names the option that decides.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from recordgen.core.dataset.splits import TRAIN
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import printable
from recordgen.core.task.task import Task
from recordgen.errors import RecordgenError, SourceError, UsageError
from recordgen.formats import foreign_formats, other_forms
from recordgen.formats.automl_jsonl import check_keys
from recordgen.formats.column_names import PATH_COLUMNS, TEXT_COLUMNS, find_columns
from recordgen.formats.conflicts import conflicts
from recordgen.formats.evidence import (
    SUBJECT_KEYS,
    Reading,
    read_header,
    read_lines,
    read_object,
    settle,
)
from recordgen.formats.find_format import check_task, find_format
from recordgen.formats.format import Format
from recordgen.formats.header import Given
from recordgen.formats.heads import Head, Line, head_of_frame, is_table
from recordgen.formats.import_file import ImportFile
from recordgen.formats.layout import read_layout
from recordgen.formats.offset_units import check_offsets
from recordgen.formats.preview import ROWS_SHOWN, PreviewRow, preview_files
from recordgen.formats.row_parser import check_twice, has_row_parser, row_parser
from recordgen.formats.samples import Samples
from recordgen.formats.split_names import split_in_path, splits_in_paths
from recordgen.formats.words import words_of
from recordgen.masking import masked
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import TASK_OF_TABLES, TASKS, ImageClassification, task_for

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
        delimiter: the separator of the first CSV file; None for other formats.
        files: the import files, with the split in their name and the header that was found.
        named_splits: pairs of a file and the split in its name, for the files whose rows get it.
        classes: the declared classes of the format, in the order of their numbers.
    """

    options: ConvertOptions
    reason: str = ""
    header: bool | None = None
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    delimiter: str | None = None
    files: tuple[ImportFile, ...] = ()
    named_splits: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()

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
    _check_submission(files)
    samples = samples or Samples()
    source = find_format(files, options, samples)
    files = source.files
    options = replace(options, format=source.format.name)
    options, reason = _with_given_task(options)
    heads = source.format.heads(files, options, samples)
    for head in heads:
        _check_form(head, options)
    if options.task == AUTO:
        if source.evidence.task:
            reading = Reading(source.evidence.task, source.evidence.reason)
        else:
            readings = _readings(heads, options, source.format)
            reading = _one_of(readings, files, heads, options, samples)
        options, reason = replace(options, task=reading.task), reading.reason
    _check_format(source.format, options)
    check_offsets(heads, options)
    _check_columns(heads, options, source.format, is_given=not reason)
    task, format_ = TASKS[options.task], source.format
    if format_.has_headers and has_row_parser(task):
        for problem in filter(None, conflicts(heads, options, is_given=not reason)):
            _stop(problem, files, heads, options, samples)
    header, delimiter = None, None
    if format_.has_headers:
        header = heads[0].has_header if heads else None
        path = files[0].path
        delimiter = heads[0].delimiter if heads else read_layout(samples.lines(path), path)[0]
    if task.own_columns is not None:
        layout = task.declared("own_columns").layout
        options, columns, header = layout(list(map(samples.whole, files)), options)
    else:
        columns = _columns(heads, options, format_, list(map(samples.begun, files)))
    found = _settled(files, heads, options)
    named = [
        (masked(file.path), file.split)
        for file, given in zip(found, files, strict=True)
        if file.split is not None and given.split is None
    ]
    if options.split.names == AUTO and len(named) == len(files):
        _check_train(named, heads, options)
    return Detection(
        options,
        masked(reason),
        header,
        tuple(columns),
        delimiter=delimiter,
        files=found,
        named_splits=tuple(named),
        classes=tuple(source.classes),
    )


def _settled(
    files: Sequence[ImportFile], heads: Sequence[Head], options: ConvertOptions
) -> tuple[ImportFile, ...]:
    """Return import files with what was detected of each: its header, and the split in its name."""
    head_of = {head.path: head for head in heads}
    paths = [file.path for file in files]
    named: Sequence[str | None] = [None] * len(files)
    if options.split.names != "no":
        is_auto = options.split.names == AUTO
        named = splits_in_paths(paths) if is_auto else list(map(split_in_path, paths))
    found = []
    for file, split in zip(files, named, strict=True):
        head = head_of.get(file.path)
        if head is not None:
            file = file._replace(has_header=head.has_header)
        if file.split is None and not (head is not None and head.says_unassigned):
            file = file._replace(split=split)
        found.append(file)
    return tuple(found)


def _check_train(
    named: Sequence[tuple[str, str]], heads: Sequence[Head], options: ConvertOptions
) -> None:
    """Check that names leave rows for ``train``, unless rows name splits. Raises: UsageError."""
    if TRAIN in {split for _, split in named} or any(head.names_splits for head in heads):
        return
    if options.inferred_table and options.inferred_table.split:
        return
    path, split = named[0]
    raise UsageError(
        f"{path}: the name says split {split}, so no row would be in {TRAIN}; use "
        f"--split names=no to assign splits, or yes if all rows belong to {split}"
    )


def _check_submission(files: Sequence[ImportFile]) -> None:
    """Check that no sample of predictions is among the files. Raises: UsageError."""
    names = {file.path: words_of(posixpath.basename(file.path)) for file in files}
    found = [path for path, words in names.items() if "submission" in words]
    others = [path for path in names if path not in found]
    if found and others:
        train = next((path for path in others if split_in_path(path) == TRAIN), others[0])
        raise UsageError(
            f"{found[0]}: its name says that this is a sample of predictions, as Kaggle calls it, "
            f"so its labels are none; convert {train} alone"
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
    if options.task != AUTO and TASKS[options.task].own_columns is not None:
        own = TASKS[options.task].declared("own_columns")
        if wrong := own.wrong_role(options.columns.roles):
            raise UsageError(wrong)
    return options, reason


def _check_format(format_: Format, options: ConvertOptions) -> None:
    """Check that task, format and columns fit each other. Raises: UsageError."""
    task, found = options.task, format_.name
    check_task(format_, task)
    if options.columns.header != AUTO and not format_.has_headers:
        raise UsageError(f"columns: header is for CSV files (got the format {found}); omit it")
    grouping = options.grouping
    if grouping is not None and grouping.column and not format_.has_columns:
        raise UsageError(
            f"group_by={grouping.column} names a column, but the format {found} has none; give a "
            f"regular expression that finds the group in the uri, such as '(patient\\d+)/'"
        )
    if options.columns.roles and not format_.has_columns:
        raise UsageError(f"columns is for CSV and JSONL files (got the format {found}); omit it")


# --- readings ---------------------------------------------------------------------------------


def _readings(heads: Sequence[Head], options: ConvertOptions, format_: Format) -> Iterator[Reading]:
    """Yield the possible tasks of the files. Raises: UsageError, SourceError."""
    bare: list[Line] = []
    for head in heads:
        if head.header is not None:
            with _first_lines_shown(head):
                where = "--columns" if options.columns.roles else head.where
                yield read_header(head, where)
        elif not format_.has_headers:
            yield from _read_objects(head)
        elif options.columns.header == AUTO and is_table(head.rows):
            if form := other_forms.of_spans(head):
                raise SourceError(form)
            reason = f"{head.where} names columns, and the lines below fill them"
            yield Reading(TASK_OF_TABLES, reason, len(head.rows))
            return  # only the first file of a table must have a header
        elif form := other_forms.of_table(head):
            raise SourceError(form)
        else:
            bare += head.lines
    if bare:
        yield from read_lines(bare)


def _one_of(
    readings: Iterator[Reading],
    files: Sequence[ImportFile],
    heads: Sequence[Head],
    options: ConvertOptions,
    samples: Samples,
) -> Reading:
    """Return the only possible reading. Raises: UsageError: there are several."""
    found = settle(readings) or [Reading(ImageClassification.name, "", 0)]
    if len(found) > 1:
        shown = "; ".join(f"{reading.task}: {reading.reason}" for reading in found)
        problem = (
            f"the import files may have more than one task ({shown}); set --task, and keep the "
            f"rows of different tasks in separate files"
        )
        _stop(problem, files, heads, replace(options, task=found[0].task), samples)
    if found[0].lines:
        return found[0]
    return found[0]._replace(reason=f"{files[0].path}: no line has an annotation")


def _read_objects(head: Head) -> Iterator[Reading]:
    """Yield the tasks that AutoML's keys show. Raises: SourceError: no object has such a key."""
    readings = [
        reading
        for number, record in head.objects
        for reading in read_object(record, f"{head.path}:{number}")
    ]
    if head.objects and not readings:
        number, record = head.objects[0]
        if (foreign := foreign_formats.of_json(json.dumps(record).encode())) is not None:
            raise foreign.error(f"{head.path}:{number}")
        there = ", ".join(map(printable, record)) or "none"
        raise SourceError(
            f"{head.path}:{number}: no line has one of the keys {', '.join(SUBJECT_KEYS)} (this "
            f"line has {there:.80}); write an object per line as Vertex AI does, or name the keys, "
            f"such as --columns {_likely_roles([*record])}"
        )
    yield from readings


def _likely_roles(keys: Sequence[str]) -> str:
    """Return the value of ``--columns`` for keys with known names: ``text=text,label=label``."""
    texts = find_columns(keys, TEXT_COLUMNS)
    subject = "text" if texts else "path"
    known = {subject: TEXT_COLUMNS if texts else PATH_COLUMNS, "label": LABEL_COLUMNS}
    found = {role: find_columns(keys, names)[:1] for role, names in known.items()}
    return ",".join(f"{role}={keys[at[0]] if at else '…'}" for role, at in found.items())


# --- stops ---------------------------------------------------------------------------------


def _check_form(head: Head, options: ConvertOptions) -> None:
    """Check that lines have a form that a reader takes. Raises: SourceError."""
    form = other_forms.of_objects(head.objects, head.path) or other_forms.of_lines(head)
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
    problem: str,
    files: Sequence[ImportFile],
    heads: Sequence[Head],
    options: ConvertOptions,
    samples: Samples,
) -> NoReturn:
    """Stop the run. Raises: UsageError, with some rows as they would be read."""
    rows: Sequence[PreviewRow] = ()
    with suppress(RecordgenError):
        rows = preview_files(files, options, samples)
    if not rows:
        with _first_lines_shown(heads[0]):
            raise UsageError(f"{problem}; {options.task} would reject the first rows")
    subject = "text" if TASKS[options.task].kind in ("text", "entities") else "path"
    shown = "".join(f"\n  {row}" for row in rows)
    raise UsageError(
        f"{problem}\nrows as {options.task} would read them (split | {subject} | labels):{shown}"
    )


@contextmanager
def _first_lines_shown(head: Head) -> Iterator[None]:
    """Add the first lines of a file to a UsageError about its columns."""
    try:
        yield
    except UsageError as exc:
        rows = [f"\n  {' | '.join(row):.160}" for row in head.rows[:ROWS_SHOWN]]
        raise UsageError(f"{exc}\nthe first lines of {head.path}:{''.join(rows)}") from exc


# --- columns ----------------------------------------------------------------------------------


def _check_columns(
    heads: Sequence[Head], options: ConvertOptions, format_: Format, *, is_given: bool
) -> None:
    """Check columns against the task and the files. Raises: UsageError, SourceError.

    ``is_given``: the user has set the task.
    """
    if not heads or TASKS[options.task].own_columns is not None:
        return
    given, made = Given.of(options), task_for(options)
    labelled = next((head.path for head in heads if _label_columns(head, made)), "")
    for head in heads:
        _check_labels(head, given, made, is_given=is_given, labelled=labelled)
        if format_.has_headers:
            with _first_lines_shown(head):
                row_parser(made, Adjustments()).begin(head.rows[0], given, head.where)
        elif given.roles:
            check_keys(made, given)
    if format_.has_headers and not any(head.lines for head in heads):
        head = heads[0]
        raise SourceError(
            f"{head.where}: this file has a header ({','.join(head.rows[0]):.200}) and no rows"
        )


def _label_columns(head: Head, task: Task) -> Sequence[int]:
    """Return the columns of labels below a header of known names."""
    return find_columns(head.header or (), task.columns.get("label") or ())


def _check_labels(
    head: Head, given: Given, task: Task, *, is_given: bool, labelled: str = ""
) -> None:
    """Check the columns of labels, and those that nobody chose to ignore. Raises: UsageError.

    ``labelled`` is a file with a column of labels, if there is one.
    """
    if head.header is None or not head.lines or "label" not in task.columns:
        return
    columns = row_parser(task, Adjustments()).columns_of(head.header)
    is_chosen = is_given or not given.roles.keys().isdisjoint({"path", "text", "label"})
    of_header = other_forms.of_boxes
    if len(task.columns) == 1:
        of_header = partial(other_forms.of_header, labelled=labelled)
    with _first_lines_shown(head):
        check_twice(head.header, columns)
        if form := other_forms.of_split(
            head, columns, is_chosen=bool(given.roles), group=given.group
        ):
            raise UsageError(form)
        if form := of_header(head, columns, type(task), is_chosen=is_chosen):
            raise UsageError(form)


def _columns(
    heads: Sequence[Head],
    options: ConvertOptions,
    format_: Format | None = None,
    files: Sequence[ImportFile] = (),
) -> tuple[tuple[str, str], ...]:
    """Return pairs of a column, or of a folder, and its role; none if position decides."""
    if format_ is not None and (roles := format_.roles(files)):
        return tuple(roles)
    given = Given.of(options)
    group = ((given.group, "group"),) if given.group else ()
    if format_ is not None and format_.has_columns and not format_.has_headers:
        return (
            *((name, role) for role, names in options.columns.roles.items() for name in names),
            *group,
        )
    if not heads or heads[0].header is None or not has_row_parser(TASKS[options.task]):
        return ()
    found = row_parser(task_for(options), Adjustments()).columns_of(heads[0].header)
    columns = ((heads[0].names[at], role) for role, where in found.items() for at in where)
    return (*columns, *group)


# --- DataFrames -------------------------------------------------------------------------------


def detect_frame(frame: pd.DataFrame, options: ConvertOptions) -> Detection:
    """Detect the task and the columns of a DataFrame, as :func:`detect` does for files.

    Raises:
        UsageError: its columns have no known names, or a given column is missing.
    """
    if options.columns.header != AUTO:
        raise UsageError("header is for CSV files, not for a DataFrame; omit it")
    check_offsets((), options)
    options, reason = _with_given_task(options)
    if options.task != AUTO and TASKS[options.task].own_columns is not None:
        return Detection(options, reason)
    given, is_given = Given.of(options), options.task != AUTO
    head = head_of_frame(frame, given)
    if not is_given:
        reading = read_header(head, head.where)
        options, reason = replace(options, task=reading.task), reading.reason
    if TASKS[options.task].own_columns is not None:
        return Detection(options, reason)
    _check_labels(head, given, task_for(options), is_given=is_given)
    for problem in filter(None, conflicts([head], options, is_given=is_given)):
        raise UsageError(problem)
    return Detection(options, reason, columns=_columns([head], options))
