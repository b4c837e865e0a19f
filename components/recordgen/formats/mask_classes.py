"""The names of classes that lie beside masks, by number or by colour.

classes.txt, class_names.txt, labels.txt   a name in each line, from number 0
_classes.csv (Roboflow)                    Pixel Value, Class → 1, cat
class_dict.csv (CamVid)                    name,r,g,b → cat,255,0,0
labelmap.txt (CVAT, Datumaro)              cat:255,0,0::
"""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recordgen.errors import SourceError
from recordgen.formats.listing import Listing

_LISTS = ("classes.txt", "class_names.txt", "labels.txt")
_NUMBERED, _COLOURED, _LABELMAP = "_classes.csv", "class_dict.csv", "labelmap.txt"


class MaskClasses(NamedTuple):
    """The classes of masks.

    Attributes:
        file: the file that names them; empty if there is none.
        names: their names, by number.
        colours: the class of each colour, such as ``#ff0000``; empty if pixels are numbers.
    """

    file: str = ""
    names: Sequence[str] = ()
    colours: Mapping[str, str] = {}


def classes_in(listing: Listing) -> MaskClasses:
    """Return the classes that a file below a folder names; the outermost one counts.

    Raises:
        SourceError: a line of it cannot be used.
    """
    for name in sorted(listing.others, key=lambda name: (name.count("/"), name)):
        base = posixpath.basename(name)
        if base not in (*_LISTS, _NUMBERED, _COLOURED, _LABELMAP):
            continue
        text = listing.head(name).decode("utf-8-sig", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        try:
            return _parsed(name, base, lines)
        except ValueError as exc:
            raise SourceError(f"{listing.root}{name}: {exc}") from None
    return MaskClasses()


def _parsed(name: str, base: str, lines: Sequence[str]) -> MaskClasses:
    if base in _LISTS:
        return MaskClasses(name, lines)
    if base == _NUMBERED:
        numbers = {int(number): label.strip() for number, label in csv.reader(lines[1:])}
        if sorted(numbers) != list(range(len(numbers))):
            raise ValueError(f"the numbers of classes must be 0, 1, … (got {sorted(numbers)})")
        return MaskClasses(name, [numbers[at] for at in range(len(numbers))])
    if base == _COLOURED:
        rows = [(label, rest) for label, *rest in csv.reader(lines[1:])]
    else:
        parts = [line.split(":") for line in lines if not line.startswith("#")]
        rows = [(label, colour.split(",")) for label, colour, *_ in parts]
    colours = {_colour(levels): label.strip() for label, levels in rows}
    return MaskClasses(name, list(dict.fromkeys(colours.values())), colours)


def _colour(levels: Iterable[str]) -> str:
    """Return a colour as ``#ff0000``. Raises: ValueError: these are not its three levels."""
    numbers = [int(level) for level in levels]
    if len(numbers) != 3 or not all(0 <= number <= 255 for number in numbers):
        raise ValueError(f"a colour must have red, green and blue from 0 to 255 (got {numbers})")
    return "#" + "".join(f"{number:02x}" for number in numbers)
