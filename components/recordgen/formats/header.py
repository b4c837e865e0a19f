"""The first rows of import files: headers, known column names, columns that options name, lines.

    split,image_uri,label   known names: a header
    id,picture,breed        a header with --columns path=picture,label=breed
    3,x/1.jpg,cat           no header; --columns path=2,label=3 names its columns by number

``Image URI`` is the known name ``image_uri``, and ``label_2`` is ``label``.

Given columns get the known name of their role, so readers of the header need no other rule:
``id,picture,breed`` above is read as ``id,path,label``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, NoReturn

from recordgen.core.dataset.splits import UNASSIGNED, is_ml_use
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import SourceError, UsageError, did_you_mean
from recordgen.formats.field_kinds import filled_at, kind_of, known_words, words_of
from recordgen.formats.label_fields import BETWEEN, Classes, label_columns, separated
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import RejectCode
from recordgen.tables import roles as known_roles
from recordgen.tables.roles import BOX_LISTS, BOX_ROLES, LABEL, LABEL_COLUMNS, LABEL_TEXT, Roles

# Weak names: they mean the split or the path only if the header has no stronger name for it.
_PERHAPS_SPLIT = frozenset({"set", "subset", "partition"})
_PERHAPS_PATH = frozenset({"image_id", "id_code"})

SPLIT_COLUMNS = _PERHAPS_SPLIT | {"split", "ml_use", "mluse", "dataset_split", "data_split"}
#: Names of columns that number splits or folds: 0, 1, 2.
NUMBERED_COLUMNS = SPLIT_COLUMNS | {"fold", "folds", "kfold", "k_fold", "fold_id", "fold_number"}
PATH_COLUMNS = _PERHAPS_PATH | known_words("paths")
TEXT_COLUMNS = known_words("texts")
#: Columns of paths to text files.
TEXT_FILE_COLUMNS = known_words("files_of_texts")
#: Columns of paths to files of any kind.
FILE_COLUMNS = PATH_COLUMNS | TEXT_FILE_COLUMNS

#: Names that occur only in headers, for any task.
KNOWN_COLUMNS = PATH_COLUMNS | SPLIT_COLUMNS | TEXT_COLUMNS | LABEL_COLUMNS | {"sentiment"}

#: The index of a missing column, beyond every field.
NOWHERE = 1 << 30

_BETWEEN_FIELDS = re.compile(r"[,;\t]")


def column_name(header_field: str) -> str:
    """Return a field of a header in the spelling of known names: ``Image URI`` → ``image_uri``."""
    return re.sub(r"_\d+$", "", header_field.strip().lower().replace(" ", "_"))


def names_without_blanks(names: Iterable[Any]) -> list[str]:
    """Return names of columns as options have them: without blanks, of any kind, around them."""
    return [str(name).strip() for name in names]


def keys_without_blanks(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with :func:`names_without_blanks`, unless two would become the same."""
    found = dict(zip(names_without_blanks(record), record.values(), strict=True))
    return found if len(found) == len(record) else record


def find_columns(header: Sequence[str], names: Iterable[str]) -> list[int]:
    """Return the indices of the columns that have one of several known names."""
    known = frozenset(names)
    return [index for index, name in enumerate(header) if column_name(name) in known]


def find_split(header: Sequence[str]) -> int:
    """Return the index of the split's column, or :data:`NOWHERE`."""
    return _surest(header, SPLIT_COLUMNS, _PERHAPS_SPLIT)


def find_path(header: Sequence[str], names: frozenset[str] = PATH_COLUMNS) -> int:
    """Return the index of the path's column, or :data:`NOWHERE`."""
    return _surest(header, names, _PERHAPS_PATH)


def _surest(header: Sequence[str], names: frozenset[str], perhaps: frozenset[str]) -> int:
    for known in (names - perhaps, names & perhaps):
        if found := find_columns(header, known):
            return found[0]
    return NOWHERE


def same_named(header: Sequence[str], indices: Sequence[int]) -> Sequence[int]:
    """Return the columns with the same name as the first of them: ``label_1``, ``label_2``."""
    names = [column_name(header[index]) for index in indices]
    return [index for index, name in zip(indices, names, strict=True) if name == names[0]]


# --- the columns of a file ----------------------------------------------------------------------


class Header(NamedTuple):
    """The columns of a file, and what options say of them.

    Attributes:
        names: as in the header; empty without one.
        known: the same, but given columns have the known names of their roles, and other columns
            with a known name of these roles have none.
        classes: the classes of one-hot columns, by index.
        group: the index of the column of groups, or :data:`NOWHERE`.
        boxes: the indices of the columns of :attr:`Given.boxes`.
    """

    names: Sequence[str]
    known: Sequence[str]
    classes: Mapping[int, Classes] = {}
    group: int = NOWHERE
    boxes: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """The options about columns of import files.

    Attributes:
        header: ``auto``, ``yes`` or ``no``, see :class:`recordgen.options.ConvertOptions`.
        roles: the given columns, by role.
        boxes: how a column holds boxes, one of :data:`BOX_LISTS`, and the column; empty if none is
            given.
        group: name, JSON key or number of the column of groups; empty if none is given.
        names_splits: whether names of files and folders give splits.
        label_separator: separates several labels in one field; empty if a field is a label.
        encoding: of the files; empty if their byte order marks decide.
        uncertain: see :class:`recordgen.tables.roles.Columns`.
        are_declared: a schema declares the columns.
        is_table: an option is for tables only, such as the target.
    """

    header: str = AUTO
    roles: Roles = field(default_factory=dict)
    boxes: tuple[str, ...] = ()
    group: str = ""
    names_splits: bool = True
    label_separator: str = ""
    encoding: str = ""
    uncertain: str = AUTO
    are_declared: bool = False
    is_table: bool = False

    @classmethod
    def of(cls, options: ConvertOptions) -> Given:
        """Return the columns that options give, without the roles that only tables have."""
        given = options.columns.roles
        others = (*known_roles.TABLE_ROLES, *BOX_LISTS)
        roles = {role: names for role, names in given.items() if role not in others}
        boxes = next(((form, *given[form]) for form in BOX_LISTS if form in given), ())
        group = options.grouping.column if options.grouping is not None else ""
        return cls(
            options.columns.header,
            roles,
            boxes,
            group,
            options.split.names != "no",
            options.label_separator,
            options.encoding,
            options.columns.uncertain,
            options.declared_schema is not None,
            bool(options.of_tables()),
        )

    @property
    def settles_header(self) -> bool:
        """Whether the options decide if the first line is a header."""
        return self.header != AUTO or self.names_columns

    @property
    def names_columns(self) -> bool:
        """Whether a column is given by name, which requires a header."""
        given = chain(self.group and (self.group,), self.box_columns(()), *self.roles.values())
        return any(not name.isdecimal() and not is_constant(name) for name in given)

    def numbers_names(self, fields: Sequence[str]) -> bool:
        """Return whether a line has the known name of a role in the column given for that role.

        ``image,breed`` has one for ``path=1,label=2``. A line that names a file has none.
        """
        return not any(map(kind_of, fields)) and any(
            column_name(fields[int(number) - 1]) in _ALSO.get(role, {role})
            for role, numbers in self.roles.items()
            for number in numbers
            if number.isdecimal() and 0 < int(number) <= len(fields)
        )

    def below(self, header: Sequence[str], where: str) -> Header:
        """Return the columns below a header, with the given roles.

        Raises: UsageError: a given name has no column, or several.
        """
        names = names_without_blanks(header)
        group = self.find_group(names, where)
        known = names if group == NOWHERE else _without_meaning(names, group)
        boxes = self.box_places(names, where)
        # A box's own width is not that of its image.
        known = ["" if at in boxes else name for at, name in enumerate(known)]
        if LABEL not in self.roles:
            known = _with_names_of_labels(known)
        roles: dict[int, str] = {}
        classes: dict[int, Classes] = {}
        for role, name in ((role, name) for role, given in self.roles.items() for name in given):
            columns = label_columns(name, names) if role == LABEL else {name: ""}
            places = {_place(each, names, role, where): of for each, of in columns.items()}
            roles |= dict.fromkeys(places, role)
            classes |= {at: of for at, of in places.items() if of}
        known = [roles.get(at) or ("" if self.overrides(it) else it) for at, it in enumerate(known)]
        return Header(names, known, classes, group, boxes)

    def overrides(self, name: str) -> bool:
        """Return whether a column has the known name of a role for which another one is given."""
        return any(column_name(name) in _ALSO.get(role, {role}) for role in self.roles)

    def keys_of(self, role: str) -> tuple[str, ...]:
        """Return the keys of JSON objects that are given for a role."""
        columns = (label_columns(name, ()) for name in self.roles[role])
        return tuple(chain.from_iterable(columns)) if role == LABEL else self.roles[role]

    def box_columns(self, there: Sequence[str]) -> Sequence[str]:
        """Return the columns of :attr:`boxes`: ``x|y|w|h`` are four, if none of ``there`` is.

        Raises: UsageError: they are neither one nor four.
        """
        name = "".join(self.boxes[1:])
        columns = [name] if name in there else [side.strip() for side in name.split(BETWEEN)]
        if len(columns) not in (1, 4):
            raise UsageError(f"columns: boxes are a column or four, such as x|y|w|h (got {name})")
        return columns if name else ()

    def box_places(self, header: Sequence[str], where: str) -> Sequence[int]:
        """Return the columns of :attr:`boxes`, not those of the corners that are made of them.

        Raises: UsageError: one is missing.
        """
        sides = self.box_columns(header)
        made_at = len(header) - len(BOX_ROLES)
        if tuple(header[made_at:]) == BOX_ROLES and {*sides} <= {*header[:made_at]}:
            header = header[:made_at]
        return [_place(it, header, self.boxes[0], where) for it in sides]

    def find_group(self, header: Sequence[str], where: str) -> int:
        """Return the index of the column of groups, or :data:`NOWHERE` if none is given.

        Without a header, the column is given by number.

        Raises: UsageError: the given name has no column, or several.
        """
        if not self.group:
            return NOWHERE
        names = names_without_blanks(header)
        return column_place(self.group, names, f"group_by={self.group}", where, "--group-by ")

    def check_numbers(self, roles: Iterable[str], count: int, where: str) -> None:
        """Check that lines of so many fields have the columns of roles. Raises: UsageError."""
        for role in roles:
            for number in self.roles[role]:
                if number.isdecimal() and int(number) > count:
                    what = f"there is no column {number} for {role}; lines have {count} fields"
                    raise UsageError(f"{where}: {what}")

    def numbered(self, fields: Sequence[str], where: str) -> Header:
        """Return the columns with the given numbers, of a file without a header.

        Raises:
            UsageError: a column is given by name, or the line has no column of the path, text or
                group. Later lines may have more fields, and the split and labels in them.
        """
        if self.names_columns:
            pairs = [f"{role}={name}" for role, [name, *_] in self.roles.items()]
            named = ", ".join([*pairs, f"group_by={self.group}"] if self.group else pairs)
            what = f"without a header, columns are numbers, such as path=1,label=2 (got {named})"
            raise UsageError(f"{where}: {what}; if this line is one, use --columns header=yes")
        self.check_numbers({"path", "text"} & self.roles.keys(), len(fields), where)
        numbers = filter(str.isdecimal, chain(*self.roles.values()))
        header = [""] * max(len(fields), *map(int, numbers))
        # Made fields are behind the others: those of the corners, and the same label in each line.
        labels = [*filter(is_constant, self.roles.get("label", ()))]
        made = [*(BOX_ROLES if self.boxes else ()), *labels]
        header[len(fields) - len(made) : len(fields)] = made
        return self.below(header, where)


def is_constant(name: str) -> bool:
    """Return whether the value of a role is a label in single quotes, and no column."""
    return len(name) > 2 and name[0] + name[-1] == "''"


#: No options about columns.
NOTHING_GIVEN = Given()

# By role: the known names that lose their meaning if another column is given for the role.
_ALSO = {
    "path": FILE_COLUMNS,
    "text": TEXT_COLUMNS,
    "split": SPLIT_COLUMNS,
    "label": LABEL_COLUMNS | {"sentiment", LABEL_TEXT},
}


def column_place(name: str, header: Sequence[str], given: str, where: str, option: str = "") -> int:
    """Return the index of a column by name, or by number from 1 if no column has that name.

    Args:
        name: the name or the number.
        header: the names of the columns.
        given: what names the column, for messages: ``columns: path=id``.
        where: the line of the header.
        option: what takes its number instead: ``--columns path=``; empty if nothing does.

    Raises: UsageError: there is no such column; or several, of which the first could be meant.
    """
    found = [index for index, column in enumerate(header) if column == name]
    if len(found) == 1:
        return found[0]
    if found:
        remedy = f"choose one by number: {option}{found[0] + 1}" if option else "rename the others"
        raise UsageError(f"{where}: {len(found)} columns are named {name!r}; {remedy}")
    if name.isdecimal() and 1 <= int(name) <= len(header):
        return int(name) - 1
    no_column(name, header, f"{where}: {given}")


def _place(name: str, header: Sequence[str], role: str, where: str) -> int:
    return column_place(name, header, f"columns: {role}={name}", where, f"--columns {role}=")


def _without_meaning(header: Sequence[str], at: int) -> list[str]:
    """Return a header without the name of a column, if another column has the same known meaning.

    For example, ``video,image_uri,label`` has its paths in ``image_uri`` if ``video`` is the group.
    """
    name = column_name(header[at])
    for known in _ALSO.values():
        if name in known and len(find_columns(header, known)) > 1:
            return [*header[:at], "", *header[at + 1 :]]
    return list(header)


def _with_names_of_labels(header: Sequence[str]) -> list[str]:
    """Return a header in which the names of labels are the label, and their numbers are not."""
    names, pair = [*header], [find_columns(header, {name}) for name in (LABEL, LABEL_TEXT)]
    if all(pair):
        [number, *_], [text, *_] = pair
        names[number], names[text] = known_roles.LABEL_NUMBER, LABEL
    return names


def kinds_in(fields: Sequence[str]) -> set[str]:
    """Return what a line holds besides names: files, texts, and first a word of ML_USE."""
    return {*map(kind_of, fields), "split" if fields[0] and is_ml_use(fields[0]) else ""} - {""}


def names_payloads(fields: Sequence[str]) -> bool:
    """Return whether a line has a known name of a column of paths or texts."""
    return bool(find_columns(fields, FILE_COLUMNS | TEXT_COLUMNS))


def begins_with_header(first: Sequence[str], given: Given) -> bool:
    """Return whether the first line of a file is a header.

    Options say so, or the line names a column of paths or texts and holds none.
    """
    if given.settles_header:
        return given.header != "no"
    return given.numbers_names(first) or (names_payloads(first) and not kinds_in(first))


def no_column(name: str, there: Sequence[str], what: str) -> NoReturn:
    """Raise a UsageError about a missing column, which lists the existing columns."""
    shown, hint = listed(list(filter(None, there)), str), did_you_mean(name, there)
    raise UsageError(f"{what}: there is no column {name!r}, only {shown or 'numbers from 1'}{hint}")


def other_width(expected: int, got: int) -> str:
    """Return what is wrong with a line that has more fields than the header, or fewer."""
    return f"expected {expected} fields as in the header (got {got})"


def too_many_fields(expected: int, got: int) -> AnnotationError:
    """Return the error about a line with more fields than the header, or fewer."""
    message = f"{other_width(expected, got)}; quote a field that holds a comma"
    return AnnotationError(RejectCode.TOO_MANY_FIELDS, message)


def check_twice(header: Sequence[str], columns: dict[str, list[int]]) -> None:
    """Check that only the label has several columns with one name. Raises: UsageError."""
    for role, found in columns.items():
        for index in found if role != "label" else ():
            if list(header).count(name := header[index]) > 1:
                what = f"two columns are named {name!r} ({','.join(header):.200}); rename one"
                raise UsageError(f"{what}, or choose by number: --columns {role}={index + 1}")


def other_header(fields: Sequence[str], where: str) -> SourceError:
    """Return the error about a line that reads as the header of another file."""
    what = f"this line reads as another header ({','.join(fields):.200})"
    remedy = "put the lines below into another file, or use --columns header=no if it is a row"
    return SourceError(f"{where}: {what}; {remedy}")


# --- the first rows, from which detection infers the task and the columns -------------------------


class Line(NamedTuple):
    """The fields of a line, read as a row without a header.

    Attributes:
        where: file and line.
        fields: stripped, without empty fields at the end.
        has_ml_use: the line begins with ML_USE, which may be empty.
        place: the index of the path or text.
        subject: the path or text.
        kind: of the path or text, see :func:`recordgen.formats.field_kinds.kind_of`.
        annotation: the fields after the path or text.
        labels: the filled fields of the annotation.
        is_quoted: the path or text is in quotes.
    """

    where: str
    fields: Sequence[str]
    has_ml_use: bool
    place: int
    subject: str
    kind: str
    annotation: Sequence[str]
    labels: Sequence[str]
    is_quoted: bool

    @classmethod
    def of(
        cls, where: str, fields: Sequence[str], *, is_quoted: bool = False, separator: str = ""
    ) -> Line:
        """Return a line; the path or text follows ML_USE, which may be misspelt.

        ``separator`` separates several labels in one field; empty if a field is a label.
        """
        first, second = (*fields, "", "")[:2]
        has_ml_use = len(fields) > 1 and is_ml_use(first)
        at, kind = int(has_ml_use), kind_of(second if has_ml_use else first)
        if not kind and not has_ml_use and kind_of(second) in ("image", "video"):
            at, kind = 1, kind_of(second)
        annotation = fields[at + 1 :]
        labels = list(filter(None, separated(annotation, separator)))
        subject = second if at else first
        return cls(where, fields, has_ml_use, at, subject, kind, annotation, labels, is_quoted)


@dataclass(frozen=True)
class Head:
    """The first records of a CSV file or a DataFrame, or the first objects of a JSONL file.

    Attributes:
        path: the file.
        where: file and line of the first record.
        rows: all records, including the header.
        columns: the columns of a header or of options; None if position decides.
        has_header: whether the first record is a header.
        lines: the records below the header.
        lists: columns whose cells are lists.
        objects: the objects of a JSONL file, with their line numbers.
        delimiter: the separator of a CSV file.
        label_separator: separates several labels in one field; empty if a field is a label.
        splits_of_objects: the words for the splits of objects.
        in_doubt: whether the first record is neither a header of known names nor like the others.
    """

    path: str
    where: str
    rows: Sequence[Sequence[str]] = ()
    columns: Header | None = None
    has_header: bool = False
    lines: Sequence[Line] = ()
    lists: Set[int] = frozenset()
    objects: Sequence[tuple[int, Mapping[str, Any]]] = ()
    delimiter: str = ","
    label_separator: str = ""
    splits_of_objects: Sequence[str] = ()
    in_doubt: bool = False

    @property
    def header(self) -> Sequence[str] | None:
        """The known names of the columns; None if position decides."""
        return None if self.columns is None else self.columns.known

    @property
    def classes(self) -> Mapping[int, Classes]:
        """The classes of one-hot columns, by index."""
        return {} if self.columns is None else self.columns.classes

    @property
    def names(self) -> Sequence[str]:
        """The columns as ``--columns`` takes them: by name, key, or number without a header."""
        if self.has_header:
            return self.rows[0]
        return [str(number) for number, _ in enumerate(self.header or self.rows[0], start=1)]

    def filled(self, at: int) -> list[str]:
        """Return the fields of a column below the header, without empty ones."""
        return filled_at((line.fields for line in self.lines), at)

    @property
    def says_unassigned(self) -> bool:
        """Whether a row asks for an assigned split."""
        return UNASSIGNED in self._split_words

    @property
    def names_splits(self) -> bool:
        """Whether a row names a split."""
        return any(is_ml_use(word) for word in self._split_words - {"", UNASSIGNED})

    @property
    def _split_words(self) -> Set[str]:
        """The contents of the rows' fields for the split, in lower case."""
        at = 0 if self.header is None else find_split(self.header)
        fields = (line.fields[at] for line in self.lines if at < len(line.fields))
        return {text.strip().lower() for text in chain(fields, self.splits_of_objects)}


class Candidate(NamedTuple):
    """A possible task, with the evidence.

    Attributes:
        task: its name.
        reason: a line, and what the line has.
        lines: number of lines that show the task; 0 for a guess from lines without annotations.
    """

    task: str
    reason: str
    lines: int = 1


def labels_folders(head: bytes, folders: Set[str]) -> bool:
    """Return whether a table names folders, and has labels for them that recur.

    ``video,label``, ``v1,run``, ``v2,walk``, ``v3,run``; what recurs beside numbered ids is their
    label, but words such as ``cat`` are classes. Without a header, numbers are ids.
    """
    lines = head.decode("utf-8", "replace").splitlines()
    rows = [[it.strip() for it in _BETWEEN_FIELDS.split(line)] for line in lines or [""]]
    is_bare = not folders.isdisjoint(rows[0])
    names = [f"{at}_id" for at, _ in enumerate(rows[0])] if is_bare else rows.pop(0)
    columns = dict(zip(names, map(set, zip(*rows, strict=False)), strict=False))
    named = [it for it, values in columns.items() if folders <= values or values <= folders]
    are_numbered = any(any(map(str.isdecimal, folder)) for folder in folders)
    are_ids = are_numbered and any(words_of(name)[-1:] == ["id"] for name in named)
    labels = {name for name in columns if are_ids or column_name(name) in LABEL_COLUMNS}
    named = [name for name in named if are_ids or name not in labels]
    return bool(named) and any(len(columns[name]) < len(folders) for name in labels)
