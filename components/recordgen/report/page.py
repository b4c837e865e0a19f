"""The page itself: values in, HTML out. Everything that comes from the data is escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template

from recordgen.dataset import Dataset
from recordgen.options import ConvertOptions
from recordgen.payloads.thumbnail import Thumbnail
from recordgen.report.balance import class_balance
from recordgen.report.pictures import Picture
from recordgen.rows import Reject
from recordgen.terminal import megabytes

REJECTS_SHOWN = 50

_SOURCES_SHOWN = 20
_CLASSES_LISTED = 1000
_TEXT_SHOWN = 300  # characters of a label, uri or message


class Option(NamedTuple):
    """An option that differs from its default."""

    name: str
    value: str
    default: str


def to_html(
    dataset: Dataset, rejects: Sequence[Reject], pictures: Mapping[str, Sequence[Picture]]
) -> str:
    """Return the page as text.

    Args:
        dataset: the content of ``dataset.json``.
        rejects: the rows to list.
        pictures: by split.
    """
    return _template().render(
        dataset=dataset,
        balance=class_balance(dataset),
        options=changed_options(dataset.options),
        rejects=rejects,
        pictures=pictures,
        sources_shown=_SOURCES_SHOWN,
        classes_listed=_CLASSES_LISTED,
    )


def changed_options(options: Mapping[str, Any]) -> list[Option]:
    """Return the options that differ from their defaults; the seed is shown in any case."""
    defaults = ConvertOptions().recorded()
    return [
        Option(name, _shown(value), _shown(defaults.get(name)))
        for name, value in options.items()
        if name != "seed" and value != defaults.get(name)
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


@cache
def _template() -> Template:
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
        data_uri=_data_uri,
    )
    page = resources.files(__package__).joinpath("page.html")
    return environment.from_string(page.read_text(encoding="utf-8"))


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 1]}…"


def _percent(part: float, whole: float = 1.0) -> str:
    """Return a share as CSS and people read it: ``12.5%``."""
    return f"{100 * part / whole:.1f}".removesuffix(".0") + "%" if whole else "0%"


def _data_uri(thumbnail: Thumbnail) -> str:
    text = base64.b64encode(thumbnail.data).decode("ascii")
    return f"data:image/{thumbnail.format};base64,{text}"
