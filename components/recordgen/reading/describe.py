"""Describe examples without a ``dataset.json``, such as those of TFX's ImportExampleGen.

    …/Transform/transformed_examples/5/Split-train/*  Split-eval/*

One pass over the records finds what ``dataset.json`` would say: counts, labels, and the columns of
a table. Nothing is written; a process keeps what it found until the files change.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import posixpath
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from recordgen import storage
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.description import Described, Description
from recordgen.core.dataset.joining import dataset_of
from recordgen.core.dataset.manifest import SPLIT_PREFIX, Dataset, read_dataset
from recordgen.core.dataset.vocabulary import build_vocabulary, with_seen
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_record
from recordgen.core.records.numbers import is_exact
from recordgen.core.task.stored import is_image
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.messages import listed
from recordgen.reading.kinds import kind_for
from recordgen.registry import TASKS
from recordgen.tables.columns import Column, Table
from recordgen.tables.roles import AUTO, Columns
from recordgen.tables.stored import table_of
from recordgen.tables.types import Weight

# The end of the name of the feature that holds the texts of labels.
_LABELS = "class/text"

# Ends of the names of features that training does not read: it numbers labels by their texts.
_UNREAD = ("source_id", "sha256", "format", "class/label")

# The files of each folder, with the size and version that they had.
_Files: TypeAlias = tuple[tuple[str, tuple[tuple[str, storage.FileInfo], ...]], ...]

_DTYPES = {bytes: "bytes", int: "int64", float: "float32"}

_log = logging.getLogger(__name__)


def describe(examples: str | Sequence[str], **given: str) -> Described:
    """Return a source for ``load``, ``input_fn`` and the other readers; reads all records once.

    Args:
        examples: the folder or URL with the ``Split-*`` folders, or several that are read as one.
        **given: the fields of :class:`Description`; ``task`` or ``dataset_json`` is needed.

    Raises:
        UsageError: there is no such task, or an argument is missing.
        DataError: the records lack a feature that the task reads.
        SourceError: there are no examples, or no ``dataset.json``.
        RecordError: a record is damaged.
    """
    roots = (examples,) if isinstance(examples, str) else tuple(examples)
    return described(roots, Description(**given))


def described(roots: tuple[str, ...], given: Description) -> Described:
    """Return the description of examples, as :func:`describe`."""
    for root in roots:
        if not storage.list_folders(root, SPLIT_PREFIX):
            raise SourceError(f"{root}: no dataset.json and no folder {SPLIT_PREFIX}… are here")
    like = read_dataset(given.dataset_json) if given.dataset_json else None
    task = given.task or (like.task if like is not None else "")
    if task not in TASKS:
        known = ", ".join(name for name in TASKS if TASKS[name].trainer is not None)
        raise UsageError(
            f"{listed(roots, str)}: no dataset.json is here; name the task of the examples with "
            f"task=…, one of {known}, or the dataset that they were made from with "
            f"dataset_json=… (got {task!r})"
        )
    one = _rows if kind_for(task).has_target else _labelled
    parts = tuple((root, one(root, task, given, like)) for root in roots)
    is_same = like is not None and all(dataset.labels == like.labels for _, dataset in parts)
    return Described(parts, renumbered=not is_same)


class _Feature:
    """The values of one feature in all records.

    Attributes:
        rows: the number of records that have values.
        dtype: their kind.
        has_several: whether a record has more than one.
        is_inexact: whether float32 cannot hold all of the whole numbers.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.dtype = ""
        self.has_several = False
        self.is_inexact = False

    def add(self, values: Sequence[Any]) -> None:
        """Count the values of a record."""
        self.rows += 1
        self.dtype = self.dtype or _DTYPES[type(values[0])]
        self.has_several |= len(values) > 1
        if self.dtype == "int64":
            self.is_inexact |= not all(map(is_exact, values))


def _labelled(root: str, task: str, given: Description, like: Dataset | None) -> Dataset:
    """Describe examples whose features are those of a task."""
    if given.columns:
        raise UsageError(f"columns is for tables, and these examples are of {task}; remove it")
    known = TASKS[task].features
    label = next(name for name in known if name.endswith(_LABELS))
    splits, seen = _scan(root, label)
    needed = [name for name, spec in known.items() if spec.default is None]
    for name in (*needed, label):
        if name not in seen and not name.endswith(_UNREAD):
            raise DataError(
                f"{root}: no record has a feature {name!r}, which {task} needs, only "
                f"{listed(sorted(seen), str)}; rename a feature when the records are written, or "
                f"in Transform, or name another task"
            )
    return _dataset(root, task, splits, like)


def _rows(root: str, task: str, given: Description, like: Dataset | None) -> Dataset:
    """Describe rows of a table: every feature with one value is a column."""
    columns, before = Columns.of(given.columns), None if like is None else table_of(like)
    target, weight, dropped = columns.target, columns.weight, set()
    if before is not None:
        if before.label is not None:
            text, number = before.label_features
            target, dropped = target or text, {number}
        target, weight = target or before.target or "", weight or before.weight or ""
    if not target:
        raise UsageError(f"{root}: name the column to predict with columns=target=NAME")
    splits, seen = _scan(root, target)
    for role, name in (("target", target), ("weight", weight)):
        if name and name not in seen:
            raise DataError(
                f"{root}: no record has a feature {name!r}, the {role}, only "
                f"{listed(sorted(seen), str)}; name the {role} with columns={role}=NAME"
            )
    prediction: Any = columns.prediction
    if prediction == AUTO and before is not None and target == before.target:
        prediction = before.prediction or AUTO
    if prediction == AUTO:
        if seen[target].dtype == "int64":
            raise UsageError(
                f"{root}: the target {target!r} holds whole numbers; say what they are with "
                f"columns=target:class={target} or columns=target:number={target}"
            )
        prediction = "classification" if seen[target].dtype == "bytes" else "regression"
    is_class = prediction == "classification"
    if seen[target].dtype == ("float32" if is_class else "bytes"):
        raise DataError(
            f"{root}: the target {target!r} is {seen[target].dtype}, not a {prediction}"
        )
    left_out = [n for n, it in seen.items() if it.has_several or is_image(n) or n in dropped]
    if left_out:
        _log.info("%s: features that are no columns of single values: %s", root, left_out)
    table = Table(
        tuple(
            Column(name, Weight) if name == weight else Column.of(name, seen[name].dtype)
            for name in sorted(seen.keys() - {*left_out})
        ),
        target=target,
        weight=weight or None,
        prediction=prediction,
        has_gaps=True,
    )
    if not is_class:
        splits = {name: replace(split, labels={}, unlabelled=0) for name, split in splits.items()}
    names = [name for name in TASKS if (kind := kind_for(name)).has_target and kind.chosen is None]
    return replace(
        _dataset(root, names[0], splits, like if is_class else None),
        options={"table": table.to_json()},
        features=table.features(),
        inexact=tuple(name for name in table.names if seen[name].is_inexact),
    )


def _scan(root: str, label: str) -> tuple[dict[str, Split], dict[str, _Feature]]:
    """Read all records; return the splits, with the values of ``label``, and the features."""
    folders = storage.list_folders(root, SPLIT_PREFIX)
    patterns = {folder: storage.join(glob.escape(root), folder, "*") for folder in folders}
    paths = {folder: storage.list_files(pattern) for folder, pattern in patterns.items()}
    files = tuple(
        (folder, tuple((path, storage.info(path)) for path in paths[folder])) for folder in folders
    )
    splits, seen = _scanned(files, label)
    if not splits:
        raise DataError(f"{root}: no record in {listed(folders, str)}")
    return splits, seen


@lru_cache(maxsize=8)  # a training asks for the same examples several times
def _scanned(files: _Files, label: str) -> tuple[dict[str, Split], dict[str, _Feature]]:
    """Read the files of each folder; return what :func:`_scan` does."""
    splits: dict[str, Split] = {}
    seen: defaultdict[str, _Feature] = defaultdict(_Feature)
    for folder, found in files:
        shards, labels, unlabelled = [], Counter[str](), 0
        for path, info in found:
            digest, count = hashlib.sha256(), 0
            for count, record in enumerate(RECORDS.read(path), 1):
                digest.update(record)
                values = parse_record(record, f"{path}: record {count - 1}")
                for name, each in values.items():
                    if each:
                        seen[name].add(each)
                given = values.get(label, ())
                texts = {it.decode() if isinstance(it, bytes) else str(it) for it in given}
                labels.update(texts)
                unlabelled += not texts
            file = storage.join(folder, posixpath.basename(path))
            shards.append(Shard(file, count, info.size, digest.hexdigest()))
        if any(shard.examples for shard in shards):
            name = folder.removeprefix(SPLIT_PREFIX)
            splits[name] = Split.of(shards, labels, unlabelled=unlabelled)
    return splits, seen


def _dataset(root: str, task: str, splits: Mapping[str, Split], like: Dataset | None) -> Dataset:
    """Return a dataset, with the label numbers of the dataset ``like`` if it has any of them."""
    labels = {label for split in splits.values() for label in split.labels}
    known = None if like is None else like.vocabulary
    if known is not None and labels & {*known.names}:
        vocabulary = with_seen(known, labels)
    else:
        vocabulary = build_vocabulary(labels)
    return dataset_of(
        task,
        splits,
        source=(root,),
        options={} if like is None else dict(like.options),
        label_kind=vocabulary.kind if labels else "none",
        labels=vocabulary.names,
        folder="" if like is None else like.folder,
        objects=() if like is None else like.objects,
        keypoints={} if like is None else like.keypoints,
    )
