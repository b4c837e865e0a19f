"""Labels, boxes and splits of images in the columns that ``--columns`` names.

    image, xywh=box, label=kind   of   {"image": …, "box": [[1, 2, 3, 4]], "kind": ["cat"]}
    →  the image with the box (1, 2, 4, 6) of a cat

The columns are those of Parquet, or the features of TFRecords; both may hold lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from recordgen.formats.header import Given, no_column
from recordgen.formats.label_fields import classes_of
from recordgen.formats.made_columns import box_columns, corners_of, is_constant
from recordgen.formats.named_records import Cells, given_names, text_of
from recordgen.subjects.picture import Corners, Marked, is_number
from recordgen.tables.roles import BOX_ROLES, SIZE_ROLES

#: The name of a column → its value in a record; None if it has none.
Get: TypeAlias = Callable[[str], Any]
#: A value → the names of the classes in it. Raises: ValueError.
LabelsIn: TypeAlias = Callable[[Any], Sequence[str]]


@dataclass(frozen=True, slots=True)
class GivenColumns:
    """The given columns of files with images in them."""

    given: Given

    @property
    def image(self) -> str:
        """The column of images; "" if none is given."""
        return self.given.roles.get("path", ("",))[0]

    @property
    def mask(self) -> str:
        """The column of masks; "" if none is given."""
        return self.given.roles.get("mask", ("",))[0]

    @property
    def has_boxes(self) -> bool:
        """Whether columns of boxes are given."""
        return bool(self.given.boxes) or BOX_ROLES[0] in self.given.roles

    @property
    def has_labels(self) -> bool:
        """Whether labels are given, of boxes or of whole images."""
        return "label" in self.given.roles

    @property
    def has_several(self) -> bool:
        """Whether several columns of labels are given, or one-hot ones."""
        return self.has_labels and (
            len(self.given.roles["label"]) > 1 or bool(self.given.one_hot_keys)
        )

    @property
    def _corners(self) -> Sequence[str]:
        return [self.given.roles.get(role, (role,))[0] for role in BOX_ROLES]

    @property
    def names(self) -> Sequence[str]:
        """All columns."""
        return given_names(self.given)

    def check(self, known: Iterable[str], where: str) -> None:
        """Check that each given column exists. Raises: UsageError."""
        columns = list(known)
        for name in self.names:
            if name not in columns:
                no_column(name, columns, f"{where}: columns")

    def split(self, get: Get) -> str | None:
        """Return the word for the split of a record. Raises: ValueError."""
        name = self.given.roles.get("split", ("",))[0]
        return Cells().single(get(name), name, 0) or None if name else None

    def size(self, get: Get) -> tuple[Any, Any]:
        """Return the values of the columns of width and height."""
        names = [self.given.roles.get(role, (role,))[0] for role in SIZE_ROLES]
        width, height = ((*_listed(get(name)), None)[0] for name in names)
        return width, height

    def labels(self, get: Get, labels_in: LabelsIn) -> Sequence[str]:
        """Return the labels of a whole image. Raises: ValueError."""
        return [label for label in self._classes(get, labels_in, 1) if label]

    def objects(self, get: Get, labels_in: LabelsIn) -> Sequence[Marked]:
        """Return the objects of an image. Raises: ValueError: one has no box or no class."""
        boxes = list(self._boxes(get))
        labels = self._classes(get, labels_in, len(boxes))
        if len(labels) != len(boxes):
            raise ValueError(f"expected a label for each box (got {len(labels)} and {len(boxes)})")
        return list(map(Marked, labels, boxes))

    def _classes(self, get: Get, labels_in: LabelsIn, count: int) -> list[str]:
        one_hot = self.given.one_hot_keys
        found: list[str] = []
        for name in self.given.keys_of("label") if self.has_labels else ():
            if is_constant(name):
                found += [name[1:-1].strip()] * count
            elif name in one_hot:
                values, classes = _listed(get(name)), one_hot[name]
                value = values if isinstance(classes, tuple) else (*values, None)[0]
                found += classes_of([text_of(value)], [classes])
            else:
                found += labels_in(get(name))
        return found

    def _boxes(self, get: Get) -> Iterable[Corners]:
        form, name = self.given.boxes or ("xyxy", "")
        sides = box_columns(name, ()) if name else self._corners
        columns = [[*chain.from_iterable(map(_listed, _listed(get(side))))] for side in sides]
        if len(sides) == 1:
            boxes: Any = [columns[0][at : at + 4] for at in range(0, len(columns[0]), 4)]
        else:
            boxes = zip(*columns, strict=len({*map(len, columns)}) != 1)
        for box in boxes:
            if len(box) != 4 or not all(map(is_number, box)):
                raise ValueError(f"a box must have four numbers (got {box!r:.80})")
            yield corners_of(form, *box)


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else [value]
