"""Render ``report.html`` for a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from recordgen import storage
from recordgen.dataset.manifest import (
    EXAMPLES_FILE,
    LINT_FILE,
    REJECTS_FILE,
    REPORT_FILE,
    Dataset,
    read_dataset,
)
from recordgen.errors import SourceError
from recordgen.lint.facts import read_examples
from recordgen.lint.findings import LintFinding, first_of_each
from recordgen.rejects import Reject
from recordgen.report.contents import COLUMNS, contents_of
from recordgen.report.page import FINDINGS_SHOWN, REJECTS_SHOWN, to_html
from recordgen.report.shown_findings import groups_of, places_of
from recordgen.report.shown_records import read_shown

# A line has a uri and a message, and is shorter.
_MAX_LINE_BYTES = 1 << 16

# Errors come first: finding the first warnings after more of them would take too long.
_FINDINGS_READ = 100_000

_Line = TypeVar("_Line", Reject, LintFinding)


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
    root = storage.normal(os.fspath(output))
    dataset = read_dataset(root)
    rejects = first_lines(storage.join(root, REJECTS_FILE), Reject, REJECTS_SHOWN)
    findings = first_lines(storage.join(root, LINT_FILE), LintFinding, _FINDINGS_READ)
    first = list(first_of_each(findings, FINDINGS_SHOWN))
    facts = _read_facts(storage.join(root, EXAMPLES_FILE))
    return render_dataset(dataset, rejects, lambda file: storage.join(root, file), first, facts)


def write_report(output: str | os.PathLike[str], to: str | None = None) -> str:
    """Write the page for a finished dataset, and return where.

    Args:
        output: as for :func:`render_report`.
        to: path or URL of the file; None: ``report.html`` in ``output``.

    Raises:
        SourceError: there is no finished dataset.
        StorageError: storage failed.
    """
    path = to or storage.join(storage.normal(os.fspath(output)), REPORT_FILE)
    storage.write_text(path, render_report(output))
    return path


def render_dataset(
    dataset: Dataset,
    rejects: Sequence[Reject],
    path_of: Callable[[str], str],
    findings: Sequence[LintFinding] = (),
    facts: Any = None,
) -> str:
    """Return the page for a dataset whose shards may still be in the staging folder.

    Args:
        dataset: the content of its ``dataset.json``.
        rejects: the rejects, or the first of them.
        path_of: maps a shard's name in ``dataset.json`` to its path.
        findings: the first findings of each code.
        facts: the table of all examples, as in ``examples.parquet``, or None.
    """
    places = places_of(findings, facts)
    records = read_shown(dataset, path_of, list(dict.fromkeys(places.values())))
    return to_html(
        dataset,
        rejects[:REJECTS_SHOWN],
        examples=records.examples,
        groups=groups_of(findings, dataset, places, records.at),
        contents=contents_of(dataset, facts, records.sample),
    )


def _read_facts(path: str) -> Any:
    """Return the columns of ``examples.parquet`` that a page needs; None without such a file."""
    try:
        with storage.open_read(path) as raw:
            return read_examples(raw, COLUMNS)
    except FileNotFoundError:
        return None  # datasets written from Python, and older ones, have none
    except (OSError, ValueError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}") from exc


def first_lines(path: str, kind: type[_Line], most: int) -> list[_Line]:
    """Return the first lines of a file of rejects or findings without reading the rest."""
    found: list[_Line] = []
    try:
        with storage.open_read(path) as file:
            while len(found) < most and (line := file.readline(_MAX_LINE_BYTES)):
                found.append(kind(**json.loads(line)))
    except FileNotFoundError:
        pass  # datasets written from Python have neither
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (TypeError, ValueError) as exc:
        what = "a rejected row" if kind is Reject else "a finding"
        raise SourceError(f"{path}:{len(found) + 1}: not {what}: {exc}") from exc
    return found
