"""A table of one column of images and one of labels, which is read like image classification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recordgen.access.shards import ShardSet
from recordgen.reading.images import ImageReading
from recordgen.reading.kinds import Kind
from recordgen.reading.options import ReadOptions
from recordgen.reading.plan import ReadPlan, plan_reading
from recordgen.tasks import ImageClassification
from recordgen.tasks.tables.chosen_columns import stored_table
from recordgen.tasks.tables.pairing import check_masks
from recordgen.tasks.tables.reading import TABLES


def are_labelled_images(shards: ShardSet) -> bool:
    """Return whether shards hold one column of images and one of labels, or no declared columns."""
    if shards.dataset is None or not shards.dataset.options.get("schema"):
        return True
    return stored_table(shards).is_labelled_image


def plan_images(shards: ShardSet, options: ReadOptions) -> ReadPlan:
    """Plan how a table of one column of images and one of labels is read, as labelled images."""
    if shards.dataset is not None and shards.dataset.options.get("schema"):
        check_masks([name for name in [stored_table(shards).only_image] if name is not None])
    return plan_reading(_as_images(shards), options)


def read_images(shards: ShardSet, plan: ReadPlan, options: ReadOptions) -> ImageReading:
    """Prepare a planned reading. Raises: as :func:`plan_images`."""
    described = None if shards.dataset is None else shards.dataset.features
    return ImageReading(_as_images(shards), plan, options, described)


def _as_images(shards: ShardSet) -> ShardSet:
    """Return shards under the task of image classification, which has the same feature names."""
    dataset = shards.dataset
    if dataset is None:
        return shards
    return replace(shards, dataset=replace(dataset, task=ImageClassification.name, features={}))


def _declared(shards: ShardSet, options: Mapping[str, Any]) -> Kind:
    """Return images for one column of images and one of labels, unless ``columns`` is given."""
    return TABLES if "columns" in options or not are_labelled_images(shards) else DECLARED


DECLARED = Kind(
    options=ReadOptions,
    plan=plan_images,
    reading=read_images,
    has_target=True,
    chosen=_declared,
)
