"""Sizes for people."""

from __future__ import annotations


def megabytes(size: float) -> str:
    """Return a size in bytes as text (1 MB = 10^6 bytes)."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
