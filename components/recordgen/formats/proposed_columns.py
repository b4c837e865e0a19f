"""The columns of a file, of which roles are proposed one by one, and those of boxes among them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from itertools import chain

from recordgen import tasks
from recordgen.core.dataset.splits import is_ml_use
from recordgen.formats.field_kinds import NUMBER, have_words, mostly, words_by_kind, words_of
from recordgen.formats.header import column_name
from recordgen.formats.image_sizes import size_in_file
from recordgen.formats.label_fields import BETWEEN
from recordgen.formats.listing import Listing
from recordgen.formats.split_names import names_split
from recordgen.tables.roles import BOX_LISTS, BOX_ROLES, SIZE_ROLES

#: Rows or columns that are many: they show what their values mean.
MANY = 8

# Fields of rows that are considered: of wide tables, some rows are enough for advice.
_CONSIDERED_FIELDS = 50_000

_OF_BOX = re.compile(r"\A(?:bounding_)?b?box_")
_BRACKETS = str.maketrans("[]()", "    ")


class ProposedColumns:
    """The columns of a file, of which roles are taken one by one.

    Attributes:
        words: the words of the name of each column.
        counts: how many different values each column has.
        has_namesakes: whether a name recurs, which no table may have.
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        count = min(len(rows), _CONSIDERED_FIELDS // (len(names) or 1) or 1)
        # Classes may come by turns, so the choice is random, and the same each time.
        chosen = [rows[at] for at in sorted(random.Random(0).sample(range(len(rows)), count))]
        filled = [name for name in names if name.strip()]
        self.names = names
        self.has_namesakes = len({*filled}) < len(filled)
        self.all = [[row[at] for row in chosen if at < len(row)] for at in range(len(names))]
        self.filled = [[*filter(None, column)] for column in self.all]
        self.words = [*map(words_of, names)]
        self.counts = [len({*values}) for values in self.filled]
        self.rest = [
            at
            for at, name in enumerate(names)
            if self.filled[at] and name.strip() and not _numbers_splits(name, self.filled[at])
        ]
        self.roles: dict[str, str] = {}
        self.places: dict[str, int] = {}

    def named(self, known: Collection[str]) -> list[int]:
        """Return the columns of a known name that have no role yet."""
        return [at for at in self.rest if bare_name(self.names[at]) in known]

    def those(self, test: Callable[[str], object]) -> list[int]:
        """Return the columns without a role most of whose values pass a test."""
        return [at for at in self.rest if mostly(test, self.filled[at])]

    def holds(self, role: str, test: Callable[[str], object]) -> bool:
        """Return whether most values of the column of a role pass a test."""
        return role in self.places and mostly(test, self.filled[self.places[role]])

    def is_varied(self, at: int) -> bool:
        """Return whether a column has several values, or too few rows to show them."""
        return self.counts[at] > 1 or len(self.filled[at]) < MANY

    def repeats(self, at: int) -> bool:
        """Return whether a value of a column is in several rows."""
        return self.counts[at] < len(self.filled[at])

    def take(self, role: str, places: Sequence[int]) -> bool:
        """Give a role to the first of some columns, by number if its name recurs.

        The role of a column that neither its name nor its number tells from others is empty.

        Returns: whether there is one.
        """
        for at in places[:1]:
            name, number = self.names[at], str(at + 1)
            if self.names.count(name) > 1:
                name = "" if number in self.names else number  # which would mean another column
            self.roles[role] = name
            self.places[role] = at
            self.rest.remove(at)
        return bool(places)


def bare_name(name: str) -> str:
    """Return the known name of a column without unit and box: ``bbox_x [px]`` → ``x``."""
    return _OF_BOX.sub("", column_name(name.partition("[")[0].partition("(")[0] or name))


def _numbers_splits(name: str, values: Sequence[str]) -> bool:
    """Return whether a column has the name of folds, and numbers or flags for them."""
    is_fold = names_split(name) or "fold" in words_of(name)
    return is_fold and not any(map(is_ml_use, values))


def take_boxes(columns: ProposedColumns, folder: str) -> None:
    """Give roles to the columns of boxes: two corners, a corner and a size, or a list."""
    if tasks.ObjectDetection.has_header([bare_name(columns.names[at]) for at in columns.rest]):
        for role, known in tasks.ObjectDetection.columns.items():
            if role != "label":
                columns.take(role, columns.named(known))
        return
    lists = columns.those(are_boxes)
    lists = [at for at in lists if not have_words("runs", columns.words[at])]
    lists = [at for at in lists if form_of_boxes(columns.names[at]) in ("", *BOX_LISTS)]
    if lists:
        form = form_of_boxes(columns.names[lists[0]])
        are_corners = not form and _hold_corners(columns, lists[0], folder)
        columns.take(form or ("xyxy" if are_corners else "xywh"), lists)
        return
    numbers = columns.those(NUMBER.fullmatch)
    fours = [[*range(at, at + len(BOX_ROLES))] for at in numbers]
    fours = [four for four in fours if {*four} <= {*numbers}]
    named = [*filter(None, (_corners_in(columns, four) for four in fours))]
    for four in named[:1] if len(named) == 1 else ():  # more are points
        first, _, second, _ = (columns.words[at] for at in four)
        if {*first} ^ {*second} != {"left", "right"} and _take_corners(columns, four):
            return
    for form, sides in words_by_kind()["sides"].items():
        if all(found := [columns.named(known) for known in sides]):
            places = [first for first, *_ in found]
            take_list(columns, "center_xywh" if _end_outside(columns, places) else form, places)
            return
    if columns.names[0] == "1" and "path" in columns.roles:  # no names say what they are
        for four in fours[:1]:
            if not _take_corners(columns, four):
                take_list(columns, "xywh", four)
        size = columns.those(NUMBER.fullmatch)
        if fours and len(size) == len(SIZE_ROLES):
            for role, at in zip(SIZE_ROLES, size, strict=True):
                columns.take(role, [at])


def _corners_in(columns: ProposedColumns, four: Sequence[int]) -> Sequence[int]:
    """Return columns as x and y of one corner and of the other; none if names say other sides."""
    axes = {at: {"x", "y"} & {*columns.words[at]} for at in four}
    across, down = ([at for at in four if axes[at] == {axis}] for axis in "xy")
    return [across[0], down[0], across[1], down[1]] if len(across) == len(down) == 2 else ()


def form_of_boxes(name: str) -> str:
    """Return the form of boxes that the name of their column says: ``bbox_xywh`` → xywh.

    That of ``box_2d`` is yxyx, which no option reads; Qwen's ``bbox_2d`` is xyxy.
    """
    forms = words_by_kind()["forms"].items()
    return next((form for form, said in forms if re.search(said, name.lower())), "")


def _hold_corners(columns: ProposedColumns, at: int, folder: str) -> bool:
    """Return whether the last two of four numbers are a corner, and no width and height.

    They are larger than the first two in many boxes, or would be sizes beyond a picture.
    """
    lists = [*map(_boxes, columns.all[at])]
    boxes = {*chain.from_iterable(lists)}
    if not all(x < right and y < down for x, y, right, down in boxes):
        return False
    images = columns.all[columns.places["path"]][:MANY]
    sizes = [None if is_web(it) else size_in_file(Listing(f"{folder}/"), it) for it in images]
    if max(map(max, boxes)) <= 1:
        sizes = [(1, 1)] * len(lists)  # shares of the picture
    are_beyond = any(
        x + across > size[0] or y + down > size[1]
        for some, size in zip(lists, sizes, strict=False)
        if size is not None
        for x, y, across, down in some
    )
    return are_beyond or len(boxes) >= MANY


def _end_outside(columns: ProposedColumns, places: Sequence[int]) -> bool:
    """Return whether most boxes in shares of a picture would end outside, so x is a center."""
    are_corners = {bare_name(columns.names[at]) for at in places[:2]} & {"left", "top"}
    numbers = (filter(NUMBER.fullmatch, columns.filled[at]) for at in places)
    boxes = [*zip(*(map(float, each) for each in numbers), strict=False)]
    are_shares = bool(boxes) and max(map(max, boxes)) <= 1.1  # some are inexact
    beyond = sum(max(x + wide, y + high) > 1.01 for x, y, wide, high in boxes)
    return are_shares and not are_corners and beyond * 2 > len(boxes)


def take_list(columns: ProposedColumns, form: str, places: Sequence[int]) -> None:
    """Give one role to several columns."""
    columns.roles[form] = BETWEEN.join(columns.names[at] for at in places)
    if form in BOX_LISTS:
        columns.places[form] = places[0]
    columns.rest = [at for at in columns.rest if at not in places]


def _take_corners(columns: ProposedColumns, places: Sequence[int]) -> bool:
    """Give roles to four columns of numbers if the second corner is beyond the first."""
    numbers = (filter(NUMBER.fullmatch, columns.filled[at]) for at in places)  # of most rows
    left, top, right, down = (list(map(float, each)) for each in numbers)
    pairs = [*zip(left, right, strict=False), *zip(top, down, strict=False)]
    are_corners = all(low < high for low, high in pairs)
    if are_corners:
        for role, at in zip(BOX_ROLES, places, strict=True):
            columns.take(role, [at])
    return are_corners


def are_boxes(value: str) -> bool:
    """Return whether a value is a list of boxes, each of four numbers."""
    count = len(numbers_in(value))
    is_whole = value.startswith("[[") or count == len(BOX_ROLES)
    return is_whole and count > 0 and count % len(BOX_ROLES) == 0


def _boxes(value: str) -> Sequence[tuple[float, ...]]:
    """Return the fours of numbers in a list of boxes; none of another value."""
    numbers = [*map(float, numbers_in(value))] if are_boxes(value) else []
    return [(*numbers[at : at + len(BOX_ROLES)],) for at in range(0, len(numbers), len(BOX_ROLES))]


def numbers_in(value: str) -> list[str]:
    """Return the numbers in a list; none of another value."""
    parts = value.translate(_BRACKETS).replace(",", " ").split()
    return parts if all(map(NUMBER.fullmatch, parts)) else []


def is_web(value: str) -> bool:
    """Return whether a value is a URL, and no text with one."""
    return "://" in value and " " not in value
