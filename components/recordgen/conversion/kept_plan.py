"""What the plan of a run in parts keeps of its options and its import files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from recordgen import storage
from recordgen.conversion.appending import find_existing
from recordgen.core.conversion import Conversion
from recordgen.core.ordered import STORAGE_THREADS, map_in_order
from recordgen.core.planning.appending import Existing
from recordgen.core.rows.row import ROW_BYTES
from recordgen.core.runs.parts import PlannedParts
from recordgen.core.runs.staging import Staging, decoding
from recordgen.errors import RunnerError, SourceError, StorageError
from recordgen.formats.detect import Detection
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import Source
from recordgen.options import OPTIONS, ConvertOptions, option_text

# Fields of the options that are not options: what a door or detection has decided.
_DECIDED = ("confined", "table")


def saved(options: ConvertOptions) -> dict[str, Any]:
    """Return all options as JSON."""
    values = {name: option_text(name, getattr(options, name)) for name in OPTIONS}
    return values | {name: getattr(options, name) for name in _DECIDED}


def options_of(planned: PlannedParts) -> ConvertOptions:
    """Return the options of a planned run. Raises: RunnerError: they were changed."""
    with decoding("parts.json: options"):
        lists = {name: tuple(planned.options[name]) for name in OPTIONS if OPTIONS[name].several}
        return ConvertOptions(**{**planned.options, **lists})


def source_of(planned: PlannedParts, options: ConvertOptions, examples: int) -> Source:
    """Return what ``dataset.json`` says about the source, and its size: the rows are staged."""
    files = tuple(map(ImportFile, planned.sources))
    detection = Detection(options, keypoints=planned.keypoints)
    return Source(files, bytes=examples * ROW_BYTES, detection=detection)


def digest_of(existing: Existing | None) -> str:
    """Return the digest of the dataset that a run appends to; empty if there is none yet."""
    return existing.dataset.digest if existing is not None else ""


def existing_of(
    planned: PlannedParts, output: str, staging: Staging, conversion: Conversion
) -> Existing | None:
    """Return the dataset that the run appends to, if any. Raises: RunnerError if it changed."""
    if planned.base is None:
        return None
    existing = find_existing(output, conversion)
    if staging.moving or digest_of(existing) != planned.base:
        raise RunnerError(
            f"{output}: the dataset that this run appends to has changed since it was planned; "
            f"plan again with --append --resume"
        )
    return existing


def versions_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the version of each import file by path; empty for a folder."""
    given = list(paths)
    return dict(zip(given, map_in_order(_version, given, threads=STORAGE_THREADS), strict=True))


def _version(path: str) -> str:
    with suppress(OSError, StorageError):
        return storage.version(path)
    return ""


def check_sources(planned: PlannedParts) -> None:
    """Check that the import files are as they were planned. Raises: SourceError."""
    there = {path: known for path, known in planned.sources.items() if known}
    for path, now in versions_of(there).items():
        if not now:
            raise SourceError(
                f"{path}: not found from {os.getcwd()}; the parts need the same paths as the plan: "
                f"start them in the same folder, or plan with whole paths"
            )
        if now != there[path]:
            raise SourceError(
                f"{path}: has changed since the run was planned; plan again with --resume, which "
                f"keeps the shards that stay the same"
            )
