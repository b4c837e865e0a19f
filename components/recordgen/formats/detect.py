"""Detection of the format, the task and the columns of import files.

Given options are never overridden. The format finds evidence of itself
(:mod:`recordgen.formats.find_format`); the rows fit a definition as a whole
(:mod:`recordgen.formats.understand`), or the run stops before it writes, shows what it saw, and
proposes options that read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from recordgen.core.rows.row import Adjustments
from recordgen.errors import NotUnderstoodError, UsageError
from recordgen.formats import header as headers
from recordgen.formats import understand
from recordgen.formats.field_kinds import field_at, mostly
from recordgen.formats.find_format import check_task, find_format
from recordgen.formats.format import Format
from recordgen.formats.header import Candidate, Given, Head, Line, find_columns, find_path
from recordgen.formats.import_file import ImportFile, Samples
from recordgen.formats.label_fields import BETWEEN, IS_CLASS, UNCERTAIN
from recordgen.formats.row_parser import has_row_parser, own_columns, row_parser
from recordgen.formats.row_reader import PreviewRow
from recordgen.formats.separators import read_separator
from recordgen.formats.split_names import check_submission, check_train, names_split, with_names
from recordgen.messages import listed
from recordgen.messages.masking import masked
from recordgen.options import AUTO, ConvertOptions
from recordgen.registry import FORMATS
from recordgen.tables.csv_fields import DELIMITERS
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, SEGMENT_ROLES, Columns
from recordgen.tasks import TASK_OF_TABLES, TASKS, task_for

if TYPE_CHECKING:
    import pandas as pd


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
    options, reason = _with_given_task(replace(source.options, format=source.format.name))
    heads = source.format.heads(files, options, samples)
    if (found := _with_one_hot(heads, options)) is not options:
        options, heads = found, source.format.heads(files, found, samples)
    if options.task == AUTO:
        known = Candidate(source.evidence.task, source.evidence.reason)
        reading = known if known.task else understand.decide(heads, options, source.format)
        options, reason = replace(options, task=reading.task), reading.reason
    if source.evidence.is_weak and not source.format.accepts(TASKS[options.task]):
        begun = [*map(samples.begun, files)]
        source.format.roles(begun)  # how a folder is read, if it is
        source.format.check(begun, options)
    _check_format(source.format, options)
    _check_offsets(heads, options)
    format_, own = source.format, own_columns(TASKS[options.task])
    if heads and own is None:
        understand.check_columns(heads, options, format_, is_given=not reason or source.are_own)
    check_image_root(options)
    header, delimiter = None, None
    if format_.has_headers:
        header = heads[0].has_header if heads else None
        path = files[0].path
        delimiter = heads[0].delimiter if heads else read_separator(samples.lines(path), path)[0]
    if own is not None:
        options, columns, header = format_.layout(own, [*map(samples.whole, files)], options)
    else:
        begun = [*map(samples.begun, files)]
        has_keys = format_.has_columns and not format_.has_headers
        columns = format_.roles(begun) or _columns(heads, options, has_keys=has_keys)
        format_.check(begun, options)
    named_files = with_names(files, heads, options, are_own=source.are_own)
    named = [
        (masked(file.path), file.split)
        for file, given in zip(named_files, files, strict=True)
        if file.split is not None and given.split is None
    ]
    if options.split.names == AUTO and len(named) == len(files):
        check_train(named, heads, options, are_own=source.are_own)
    return Detection(
        options,
        masked(reason),
        header,
        tuple(columns),
        delimiter=delimiter,
        files=named_files,
        named_splits=tuple(named),
        classes=tuple(source.evidence.classes or _one_hot_classes(heads)),
        keypoints=source.evidence.keypoints or {},
    )


def _with_given_task(options: ConvertOptions) -> tuple[ConvertOptions, str]:
    """Return the options with the task that others imply, and the reason. Raises: UsageError."""
    given = options.of_tables()
    if given and options.task not in (AUTO, TASK_OF_TABLES):
        other = f"omit it, or use --task {TASK_OF_TABLES} (got {options.task})"
        raise UsageError(f"{given[0]} is for tables; {other}")
    reason = f"{given[0]} is given" if given and options.task == AUTO else ""
    if given:
        options = replace(options, task=TASK_OF_TABLES)
    own = None if options.task == AUTO else own_columns(TASKS[options.task])
    if own is not None and (wrong := own.wrong_role(options.columns.roles)):
        raise UsageError(wrong)
    return options, reason


def _columns(
    heads: Sequence[Head], options: ConvertOptions, *, has_keys: bool = False
) -> Sequence[tuple[str, str]]:
    """Return pairs of a column and its role; none if position decides.

    ``has_keys``: rows are objects, whose keys have roles without a header.
    """
    given = Given.of(options)
    group = [(given.group, "group")] if given.group else []
    if has_keys and not (heads and heads[0].has_header):
        roles = options.columns.roles.items()
        return [*((name, role) for role, names in roles for name in names), *group]
    if not heads or heads[0].header is None or not has_row_parser(TASKS[options.task]):
        return ()
    head = heads[0]
    found = row_parser(task_for(options), Adjustments()).columns_of(head.header or ())
    places = ((at, role) for role, there in found.items() for at in there)
    columns = [(head.names[at], role) for at, role in places if at not in head.classes]
    if given.boxes and head.has_header and head.columns is not None:
        form, name = given.boxes
        shown = [head.names[at] for at in head.columns.boxes]
        columns = [pair for pair in columns if pair[1] not in BOX_ROLES]
        columns.append((shown[0] if len(shown) == 1 else name, form))
    if head.classes:
        columns.append((listed(_one_hot_classes([head]), str, between=BETWEEN), "one-hot labels"))
    return [*columns, *group]


def _check_offsets(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check the unit of offsets. Raises: UsageError: the spans show another, or there are none."""
    unit = options.columns.offsets
    has_spans = bool(heads) and TASKS[options.task].kind == "entities"
    has_spans = has_spans and FORMATS[options.format].has_columns
    if unit != AUTO and not has_spans:
        raise UsageError(f"columns: offsets={unit} is for JSONL files of entities; omit it")
    if has_spans and unit == AUTO:
        from recordgen.formats.automl_jsonl import check_offsets  # most rows have no spans

        check_offsets(heads)


def detect_frame(frame: pd.DataFrame, options: ConvertOptions) -> Detection:
    """Detect the task and the columns of a DataFrame, as :func:`detect` does for files.

    Raises: UsageError: its columns have no known names, or a given column is missing.
    """
    from recordgen.formats.named_records import head_of_frame  # files do not need it

    if options.columns.header != AUTO:
        raise UsageError("header is for CSV files, not for a DataFrame; omit it")
    if options.encoding:
        raise UsageError("encoding is for import files, not for a DataFrame; omit it")
    _check_offsets((), options)
    options, reason = _with_given_task(options)
    if options.task != AUTO and own_columns(TASKS[options.task]) is not None:
        return Detection(options, reason)
    is_given = options.task != AUTO
    head = head_of_frame(frame, Given.of(options))
    if (found := _with_one_hot([head], options)) is not options:
        options, head = found, head_of_frame(frame, Given.of(found))
    given = Given.of(options)
    if not is_given:
        reading = understand.task_of_columns(head, given)
        options, reason = replace(options, task=reading.task), reading.reason
    _check_separator(options, "")
    task = task_for(options)
    if head.lines and has_row_parser(type(task)):
        if is_given:
            understand.check_known(head, [head], task, options)
        understand.check_roles(head, task, given, is_given=is_given)
    columns = tuple(_columns([head], options))
    return Detection(options, reason, columns=columns, classes=_one_hot_classes([head]))


def _check_format(format_: Format, options: ConvertOptions) -> None:
    """Check that task, format, columns and the image root fit each other. Raises: UsageError."""
    task, found = options.task, format_.name
    check_task(format_, task)
    if options.columns.header != AUTO and not format_.has_headers:
        raise UsageError(f"columns: header is for CSV files (got the format {found}); omit it")
    grouping = options.grouping
    has_words = format_.has_columns or options.layout
    if grouping is not None and grouping.column and not has_words:
        what = f"group_by={grouping.column} names a column, but the format {found} has none"
        raise UsageError(f"{what}; give a regular expression for the uri, such as '(patient\\d+)/'")
    if options.columns.roles and not (format_.has_columns or format_.numbered_roles):
        raise UsageError(f"columns is for CSV and JSONL files (got the format {found}); omit it")
    if options.image_root and not format_.has_columns:
        what = f"image_root is for CSV and JSONL files (got the format {found})"
        remedy = "pass a local document with it, or the folder of documents and images"
        raise NotUnderstoodError(f"{what}; {remedy}", options={"image_root": ""})
    if options.encoding and not format_.is_decoded:
        raise UsageError(f"encoding is for lines and texts (got the format {found}); omit it")
    has_fields = format_.has_headers or "label" in options.columns.roles
    _check_separator(options, found if not format_.has_columns or not has_fields else "")


def check_image_root(options: ConvertOptions) -> None:
    """Check that rows of a task name files if their root is given. Raises: UsageError."""
    if options.image_root and not TASKS[options.task].names_payloads:
        remedy = "omit it, or name the columns of the images: --columns path=…,label=…"
        raise UsageError(f"image_root is for rows that name files, unlike {options.task}; {remedy}")


def _check_separator(options: ConvertOptions, without_fields: str) -> None:
    """Check that labels are fields of rows if a separator of them is given. Raises: UsageError.

    ``without_fields`` is the format, if its labels are no fields.
    """
    if not options.label_separator:
        return
    if without_fields:
        what = "label_separator is for CSV files, and JSONL files with --columns label=KEY"
        raise UsageError(f"{what} (got the format {without_fields}); omit it")
    if not has_row_parser(TASKS[options.task]) or set(TASKS[options.task].columns) != {"label"}:
        raise UsageError(f"label_separator is for labels, which {options.task} does not have")


# --- columns of 0 and 1 --------------------------------------------------------------------------


def _with_one_hot(heads: Sequence[Head], options: ConvertOptions) -> ConvertOptions:
    """Return the options with the columns of 0 and 1, if all columns beside the payload are.

    ``image,cat,dog`` above ``1.jpg,0,1``  →  ``--columns 'label=cat|dog'``
    """
    given = Given.of(options)
    _check_certain(heads, options)
    is_open = options.task == AUTO or {*TASKS[options.task].columns} == {"label"}
    if not is_open or options.labels == "none" or "label" in given.roles:
        return options
    found = dict.fromkeys(chain.from_iterable(map(_flags, heads)))
    if not found or not all({*map(str.strip, head.names)} >= {*found} for head in heads):
        return options
    roles = {**given.roles, "label": BETWEEN.join(found)}
    columns = replace(options.columns, by_role=Columns.of(roles).by_role)
    return replace(options, columns=columns)


def _check_certain(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check that it is known what -1 and empty fields of one-hot columns mean.

    Raises: NotUnderstoodError: it is not; UsageError: there are no one-hot columns.
    """
    if options.columns.uncertain != AUTO:
        named = [(head, find_columns(head.header or (), LABEL_COLUMNS)) for head in heads]
        labels = [head.filled(at) for head, places in named for at in places]
        flags = IS_CLASS.keys() | UNCERTAIN
        are_flags = bool(labels) and all(mostly(flags.__contains__, it) for it in labels)
        if not are_flags and not any(head.classes for head in heads):
            what = "columns of 0, 1 and -1, such as label=cat|dog or label=cat"
            raise UsageError(f"columns: uncertain needs {what}")
        return
    lines = [(head, line) for head in heads if head.classes for line in head.lines]
    odd = [(head, line, at) for head, line in lines for at in _uncertain(head, line)]
    is_minus = any(field_at(line.fields, at) for _, line, at in odd)
    if is_minus or len(odd) > len(lines) * options.max_reject_fraction:
        head, line, at = odd[0]
        value = field_at(line.fields, at)
        what = f"the one-hot column {head.names[at]!r} holds {value!r}, not 0 or 1"
        remedy = "uncertain=0 reads -1 as 0, uncertain=1 as 1, and both read an empty field as 0"
        advice = {"columns": str(replace(options.columns, uncertain="0"))}
        raise NotUnderstoodError(f"{line.where}: {what}; {remedy}", options=advice)


def _uncertain(head: Head, line: Line) -> Sequence[int]:
    """Return the one-hot columns of a line that hold -1 or nothing, beside others with a value."""
    columns = [at for at, name in head.classes.items() if isinstance(name, str)]
    fields = {at: field_at(line.fields, at) for at in columns}
    return [at for at, text in fields.items() if text in UNCERTAIN and any(fields.values())]


def _flags(head: Head) -> Sequence[str]:
    """Return the columns of 0 and 1 beside the payload; none if other columns have another use."""
    header = head.header or ()
    others_known = {*LABEL_COLUMNS, *BOX_ROLES, *SEGMENT_ROLES, "sentiment"}
    if not head.has_header or head.classes or find_columns(header, others_known):
        return ()
    texts = find_columns(header, headers.TEXT_COLUMNS)
    used = {headers.find_split(header), find_path(header, headers.FILE_COLUMNS), *texts}
    others = [at for at, name in enumerate(head.names) if name.strip() and at not in used]
    names = [head.names[at].strip() for at in others]
    has_others = any(BETWEEN in name or names_split(name) for name in names)
    are_classes = len({*names}) == len(names) > 1 and not has_others
    values = [{*map(str.lower, head.filled(at))} for at in others]
    return names if are_classes and all(it and it <= IS_CLASS.keys() for it in values) else ()


def _one_hot_classes(heads: Sequence[Head]) -> tuple[str, ...]:
    """Return the classes of the one-hot columns of files, in the order of their columns."""
    found = (each for head in heads for each in head.classes.values())
    names = (each if isinstance(each, tuple) else (each,) for each in found)
    return tuple(dict.fromkeys(chain.from_iterable(names)))
