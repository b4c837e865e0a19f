"""The examples of a split, a label, a finding or an import file, with their findings.

    label="cat", code="DUPLICATE"  ─▶  a.jpg of photos.csv:3, split train, labels cat, DUPLICATE

Only ``examples.parquet`` and ``lint.jsonl`` of an output are read for that, not its shards.
Without such a filter, the first records are plain Python values. Their images become files, byte
for byte or with boxes.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import features, storage
from recordgen.core.dataset import manifest
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.splits import TRAIN, find_split
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.core.rows.row import is_content_uri
from recordgen.errors import PayloadError, RecordError, SourceError, UsageError, did_you_mean
from recordgen.exports.export import Output, annotating_task, read_lines
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.messages.masking import without_secrets
from recordgen.payloads.drawing import draw_boxes, draw_mask
from recordgen.payloads.stored import stored_image
from recordgen.registry import CHECKS
from recordgen.subjects.masks import background_of
from recordgen.subjects.objects import OBJECT_FEATURES, stored_boxes
from recordgen.tasks import TASKS

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

        Raises: as :func:`recordgen.exports.inspection.extract_images`.
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
    for item in read_lines(output.path_of(manifest.LINT_FILE), LintFinding):
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
    path = output.path_of(manifest.EXAMPLES_FILE)
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


# --- records -------------------------------------------------------------------------------------


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Record:
    """One record.

    Attributes:
        file: its shard.
        index: its position among the shown records, from 0.
        features: plain values by feature name. A list of one becomes its element, except for
            features that may have several values in the task's examples.
        image_file: path of the extracted image, or None.
    """

    file: str
    index: int
    features: dict[str, Any]
    image_file: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the record with text for bytes, and the image's size instead of its bytes."""
        shown = {name: _shown(value) for name, value in self.features.items()}
        return {"file": self.file, "index": self.index, "image_file": self.image_file, **shown}


def inspect(
    output: str, *, split: str | None = None, num: int = 5, to: str | None = None
) -> list[Record]:
    """Read the first records of a split and extract their images.

    Args:
        output: a converted output, a TFX Examples uri, or a path or glob of TFRecord files.
        split: the split to read; None: ``train``, or the first split.
        num: number of records.
        to: folder for the images. A file has the bytes of ``image/encoded``; raw pixels become a
            PNG, and an image with boxes is re-encoded with the boxes and their labels drawn on it.

    Raises:
        SourceError: there are no records to read.
        SplitNotFoundError: there is no such split.
        RecordError: a shard is damaged or holds other data, or an image with boxes does not decode.
    """
    files = find_shards(output, split)
    lists = _list_features(files)
    found = []
    records = ((file, record) for file in files for record in RECORDS.read(file))
    for index, (file, record) in enumerate(islice(records, num)):
        where = f"{file}: record {index}"
        values = parse_record(record, where)
        plain = {
            name: value[0] if len(value) == 1 and name not in lists else value
            for name, value in values.items()
        }
        image = None if to is None else _extract(values, where, index, to)
        found.append(Record(file, index, plain, image))
    return found


def find_shards(output: str, split: str | None = None) -> list[str]:
    """Return the shards of one split of an output, or the files that match a pattern.

    Raises: SourceError: there are none; SplitNotFoundError: there is no such split.
    """
    output = output.removesuffix(manifest.DATASET_FILE)
    folders = storage.list_folders(output, manifest.SPLIT_PREFIX)
    if not folders:
        if files := storage.list_files(output):
            return files
        raise SourceError(
            f"{output}: no {manifest.SPLIT_PREFIX}* folders and no TFRecord files here; give an "
            f"output of recordgen convert or recordgen.write, or files of records"
        )
    names = [name.removeprefix(manifest.SPLIT_PREFIX) for name in folders]
    chosen = split or (TRAIN if TRAIN in names else names[0])
    folder = storage.join(output, manifest.split_dir(find_split(output, chosen, names)))
    return [
        storage.join(folder, name) for name, is_folder in storage.list_dir(folder) if not is_folder
    ]


def extract_images(file: str, numbers: Mapping[int, int], to: str) -> list[str]:
    """Write the images of some records of a shard, as :func:`inspect` does; return the files.

    ``numbers`` has, by the index of each record, the number that its file's name begins with.

    Raises: as :func:`inspect`; RecordError also if the shard lacks a record.
    """
    written = {
        index: _extract(parse_record(record, where), where, numbers[index], to)
        for index, record in RECORDS.read_chosen(file, numbers)
        for where in [f"{file}: record {index}"]
    }
    if missing := numbers.keys() - written:
        raise RecordError(f"{file}: no record {min(missing)}, but examples.parquet names it")
    return list(written.values())


def _list_features(files: Sequence[str]) -> frozenset[str]:
    """Return the features that stay lists even if a record has one value."""
    folder = posixpath.dirname(next(iter(files), ""))
    specs: Mapping[str, FeatureSpec] = {}
    if posixpath.basename(folder).startswith(manifest.SPLIT_PREFIX):
        with suppress(SourceError):  # other tools' records have no dataset.json
            dataset = manifest.read_dataset(posixpath.dirname(folder))
            specs = TASKS[dataset.task].features if dataset.task in TASKS else {}
            specs = {**specs, **dataset.features}
    several = (name for name, spec in specs.items() if spec.shape is None)
    return frozenset((*OBJECT_FEATURES, *several))


def _extract(values: Mapping[str, Sequence[Any]], where: str, index: int, to: str) -> str:
    """Write the image as ``00003-name.jpg``, with its boxes or mask on it; return the path."""
    if (image := stored_image(values)) is None:
        raise RecordError(f"{where}: there is no {features.IMAGE_ENCODED} to extract")
    data, suffix = image[0], _as_name(image[1]) or "bin"
    what = "boxes"
    try:
        if boxes := stored_boxes(values):
            data, suffix = draw_boxes(data, boxes)
        elif (mask := stored_image(values, features.IMAGE_MASK_ENCODED)) is not None:
            what = "mask"
            data, suffix = draw_mask(data, mask[0], background_of(values))
    except (PayloadError, ValueError) as exc:
        raise RecordError(
            f"{where}: cannot draw its {what}: {exc}; omit --to to see its features"
        ) from exc
    ids = values.get(features.IMAGE_SOURCE_ID, ())  # any type, in other tools' records
    uri = next((value for value in ids if isinstance(value, bytes)), b"")
    stem = posixpath.splitext(_as_name(uri.decode("utf-8", "replace")))[0]
    name = f"{index:05d}-{stem[:80]}.{'jpg' if suffix == 'jpeg' else suffix}"
    path = storage.inside(to, name)
    storage.write_bytes(path, data)
    return path


def _as_name(text: str) -> str:
    """Return the last component of a uri, made safe for a file name."""
    return _UNSAFE.sub("_", without_secrets(text).rsplit("/", 1)[-1])


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, float):
        digits = str(np.float32(value))  # as many as tell it from others
        return float(digits) if math.isfinite(value) else digits  # JSON has no NaN, no infinity
    if not isinstance(value, bytes):
        return value
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(value)} bytes"
    is_text = all(map(str.isprintable, text.split()))  # line breaks are allowed
    return text if is_text else f"{len(value)} bytes"
