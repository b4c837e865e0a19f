"""The page itself: values in, HTML out. Everything that comes from the data is escaped."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from recordgen.dataset.manifest import Dataset
from recordgen.lint.codes import ERROR
from recordgen.lint.findings import LintFinding
from recordgen.options import ConvertOptions
from recordgen.payloads.drawing import label_colour
from recordgen.payloads.thumbnail import Thumbnail
from recordgen.records.boxes import StoredBox
from recordgen.rejects import Reject
from recordgen.report.balance import class_balance
from recordgen.report.pictures import Picture
from recordgen.report.units import megabytes
from recordgen.tasks import TASKS
from recordgen.tasks.object_detection import (
    BOXES_CLIPPED,
    BOXES_DROPPED,
    BOXES_SWAPPED,
    FILES_IN_PIXELS,
    ObjectDetection,
)

REJECTS_SHOWN = 50
FINDINGS_SHOWN = 10  # of each code

# More boxes on one small picture would only cover it.
_BOXES_DRAWN = 100

_SOURCES_SHOWN = 20
_CLASSES_LISTED = 1000
_LABELS_SHOWN = 20  # under one picture
_TEXT_SHOWN = 300  # characters of a label, uri or message

# ``dataset.json`` holds the final value of these options, given or detected.
_ALWAYS_SHOWN = ("seed", "task", "input_format")

# The kinds of ``rows.adjusted``.
_WORDS = {
    FILES_IN_PIXELS: "files with boxes in pixels: divided by the width and height in their rows",
    BOXES_CLIPPED: "boxes clipped: they reached over the image's edge",
    BOXES_SWAPPED: "boxes turned round: their corners were inverted",
    BOXES_DROPPED: "boxes left out: they were empty, or the option bad_boxes says so",
}


class Option(NamedTuple):
    """An option that differs from its default."""

    name: str
    value: str
    default: str


def to_html(
    dataset: Dataset,
    rejects: Sequence[Reject],
    pictures: Mapping[str, Sequence[Picture]],
    findings: Sequence[LintFinding] = (),
) -> str:
    """Return the page as text.

    Args:
        dataset: the content of ``dataset.json``.
        rejects: the rows to list.
        pictures: by split.
        findings: what is wrong with the data, the first of each code.
    """
    return _template().render(
        dataset=dataset,
        balance=class_balance(dataset),
        options=changed_options(dataset.options),
        rejects=rejects,
        findings={code: list(items) for code, items in groupby(findings, attrgetter("code"))},
        error=ERROR,
        pictures=pictures,
        sources_shown=_SOURCES_SHOWN,
        classes_listed=_CLASSES_LISTED,
        labels_shown=_LABELS_SHOWN,
        counted=_counted(dataset.task),
    )


def changed_options(options: Mapping[str, Any]) -> list[Option]:
    """Return the options that differ from their defaults, but for those that are always shown."""
    defaults = ConvertOptions().recorded()
    return [
        Option(name, _shown(value), _shown(defaults.get(name)))
        for name, value in options.items()
        if name not in _ALWAYS_SHOWN and value != defaults.get(name)
    ]


def _counted(task: str) -> str | None:
    """Say how classes are counted, where an example may have several."""
    if task == ObjectDetection.name:
        return "Images are counted, not boxes: an image once for each label in it."
    if task in TASKS and TASKS[task].labelling == "several":
        return "An example counts for each of its labels."
    return None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


@cache
def _template() -> Template:
    return page_template(
        __package__,
        "page.html",
        data_uri=_data_uri,
        outlines=outlines,
        in_words=lambda kind: _WORDS.get(kind, kind),
    )


def page_template(package: str, file: str, **filters: Callable[..., Any]) -> Template:
    """Return the template of a page with the style of all pages.

    Args:
        package: that of the file.
        file: the template.
        filters: its own, beside ``basename``, ``count``, ``megabytes``, ``percent`` and ``short``.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        count=lambda number: f"{number:,}",
        basename=lambda path: path.rsplit("/", 1)[-1],
        short=_short,
        megabytes=megabytes,
        percent=_percent,
        **filters,
    )
    style = resources.files("recordgen.report").joinpath("style.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style.rstrip("\n"))
    page = resources.files(package).joinpath(file)
    return environment.from_string(page.read_text(encoding="utf-8"))


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 1]}…"


def _percent(part: float, whole: float = 1.0) -> str:
    """Return a share as CSS and people read it: ``12.5%``."""
    return f"{100 * part / whole:.1f}".removesuffix(".0") + "%" if whole else "0%"


def _data_uri(thumbnail: Thumbnail) -> str:
    text = base64.b64encode(thumbnail.data).decode("ascii")
    return f"data:image/{thumbnail.format};base64,{text}"


@dataclass(frozen=True, slots=True)
class Outline:
    """The boxes of one label.

    Attributes:
        text: the label.
        count: how many boxes it has.
        colour: of their lines, as ``#rrggbb``.
        path: the lines as SVG path data, in shares of the image's width and height; empty: none is
            drawn.
    """

    text: str
    count: int
    colour: str
    path: str


def outlines(boxes: Sequence[StoredBox]) -> list[Outline]:
    """Return the boxes of an image by label, in the order of their numbers.

    A box of "cat", 0, from (0.1, 0.2) to (0.5, 0.5) →
    ``Outline("cat", 1, "#ff2626", "M0.1 0.2H0.5V0.5H0.1z")``
    """
    counts: dict[tuple[int, str], int] = defaultdict(int)
    paths: dict[tuple[int, str], str] = defaultdict(str)
    for place, box in enumerate(boxes):
        label = (box.number, box.label)
        counts[label] += 1
        if place < _BOXES_DRAWN:
            left, top, right, bottom = (f"{value:.3g}" for value in box[2:])
            paths[label] += f"M{left} {top}H{right}V{bottom}H{left}z"
    return [
        Outline(text, count, _hex(number), paths[number, text])
        for (number, text), count in sorted(counts.items())
    ]


def _hex(number: int) -> str:
    return "#{:02x}{:02x}{:02x}".format(*label_colour(number))
