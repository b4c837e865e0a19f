"""Sizes and long texts as a person reads them."""

from __future__ import annotations


def megabytes(size: float) -> str:
    """Return a size in bytes as people read it (1 MB = 10^6 bytes)."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def shortened(text: str, characters: int) -> str:
    """Return a text of at most so many characters; one that was cut ends with ``…``."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
