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
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from recordgen import storage
from recordgen.dataset.manifest import EXAMPLES_FILE, LINT_FILE, Dataset, read_dataset
from recordgen.errors import SourceError, UsageError
from recordgen.lint.codes import CHECKS, ERROR, WARNING
from recordgen.lint.findings import LintFinding, Rows
from recordgen.options import ConvertOptions
from recordgen.report.conditions import Condition, Values
from recordgen.report.render import first_lines
from recordgen.rows.row import is_content_uri
from recordgen.tasks import TASKS, task_for

_TEXTS = ("split", "source", "uri", "format", "shard")
_NUMBERS = (
    *("line", "width", "height", "record"),
    *("brightness", "contrast", "entropy", "sharpness", "colourfulness"),
)

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

    def __init__(self, root: str, dataset: Dataset, examples: _Examples, rows: Rows) -> None:
        self.root = root
        self.dataset = dataset
        self._examples = examples
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def first(self, count: int | None = None) -> Iterator[ListedExample]:
        """Yield the first examples; None: all of them."""
        yield from map(self._examples.listed, self._rows[:count].tolist())

    def by_shard(self) -> Iterator[tuple[str, Sequence[ListedExample]]]:
        """Yield each shard with its examples, in the order of its records."""
        places: dict[str, list[int]] = defaultdict(list)
        for row in self._rows.tolist():
            places[self._examples.shard(row)].append(row)
        for shard, rows in sorted(places.items()):
            listed = map(self._examples.listed, rows)
            yield shard, sorted(listed, key=lambda example: example.record)


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
    condition = Condition.parse(where)
    root = storage.normal(output)
    dataset = read_dataset(root)
    if split is not None and split not in dataset.splits:
        names = ", ".join(dataset.splits)
        raise UsageError(f"{output}: no split {split!r}; there are {names}")
    examples = _read(root, dataset)
    fits = condition.matches(examples.columns(), len(examples))
    if split is not None:
        fits &= np.asarray(examples.table["split"].combine_chunks()) == split
    return Matches(root, dataset, examples, np.flatnonzero(fits))


class _Examples:
    """All examples of a dataset, their labels and their findings."""

    def __init__(self, table: Any, dataset: Dataset, findings: Sequence[LintFinding]) -> None:
        self.table = table.combine_chunks()
        self._splits = tuple(dataset.splits)
        self._has_labels = dataset.task in TASKS and TASKS[dataset.task].names_payloads
        annotations = self.table["annotation"].combine_chunks().dictionary_encode()
        self._codes = annotations.indices.fill_null(-1).to_numpy()
        self._labels: list[tuple[str, ...]] = []
        if self._has_labels:
            task = _task_of(dataset)
            texts = annotations.dictionary.to_pylist()
            self._labels = [tuple(task.labels(text)) for text in texts]
        found = _rows_of(findings, self.table)
        self._findings = [item for item, row in zip(findings, found, strict=True) if row >= 0]
        self._rows = found[found >= 0]
        self._of_row: dict[int, list[LintFinding]] = defaultdict(list)
        for item, row in zip(self._findings, self._rows.tolist(), strict=True):
            self._of_row[row].append(item)

    def __len__(self) -> int:
        return len(self.table)

    def columns(self) -> Mapping[str, Values]:
        """Return what conditions may name."""
        text = {name: Values(self.table[name].cast(pa.string())) for name in _TEXTS}
        numbers = {name: Values(self.table[name]) for name in _NUMBERS}
        found = {
            name: Values(pa.array([getattr(i, name) for i in self._findings], pa.string()), at)
            for name, at in dict.fromkeys(_FINDING, self._rows).items()
        }
        found["code"] = found["code"]._replace(known=tuple(CHECKS))
        found["level"] = found["level"]._replace(known=(ERROR, WARNING))
        text["split"] = text["split"]._replace(known=self._splits)
        labels = {"label": self._label_values()} if self._has_labels else {}
        return {"split": text.pop("split"), **labels, **found, **text, **numbers}

    def _label_values(self) -> Values:
        counts = np.array([*map(len, self._labels), 0], np.intp)[self._codes]
        rows = np.repeat(np.arange(len(self)), counts)
        # The places of each example's labels among those of all annotations, one behind the other.
        flat = [label for labels in self._labels for label in labels]
        starts = np.cumsum([0, *map(len, self._labels)])[self._codes]
        inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(starts, counts) + inside
        return Values(pa.array(flat, pa.string()).take(pa.array(places)), rows)

    def shard(self, row: int) -> str:
        """Return the shard of an example."""
        return str(self.table["shard"][row].as_py())

    def listed(self, row: int) -> ListedExample:
        """Return an example."""
        names = ("split", "shard", "record", "source", "line", "uri")
        said = {name: self.table[name][row].as_py() for name in names}
        if is_content_uri(said["uri"]):
            said["uri"] = ""
        code = int(self._codes[row])
        labels = self._labels[code] if self._labels and code >= 0 else ()
        return ListedExample(**said, labels=labels, findings=tuple(self._of_row.get(row, ())))


def _task_of(dataset: Dataset) -> Any:
    schema = dataset.options.get("schema", "")
    return task_for(ConvertOptions(task=dataset.task, schema=schema))


def _read(root: str, dataset: Dataset) -> _Examples:
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
    names = list(dict.fromkeys((*_TEXTS, *_NUMBERS, "annotation")))
    try:
        table = parquet.read_table(io.BytesIO(data), columns=names)
        findings = first_lines(storage.join(root, LINT_FILE), LintFinding, sys.maxsize)
        return _Examples(table, dataset, findings)
    except (pa.ArrowException, KeyError) as exc:
        raise SourceError(f"{path}: not written by this version: {exc}") from exc


def _rows_of(findings: Sequence[LintFinding], table: Any) -> npt.NDArray[np.int64]:
    """Return the example that each finding is about, int [n]; -1: it is about the dataset."""
    rows: npt.NDArray[np.int64] = np.full(len(findings), -1)
    sources = table["source"].cast(pa.string()).combine_chunks().dictionary_encode()
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
