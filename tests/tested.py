"""A part of conftest.py that writes versions and test results as JSON.

`RECORDGEN_TESTED` names the file; `scripts/tested` makes docs/tested.md from such files.
"""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path

from _pytest.terminal import TerminalReporter

PACKAGES = (
    *("tensorflow", "tfx", "apache-beam", "kfp", "keras", "protobuf"),
    *("torch", "jax", "flax", "grain"),
)
OUTCOMES = ("passed", "failed", "error", "skipped")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    path = os.environ.get("RECORDGEN_TESTED")
    if path:
        counts = {name: len(terminalreporter.stats.get(name, [])) for name in OUTCOMES}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps({**_versions(), **counts}, indent=2) + "\n")


def _versions() -> dict[str, str | None]:
    return {
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "glibc": platform.libc_ver()[1],
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
