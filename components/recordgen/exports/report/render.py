"""The export ``report``: ``report.html``, also for a dataset that is about to be committed.

Everything that comes from the data is escaped.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from jinja2 import Template
from markupsafe import Markup

from recordgen.core.dataset.lint import ERROR, WARNING, count_level
from recordgen.core.dataset.manifest import REPORT_FILE, Dataset
from recordgen.core.facts import BOXES
from recordgen.core.task.task import SEVERAL
from recordgen.exports.export import FileExport, Output, environment, file_text
from recordgen.exports.report.contents import (
    COLUMNS,
    Contents,
    charted,
    class_balance,
    contents_of,
)
from recordgen.exports.report.records import (
    CodeGroup,
    Line,
    Place,
    RecordView,
    groups_of,
    outlines,
    places_in,
    read_shown,
    wanted_lines,
)
from recordgen.messages import INVISIBLE, megabytes, shortened
from recordgen.options import recorded_defaults
from recordgen.payloads.drawing import Thumbnail
from recordgen.rejects import Reject
from recordgen.tasks import TASKS

REJECTS_SHOWN = 50
FINDINGS_SHOWN = 12  # of each code

_TEXT_SHOWN = 300  # characters of a label, uri or message

# The page has a line for each of these options, with its final value, given or detected.
_ALWAYS_SHOWN = ("seed", "task", "format")

# Invisible characters and changes of the text direction: they make one name look like another.
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200c\u200d{INVISIBLE}]")


class Report(FileExport):
    """``report.html``, which every conversion writes."""

    file = REPORT_FILE

    def text(self, output: Output) -> str:
        dataset, findings = output.dataset, output.findings(FINDINGS_SHOWN)
        facts, places = _some_examples(output, wanted_lines(findings))
        records = read_shown(dataset, output.path_of, list(dict.fromkeys(places.values())))
        return to_html(
            dataset,
            output.rejects(REJECTS_SHOWN),
            examples=records.examples,
            groups=groups_of(findings, dataset, places, records.at),
            contents=contents_of(dataset, facts, records.sample),
        )


def _some_examples(output: Output, wanted: Sequence[Line]) -> tuple[Any, Mapping[Line, Place]]:
    """Return the examples of the charts, None if they are unknown; and the places of lines.

    Memory does not grow with their number.
    """
    shown: list[Any] = []
    places: dict[Line, Place] = {}
    before = 0
    for part in output.example_parts(COLUMNS):
        shown.append(charted(part, output.dataset, before))
        before += len(part)
        places = {**places_in(part, wanted), **places}
        del part  # it may be large: the next one follows
    facts = pa.concat_tables(shown).unify_dictionaries() if shown else None
    return facts, {line: places[line] for line in wanted if line in places}


def render_report(output: str | os.PathLike[str]) -> str:
    """Return the page for a finished dataset, as ``report.html`` holds it.

    A few records of each split are read for the pictures; if this fails, a warning is logged and
    the page has no pictures.

    Args:
        output: an output of a conversion or of :func:`recordgen.write`, or a TFX Examples uri.

    Raises:
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    return Report().text(Output.open(output))


def to_html(
    dataset: Dataset,
    rejects: Sequence[Reject],
    *,
    examples: Mapping[str, Sequence[RecordView]] | None = None,
    groups: Sequence[CodeGroup] = (),
    contents: Contents | None = None,
) -> str:
    """Return the page as text."""
    shown = {item.finding.message for group in groups for item in group.items}
    return page_template().render(
        dataset=dataset,
        balance=class_balance(dataset),
        options=_changed_options(dataset.options),
        rejects=rejects,
        notes=[text for text in dataset.warnings if text not in shown],
        groups=groups,
        errors=count_level(dataset.lint, ERROR),
        warned=count_level(dataset.lint, WARNING),
        examples={name: items for name, items in (examples or {}).items() if items},
        contents=contents or Contents(),
        counted=_counted(dataset.task),
    )


def _changed_options(options: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, value and default of options that differ, except those always shown."""
    defaults = recorded_defaults()
    return [
        (name, _shown(value), _shown(defaults.get(name)))
        for name, value in options.items()
        if name not in _ALWAYS_SHOWN and value != defaults.get(name)
    ]


def _counted(task: str) -> str | None:
    """Return how classes are counted if an example may have several, or None."""
    if task in TASKS and BOXES in TASKS[task].facts:
        return "Images are counted, not boxes: an image once for each label in it."
    if task in TASKS and TASKS[task].labelling == SEVERAL:
        return "An example counts for each of its labels."
    return None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


@cache
def page_template() -> Template:
    """Return the template of the page, compiled."""
    pages = environment(autoescape=True, finalize=_visible)
    pages.filters.update(
        basename=lambda path: path.rstrip("/").rsplit("/", 1)[-1],  # a folder ends with a slash
        data_uri=_data_uri,
        megabytes=megabytes,
        outlines=outlines,
        percent=_percent,
        short=lambda text, most=_TEXT_SHOWN: shortened(text, most),
        steps=_steps,
    )
    pages.globals["style"] = Markup(file_text("style.css").rstrip("\n"))
    return pages.get_template("page.html")


def _visible(value: Any) -> Any:
    """Make invisible characters visible: U+202E, which reverses text, becomes ``⟨202E⟩``."""
    if type(value) is not str or (value.isascii() and value.isprintable()):
        return value
    return _UNSEEN.sub(lambda found: f"⟨{ord(found[0]):04X}⟩", value)


def _steps(heights: Sequence[float]) -> str:
    """Return bars as the SVG path of their outline, 100 wide and up to 48 of 50 high."""
    width = 100 / len(heights)
    tops = (f"V{50 - 48 * each:.1f}H{width * at:.2f}" for at, each in enumerate(heights, start=1))
    return f"M0 50{''.join(tops)}V50z"


def _percent(part: float, whole: float = 1.0) -> str:
    """Return a share as text, also for CSS: ``12.5%``."""
    return f"{100 * part / whole:.1f}".removesuffix(".0") + "%" if whole else "0%"


def _data_uri(thumbnail: Thumbnail) -> str:
    text = base64.b64encode(thumbnail.data).decode("ascii")
    return f"data:image/{thumbnail.format};base64,{text}"
