"""Join several datasets into one, such as the spans of a rolling window. Pure functions.

Labels are matched by name and get new numbers: first the labels of the dataset with the most
labels, then the labels that the others add. If each dataset keeps the numbers of the one before
(``vocabulary``, ``previous``), these are the numbers of the newest dataset, and all stored numbers
stay right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordgen.core.dataset.counts import RowCounts, Split, dataset_digest
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.dataset.splits import split_order
from recordgen.core.dataset.vocabulary import join_names
from recordgen.core.image_settings import MIXED, Encoding
from recordgen.errors import DataError
from recordgen.features import FeatureSpec
from recordgen.version import __version__


def join_datasets(parts: Sequence[tuple[str, Dataset]]) -> Dataset:
    """Return one dataset with the shards of all, given their paths and contents.

    Raises: DataError: they hold examples of different tasks, columns or features.
    """
    (_, first), *others = parts
    if not others:
        return first
    for name in ("task", "folder"):
        _need_one(parts, name, [getattr(dataset, name) for _, dataset in parts])
    _need_one(parts, "schema", [dataset.options.get("schema", "") for _, dataset in parts])
    options = {**first.options, "table": _join_tables(parts)}
    if not options["table"]:
        _need_one(parts, "features", [_without_gaps(dataset.features) for _, dataset in parts])
    if len({dataset.options.get("check") for _, dataset in parts}) > 1:
        options["check"] = "header"  # not every image was decoded
    options["encode"] = str(_join([dataset.encoding for _, dataset in parts]))
    datasets = [dataset for _, dataset in parts]
    labels = join_names([dataset.labels for dataset in datasets])
    return replace(with_parts(first, datasets), labels=labels, options=options)


def with_parts(dataset: Dataset, parts: Sequence[Dataset]) -> Dataset:
    """Return ``dataset`` with the sources, rows, splits and features of all parts, in their order.

    Its options, labels and other measures stay.
    """
    splits = {
        name: Split.merge([part.splits[name] for part in parts if name in part.splits])
        for name in sorted({name for part in parts for name in part.splits}, key=split_order)
    }
    return replace(
        dataset,
        features=_join_features([part.features for part in parts]),
        inexact=join_names([part.inexact for part in parts]),
        objects=join_names([part.objects for part in parts]),
        keypoints=next((part.keypoints for part in parts if part.keypoints), {}),
        source=tuple(dict.fromkeys(path for part in parts for path in part.source)),
        splits=splits,
        rows=RowCounts.merge([part.rows for part in parts]),
        digest=dataset_digest([shard for split in splits.values() for shard in split.shards]),
    )


def _join_features(parts: Sequence[Mapping[str, FeatureSpec]]) -> Mapping[str, FeatureSpec]:
    """Return the features of several datasets; one that a record may lack has a default."""
    found = dict(parts[0])
    for features in parts[1:]:
        for name, spec in features.items():
            if name not in found or spec.has_gaps or found[name].default is None:
                found[name] = spec
    return found


def _without_gaps(features: Mapping[str, FeatureSpec]) -> Mapping[str, FeatureSpec]:
    return {
        name: replace(spec, default=None) if spec.has_gaps else spec
        for name, spec in features.items()
    }


def are_renumbered(labels: Sequence[str], datasets: Sequence[Dataset]) -> bool:
    """Return whether a label's number in ``labels`` may differ from its number in a record."""
    return any(tuple(labels[: len(each.labels)]) != each.labels for each in datasets)


def _join_tables(parts: Sequence[tuple[str, Dataset]]) -> str:
    """Return the joint columns of tables; targets may be missing if one table allows it."""
    texts = [str(dataset.options.get("table", "")) for _, dataset in parts]
    if not all(texts):
        _need_one(parts, "columns", texts)
        return ""
    # Notes count the values of one table.
    no_notes = {"notes": [], "markers": [], "target_kind": ""}
    tables: list[dict[str, Any]] = [{**json.loads(text), **no_notes} for text in texts]
    has_gaps = any(table.get("has_gaps") for table in tables)
    tables = [{**table, "has_gaps": has_gaps} for table in tables]
    _need_one(parts, "columns", tables)
    return json.dumps(tables[0], ensure_ascii=False)


def _need_one(parts: Sequence[tuple[str, Dataset]], what: str, values: Sequence[object]) -> None:
    """Check that all datasets agree. Raises: DataError."""
    for (root, _), value in zip(parts, values, strict=True):
        if value != values[0]:
            raise DataError(
                f"{parts[0][0]} and {root} differ in {what}, so they cannot be read as one "
                f"(got {values[0]!r} and {value!r}); convert them together, or read one of them"
            )


def _join(encodings: Sequence[Encoding]) -> Encoding:
    """Return an encoding that covers the images of all datasets: each record names its format."""
    first, *others = dict.fromkeys(encodings)
    if not others:
        return first
    is_raw = any(encoding.pixels for encoding in encodings)
    return Encoding(pixels=MIXED if is_raw else "")


def dataset_of(task: str, splits: Mapping[str, Split], **known: Any) -> Dataset:
    """Return the dataset of records; ``known`` has other fields of :class:`Dataset`."""
    without = {"source": (), "seed": 0, "options": {}, "compression": "none", "label_kind": "none"}
    without |= {"labels": (), "rows": RowCounts(), "reencoded": {}, "warnings": (), "digest": ""}
    dataset = Dataset(
        **{**without, **known}, task=task, recordgen_version=__version__, splits=splits
    )
    return with_splits(dataset, splits)


def with_splits(dataset: Dataset, splits: Mapping[str, Split]) -> Dataset:
    """Return a dataset with other splits, in their order, and what follows from their records."""
    examples = sum(split.examples for split in splits.values())
    return replace(
        dataset,
        splits={name: splits[name] for name in sorted(splits, key=split_order)},
        rows=RowCounts(read=examples, examples=examples),
        digest=dataset_digest([shard for split in splits.values() for shard in split.shards]),
    )
