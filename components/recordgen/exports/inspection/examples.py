"""The examples of a split, a label, a finding or an import file, with their findings.

    label="cat", code="DUPLICATE"  ─▶  a.jpg of photos.csv:3, split train, labels cat, DUPLICATE

Only ``examples.parquet`` and ``lint.jsonl`` of an output are read, not its shards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import EXAMPLES_FILE, LINT_FILE
from recordgen.core.dataset.splits import find_split
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import SourceError, UsageError, did_you_mean
from recordgen.exports.inspection.records import extract_images
from recordgen.exports.output import Output, annotating_task, read_lines
from recordgen.messages import listed
from recordgen.registry import CHECKS

_PLACE = ("split", "shard", "record", "source", "line", "uri")
_TEXTS = ("split", "shard", "source", "uri")

_LISTED_AT_ONCE = 10_000

_Mask = npt.NDArray[np.bool_]

# By import file and line.
_Findings = Mapping[tuple[str, int], Sequence[LintFinding]]


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An example and its findings.

    Attributes:
        shard: its shard, as ``dataset.json`` names it.
        record: its index in the shard, from 0.
        source: the import file of its first row.
        line: the line of that row, from 1.
        uri: the payload's uri as the line gives it; empty if the payload is in the row itself.
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
        found = [
            {"code": item.code, "level": item.level, "message": item.message}
            for item in self.findings
        ]
        return {**asdict(self), "labels": list(self.labels), "findings": found}


class Matches:
    """The examples that match, by import file and line."""

    def __init__(self, output: Output, table: Any, findings: _Findings) -> None:
        """Take the matching rows of :func:`_read`'s table, and findings by file and line."""
        self._output = output
        self._table = table
        self._findings = findings

    def __len__(self) -> int:
        return len(self._table)

    def first(self, count: int | None = None) -> Iterator[ListedExample]:
        """Yield the first ``count`` examples, or all."""
        for batch in self._table.slice(0, count).to_batches(max_chunksize=_LISTED_AT_ONCE):
            for row in batch.to_pylist():
                row["findings"] = tuple(self._findings.get((row["source"], row["line"]), ()))
                row["labels"] = tuple(row["labels"] or ())
                row["uri"] = "" if is_content_uri(row["uri"]) else row["uri"]
                yield ListedExample(**row)

    def extract(self, count: int | None, to: str) -> list[str]:
        """Write the images of the first examples to a folder, and return their paths.

        Raises: as :func:`recordgen.exports.inspection.records.extract_images`.
        """
        by_shard: dict[str, dict[int, int]] = defaultdict(dict)
        for number, item in enumerate(self.first(count)):
            by_shard[item.shard][item.record] = number
        written = (
            extract_images(self._output.path_of(shard), numbers, to)
            for shard, numbers in by_shard.items()
        )
        return sorted(chain.from_iterable(written))


def find_examples(
    place: str,
    *,
    split: str | None = None,
    label: str | None = None,
    code: str | None = None,
    source: str | None = None,
) -> Matches:
    """Return the examples that match all given filters.

    Args:
        place: a converted output.
        split: the split of the examples.
        label: one of their labels.
        code: the code of a finding about them.
        source: path or name of their import file.

    Raises:
        SplitNotFoundError: there is no such split.
        UsageError: there is no such label, code or import file, or the dataset was written
            from Python and has no ``examples.parquet``.
        SourceError: there is no finished dataset, or its files are damaged.
        StorageError: storage failed.
    """
    output = Output.open(place)
    table = _read(output)
    findings: dict[tuple[str, int], list[LintFinding]] = defaultdict(list)
    for item in read_lines(output.path_of(LINT_FILE), LintFinding):
        findings[item.source, item.line].append(item)
    fits: _Mask = np.ones(len(table), np.bool_)
    if split is not None:
        name = find_split(output.root, split, list(output.dataset.splits))
        fits &= pc.equal(table["split"], name).to_numpy()
    if label is not None:
        _need_known("label", label, output.dataset.labels)
        fits &= _has_label(table, label)
    if code is not None:
        code = code.upper()
        _need_known("code", code, {*CHECKS, *output.dataset.lint})
        fits &= _has_code(table, code, findings)
    if source is not None:
        fits &= _is_from(table, source)
    return Matches(output, table.filter(pa.array(fits)), findings)


def _need_known(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        hint = did_you_mean(name, known, f"; there are {listed(known, str)}" if known else "")
        raise UsageError(f"no {kind} is {name!r}{hint}")


def _has_label(table: Any, label: str) -> _Mask:
    labels = table["labels"].combine_chunks()
    fits: _Mask = np.zeros(len(table), np.bool_)
    rows = pc.list_parent_indices(labels).to_numpy()
    fits[rows[pc.equal(pc.list_flatten(labels), label).to_numpy(zero_copy_only=False)]] = True
    return fits


def _has_code(table: Any, code: str, findings: _Findings) -> _Mask:
    named = {line for line, items in findings.items() if any(it.code == code for it in items)}
    lines = pa.array([line for _, line in named], pa.int64())
    fits = np.array(pc.is_in(table["line"], value_set=lines))
    at = np.flatnonzero(fits)  # of any import file
    sources = table["source"].take(pa.array(at)).to_pylist()
    places = zip(sources, table["line"].take(pa.array(at)).to_pylist(), strict=True)
    fits[at] = [place in named for place in places]
    return fits


def _is_from(table: Any, source: str) -> _Mask:
    """Return the rows of an import file, which ``source`` may name without its folder."""
    sources = pc.unique(table["source"]).to_pylist()
    meant = [each for each in sources if each == source or each.endswith(f"/{source}")]
    if not meant:
        _need_known("source", source, sources)
    return np.asarray(pc.is_in(table["source"], value_set=pa.array(meant, pa.string())))


def _read(output: Output) -> Any:
    """Return places and labels of all examples as a table.

    Labels are lists of strings; null if the task has none or the row gives none.
    """
    path = output.path_of(EXAMPLES_FILE)
    found = output.examples((*_PLACE, "annotation"))
    if found is None:
        raise UsageError(
            f"{path}: no such file; --label, --code and --source need it, and only `recordgen "
            f"convert` writes it"
        )
    try:
        columns = {name: found[name] for name in _PLACE}
        annotations = found["annotation"].combine_chunks().dictionary_encode()
    except KeyError as exc:
        raise SourceError(f"{path}: not written by this version: {exc}") from exc
    texts = {name: columns[name].cast(pa.string()) for name in _TEXTS}
    labels: list[Any] = [None] * len(annotations.dictionary)
    if (task := annotating_task(output.dataset)) is not None:
        labels = [task.labels(text) for text in annotations.dictionary.to_pylist()]
    of_rows = pa.array(labels, pa.list_(pa.string())).take(annotations.indices)
    table = pa.table({**columns, **texts, "labels": of_rows})
    order = pc.sort_indices(table, [("source", "ascending"), ("line", "ascending")])
    return table.take(order)
