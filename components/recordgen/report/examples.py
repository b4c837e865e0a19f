"""The examples that match a condition, with their findings.

    "label=cat and code=DUPLICATE"  ─▶  a.jpg of photos.csv:3, split train, labels cat, DUPLICATE

Only ``examples.parquet`` and ``lint.jsonl`` of an output are read, not its shards.
"""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.dataset.manifest import EXAMPLES_FILE, LINT_FILE, Dataset, read_dataset
from recordgen.errors import SourceError, UsageError
from recordgen.lint.codes import CHECKS, ERROR, WARNING
from recordgen.lint.facts import read_examples
from recordgen.lint.findings import LintFinding
from recordgen.options import ConvertOptions
from recordgen.quoting import listed
from recordgen.report.conditions import Values, parse_condition
from recordgen.report.render import first_lines
from recordgen.rows.row import is_content_uri
from recordgen.tasks import TASKS, task_for

_TEXTS = ("split", "source", "uri", "format", "shard")
_NUMBERS = (
    *("line", "width", "height", "record"),
    *("brightness", "contrast", "entropy", "sharpness", "colourfulness"),
)

_LISTED = ("split", "shard", "record", "source", "line", "uri", "labels", "row")
_LISTED_AT_ONCE = 10_000

# Columns about findings; an example may have several findings.
_FINDING = ("code", "level", "message")

# An import file has fewer than 2^40 lines.
_LINE_BITS = 40


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An example and its findings.

    Attributes:
        split: its split.
        shard: its shard, as ``dataset.json`` names it.
        record: its index in the shard, from 0.
        source: the import file of its first row.
        line: the line of that row, from 1.
        uri: the payload's uri as the line gives it; empty if the payload is in the row itself.
        labels: its labels, each once.
        findings: findings about it.
    """

    split: str
    shard: str
    record: int
    source: str
    line: int
    uri: str
    labels: tuple[str, ...]
    findings: tuple[LintFinding, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the example as JSON; its findings do not repeat its own fields."""
        found = [{name: getattr(item, name) for name in _FINDING} for item in self.findings]
        return {**asdict(self), "labels": list(self.labels), "findings": found}


class Matches:
    """The examples that match a condition, by import file and line.

    Attributes:
        root: the output.
        dataset: its ``dataset.json``.
    """

    def __init__(
        self, root: str, dataset: Dataset, table: Any, findings: Mapping[int, list[LintFinding]]
    ) -> None:
        """Take the matching rows of :func:`_read`'s table, and findings by row number."""
        self.root = root
        self.dataset = dataset
        self._table = table
        self._findings = findings

    def __len__(self) -> int:
        return len(self._table)

    def first(self, count: int | None = None) -> Iterator[ListedExample]:
        """Yield the first ``count`` examples, or all."""
        return self._listed(self._table.slice(0, count))

    def by_shard(self) -> Iterator[tuple[str, Iterator[ListedExample]]]:
        """Yield each shard with its examples, in the order of its records."""
        table = self._table.sort_by([("shard", "ascending"), ("record", "ascending")])
        yield from groupby(self._listed(table), attrgetter("shard"))

    def _listed(self, table: Any) -> Iterator[ListedExample]:
        for batch in table.select(_LISTED).to_batches(max_chunksize=_LISTED_AT_ONCE):
            for row in batch.to_pylist():
                row["findings"] = tuple(self._findings.get(row.pop("row"), ()))
                row["labels"] = tuple(row["labels"] or ())
                row["uri"] = "" if is_content_uri(row["uri"]) else row["uri"]
                yield ListedExample(**row)


def find_examples(output: str, where: str, *, split: str | None = None) -> Matches:
    """Return the examples that match a condition.

    Args:
        output: a converted output.
        where: see :mod:`recordgen.report.conditions`.
        split: search only this split.

    Raises:
        UsageError: the condition is wrong, there is no such split, or the dataset was written from
            Python and has no ``examples.parquet``.
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    condition = parse_condition(where)
    root = storage.normal(output)
    dataset = read_dataset(root)
    if split is not None and split not in dataset.splits:
        names = listed(dataset.splits, str)
        raise UsageError(f"{output}: no split {split!r}; there are {names}")
    table = _read(root, dataset)
    findings = first_lines(storage.join(root, LINT_FILE), LintFinding, sys.maxsize)
    found = _rows_of(findings, table)
    about_rows = [
        (row, item) for row, item in zip(found.tolist(), findings, strict=True) if row >= 0
    ]
    fits = condition(_columns(dataset, table, about_rows), len(table))
    if split is not None:
        fits &= pc.equal(table["split"], split).to_numpy()
    by_row: dict[int, list[LintFinding]] = defaultdict(list)
    for row, item in about_rows:
        by_row[row].append(item)
    return Matches(root, dataset, table.filter(pa.array(fits)), by_row)


def _columns(
    dataset: Dataset, table: Any, about_rows: Sequence[tuple[int, LintFinding]]
) -> Mapping[str, Values]:
    """Return the columns for conditions, given the findings about rows of the table."""
    rows = np.array([row for row, _ in about_rows], np.intp)
    labels = table["labels"].combine_chunks()
    known = {"split": tuple(dataset.splits), "code": tuple(CHECKS), "level": (ERROR, WARNING)}
    values = {"split": Values(table["split"])}
    if _names_labels(dataset):
        values["label"] = Values(pc.list_flatten(labels), pc.list_parent_indices(labels).to_numpy())
    for name in _FINDING:
        found = [getattr(item, name) for _, item in about_rows]
        values[name] = Values(pa.array(found, pa.string()), rows)
    values |= {name: Values(table[name]) for name in (*_TEXTS, *_NUMBERS)}
    return {name: it._replace(known=known.get(name, ())) for name, it in values.items()}


def _names_labels(dataset: Dataset) -> bool:
    return dataset.task in TASKS and TASKS[dataset.task].names_payloads


def _read(root: str, dataset: Dataset) -> Any:
    """Return ``examples.parquet`` with texts as strings, and with row numbers and labels.

    Labels are lists of strings; null if the task has none or the row gives none.
    """
    path = storage.join(root, EXAMPLES_FILE)
    try:
        data = storage.read_bytes(path)
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such file; conditions need it, and only `recordgen convert` writes it"
        ) from None
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    names = (*_TEXTS, *_NUMBERS, "annotation")
    try:
        found = read_examples(io.BytesIO(data), names).combine_chunks()
        columns = {name: found[name] for name in names}
    except (ValueError, KeyError) as exc:
        raise SourceError(f"{path}: not written by this version: {exc}") from exc
    texts = {name: columns[name].cast(pa.string()) for name in _TEXTS}
    annotations = columns.pop("annotation").combine_chunks().dictionary_encode()
    labels: list[Any] = [None] * len(annotations.dictionary)
    if _names_labels(dataset):
        schema = dataset.options.get("schema", "")
        task: Any = task_for(ConvertOptions(task=dataset.task, schema=schema))
        labels = [task.labels(text) for text in annotations.dictionary.to_pylist()]
    of_rows = pa.array(labels, pa.list_(pa.string())).take(annotations.indices)
    return pa.table({**columns, **texts, "labels": of_rows, "row": np.arange(len(found))})


def _rows_of(findings: Sequence[LintFinding], table: Any) -> npt.NDArray[np.int64]:
    """Return the row number of each finding's example, int [n]; -1 if it concerns the dataset."""
    rows: npt.NDArray[np.int64] = np.full(len(findings), -1)
    sources = table["source"].combine_chunks().dictionary_encode()
    keys = sources.indices.to_numpy().astype(np.int64) << _LINE_BITS
    keys = keys | table["line"].to_numpy()
    order = np.argsort(keys, kind="stable")
    code_of = {name: code for code, name in enumerate(sources.dictionary.to_pylist())}
    wanted = [(code_of.get(item.source, -1) << _LINE_BITS) | item.line for item in findings]
    if len(keys) and wanted:
        places = np.searchsorted(keys[order], wanted)
        near = order[np.minimum(places, len(keys) - 1)]
        rows = np.where(keys[near] == wanted, near, -1)
    return rows
