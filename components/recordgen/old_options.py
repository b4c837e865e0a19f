"""Options of earlier versions: the table of what replaces each of them.

    quality=90                        →  encode=jpeg:90
    short_side=256, quality=90        →  image_size=256short, encode=keep:90
    target_column=price, header=no    →  columns=target=price,header=no
    select=[LEAK], ignore=[SUFFIX]    →  lint=LEAK,-SUFFIX

The doors refuse an old name with an error that shows the new spelling. Options that an older
``dataset.json`` records are read as the new ones.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

Values = Mapping[str, Any]


class Replacement(NamedTuple):
    """How values of old options become the value of a new one.

    Attributes:
        option: the new option.
        old: the old options that it replaces; it may have had the new name itself, too.
        value: returns the new value, text or a list of texts; empty if it is the default.
    """

    option: str
    old: Sequence[str]
    value: Callable[[Values], str | list[str]]


def _columns(old: Values) -> str:
    pairs = next(csv.reader([_pairs(old.get("columns"), "=")], skipinitialspace=True), [])
    kinds = {"classification": "target:class", "regression": "target:number"}
    target = kinds.get(str(old.get("prediction")), "target")
    name = old.get("target_column") or next(
        (pair.removeprefix("target=") for pair in pairs if pair.startswith("target=")), ""
    )
    if name or target != "target":
        pairs = [pair for pair in pairs if not pair.startswith("target=")]
        pairs.append(f"{target}={name or 'NAME'}")
    for role, option in (("split", "split_column"), ("weight", "weight_column")):
        if (column := old.get(option)) and f"{role}={column}" not in pairs:
            pairs.append(f"{role}={column}")
    pairs += [
        f"{name}={value}"
        for name in ("header", "offsets")
        if (value := old.get(name)) not in (None, "auto", "")
    ]
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(pairs)
    return line.getvalue()


def _split(old: Values) -> str:
    shares = [_pairs(old.get(name), ":") for name in ("split", "split_fractions")]
    names = old.get("split_from_name")
    return ",".join(filter(None, [*shares, "" if names in (None, "auto") else f"names={names}"]))


def _group_by(old: Values) -> str:
    by = old.get("split_by")
    return str(old.get("group_by") or ("" if by in (None, "uri") else by))


def _limit(old: Values) -> str:
    names = {
        "mb": "max_image_mb",
        "pixels": "max_image_pixels",
        "seconds": "image_seconds",
        "memory": "decode_memory",
    }
    limits = [
        f"{name}={old[option]}"
        for name, option in names.items()
        if old.get(option) not in (None, 0, "")
    ]
    return ",".join(filter(None, [_pairs(old.get("limit"), "="), *limits]))


def _image_size(old: Values) -> str:
    if longest := old.get("max_side"):
        return f"{longest}max"
    if shortest := old.get("short_side"):
        return f"{shortest}short"
    return _listed(old.get("size"), "x")


def _encode(old: Values) -> str:
    pixels, kind = (
        "" if old.get(name) in (None, default) else str(old[name])
        for name, default in (("pixels", "encoded"), ("encode", "keep"))
    )
    quality = old.get("quality") or ""
    if quality and not kind:
        # A quality was for images that are changed for another reason, too.
        kind = "keep" if pixels or any(map(old.get, ("max_side", "short_side", "size"))) else "jpeg"
    return ":".join(str(part) for part in (pixels, kind, quality) if part)


def _lint(old: Values) -> list[str]:
    ignored = [f"-{code}" for code in _items(old.get("ignore"))]
    named = [*_items(old.get("lint")), *_items(old.get("select"))]
    return [*named, *ignored, *_items(old.get("threshold"))]


def _allow(old: Values) -> list[str]:
    roots = _items(old.get("allow_root"))
    return [
        *_items(old.get("allow")),
        *_items(old.get("allow_scheme")),
        *(root if "/" in root else f"./{root}" for root in roots),
    ]


def _items(value: Any) -> list[str]:
    if value is None or value == "none":
        return []
    items = value.split(",") if isinstance(value, str) else value
    return [str(item) for item in items if str(item).strip()]


def _pairs(value: Any, separator: str) -> str:
    """Return a mapping, a list or a text as text with commas."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}{separator}{item}" for name, item in value.items())
    return _listed(value)


def _listed(value: Any, separator: str = ",") -> str:
    if isinstance(value, list | tuple):
        return separator.join(map(str, value))
    return "" if value is None else str(value)


def _same(name: str) -> Callable[[Values], str]:
    return lambda old: "" if old.get(name) in (None, "auto") else str(old[name])


#: What replaces the old options, by new option.
REPLACEMENTS = (
    Replacement("format", ("input_format",), _same("input_format")),
    Replacement(
        "columns",
        ("header", "split_column", "target_column", "weight_column", "prediction", "offsets"),
        _columns,
    ),
    Replacement("schema", ("tfmd_schema",), _same("tfmd_schema")),
    Replacement("split", ("split_fractions", "split_from_name"), _split),
    Replacement("group_by", ("split_by",), _group_by),
    Replacement(
        "limit", ("max_image_mb", "max_image_pixels", "image_seconds", "decode_memory"), _limit
    ),
    Replacement("image_size", ("max_side", "short_side", "size"), _image_size),
    Replacement("encode", ("quality", "pixels"), _encode),
    Replacement("lint", ("select", "ignore", "threshold"), _lint),
    Replacement("allow", ("allow_scheme", "allow_root"), _allow),
)

#: Old options without a new one, and what to do instead.
GONE: Mapping[str, str] = {
    "on_storage_error": "a file that a web server does not give rejects its row, and any other "
    "unreachable file ends the run",
    "url_secrets": "secrets in the URLs of rows are never stored",
    "card": "write the card after the conversion, with recordgen export card OUTPUT",
}

#: The names of all old options.
OLD_NAMES = (*(name for each in REPLACEMENTS for name in each.old), *GONE)


def old_among(names: Collection[str]) -> list[str]:
    """Return the old options among names."""
    return [name for name in OLD_NAMES if name in names]


def new_spelling(values: Values) -> dict[str, str | list[str]]:
    """Return the new options and their values for given options, of which some have old names."""
    found = {
        each.option: each.value(values)
        for each in REPLACEMENTS
        if any(name in values for name in each.old)
    }
    return {name: value for name, value in found.items() if value}


def refusal(values: Values, *, flags: bool = False) -> str:
    """Return why given options are refused, with their new spelling; empty if none is old.

    Args:
        values: the given options.
        flags: whether they are spelled as flags, not as keywords.
    """
    old = old_among(values)
    if not old:
        return ""
    new = new_spelling(values)
    if flags:
        given = [f"--{name.replace('_', '-')}" for name in old]
        use = " ".join(_flag(name, value) for name, value in new.items())
    else:
        given = old
        use = ", ".join(f"{name}={_quoted(value)}" for name, value in new.items())
    reasons = [GONE[name] for name in old if name in GONE]
    replaced = [f"use {use}"] if use else [] if reasons else ["its default needs no option"]
    verb = "is not an option" if len(old) == 1 else "are not options"
    return f"{' and '.join(given)} {verb} any more: {'; '.join([*replaced, *reasons])}"


def _flag(name: str, value: str | list[str]) -> str:
    text = ",".join(value) if isinstance(value, list) else value
    # A value that begins with a dash would be taken for a flag.
    return f"--{name.replace('_', '-')}{'=' if text.startswith('-') else ' '}{text}"


def _quoted(value: str | list[str]) -> str:
    return repr(",".join(value) if isinstance(value, list) else value)


def current(recorded: Values) -> dict[str, Any]:
    """Return the options of a ``dataset.json`` under their current names."""
    if not old_among(recorded):
        return dict(recorded)
    kept = {name: value for name, value in recorded.items() if name not in OLD_NAMES}
    new = {each.option: each.value(recorded) for each in REPLACEMENTS if each.option != "lint"}
    schema = {"schema": kept["schema"]} if "schema" in kept else {}
    new["format"] = new["format"] or "auto"
    new["group_by"] = new["group_by"] or "uri"
    new["encode"] = new["encode"] or "keep"
    return {**kept, **new, **schema}
