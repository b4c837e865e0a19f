"""The refusal of a file whose rows fit no definition: what was seen, and the options that read it.

    labels.csv:1: no role is known for the columns id, breed
    the first lines of labels.csv:
      id | breed
      000bec | collie
    read it with:
    recordgen convert labels.csv out --columns path=id,label=breed --image-root train/

The options are advice, which may be wrong: nothing is read before the user agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from recordgen import tasks
from recordgen.core.dataset.splits import PUBLISHED_WORDS, is_ml_use
from recordgen.errors import NotUnderstoodError
from recordgen.formats.column_names import (
    PATH_COLUMNS,
    TEXT_COLUMNS,
    TEXT_FILE_COLUMNS,
    column_name,
)
from recordgen.formats.field_kinds import (
    NUMBER,
    is_sentence,
    kind_of,
    likely_kind,
    mostly,
    words_of,
)
from recordgen.formats.head import Head
from recordgen.formats.label_fields import BETWEEN, IS_CLASS
from recordgen.formats.missing_files import folder_of_images
from recordgen.tables.roles import (
    BOX_LISTS,
    BOX_ROLES,
    LABEL_COLUMNS,
    MASK_COLUMNS,
    SIZE_ROLES,
    Columns,
)

_ROWS_SHOWN = 3
_ROW_CHARACTERS = 160

# So few columns may hold short texts; so many are a table, whose texts are names or addresses.
_FEW, _MANY = 3, 8

# Words of columns that are likely to hold labels, and those that hardly do.
_LABEL_WORDS = frozenset(
    {"label", "labels", "class", "classes", "category", "target", "tag", "species", "breed"}
)
_NO_LABEL = frozenset({"id", "width", "height"})

_OFFSETS = frozenset({"start", "end", "start_offset", "end_offset", "offset", "length"})

# Columns of a corner or the center, the width and the height; two corners are the task's names.
_SIZE = frozenset({"w", "width", "box_width"}), frozenset({"h", "height", "box_height"})
_SIDES = {
    "xywh": (
        frozenset({"x", "x1", "xmin", "x_min", "left"}),
        frozenset({"y", "y1", "ymin", "y_min", "top"}),
        *_SIZE,
    ),
    "center_xywh": (
        frozenset({"xc", "cx", "x_center", "center_x", "xcenter"}),
        frozenset({"yc", "cy", "y_center", "center_y", "ycenter"}),
        *_SIZE,
    ),
}
_NUMBERS_OF_A_BOX = 4
# Numbers without names that a box explains: its own, those of its picture's size, and its class.
_NUMBERS_BESIDE_A_PATH = 7

# The label of boxes that have none.
_ONE_LABEL = "'object'"


def stop(
    head: Head, problem: str, *, options: Mapping[str, str] | None = None, header: str = ""
) -> NoReturn:
    """Stop with the first rows and the options that are likely to read them.

    Args:
        head: the first rows of the file.
        problem: the clause that does not fit.
        options: the options, if they are known; otherwise they are made of the rows.
        header: the value of ``--columns header``, if the file itself does not show it.

    Raises: NotUnderstoodError: always.
    """
    shown = "".join(f"\n  {line:.{_ROW_CHARACTERS}}" for line in _first_rows(head))
    names, rows = _named_rows(head, header)
    if options is None:
        options = propose(names, rows, head.path, header=header)
    if name := _other_split(names, rows):
        problem += f"; {name!r} names splits: write TRAIN, VALIDATION or TEST in it"
    raise NotUnderstoodError(
        f"{head.where}: {problem}",
        shown=f"the first lines of {head.path}:{shown}",
        options=options,
    )


def some_of(values: Iterable[str]) -> str:
    """Return up to three values as messages show them."""
    found = sorted(values)
    shown = ", ".join(f"{value:.30}" for value in found[:3])
    return shown if len(found) <= 3 else f"{shown}, …"


def _first_rows(head: Head) -> list[str]:
    objects = [record for _, record in head.objects[:_ROWS_SHOWN]]
    if objects:
        return [", ".join(f"{key}: {value}" for key, value in each.items()) for each in objects]
    return [" | ".join(row) for row in head.rows[:_ROWS_SHOWN]]


def _named_rows(head: Head, header: str) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the columns as ``--columns`` names them, and their rows."""
    if head.objects:
        records = [record for _, record in head.objects]
        names = [*dict.fromkeys(key for record in records for key in record)]
        return names, [[str(each.get(name, "")) for name in names] for each in records]
    if head.has_header or header == "yes":
        return head.rows[0], head.rows[1:]
    width = max(map(len, head.rows))
    return [str(number) for number in range(1, width + 1)], head.rows


class _Columns:
    """The columns of a file, of which roles are taken one by one."""

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        values = [[row[at] for row in rows if at < len(row)] for at in range(len(names))]
        self.names = names
        self.all = values
        self.filled = [[*filter(None, column)] for column in values]
        self.rest = [at for at, name in enumerate(names) if name.strip() and self.filled[at]]
        self.roles: dict[str, str] = {}

    def named(self, known: frozenset[str]) -> list[int]:
        """Return the columns of a known name that have no role yet."""
        return [at for at in self.rest if column_name(self.names[at]) in known]

    def those(self, test: Callable[[str], object]) -> list[int]:
        """Return the columns without a role most of whose values pass a test."""
        return [at for at in self.rest if mostly(test, self.filled[at])]

    def take(self, role: str, places: Sequence[int]) -> bool:
        """Give a role to the first of some columns; return whether there is one."""
        for at in places[:1]:
            self.roles[role] = self.names[at]
            self.rest.remove(at)
        return bool(places)


def propose(
    names: Sequence[str], rows: Sequence[Sequence[str]], source: str, *, header: str = ""
) -> Mapping[str, str]:
    """Return the options that are likely to read rows, by keyword.

    Args:
        names: the columns as ``--columns`` names them.
        rows: the first rows below the header.
        source: the file; image names without a folder are looked for beside it.
        header: as in :func:`stop`.
    """
    columns = _Columns(names, rows)
    options: dict[str, str] = {}
    paths = columns.those(lambda value: kind_of(value) in ("image", "video"))
    longest = sorted(columns.those(_is_text), key=lambda at: -sum(map(len, columns.all[at])))
    texts = [*columns.named(TEXT_COLUMNS), *longest]
    if len(names) <= _FEW:
        texts += columns.those(lambda value: likely_kind(value) == "text" and not _numbers(value))
    elif len(names) >= _MANY and not columns.named(TEXT_COLUMNS):
        texts = []
    keys = [at for at in columns.rest if len({*columns.all[at]}) == len(rows) > 1]
    keys = [at for at in keys if not any(map(_is_fraction, columns.all[at]))]
    roots = {at: root for at in keys if (root := folder_of_images(columns.all[at], source))}
    known = columns.named(PATH_COLUMNS | TEXT_FILE_COLUMNS)
    if columns.take("path", [*paths, *roots]):
        first = (paths or [*roots])[0]
        if root := roots.get(first) or folder_of_images(columns.all[first], source):
            options["image_root"] = root
    elif not columns.take("text", texts) and not columns.take("path", known):
        return _of_table(columns, header)
    columns.take("split", _splits(columns))
    if header == "no" and len(columns.those(NUMBER.fullmatch)) > _NUMBERS_BESIDE_A_PATH:
        return {}  # landmarks, for example
    _take_boxes(columns)
    are_cut = header == "no" and len({*map(len, rows)}) > 1  # texts at their commas
    are_parts = len(columns.named(_OFFSETS)) > 1  # of texts, which no columns name
    if "text" in columns.roles and (are_cut or are_parts):
        return {}
    if not _take_labels(columns):
        options["labels"] = "none"
    return {"columns": _spelled(columns.roles, header), **options}


def _take_labels(columns: _Columns) -> bool:
    """Give a role to the columns of labels or masks; return whether there is one."""
    flags = [at for at in columns.rest if {*map(str.lower, columns.filled[at])} <= IS_CLASS.keys()]
    has_boxes = not {"xmin", *BOX_LISTS}.isdisjoint(columns.roles)
    if len(flags) > 1:
        columns.roles["label"] = BETWEEN.join(columns.names[at] for at in flags)
        return True
    if columns.take("mask", columns.named(MASK_COLUMNS)) or columns.take("label", _labels(columns)):
        return True
    if has_boxes:
        columns.roles["label"] = _ONE_LABEL
    return has_boxes


def _is_fraction(value: str) -> bool:
    return "." in value and NUMBER.fullmatch(value) is not None


def _other_split(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the column whose values hold words of ML_USE, such as ``PublicTest``; "" without."""
    for name, values in zip(names, zip(*rows, strict=False), strict=False):
        words = [[*map(str.lower, words_of(value))] for value in {*values}]
        hold = [any(map(is_ml_use, each)) and len(each) <= _FEW for each in words]
        is_split = all(map(is_ml_use, values))
        if len(words) > 1 and all(hold) and not is_split and not any(map(kind_of, values)):
            return name
    return ""


def _spelled(roles: Mapping[str, str], header: str) -> str:
    is_shown = header == "yes" and not all(name.isdecimal() for name in roles.values())
    return str(Columns.of({**roles, **({"header": header} if header and not is_shown else {})}))


def _of_table(columns: _Columns, header: str) -> Mapping[str, str]:
    """Return the target of rows without paths and texts."""
    columns.take("split", _splits(columns))
    target = [*_labels(columns), *columns.rest[-1:]]
    split = _other_split(columns.names, [*zip(*columns.all, strict=False)])
    target = [at for at in target if columns.names[at] != split]
    if len(columns.names) < 2 or not columns.take("target", target):
        return {}
    return {"columns": _spelled(columns.roles, header)}


def _splits(columns: _Columns) -> list[int]:
    """Return the columns of words of ML_USE: "valid" alone may also be a state."""
    found = [at for at in columns.rest if all(map(is_ml_use, columns.filled[at]))]
    words = {at: {value.lower() for value in columns.filled[at]} for at in found}
    return [at for at in found if not words[at].isdisjoint(PUBLISHED_WORDS)]


def _take_boxes(columns: _Columns) -> None:
    """Give roles to the columns of boxes: two corners, a corner and a size, or a list."""
    if tasks.ObjectDetection.has_header([columns.names[at] for at in columns.rest]):
        for role, known in tasks.ObjectDetection.columns.items():
            if role != "label":
                columns.take(role, columns.named(known))
        return
    lists = columns.those(lambda value: len(_numbers(value)) == _NUMBERS_OF_A_BOX)
    if columns.take("xywh", lists):
        return
    numbers = columns.those(NUMBER.fullmatch)
    if columns.names[0] == "1" and "path" in columns.roles:  # no names say what they are
        first = next((at for at in numbers if {*range(at, at + 4)} <= {*numbers}), None)
        if first is not None:
            _take_numbers(columns, first)
        return
    for form, sides in _SIDES.items():
        if all(found := [columns.named(known) for known in sides]):
            places = [first for first, *_ in found]
            columns.roles[form] = BETWEEN.join(columns.names[at] for at in places)
            columns.rest = [at for at in columns.rest if at not in places]


def _take_numbers(columns: _Columns, first: int) -> None:
    """Give roles to four columns of numbers: two corners, if the second is beyond the first."""
    places = [*range(first, first + 4)]
    left, top, right, down = ([float(v) for v in columns.filled[at]] for at in places)
    pairs = [*zip(left, right, strict=False), *zip(top, down, strict=False)]
    if all(low < high for low, high in pairs):
        for role, at in zip(BOX_ROLES, places, strict=True):
            columns.take(role, [at])
    else:
        columns.roles["xywh"] = BETWEEN.join(columns.names[at] for at in places)
        columns.rest = [at for at in columns.rest if at not in places]
    size = columns.those(NUMBER.fullmatch)
    if len(size) == len(SIZE_ROLES):
        for role, at in zip(SIZE_ROLES, size, strict=True):
            columns.take(role, [at])


def _is_text(value: str) -> bool:
    letters = sum(map(str.isalpha, value))
    return is_sentence(value) and letters * 2 > len(value.replace(" ", ""))


def _numbers(value: str) -> list[str]:
    parts = value.strip("[]() ").replace(",", " ").split()
    return parts if all(map(NUMBER.fullmatch, parts)) else []


def _labels(columns: _Columns) -> list[int]:
    """Return the columns that are likely to hold labels: by their names, or as values repeat."""
    some = [at for at in columns.rest if column_name(columns.names[at]) not in _NO_LABEL]
    some = [at for at in some if not mostly(is_sentence, columns.filled[at])]
    named = [at for at in some if column_name(columns.names[at]) in LABEL_COLUMNS]
    named += [at for at in some if not _LABEL_WORDS.isdisjoint(words_of(columns.names[at]))]
    repeat = [at for at in some if len({*columns.filled[at]}) < len(columns.filled[at])]
    words = [at for at in repeat if not mostly(NUMBER.fullmatch, columns.filled[at])]
    return [*named, *(some if len(some) == 1 else []), *words]
