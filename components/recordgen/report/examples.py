"""The examples that a condition names, with what the checks found about each.

    "label=cat and code=DUPLICATE"  ─▶  a.jpg of photos.csv:3, split train, labels cat, DUPLICATE

Read are ``examples.parquet`` and ``lint.jsonl`` of an output, and no shard.
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
from pyarrow import parquet

from recordgen import storage
from recordgen.dataset.manifest import EXAMPLES_FILE, LINT_FILE, Dataset, read_dataset
from recordgen.errors import SourceError, UsageError
from recordgen.lint.codes import CHECKS, ERROR, WARNING
from recordgen.lint.findings import LintFinding
from recordgen.options import ConvertOptions
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

# Of a finding; an example may have several.
_FINDING = ("code", "level", "message")

# Lines of an import file are fewer.
_LINE_BITS = 40


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An example and what was found about it.

    Attributes:
        split: its split.
        shard: its shard, as ``dataset.json`` names it.
        record: its place in the shard, from 0.
        source: the import file; of several rows, that of the first.
        line: the line there, from 1.
        uri: the payload's address as the line gives it; empty: the row holds it.
        labels: its labels, each once.
        findings: what the checks found about it.
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
        """Return the example; of a finding, what it does not share with its example."""
        found = [{name: getattr(item, name) for name in _FINDING} for item in self.findings]
        return {**asdict(self), "labels": list(self.labels), "findings": found}


class Matches:
    """The examples that fit a condition, by import file and line.

    Attributes:
        root: the output.
        dataset: its ``dataset.json``.
    """

    def __init__(
        self, root: str, dataset: Dataset, table: Any, findings: Mapping[int, list[LintFinding]]
    ) -> None:
        """Take the rows of :func:`_read`'s table that fit, and findings by the number of a row."""
        self.root = root
        self.dataset = dataset
        self._table = table
        self._findings = findings

    def __len__(self) -> int:
        return len(self._table)

    def first(self, count: int | None = None) -> Iterator[ListedExample]:
        """Yield the first examples; None: all of them."""
        return self._listed(self._table.slice(0, count))

    def by_shard(self) -> Iterator[tuple[str, Iterator[ListedExample]]]:
        """Yield each shard with its examples, in the order of its records."""
        table = self._table.sort_by([("shard", "ascending"), ("record", "ascending")])
        yield from groupby(self._listed(table), attrgetter("shard"))

    def _listed(self, table: Any) -> Iterator[ListedExample]:
        for batch in table.select(_LISTED).to_batches(max_chunksize=_LISTED_AT_ONCE):
            for said in batch.to_pylist():
                said["findings"] = tuple(self._findings.get(said.pop("row"), ()))
                said["labels"] = tuple(said["labels"] or ())
                said["uri"] = "" if is_content_uri(said["uri"]) else said["uri"]
                yield ListedExample(**said)


def find_examples(output: str, where: str, *, split: str | None = None) -> Matches:
    """Return the examples that a condition names.

    Args:
        output: what a conversion wrote.
        where: see :mod:`recordgen.report.conditions`.
        split: look at this split alone.

    Raises:
        UsageError: the condition is wrong, there is no such split, or the dataset was written from
            Python and says nothing of its examples.
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    condition = parse_condition(where)
    root = storage.normal(output)
    dataset = read_dataset(root)
    if split is not None and split not in dataset.splits:
        names = ", ".join(dataset.splits)
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
    """Return what conditions may name, given the findings about rows of the table."""
    rows = np.array([row for row, _ in about_rows], np.intp)
    labels = table["labels"].combine_chunks()
    known = {"split": tuple(dataset.splits), "code": tuple(CHECKS), "level": (ERROR, WARNING)}
    values = {"split": Values(table["split"])}
    if _names_labels(dataset):
        values["label"] = Values(pc.list_flatten(labels), pc.list_parent_indices(labels).to_numpy())
    for name in _FINDING:
        said = [getattr(item, name) for _, item in about_rows]
        values[name] = Values(pa.array(said, pa.string()), rows)
    values |= {name: Values(table[name]) for name in (*_TEXTS, *_NUMBERS)}
    return {name: it._replace(known=known.get(name, ())) for name, it in values.items()}


def _names_labels(dataset: Dataset) -> bool:
    return dataset.task in TASKS and TASKS[dataset.task].names_payloads


def _read(root: str, dataset: Dataset) -> Any:
    """Return ``examples.parquet``, its texts as strings, with the numbers and labels of its rows.

    Labels are lists of strings; null: the task has none, or the row says nothing.
    """
    path = storage.join(root, EXAMPLES_FILE)
    try:
        data = storage.read_bytes(path)
    except FileNotFoundError:
        raise UsageError(
            f"{path}: there is no such file, so nothing is known of single examples; `recordgen "
            f"convert` writes it"
        ) from None
    except OSError as exc:
        raise SourceError(f"{path}: cannot be read: {exc.strerror or exc}") from exc
    names = (*_TEXTS, *_NUMBERS, "annotation")
    try:
        found = parquet.read_table(io.BytesIO(data), columns=list(names)).combine_chunks()
        columns = {name: found[name] for name in names}
    except (pa.ArrowException, KeyError) as exc:
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
    """Return the example that each finding is about, int [n]; -1: it is about the dataset."""
    rows: npt.NDArray[np.int64] = np.full(len(findings), -1)
    sources = table["source"].combine_chunks().dictionary_encode()
    keys = sources.indices.to_numpy().astype(np.int64) << _LINE_BITS
    keys = keys | table["line"].to_numpy()
    order = np.argsort(keys, kind="stable")
    code_of = {name: code for code, name in enumerate(sources.dictionary.to_pylist())}
    asked = [(code_of.get(item.source, -1) << _LINE_BITS) | item.line for item in findings]
    if len(keys) and asked:
        places = np.searchsorted(keys[order], asked)
        near = order[np.minimum(places, len(keys) - 1)]
        rows = np.where(keys[near] == asked, near, -1)
    return rows
