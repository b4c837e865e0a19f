"""Sizes and times as a person reads them."""

from __future__ import annotations

from datetime import timedelta


def megabytes(size: float) -> str:
    """Return a size in bytes as people read it (1 MB = 10^6 bytes)."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def time_left(seconds: float) -> str:
    """Return a time to wait: ``1:02:03 left``."""
    return f"{timedelta(seconds=round(seconds))} left"
