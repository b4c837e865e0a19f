"""Options of earlier versions: the doors refuse them with what replaces them.

quality=90    →  quality is no option any more: use encode, as in encode='jpeg:90'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: The new option that replaces an old one, and an example of its value.
REPLACED: Mapping[str, tuple[str, str]] = {
    "input_format": ("format", "folder"),
    "header": ("columns", "header=no"),
    "split_column": ("columns", "split=COLUMN"),
    "target_column": ("columns", "target=COLUMN"),
    "weight_column": ("columns", "weight=COLUMN"),
    "prediction": ("columns", "target:class=COLUMN"),
    "offsets": ("columns", "offsets=utf16"),
    "tfmd_schema": ("schema", "FILE.pbtxt"),
    "split_fractions": ("split", "80,10,10"),
    "split_from_name": ("split", "names=yes"),
    "split_by": ("group_by", "near"),
    "max_image_mb": ("limit", "mb=50"),
    "max_image_pixels": ("limit", "pixels=1000000"),
    "image_seconds": ("limit", "seconds=5"),
    "decode_memory": ("limit", "memory=900"),
    "max_side": ("image_size", "512max"),
    "short_side": ("image_size", "256short"),
    "size": ("image_size", "224x224"),
    "quality": ("encode", "jpeg:90"),
    "pixels": ("encode", "raw"),
    "select": ("lint", "LEAK,DARK"),
    "ignore": ("lint", "-DARK"),
    "threshold": ("lint", "TINY=9"),
    "allow_scheme": ("allow", "https"),
    "allow_root": ("allow", "./images"),
}

#: Old options without a new one, and what to do instead.
GONE: Mapping[str, str] = {
    "on_storage_error": "a file that a web server does not give rejects its row, and any other "
    "unreachable file ends the run",
    "url_secrets": "secrets in the URLs of rows are never stored",
    "card": "write the card after the conversion, with recordgen export card OUTPUT",
}

#: The names of all old options.
OLD_NAMES = (*REPLACED, *GONE)


def refusal(names: Iterable[str], *, flags: bool = False) -> str:
    """Return why given options are refused, with what replaces them; empty if none is old.

    ``flags``: show them as flags, not as keywords.
    """
    return "; ".join(_refusal(name, flags=flags) for name in names if name in OLD_NAMES)


def _refusal(name: str, *, flags: bool) -> str:
    if name in GONE:
        use = GONE[name]
    else:
        new, value = REPLACED[name]
        # A value that begins with a dash would be taken for a flag.
        example = f"{_flag(new)}={value}" if flags else f"{new}={value!r}"
        use = f"use {_flag(new) if flags else new}, as in {example}"
    return f"{_flag(name) if flags else name} is no option any more: {use}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
