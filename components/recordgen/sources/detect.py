"""Find out what import files are: their format, their task, and which column holds what.

Options decide first. What they leave open, these decide: the file's name, a header's known names,
the keys of JSON objects, and the shape of the first lines (:mod:`recordgen.sources.evidence`).
Where they contradict each other, nothing is guessed: the run stops before it writes, shows some
rows as they would be read, and names the option that settles the matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from recordgen.errors import RecordgenError, SourceError, UsageError
from recordgen.options import AUTO, ConvertOptions
from recordgen.roles import SEGMENT_ROLES
from recordgen.rows.row import Adjustments
from recordgen.sources import evidence, foreign_formats
from recordgen.sources.automl_csv import IMAGE_SUFFIX
from recordgen.sources.automl_jsonl import check_keys, check_names, row_parser
from recordgen.sources.conflicts import find_conflict, odd_column, several_labels, unnamed_split
from recordgen.sources.dataframe import SOURCE, frame_records, list_columns
from recordgen.sources.evidence import Line, Reading
from recordgen.sources.header import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    Given,
    column_name,
    find_columns,
    find_path,
)
from recordgen.sources.heads import Head, read_delimiter, read_heads
from recordgen.sources.import_file import ImportFile
from recordgen.sources.iob import is_of_sentences
from recordgen.sources.json_keys import SUBJECT_KEYS, read_object
from recordgen.sources.lines import open_lines
from recordgen.sources.preview import ROWS_SHOWN, PreviewRow, preview_files
from recordgen.sources.readers import formats_of
from recordgen.sources.text_csv import is_media
from recordgen.tables.columns import Table
from recordgen.tasks import (
    TASKS,
    Declared,
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextClassification,
    TextEntities,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
    task_for,
)
from recordgen.tasks.image_classification import LABEL_COLUMNS
from recordgen.tasks.task import printable

if TYPE_CHECKING:
    import pandas as pd

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_SENTIMENT_COLUMN = "sentiment"

# What to do about a format that a task does not come in.
_INSTEAD = {
    (TextEntities.name, "csv"): "; of a list of JSONL files, name these files themselves",
}


@dataclass(frozen=True)
class Detection:
    """How a source is read.

    Attributes:
        options: as they were given, with task and format decided.
        reason: which line or option decided the task; empty: ``--task`` did.
        header: whether the first line is a header; None: the format has none.
        columns: what the columns hold, as pairs of a column and its role; none where they go by
            position or by AutoML's keys.
        rows: some rows as they were understood; none before the source is opened.
        delimiter: what separates the fields of the first CSV file; None: the format has none.
    """

    options: ConvertOptions
    reason: str = ""
    header: bool | None = None
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    delimiter: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what was decided as ``--json`` prints it."""
        return {
            "task": self.options.task,
            "reason": self.reason,
            "format": self.options.input_format,
            "delimiter": self.delimiter,
            "header": self.header,
            "columns": dict(self.columns),
            "rows": [row.to_json() for row in self.rows],
        }


def detect(files: Sequence[ImportFile], options: ConvertOptions) -> Detection:
    """Find out format, task and columns of import files, as far as the options leave them open.

    Raises:
        UsageError: the files have different formats, or read in more than one way; the message
            shows rows and names the option that decides. Or an option does not go with the files.
        SourceError: a file is missing or cannot be read, or is no table where it must be one.
        StorageError: storage failed.
    """
    if options.input_format == AUTO:
        options = replace(options, input_format=_format_of_all(files, options.task))
    options, reason = _with_given_task(options)
    heads = read_heads(files, options)
    if options.task == AUTO:
        reading = _one_of(_readings(files, heads, options), files, heads, options)
        options, reason = replace(options, task=reading.task), reading.reason
    _check_format(options)
    _check_columns(heads, options)
    if problem := find_conflict(heads, options, is_given=not reason):
        _stop(problem, files, heads, options)
    if TASKS[options.task].kind == Tabular.kind:
        from recordgen.sources.table_columns import find_table  # Arrow is not needed for others

        options = replace(options, table=find_table(files, options).to_json())
    header, columns = _named_columns(heads, options)
    delimiter = None
    if options.input_format == "csv":
        delimiter = heads[0].delimiter if heads else read_delimiter(files[0].path)
    return Detection(options, reason, header, columns, delimiter=delimiter)


def _with_given_task(options: ConvertOptions) -> tuple[ConvertOptions, str]:
    """Return the options with the task that others imply, and which one. Raises: UsageError."""
    given = options.of_tables()
    if given and options.task not in (AUTO, Tabular.name):
        raise UsageError(
            f"{given[0]} is for tables, and the task is {options.task}; leave it out, or say "
            f"--task {Tabular.name}"
        )
    reason = f"{given[0]} is given" if given and options.task == AUTO else ""
    if given:
        options = replace(options, task=Tabular.name)
    if options.task == Tabular.name:
        return _of_table(options), reason
    if options.task == Declared.name and options.columns:
        raise UsageError("columns: the schema names the columns already; leave one of them out")
    return options, reason


def _of_table(options: ConvertOptions) -> ConvertOptions:
    """Return a table's options, the split's column in its own one. Raises: UsageError."""
    if options.header == "no":
        raise UsageError(
            "a table needs a header that names its columns (got header=no); add one, or declare "
            "the columns in their order with --schema"
        )
    for role, names in options.roles.items():
        if role == "split" and options.split_column in ("", *names):
            options = replace(options, split_column=names[0])
        elif role == "split":
            raise UsageError(
                f"columns says split={names[0]}, and split_column is {options.split_column!r}; "
                f"leave one of them out"
            )
        elif role not in ("target", "weight"):
            raise UsageError(
                f"columns: a table has no role {role!r}, only split, target and weight; say "
                f"--target-column for the column to predict"
            )
    return options


def _format_of_all(files: Sequence[ImportFile], task: str) -> str:
    formats: dict[str, str] = {}
    for file in files:
        formats.setdefault(_format_of(file.path, task), file.path)
    if len(formats) > 1:
        read = " and ".join(f"{path} as {name}" for name, path in formats.items())
        raise UsageError(f"import files must be of one format (got {read}); convert them apart")
    return next(iter(formats))


def _format_of(path: str, task: str) -> str:
    """Return the format of an import file: by the task and the name, then by the first line."""
    is_folder = task == TextEntities.name and path.endswith("/")
    if is_folder or (task in (AUTO, TextEntities.name) and is_of_sentences(path)):
        return "iob"
    if path.endswith("/"):
        return "folder"
    if path.lower().endswith(".csv"):
        return "csv"
    if path.lower().endswith(_JSON_SUFFIXES):
        return "jsonl"
    with open_lines(path) as lines:
        first = next((line for line in lines if line.strip()), b"")
    return "jsonl" if first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") else "csv"


def _check_format(options: ConvertOptions) -> None:
    """Check that task, format and columns go together. Raises: UsageError."""
    task, found = options.task, options.input_format
    if found == "folder" and task != ImageClassification.name:
        raise UsageError(
            f"a folder of images gives one label per image: its task is "
            f"{ImageClassification.name} (got {task})"
        )
    if found not in (formats := formats_of(task)):
        hint = _INSTEAD.get((task, found), "")
        raise UsageError(f"{task} comes as {', '.join(formats)} (got the format {found}){hint}")
    if options.header != AUTO and found != "csv":
        raise UsageError(f"header is for CSV files (got the format {found}); leave it out")
    if options.columns and found not in ("csv", "jsonl"):
        raise UsageError(f"columns are those of CSV and JSONL files (got the format {found})")


# --- readings ---------------------------------------------------------------------------------


def _readings(
    files: Sequence[ImportFile], heads: Sequence[Head], options: ConvertOptions
) -> Iterator[Reading]:
    """Yield the tasks that the files may have. Raises: UsageError, SourceError."""
    first = files[0].path
    if options.input_format == "iob":
        yield Reading(TextEntities.name, f"{first}: sentences and their tags")
    elif options.input_format == "folder":
        yield Reading(ImageClassification.name, f"{first}: a folder of images")
    elif options.input_format == "jsonl":
        given = Given.of(options)
        for head in heads:
            yield from _read_keys(head, given) if given.roles else _read_objects(head)
    else:
        bare: list[Line] = []
        for head in heads:
            if head.header is not None:
                rows = [line.fields for line in head.lines]
                where = "--columns" if options.columns else head.where
                with _showing(head):
                    reading = read_header(head.header, rows, where, is_given=bool(options.columns))
                yield reading._replace(lines=max(1, len(rows)))
            elif not head.is_given and evidence.is_table(head.rows):
                reason = f"{head.where} names columns, and the lines behind it fill them"
                yield Reading(Tabular.name, reason, len(head.rows))
                return  # only the first file of a table must have a header
            else:
                _check_list(head)
                bare += head.lines
        if bare:
            yield from evidence.read_lines(bare)


def _one_of(
    readings: Iterator[Reading],
    files: Sequence[ImportFile],
    heads: Sequence[Head],
    options: ConvertOptions,
) -> Reading:
    """Return the one reading that is left. Raises: UsageError: there are several."""
    found = evidence.settle(readings)
    if len(found) > 1:
        shown = "; ".join(f"{reading.task}: {reading.reason}" for reading in found)
        problem = (
            f"the import files read as more than one task ({shown}); say --task, and keep the rows "
            f"of each in files of their own"
        )
        _stop(problem, files, heads, replace(options, task=found[0].task))
    if found and found[0].lines:
        return found[0]
    if found:
        return found[0]._replace(reason=f"{files[0].path}: no line has an annotation")
    return Reading(ImageClassification.name, f"{files[0].path}: no line has an annotation")


def _read_objects(head: Head) -> Iterator[Reading]:
    """Yield what AutoML's keys say. Raises: SourceError: no object has one."""
    found = False
    for number, record in head.objects:
        for reading in read_object(record, f"{head.path}:{number}"):
            found = True
            yield reading
    if head.objects and not found:
        number, record = head.objects[0]
        if (foreign := foreign_formats.of_json(json.dumps(record).encode())) is not None:
            raise foreign.error(f"{head.path}:{number}")
        there = ", ".join(map(printable, record)) or "none"
        raise SourceError(
            f"{head.path}:{number}: no line has one of the keys {', '.join(SUBJECT_KEYS)} (this "
            f"one has {there:.80}); write an object per line as Vertex AI does, or say which keys "
            f"hold what, such as --columns path=file_name,label=label"
        )


def _read_keys(head: Head, given: Given) -> Iterator[Reading]:
    """Yield the task of objects whose keys the options name. Raises: UsageError."""
    check_names((record for _, record in head.objects), given, head.path)
    header = [role for role, keys in given.roles.items() for _ in keys]
    keys = [key for names in given.roles.values() for key in names]
    rows = [[record.get(key) for key in keys] for _, record in head.objects]
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    lists = {at for at in range(len(keys)) if any(isinstance(row[at], list) for row in rows)}
    if not {"path", "text"} & given.roles.keys():
        yield from _read_objects(head)
    else:
        yield read_header(header, texts, "--columns", lists, is_given=True)


def read_header(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    where: str,
    lists: Set[int] = frozenset(),
    *,
    is_given: bool = False,
) -> Reading:
    """Return the task of rows whose columns have known names.

    Args:
        header: the names; given columns have those of their roles.
        rows: what stands below them.
        where: file and line of the header.
        lists: columns whose cells are lists.
        is_given: the options name columns, so that others are left out on purpose.

    Raises:
        UsageError: no column is known that holds paths or texts, boxes are there in a form that is
            not known, or texts are names of images.
    """
    if ObjectDetection.has_header(header):
        return Reading(ObjectDetection.name, f"{where} names the columns of a box")
    labels = find_columns(header, LABEL_COLUMNS)
    same = [at for at in labels if column_name(header[at]) == column_name(header[labels[0]])]
    several = len(same) > 1 or any(at in lists for at in same)
    texts = find_columns(header, TEXT_COLUMNS)
    path = find_path(header, PATH_COLUMNS | TEXT_FILE_COLUMNS)
    has_path = path < len(header)
    paths = [row[path] for row in rows if path < len(row) and row[path]] if has_path else []
    if has_path and not (texts and not _names_images(header, paths)):
        segments = VideoClassification.columns
        is_video = all(find_columns(header, segments[role]) for role in SEGMENT_ROLES)
        kinds = set(map(evidence.kind_of, paths))
        if (is_video and not _names_images(header, paths)) or kinds == {"video"}:
            return Reading(VideoClassification.name, f"{where} names the columns of a segment")
        boxes = [] if is_given else ObjectDetection.other_boxes(header)
        if boxes:
            raise UsageError(
                f"{where}: the columns {', '.join(boxes)} are boxes in a form that is not known; "
                f"write columns xmin, ymin, xmax and ymax, shares of the image, or leave the boxes "
                f"out: --columns path={header[path]},label=…"
            )
        if kinds == {"text"} and not _names_images(header, paths):
            return _read_text_header(header, rows, where, several=several)
        task = ImageMultiLabel if several else ImageClassification
        return Reading(task.name, f"{where} names the columns of images")
    if texts:
        values = [row[texts[0]] for row in rows if texts[0] < len(row) and row[texts[0]]]
        files = list(filter(is_media, values))
        if files and len(files) * 2 >= len(values):
            raise UsageError(
                f"{where}: the header names a column of texts ({','.join(header)}), and it holds "
                f"the names of images or videos ({files[0]:.80}); name it image_uri, or "
                f"video_uri, or say --columns path=…"
            )
        return _read_text_header(header, rows, where, several=several)
    if evidence.is_table([header, *rows]):
        return Reading(Tabular.name, f"{where} names columns, and the lines behind it fill them")
    raise UsageError(
        f"{where}: none of the columns is known to hold paths or texts "
        f"({','.join(header):.200}); say which column holds what, such as --columns "
        f"path={next(filter(None, header), '…')},label=…, or --task {Tabular.name} for a table"
    )


def _read_text_header(
    header: Sequence[str], rows: Sequence[Sequence[str]], where: str, *, several: bool
) -> Reading:
    if several:
        return Reading(TextMultiLabel.name, f"{where} names the columns of texts and labels")
    named = [at for at, name in enumerate(header) if column_name(name) == _SENTIMENT_COLUMN]
    values = {row[at] for at in named for row in rows if at < len(row)} - {""}
    if (
        values
        and not find_columns(header, LABEL_COLUMNS)
        and all(map(evidence.is_sentiment, values))
    ):
        return Reading(TextSentiment.name, f"{where} names the columns of texts and sentiments")
    return Reading(TextClassification.name, f"{where} names the columns of texts")


def _names_images(header: Sequence[str], paths: Sequence[str]) -> bool:
    """Say whether a header, or what stands below it, names images."""
    words = ("image", "img", "photo", "picture")
    return any(word in name.lower() for word in words for name in header) or any(
        map(IMAGE_SUFFIX.search, paths[:1])
    )


# --- stops ---------------------------------------------------------------------------------


def _check_list(head: Head) -> None:
    """Check that a file is no list of JSONL files. Raises: SourceError."""
    named = [line for line in head.lines if line.subject.lower().endswith(_JSON_SUFFIXES[:2])]
    if len(named) * 2 > len(head.lines):
        raise SourceError(
            f"{named[0].where}: this file lists JSONL files, as AutoML has it of entities; name "
            f"these files themselves"
        )


def _stop(
    problem: str,
    files: Sequence[ImportFile],
    heads: Sequence[Head],
    options: ConvertOptions,
) -> NoReturn:
    """Refuse to guess. Raises: UsageError, with some rows as they would be read."""
    rows: Sequence[PreviewRow] = ()
    with suppress(RecordgenError):
        rows = preview_files(files, options)
    if not rows:
        with _showing(heads[0]):
            raise UsageError(f"{problem}; {options.task} would reject the first rows")
    shown = "".join(f"\n  {row}" for row in rows)
    raise UsageError(
        f"{problem}\nrows as {options.task} would read them (split | {_subject(options)} | "
        f"labels):{shown}"
    )


@contextmanager
def _showing(head: Head) -> Iterator[None]:
    """Add the first lines of a file to an error about its columns."""
    try:
        yield
    except UsageError as exc:
        rows = [f"\n  {' | '.join(row):.160}" for row in head.rows[:ROWS_SHOWN]]
        raise UsageError(f"{exc}\nthe first lines of {head.path}:{''.join(rows)}") from exc


def _subject(options: ConvertOptions) -> str:
    return "text" if TASKS[options.task].kind in ("text", "entities") else "path"


# --- columns ----------------------------------------------------------------------------------


def _check_columns(heads: Sequence[Head], options: ConvertOptions) -> None:
    """Check given columns against the task and the files. Raises: UsageError, SourceError."""
    task = options.task
    if not heads or task in (Tabular.name, Declared.name):
        return
    given, made = Given.of(options), task_for(options)
    for head in heads:
        if options.input_format == "csv":
            with _showing(head):
                row_parser(made, Adjustments()).begin(head.rows[0], given, head.where)
        elif given.roles:
            check_keys(made, given)
            check_names((record for _, record in head.objects), given, head.path)
    if options.input_format == "csv" and not any(head.lines for head in heads):
        head = heads[0]
        raise SourceError(
            f"{head.where}: this file has a header ({','.join(head.rows[0]):.200}) and no rows"
        )


def _named_columns(
    heads: Sequence[Head], options: ConvertOptions
) -> tuple[bool | None, tuple[tuple[str, str], ...]]:
    """Return whether there is a header, and the columns with what they hold."""
    if options.task == Tabular.name:
        return True, columns_of_table(Table.from_json(options.table))
    if options.task == Declared.name:
        return None, columns_of_schema(options)
    if options.input_format == "jsonl":
        return None, tuple((name, role) for role, names in options.roles.items() for name in names)
    if options.input_format != "csv" or not heads:
        return None, ()
    head = heads[0]
    if head.header is None:
        return False, ()
    has_header = len(head.lines) < len(head.rows)
    found = row_parser(task_for(options), Adjustments()).columns_of(head.header)
    names = head.rows[0] if has_header else [str(n + 1) for n in range(len(head.header))]
    return has_header, tuple((names[at], role) for role, where in found.items() for at in where)


def columns_of_table(table: Table) -> tuple[tuple[str, str], ...]:
    """Return the columns of a table with type and use."""
    uses = {table.split: "split", table.target: "target", table.weight: "weight"}
    return tuple((c.name, f"{c.dtype} {uses.get(c.name, 'feature')}") for c in table.columns)


def columns_of_schema(options: ConvertOptions) -> tuple[tuple[str, str], ...]:
    """Return the columns of a declared schema with their types."""
    task = task_for(options)
    assert isinstance(task, Declared)  # noqa: S101 -- the caller asks for no other
    return tuple((name, str(kind)) for name, kind in task.schema.columns.items())


# --- DataFrames -------------------------------------------------------------------------------


def detect_frame(frame: pd.DataFrame, options: ConvertOptions) -> Detection:
    """Find out the task and the columns of a DataFrame, as :func:`detect` does it of files.

    Raises:
        UsageError: its columns have no known names, or those that are given are not there.
    """
    if options.header != AUTO:
        raise UsageError("header is for CSV files; a DataFrame names its columns itself")
    options, reason = _with_given_task(options)
    if options.task in (Tabular.name, Declared.name):
        columns = columns_of_schema(options) if options.task == Declared.name else ()
        return Detection(options, reason, columns=columns)
    given = Given("yes", Given.of(options).roles)
    names = [str(name) for name in frame.columns]
    header = given.rename(names, SOURCE)
    rows = list(frame_records(frame))
    is_given = options.task != AUTO
    if not is_given:
        reading = read_header(header, rows, SOURCE, list_columns(frame), is_given=bool(given.roles))
        options, reason = replace(options, task=reading.task), reading.reason
    lines = [Line.of(f"{SOURCE}:{at}", row) for at, row in enumerate(rows, start=1)]
    head = Head(SOURCE, SOURCE, header, True, lines)
    if options.task != Tabular.name and not given.roles and (split := unnamed_split(head)):
        raise UsageError(split)
    if not given.roles.get("label") and (several := several_labels(head)):
        raise UsageError(several)
    if not is_given and not given.roles.get("label") and (odd := odd_column(head)):
        raise UsageError(f"{SOURCE}: {odd}; if they are labels, say task={options.task!r}")
    found = row_parser(task_for(options), Adjustments()).columns_of(header)
    columns = tuple((names[at], role) for role, where in found.items() for at in where)
    return Detection(options, reason, columns=columns)
