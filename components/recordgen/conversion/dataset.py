"""Build the dataset of a run from the plan and the results of its shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from recordgen import storage
from recordgen.conversion.finalize import all_rejects
from recordgen.core.conversion import Conversion
from recordgen.core.dataset.counts import RowCounts, Split, dataset_digest, mean_psnr
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.dataset.vocabulary import with_seen
from recordgen.core.runs.staging import StagedPlan
from recordgen.core.shards.task import SplitSum
from recordgen.core.task.built import GAP, HAS, INEXACT, MEASURED, PSNR
from recordgen.core.task.task import Task
from recordgen.features import IMAGE_OBJECT_KEYPOINT_X, OBJECTS, FeatureSpec
from recordgen.formats.source import Source
from recordgen.version import __version__


def to_dataset(
    source: Source, staged: StagedPlan, results: Mapping[str, SplitSum], conversion: Conversion
) -> Dataset:
    """Build the dataset of the new shards, without the dataset that they are appended to."""
    task = conversion.task
    splits: dict[str, Split] = {}
    for name in staged.splits:
        if name in results and results[name].examples:
            split = results[name].split()
            is_labelled = task.labelling is not None
            splits[name] = split if is_labelled else replace(split, unlabelled=0)
    reencoded: Counter[str] = Counter()
    adjusted = Counter(staged.adjusted)
    for each in results.values():
        reencoded.update(each.reencoded)
        adjusted.update(each.changes)
    features, inexact = _described(task, adjusted)
    objects = tuple(name for name in OBJECTS if adjusted.pop(f"{HAS}{name}", 0))
    seen = {label for split in splits.values() for label in split.labels}
    vocabulary = with_seen(staged.vocabulary, seen)
    psnr = mean_psnr((adjusted.pop(MEASURED, 0), adjusted.pop(PSNR, 0) / 100))
    rejects = all_rejects(staged, results)
    rows = RowCounts(
        read=staged.read,
        examples=sum(split.examples for split in splits.values()),
        duplicates=staged.duplicates,
        merged=staged.merged,
        adjusted=dict(sorted(adjusted.items())),
        dropped=staged.dropped,
        existing=staged.existing,
        assigned=sum(each.assigned for each in results.values()),
        rejected=dict(sorted(Counter(item.code for item in rejects).items())),
    )
    return Dataset(
        task=task.name,
        recordgen_version=__version__,
        source=source.names,
        seed=conversion.splits.seed,
        options=conversion.recorded,
        compression=conversion.shards.compression,
        label_kind=vocabulary.kind,
        labels=vocabulary.names,
        splits=splits,
        rows=rows,
        reencoded=dict(sorted(reencoded.items())),
        psnr=psnr,
        warnings=vocabulary.warnings,
        digest=dataset_digest([shard for split in splits.values() for shard in split.shards]),
        features=features,
        inexact=inexact,
        objects=objects,
        keypoints=source.keypoints if IMAGE_OBJECT_KEYPOINT_X in objects else {},
        folder=storage.folder_of(source.names[0]) if task.by_address else "",
    )


def _described(
    task: Task, adjusted: Counter[str]
) -> tuple[Mapping[str, FeatureSpec], tuple[str, ...]]:
    """Return the features of examples, and those of whole numbers that float32 cannot hold.

    Takes what shards have counted about whole numbers out of ``adjusted``: a feature that all
    examples have needs no default.
    """
    found = dict(task.stored_features())
    for name, spec in found.items():
        if not adjusted.pop(f"{GAP}{name}", 0) and spec.has_gaps:
            found[name] = replace(spec, default=None)
    return found, tuple(name for name in found if adjusted.pop(f"{INEXACT}{name}", 0))
