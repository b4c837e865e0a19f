"""A dataset → its page, ``report.html``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence

from recordgen import storage
from recordgen.dataset.manifest import REJECTS_FILE, REPORT_FILE, Dataset, read_dataset
from recordgen.errors import SourceError
from recordgen.rejects import Reject
from recordgen.report.page import REJECTS_SHOWN, to_html
from recordgen.report.pictures import read_pictures

# A line of ours holds a uri and a message, and is shorter.
_MAX_LINE_BYTES = 1 << 16


def render_report(output: str | os.PathLike[str]) -> str:
    """Return the page for a finished dataset, as ``report.html`` holds it.

    A few records of each split are read for the pictures; if that fails, a warning is logged and
    the page has none.

    Args:
        output: a converted output, one of :func:`recordgen.write`, or a TFX Examples uri.

    Raises:
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    root = storage.normal(os.fspath(output))
    dataset = read_dataset(root)
    rejects = _first_rejects(storage.join(root, REJECTS_FILE))
    return render_dataset(dataset, rejects, lambda file: storage.join(root, file))


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
    dataset: Dataset, rejects: Sequence[Reject], path_of: Callable[[str], str]
) -> str:
    """Return the page for a dataset whose shards need not be at their places yet.

    Args:
        dataset: the content of its ``dataset.json``.
        rejects: the rows that were left out, or the first of them.
        path_of: says where a shard lies that ``dataset.json`` names.
    """
    return to_html(dataset, rejects[:REJECTS_SHOWN], read_pictures(dataset, path_of))


def _first_rejects(path: str) -> list[Reject]:
    """Return the first lines of a ``rejects.jsonl``, without reading the rest."""
    rejects: list[Reject] = []
    try:
        with storage.open_read(path) as file:
            while len(rejects) < REJECTS_SHOWN and (line := file.readline(_MAX_LINE_BYTES)):
                rejects.append(Reject(**json.loads(line)))
    except FileNotFoundError:
        pass  # datasets written from Python have no rejects
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    except (TypeError, ValueError) as exc:
        raise SourceError(f"{path}:{len(rejects) + 1}: not a rejected row: {exc}") from exc
    return rejects
